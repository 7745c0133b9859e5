package s3_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/gate/sinktest"
	"github.com/packhof/packhof/internal/testkit"
)

func TestSuite(t *testing.T) {
	sinktest.Run(t, func(t testing.TB, _ func() *gate.Gate) sinktest.Harness {
		s := newStore(t)
		return sinktest.Harness{
			Sink: s.sink,
			Read: func(_ testing.TB, name gate.Name) map[string][]byte { return s.seen(name) },
			Dump: func(testing.TB) map[string][]byte {
				all := map[string][]byte{}
				for key, text := range s.objects() {
					all[key] = []byte(text)
				}
				return all
			},
			Lose:        func(_ testing.TB, name gate.Name) { s.lose(name) },
			Interrupt:   func(_ testing.TB, cancel context.CancelFunc) { s.interrupt(cancel) },
			Unreachable: func(t testing.TB) { closeNow(t, s.server) },
		}
	})
}

// seen is what a client finds that goes by SHA256SUMS: files by their paths,
// the blobs of an image layout by digest.
func (s *store) seen(name gate.Name) map[string][]byte {
	s.t.Helper()
	dir := name.Repository + "/" + name.Tag
	have := s.objects()
	list, ok := have[dir+"/SHA256SUMS"]
	if !ok {
		return nil
	}
	s.check(dir)
	_, isLayout := have[dir+"/oci-layout"]
	seen := map[string][]byte{}
	for line := range strings.Lines(list) {
		_, path, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		hex, isBlob := strings.CutPrefix(path, "blobs/sha256/")
		switch {
		case strings.HasPrefix(path, ".packhof/"):
		case !isLayout:
			seen[path] = []byte(have[dir+"/"+path])
		case isBlob:
			seen["sha256:"+hex] = []byte(have[dir+"/"+path])
		}
	}
	return seen
}

// lose takes away the largest object of a name.
func (s *store) lose(name gate.Name) {
	s.t.Helper()
	largest, size := "", -1
	for key, text := range s.objects() {
		if strings.HasPrefix(key, name.Repository+"/"+name.Tag+"/") && !strings.HasSuffix(key, "/SHA256SUMS") && len(text) > size {
			largest, size = key, len(text)
		}
	}
	if err := s.client.Delete(s.t.Context(), largest); err != nil {
		s.t.Fatal(err)
	}
}

// interrupt calls cancel when the first large object is on its way.
func (s *store) interrupt(cancel context.CancelFunc) {
	large := testkit.FirstN(1, func(r *http.Request) bool { return r.Method == http.MethodPut && r.ContentLength > mib })
	s.server.SetFault(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if large(r) {
				cancel()
			}
			next.ServeHTTP(w, r)
		})
	})
}

func closeNow(t testing.TB, server *testkit.S3) {
	t.Helper()
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
}

package depot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
)

// withBlob is a shelf with one blob of random bytes, and its path at a server.
func withBlob(t testing.TB, size int) (s *shelf, d bundle.Digest, content []byte, path string) {
	t.Helper()
	s = newShelf(t)
	content = testkit.Bytes("blob", size)
	d = s.put(content)
	s.show("r", gate.DepotBlob{Digest: d, MediaType: "application/x", Size: int64(size)})
	return s, d, content, "/v2/r/blobs/" + d.String()
}

// sizes around the limits at which the way of proving changes.
func sizes() []int {
	return []int{0, 1, 511, 512, 513, provenFirst - 1, provenFirst, provenFirst + 1, provenFirst + heldBack, 3 << 20}
}

func TestWholeBlobs(t *testing.T) {
	for _, size := range sizes() {
		s, d, content, path := withBlob(t, size)
		server := s.serve(Options{})
		for range 2 { // proven now, and known
			got := ask(t, "GET", server.URL+path)
			if got.StatusCode != 200 || got.ContentLength != int64(size) || got.body != string(content) {
				t.Errorf("%d bytes: %d, %d bytes announced, %d came", size, got.StatusCode, got.ContentLength, len(got.body))
			}
			if got.Header.Get("Content-Type") != typeBytes || got.Header.Get("Docker-Content-Digest") != d.String() || got.Header.Get("Accept-Ranges") != "bytes" {
				t.Errorf("%d bytes: %v", size, got.Header)
			}
		}
		if got := ask(t, "HEAD", server.URL+path, "Range: bytes=0-0"); got.StatusCode != 200 || got.ContentLength != int64(size) {
			t.Errorf("HEAD: %d, %d bytes announced", got.StatusCode, got.ContentLength)
		}
	}
}

func TestParts(t *testing.T) {
	s, d, content, path := withBlob(t, 5<<20)
	n := len(content)
	server := s.serve(Options{})
	etag := `If-Range: "` + d.String() + `"`
	for _, tc := range []struct {
		name     string
		header   []string
		status   int
		want     []byte
		wantSpan string
	}{
		{"first byte", []string{"Range: bytes=0-0"}, 206, content[:1], fmt.Sprintf("bytes 0-0/%d", n)},
		{"middle", []string{"Range: bytes=1000-1999"}, 206, content[1000:2000], fmt.Sprintf("bytes 1000-1999/%d", n)},
		{"to the end", []string{"Range: bytes=5242870-"}, 206, content[5242870:], fmt.Sprintf("bytes 5242870-%d/%d", n-1, n)},
		{"last", []string{"Range: bytes=-5"}, 206, content[n-5:], fmt.Sprintf("bytes %d-%d/%d", n-5, n-1, n)},
		{"beyond", []string{"Range: bytes=5242870-99999999999"}, 206, content[5242870:], fmt.Sprintf("bytes 5242870-%d/%d", n-1, n)},
		{"all", []string{"Range: bytes=0-"}, 206, content, fmt.Sprintf("bytes 0-%d/%d", n-1, n)},
		{"more than all from the end", []string{"Range: bytes=-99999999"}, 206, content, fmt.Sprintf("bytes 0-%d/%d", n-1, n)},
		{"same content", []string{"Range: bytes=0-0", etag}, 206, content[:1], fmt.Sprintf("bytes 0-0/%d", n)},
		{"other content", []string{"Range: bytes=0-0", `If-Range: "other"`}, 200, content, ""},
		{"of a date", []string{"Range: bytes=0-0", "If-Range: Mon, 30 Nov 2026 12:00:00 GMT"}, 200, content, ""},
		{"behind the end", []string{"Range: bytes=5242880-"}, 416, nil, fmt.Sprintf("bytes */%d", n)},
		{"backwards", []string{"Range: bytes=9-3"}, 416, nil, ""},
		{"overflow", []string{"Range: bytes=9223372036854775807-9223372036854775808"}, 416, nil, fmt.Sprintf("bytes */%d", n)},
		{"overflow of int64", []string{"Range: bytes=99999999999999999999-"}, 416, nil, ""},
		{"no number", []string{"Range: bytes=a-b"}, 416, nil, ""},
		{"negative", []string{"Range: bytes=--5"}, 416, nil, ""},
		{"two", []string{"Range: bytes=0-0,5-9"}, 200, content, ""},
		{"very many", []string{"Range: bytes=0-0" + strings.Repeat(",0-0", 10_000)}, 200, content, ""},
		{"two headers", []string{"Range: bytes=0-0", "Range: bytes=5-9"}, 200, content, ""},
		{"another unit", []string{"Range: items=0-0"}, 200, content, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ask(t, "GET", server.URL+path, tc.header...)
			if got.StatusCode != tc.status || got.Header.Get("Content-Range") != tc.wantSpan {
				t.Errorf("%d, Content-Range %q, want %d and %q", got.StatusCode, got.Header.Get("Content-Range"), tc.status, tc.wantSpan)
			}
			if tc.want != nil && got.body != string(tc.want) {
				t.Errorf("%d bytes, want %d", len(got.body), len(tc.want))
			}
		})
	}
}

func TestConditions(t *testing.T) {
	s, d, content, path := withBlob(t, 100)
	server := s.serve(Options{})
	etag := `"` + d.String() + `"`
	for _, tc := range []struct {
		header string
		status int
	}{
		{"If-None-Match: " + etag, 304},
		{`If-None-Match: "x", W/` + etag, 304},
		{"If-None-Match: *", 304},
		{`If-None-Match: "x"`, 200},
		{"If-Match: " + etag, 200},
		{`If-Match: "x"`, 412},
		{"If-Modified-Since: Mon, 30 Nov 2099 12:00:00 GMT", 200},
	} {
		got := ask(t, "GET", server.URL+path, tc.header)
		wantBody := tc.status == 200
		if got.StatusCode != tc.status || (got.body == string(content)) != wantBody {
			t.Errorf("%s: %d with %d bytes, want %d", tc.header, got.StatusCode, len(got.body), tc.status)
		}
	}
}

// spoil changes one byte of a stored blob.
func spoil(t *testing.T, s *shelf, d bundle.Digest, at int64) {
	t.Helper()
	spoilFile(t, s.store.Path(d), at)
}

// spoilFile changes one byte in place and sets the time of modification back,
// as damage of a disk does not show.
func spoilFile(t *testing.T, name string, at int64) {
	t.Helper()
	info := must(os.Stat(name))
	if err := os.Chmod(name, 0o600); err != nil {
		t.Fatal(err)
	}
	f := must(os.OpenFile(name, os.O_RDWR, 0))
	var b [1]byte
	must(f.ReadAt(b[:], at))
	b[0] ^= 1
	must(f.WriteAt(b[:], at))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(name, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
}

// A client never takes rotten bytes for the whole: it gets an error, or less
// than it was promised.
func TestDamageNeverArrivesWhole(t *testing.T) {
	for _, size := range sizes()[1:] {
		for _, at := range []int64{0, int64(size) - 1} {
			t.Run(fmt.Sprintf("%d at %d", size, at), func(t *testing.T) {
				s, d, _, path := withBlob(t, size)
				spoil(t, s, d, at)
				var log bytes.Buffer
				server := s.serve(Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
				for range 2 {
					got, err := tryAsk(t, "GET", server.URL+path)
					if whole := err == nil && got.StatusCode == 200; whole {
						t.Fatalf("all %d bytes came", len(got.body))
					}
					if size <= provenFirst && (err != nil || got.StatusCode != 500) {
						t.Errorf("%v, %v, want an answer that says so", got.Response, err)
					}
				}
				server.Close() // waits for the handlers, which write the log
				if !strings.Contains(log.String(), "content/corrupt") || !strings.Contains(log.String(), d.String()) {
					t.Errorf("the operator reads %q", log.String())
				}
			})
		}
	}
}

// The same over HTTP/2, where a connection is not cut but a stream reset.
func TestDamageOverHTTP2(t *testing.T) {
	for _, size := range []int{1000, 2 << 20} {
		s, d, content, path := withBlob(t, size)
		server := s.serveTLS()
		for _, damaged := range []bool{false, true} {
			if damaged {
				spoil(t, s, d, int64(size)/2)
			}
			response := must(server.Client().Get(server.URL + path))
			body, err := io.ReadAll(response.Body)
			whole := err == nil && response.StatusCode == 200
			if response.ProtoMajor != 2 || whole == damaged || whole && !bytes.Equal(body, content) {
				t.Errorf("%s, damaged %t: %d, %d bytes, %v", response.Proto, damaged, response.StatusCode, len(body), err)
			}
			if err := response.Body.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestSizeThatIsNotThePromised(t *testing.T) {
	for _, change := range []int64{-1, 1} {
		s, d, content, path := withBlob(t, 2<<20)
		if err := os.Chmod(s.store.Path(d), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(s.store.Path(d), int64(len(content))+change); err != nil {
			t.Fatal(err)
		}
		server := s.serve(Options{})
		for _, header := range []string{"Accept: */*", "Range: bytes=0-9"} {
			if got := ask(t, "GET", server.URL+path, header); got.StatusCode != 500 {
				t.Errorf("%+d bytes, %s: %d", change, header, got.StatusCode)
			}
		}
	}
	s, d, _, path := withBlob(t, 100)
	if err := os.Remove(s.store.Path(d)); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, "GET", s.serve(Options{}).URL+path); got.StatusCode != 500 {
		t.Errorf("a file that is gone: %d", got.StatusCode)
	}
}

// What is remembered of a proof ends with any change of the file, and with the
// hour.
func TestProofsAreForgotten(t *testing.T) {
	s, d, content, path := withBlob(t, 2<<20)
	clock := testkit.NewClock(testkit.Noon())
	server := s.serve(Options{Clock: clock.Now})
	// A request opens the file to send it, and once more where it proves it.
	opens := func() int64 {
		t.Helper()
		before := s.opened.Load()
		if got := ask(t, "GET", server.URL+path); got.body != string(content) {
			t.Fatalf("%d with %d bytes", got.StatusCode, len(got.body))
		}
		return s.opened.Load() - before
	}
	for i, want := range []int64{2, 1, 1} {
		if got := opens(); got != want {
			t.Errorf("request %d opened the file %d times, want %d", i, got, want)
		}
	}
	clock.Advance(proofAge)
	if got := opens(); got != 2 {
		t.Errorf("after an hour the file was opened %d times, want 2", got)
	}
	spoil(t, s, d, 17)
	if got, err := tryAsk(t, "GET", server.URL+path); err == nil {
		t.Errorf("%d: damage after the proof arrived", got.StatusCode)
	}
}

func TestNothingIsRememberedWithoutAClock(t *testing.T) {
	s, _, _, path := withBlob(t, 100)
	server := httptestServer(t, Handler(s, Options{}))
	for range 2 {
		before := s.opened.Load()
		if got := ask(t, "GET", server+path); got.StatusCode != 200 {
			t.Fatal(got.StatusCode)
		}
		if n := s.opened.Load() - before; n != 2 {
			t.Errorf("the file was opened %d times, want 2", n)
		}
	}
}

// A file that takes another's place while a client reads is not mixed with it.
func TestFileReplacedWhileItIsSent(t *testing.T) {
	s, d, content, _ := withBlob(t, 2<<20)
	p := newProver(s.Open, nil)
	f, info, err := asFile(must(s.Open(t.Context(), d)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := os.Remove(s.store.Path(d)); err != nil {
		t.Fatal(err)
	}
	s.put(content) // the same bytes: what was opened before is still not what is proven
	proof := p.join(d, int64(len(content)), info)
	defer proof.leave()
	if err := proof.wait(t.Context(), f, info); err == nil || !strings.Contains(err.Error(), "changed") {
		t.Errorf("%v, want that it changed", err)
	}
}

// slowOpen lets the reading of a proof wait for a signal.
type slowOpen struct {
	io.ReadSeekCloser
	file *os.File
	gate <-chan struct{}
	once sync.Once
}

func (s *slowOpen) Read(p []byte) (int, error) {
	s.once.Do(func() { <-s.gate })
	return s.ReadSeekCloser.Read(p)
}

func (s *slowOpen) Stat() (os.FileInfo, error) { return s.file.Stat() }

// However many ask for a blob at once, it is proven once; and not at all any
// more when all of them are gone.
func TestOneProofForAll(t *testing.T) {
	s, d, content, _ := withBlob(t, 2<<20)
	open := make(chan struct{})
	p := newProver(func(context.Context, bundle.Digest) (io.ReadSeekCloser, error) {
		f, err := s.store.OpenUnsafe(d)
		s.opened.Add(1)
		return &slowOpen{ReadSeekCloser: f, file: f, gate: open}, err
	}, testkit.NewClock(testkit.Noon()).Now)
	info := must(os.Stat(s.store.Path(d)))
	file := must(os.Open(s.store.Path(d)))
	defer func() { _ = file.Close() }()

	first := p.join(d, int64(len(content)), info)
	if second := p.join(d, int64(len(content)), info); second != first {
		t.Error("a second proof was begun beside the first")
	}
	first.leave()
	first.leave()
	close(open)
	<-first.done
	if first.err == nil {
		t.Error("the proof went on with nobody waiting")
	}

	third := p.join(d, int64(len(content)), info)
	if third == first {
		t.Fatal("a proof that was given up is handed out")
	}
	if err := third.wait(t.Context(), file, info); err != nil {
		t.Error(err)
	}
	third.leave()
	known := p.join(d, int64(len(content)), info)
	defer known.leave()
	if err := known.wait(t.Context(), file, info); err != nil || known.cancel != nil {
		t.Errorf("%v; a known proof is made again", err)
	}
	if n := s.opened.Load(); n != 2 {
		t.Errorf("%d proofs were made, want 2", n)
	}
}

func TestFullMemoryOfProofs(t *testing.T) {
	s, d, content, _ := withBlob(t, 100)
	p := newProver(s.Open, testkit.NewClock(testkit.Noon()).Now)
	info := must(os.Stat(s.store.Path(d)))
	for i := range maxProofs {
		p.proven[cas.DigestOf(fmt.Append(nil, i))] = proven{file: info, at: testkit.Noon()}
	}
	proof := p.join(d, int64(len(content)), info)
	<-proof.done
	proof.leave()
	if len(p.proven) != 1 {
		t.Errorf("%d proofs are remembered, want the last alone", len(p.proven))
	}
}

// notAFile is content that cannot tell whether it changed.
type notAFile struct{ *bytes.Reader }

func (notAFile) Close() error { return nil }

type memoryShelf struct{ *shelf }

func (m memoryShelf) Open(context.Context, bundle.Digest) (io.ReadSeekCloser, error) {
	return notAFile{bytes.NewReader([]byte("x"))}, nil
}

func TestContentThatIsNoFileIsRefused(t *testing.T) {
	s, _, _, path := withBlob(t, 1)
	if got := ask(t, "GET", httptestServer(t, Handler(memoryShelf{s}, Options{}))+path); got.StatusCode != 500 {
		t.Errorf("%d, want 500", got.StatusCode)
	}
}

func TestConcurrentPulls(t *testing.T) {
	s, d, content, path := withBlob(t, 3<<20)
	server := s.serve(Options{})
	want := sha256.Sum256(content)
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			if i%4 == 3 { // some give up, or want a part
				got, err := tryAsk(t, "GET", server.URL+path, "Range: bytes=100-199")
				if err != nil || got.body != string(content[100:200]) {
					t.Errorf("a part: %v, %d bytes", err, len(got.body))
				}
				return
			}
			got, err := tryAsk(t, "GET", server.URL+path)
			if err != nil || sha256.Sum256([]byte(got.body)) != want {
				t.Errorf("%v, %d bytes", err, len(got.body))
			}
		})
	}
	group.Wait()
	if n := s.opened.Load(); n > 16+12 {
		t.Errorf("%s was opened %d times", d.Short(), n)
	}
}

// Clients that do not read cost a connection and a file, and no memory that
// grows with what they asked for.
func TestSlowClientsHoldNoMemory(t *testing.T) {
	const clients, limit = 40, 40 * (256 << 10)
	s, _, _, path := withBlob(t, 24<<20)
	server := s.serve(Options{})
	if got := ask(t, "GET", server.URL+path); got.StatusCode != 200 { // what it costs once
		t.Fatal(got.StatusCode)
	}
	before := heap()
	for range clients {
		c := must(net.Dial("tcp", server.Listener.Addr().String()))
		defer func() { _ = c.Close() }()
		must(fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: depot\r\n\r\n", path))
		must(io.ReadFull(c, make([]byte, 1000))) // it sends, and is stuck soon
	}
	if grown := heap() - before; grown > limit {
		t.Errorf("%d clients that do not read hold %d bytes, want at most %d", clients, grown, limit)
	}
	server.CloseClientConnections()
}

// heap is what is reachable now.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what pools hold survives one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// A client that goes away in the middle is no trouble to anybody.
func TestClientThatGoesAway(t *testing.T) {
	s, d, content, path := withBlob(t, 24<<20)
	var log bytes.Buffer
	h := Handler(s, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	ended := make(chan any)
	server := httptestServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { p := recover(); ended <- p }()
		h.ServeHTTP(w, r)
	}))
	c := must(net.Dial("tcp", strings.TrimPrefix(server, "http://")))
	must(fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: depot\r\n\r\n", path))
	must(io.ReadFull(c, make([]byte, 1000)))
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case p := <-ended:
		if p != http.ErrAbortHandler {
			t.Errorf("the handler ended with %v", p)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the handler does not end")
	}
	if log.Len() > 0 {
		t.Errorf("the operator reads %q", log.String())
	}
	p := newProver(s.Open, nil)
	proof := p.join(d, int64(len(content)), must(os.Stat(s.store.Path(d))))
	proof.leave()
	if <-proof.done; len(p.running) != 0 {
		t.Error("the proof still runs")
	}
}

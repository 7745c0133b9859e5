package testkit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-containerregistry/pkg/v1/partial"
)

// faulty serves one file of 100 000 bytes behind a fault.
func faulty(t *testing.T, f Fault) (server *FileServer, content []byte) {
	t.Helper()
	content = Bytes("file", 100_000)
	return NewFileServer(t, fstest.MapFS{"file": {Data: content}}, WithFault(f)), content
}

func get(t *testing.T, s *FileServer, path string) *http.Response {
	t.Helper()
	response, err := s.Client().Get(s.URL() + path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

func TestCutAfterDropsTheConnection(t *testing.T) {
	s, content := faulty(t, CutAfter(Everything, 70_000))
	response := get(t, s, "/file")
	got, err := body(t, response)
	if err == nil {
		t.Fatal("the whole body arrived")
	}
	if response.ContentLength != int64(len(content)) {
		t.Errorf("announced %d bytes, want %d", response.ContentLength, len(content))
	}
	if !bytes.Equal(got, content[:70_000]) {
		t.Errorf("%d bytes arrived, want exactly the first 70000", len(got))
	}
}

func TestCutAfterLeavesShortBodiesAlone(t *testing.T) {
	s, content := faulty(t, CutAfter(Everything, 100_000))
	got, err := body(t, get(t, s, "/file"))
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v, want all %d", len(got), err, len(content))
	}
}

func TestCorruptKeepsTheSize(t *testing.T) {
	s, content := faulty(t, Corrupt(Everything))
	got, err := body(t, get(t, s, "/file"))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(content) || got[0] == content[0] || !bytes.Equal(got[1:], content[1:]) {
		t.Errorf("%d bytes, first %#x; want %d bytes of which the first is not %#x", len(got), got[0], len(content), content[0])
	}
}

func TestRefuseFirstTwoThenServe(t *testing.T) {
	s, _ := faulty(t, Refuse(FirstN(2, PathContains("file")), http.StatusTooManyRequests, "3"))
	if got := get(t, s, "/other").StatusCode; got != http.StatusNotFound {
		t.Errorf("another path: status %d, want 404 from the server itself", got)
	}
	for _, want := range []int{429, 429, 200, 200} {
		response := get(t, s, "/file")
		if response.StatusCode != want {
			t.Errorf("status %d, want %d", response.StatusCode, want)
		}
		if want == 429 && response.Header.Get("Retry-After") != "3" {
			t.Errorf("Retry-After %q, want 3", response.Header.Get("Retry-After"))
		}
	}
}

// hanging starts a server that answers nothing; arrived is closed by the first
// request.
func hanging(t *testing.T) (s *FileServer, arrived <-chan struct{}) {
	t.Helper()
	first := make(chan struct{})
	once := sync.OnceFunc(func() { close(first) })
	ring := Answer(func(http.ResponseWriter, *http.Request) bool {
		once()
		return false
	})
	return NewFileServer(t, fstest.MapFS{}, WithFault(ring), WithFault(Hang(Everything))), first
}

func TestHangEndsWithTheClient(t *testing.T) {
	s, arrived := hanging(t)
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-arrived
		cancel()
	}()
	if _, err := s.Client().Do(request); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the client's own cancellation", err)
	}
}

func TestHangEndsWithTheServer(t *testing.T) {
	s, arrived := hanging(t)
	failed := make(chan error, 1)
	go func() {
		response, err := s.Client().Get(s.URL())
		if err == nil {
			response.Body.Close()
		}
		failed <- err
	}()
	<-arrived
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; err == nil {
		t.Error("a hanging request was answered")
	}
}

func TestFaultsStandInFrontOfTheRegistry(t *testing.T) {
	r := NewRegistry(t)
	image := mustImage(t, ImageSpec{Seed: "fault", PayloadSize: 50_000})
	push(t, r, "app:1", image)
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	payload, err := partial.Descriptor(layers[len(layers)-1])
	if err != nil {
		t.Fatal(err)
	}
	read := func() error {
		got, err := pull(t, r, "app:1")
		if err != nil {
			return err
		}
		layer, err := got.LayerByDigest(payload.Digest)
		if err != nil {
			return err
		}
		content, err := layer.Compressed()
		if err != nil {
			return err
		}
		defer content.Close()
		_, err = io.Copy(io.Discard, content)
		return err
	}

	if err := read(); err != nil {
		t.Fatalf("without a fault: %v", err)
	}
	for name, fault := range map[string]Fault{
		"cut":     CutAfter(PathContains(payload.Digest.String()), 10_000),
		"corrupt": Corrupt(Blobs),
		"refuse":  Refuse(Manifests, http.StatusForbidden, ""),
	} {
		r.SetFault(fault)
		if err := read(); err == nil {
			t.Errorf("%s: the layer was read without an error", name)
		}
	}
	r.SetFault(nil)
	if err := read(); err != nil {
		t.Errorf("after the faults: %v", err)
	}
}

func TestFirstFaultGivenSeesTheRequestFirst(t *testing.T) {
	s := NewFileServer(t, fstest.MapFS{},
		WithFault(Refuse(Everything, http.StatusTeapot, "")), WithFault(Refuse(Everything, http.StatusConflict, "")))
	if got := get(t, s, "/").StatusCode; got != http.StatusTeapot {
		t.Errorf("status %d, want that of the first fault", got)
	}
}

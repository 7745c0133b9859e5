package testkit

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"testing"
	"testing/fstest"
)

func TestFileServerServesRanges(t *testing.T) {
	content := Bytes("ranges", 10_000)
	s := NewFileServer(t, fstest.MapFS{"dir/file.bin": {Data: content}})
	tag := fmt.Sprintf(`"sha256:%x"`, sha256.Sum256(content))
	for name, c := range map[string]struct {
		ifRange string
		status  int
		want    []byte
	}{
		"unchanged file": {tag, http.StatusPartialContent, content[9_000:]},
		"changed file":   {`"sha256:00"`, http.StatusOK, content},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequest(http.MethodGet, s.URL()+"/dir/file.bin", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Range", "bytes=9000-")
			request.Header.Set("If-Range", c.ifRange)
			response, err := s.Client().Do(request)
			if err != nil {
				t.Fatal(err)
			}
			got, err := body(t, response)
			if err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != c.status || !bytes.Equal(got, c.want) {
				t.Errorf("status %d and %d bytes, want %d and %d", response.StatusCode, len(got), c.status, len(c.want))
			}
			if got := response.Header.Get("ETag"); got != tag {
				t.Errorf("ETag %s, want %s", got, tag)
			}
		})
	}
}

func TestFileServerAsksForCredentials(t *testing.T) {
	s := NewFileServer(t, fstest.MapFS{"file": {Data: []byte("x")}}, WithBasicAuth("anna", "geheim"))
	for password, want := range map[string]int{"geheim": http.StatusOK, "falsch": http.StatusUnauthorized, "": http.StatusUnauthorized} {
		request, err := http.NewRequest(http.MethodGet, s.URL()+"/file", nil)
		if err != nil {
			t.Fatal(err)
		}
		if password != "" {
			request.SetBasicAuth("anna", password)
		}
		response, err := s.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("password %q: status %d, want %d", password, response.StatusCode, want)
		}
	}
}

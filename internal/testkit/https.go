package testkit

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"testing"
)

// FileServer serves the files of a file system over HTTPS, with ranges and
// If-Range. The ETag of a file is its digest in quotes, "sha256:…".
type FileServer struct{ *server }

// StartFileServer starts a server that runs until Close.
func StartFileServer(fsys fs.FS, opts ...Option) (*FileServer, error) {
	o := collect(opts)
	o.tls = true
	s, err := serve(guarded(withETags(fsys), o.user, o.password), o)
	if err != nil {
		return nil, err
	}
	return &FileServer{server: s}, nil
}

// NewFileServer starts a server that runs until the end of the test.
func NewFileServer(t testing.TB, fsys fs.FS, opts ...Option) *FileServer {
	t.Helper()
	s, err := StartFileServer(fsys, opts...)
	if err != nil {
		t.Fatalf("start file server: %v", err)
	}
	closeAtEnd(t, s.Close)
	return s
}

func withETags(fsys fs.FS) http.Handler {
	files := http.FileServerFS(fsys)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tag, ok := etag(fsys, r.URL.Path); ok {
			w.Header().Set("ETag", tag)
		}
		files.ServeHTTP(w, r)
	})
}

// etag hashes the file anew for every request, so that a file system that
// changes under the server is told apart.
func etag(fsys fs.FS, urlPath string) (tag string, ok bool) {
	file, err := fsys.Open(strings.TrimPrefix(urlPath, "/"))
	if err != nil {
		return "", false // the file server answers 404
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", false
	}
	return `"sha256:` + hex.EncodeToString(h.Sum(nil)) + `"`, true
}

func guarded(next http.Handler, user, password string) http.Handler {
	if user == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, p, _ := r.BasicAuth()
		if subtle.ConstantTimeCompare([]byte(u+"\x00"+p), []byte(user+"\x00"+password)) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="packhof test"`)
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

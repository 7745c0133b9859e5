package s3_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/iotest"
	"time"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/s3"
	"github.com/packhof/packhof/internal/testkit"
)

var errMedium = errors.New("the medium was taken out")

// Wrong bytes never become an object, and what was there before stays.
func TestWrongContent(t *testing.T) {
	server := testkit.NewS3(t)
	c := newClient(t, config(server))
	for name, size := range map[string]int{"whole": 1000, "in parts": 2*partSize + 5} {
		content := testkit.Bytes(name, size)
		digest := cas.DigestOf(content)
		flipped := bytes.Clone(content)
		flipped[size-1] ^= 1
		for what, bad := range map[string]struct {
			r    io.Reader
			size int
			code string
			is   error
		}{
			"other bytes":        {stream(flipped), size, "s3/content", nil},
			"too short":          {stream(content[:size-1]), size, "s3/content", nil},
			"too long":           {io.MultiReader(stream(content), stream([]byte{0})), size, "s3/content", nil},
			"nothing at all":     {stream(nil), size, "s3/content", nil},
			"fails in between":   {io.MultiReader(stream(content[:size-10]), iotest.ErrReader(errMedium)), size, "", errMedium},
			"fails at its end":   {io.MultiReader(stream(content), iotest.ErrReader(errMedium)), size, "", errMedium},
			"never gets further": {io.MultiReader(stream(content[:size-1]), idle{}), size, "", io.ErrNoProgress},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				err := c.Put(t.Context(), "new", bad.r, int64(bad.size), s3.Options{SHA256: digest})
				wantCode(t, err, bad.code)
				if bad.is != nil && !errors.Is(err, bad.is) {
					t.Errorf("got %v, want %v", err, bad.is)
				}
				wantNothing(t, c, "new")
			})
		}
	}

	put(t, c, "old", []byte("old"))
	err := c.Put(t.Context(), "old", stream(testkit.Bytes("x", 2*partSize)), 2*partSize, s3.Options{SHA256: cas.DigestOf([]byte("y"))})
	wantCode(t, err, "s3/content")
	if got, _ := read(t, c, "old", 0); string(got) != "old" {
		t.Errorf("a failed replacement left %d bytes", len(got))
	}
}

// idle is a reader that brings nothing and does not end.
type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

func TestContentWithoutDigestOrSize(t *testing.T) {
	c := newClient(t, config(testkit.NewS3(t)))
	wantCode(t, c.Put(t.Context(), "a", stream(nil), 0, s3.Options{}), "s3/content")
	wantCode(t, c.Put(t.Context(), "a", stream(nil), -1, s3.Options{SHA256: cas.DigestOf(nil)}), "s3/content")
	wantNothing(t, c, "a")
}

// spoilRequest changes the first byte of what is sent.
func spoilRequest(m testkit.Match) testkit.Fault {
	return testkit.Answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if m(r) {
			r.Body = &spoilt{ReadCloser: r.Body}
		}
		return false
	})
}

type spoilt struct {
	io.ReadCloser
	done bool
}

func (s *spoilt) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if n > 0 && !s.done {
		p[0] ^= 0xff
		s.done = true
	}
	return n, err
}

func TestBytesSpoiltOnTheWay(t *testing.T) {
	server := testkit.NewS3(t)
	c := newClient(t, config(server))
	for name, size := range map[string]int{"whole": 1000, "in parts": 2*partSize + 5} {
		content := testkit.Bytes(name, size)
		options := s3.Options{SHA256: cas.DigestOf(content)}
		t.Run(name+"/once", func(t *testing.T) {
			server.SetFault(spoilRequest(testkit.FirstN(1, isPut)))
			if err := c.Put(t.Context(), "once-"+name, stream(content), int64(size), options); err != nil {
				t.Fatal(err)
			}
			if got, _ := read(t, c, "once-"+name, 0); !bytes.Equal(got, content) {
				t.Error("other bytes are there")
			}
		})
		t.Run(name+"/always", func(t *testing.T) {
			server.SetFault(spoilRequest(isPut))
			err := c.Put(t.Context(), "always", stream(content), int64(size), options)
			server.SetFault(nil)
			wantCode(t, err, "s3/spoilt")
			wantNothing(t, c, "always")
		})
	}
}

// A server that claims to hold something else does not keep it.
func TestObjectThatIsNotWhatWasSent(t *testing.T) {
	server := testkit.NewS3(t)
	c := newClient(t, config(server))
	content := testkit.Bytes("lie", partSize+1)
	digest := cas.DigestOf(content)
	for name, headers := range map[string]map[string]string{
		"size":     {"Content-Length": "5", "X-Amz-Meta-Sha256": digest.Hex()},
		"digest":   {"Content-Length": "5242881"},
		"checksum": {"Content-Length": "5242881", "X-Amz-Meta-Sha256": digest.Hex(), "X-Amz-Checksum-Sha256": "AAAA-2"},
	} {
		t.Run(name, func(t *testing.T) {
			lies := testkit.FirstN(1, method(http.MethodHead))
			server.SetFault(testkit.Answer(func(w http.ResponseWriter, r *http.Request) bool {
				if !lies(r) {
					return false
				}
				for key, value := range headers {
					w.Header().Set(key, value)
				}
				w.Header().Set("Last-Modified", "Mon, 30 Nov 2026 12:00:00 GMT")
				return true
			}))
			err := c.Put(t.Context(), "a", stream(content), int64(len(content)), s3.Options{SHA256: digest})
			wantCode(t, err, "s3/spoilt")
			wantNothing(t, c, "a")
		})
	}
}

func TestCancelled(t *testing.T) {
	server := testkit.NewS3(t)
	settings := config(server)
	settings.Stall = time.Second // is also how long it waits for what hangs
	c := newClient(t, settings)
	content := testkit.Bytes("cancel", 4*partSize)
	options := s3.Options{SHA256: cas.DigestOf(content)}
	shutdown := errors.New("shutting down")
	for name, match := range map[string]testkit.Match{"a part": isPart, "the completion": isCompletion} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			server.SetFault(func(next http.Handler) http.Handler {
				hang := testkit.Hang(match)(next)
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if match(r) {
						cancel(shutdown)
					}
					hang.ServeHTTP(w, r)
				})
			})
			err := c.Put(ctx, "a", stream(content), int64(len(content)), options)
			server.SetFault(nil)
			if !errors.Is(err, shutdown) {
				t.Errorf("got %v, want %v", err, shutdown)
			}
			wantNothing(t, c, "a")
		})
	}
	t.Run("before anything", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		server.ForgetRequests()
		if err := c.Put(ctx, "a", stream(content), int64(len(content)), options); !errors.Is(err, context.Canceled) {
			t.Errorf("put: %v", err)
		}
		if _, err := c.Head(ctx, "a"); !errors.Is(err, context.Canceled) {
			t.Errorf("head: %v", err)
		}
		for _, err := range c.List(ctx, "") {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("list: %v", err)
			}
		}
		if asked := server.Requests(); len(asked) > 0 {
			t.Errorf("the server was asked: %v", asked)
		}
	})
}

func TestIfAbsent(t *testing.T) {
	server := testkit.NewS3(t)
	c := newClient(t, config(server))
	for name, size := range map[string]int{"whole": 1000, "in parts": 2*partSize + 5} {
		t.Run(name, func(t *testing.T) {
			content := testkit.Bytes(name, size)
			options := s3.Options{SHA256: cas.DigestOf(content), IfAbsent: true}
			if err := c.Put(t.Context(), name, stream(content), int64(size), options); err != nil {
				t.Fatal(err)
			}
			other := testkit.Bytes("other", size)
			options.SHA256 = cas.DigestOf(other)
			wantCode(t, c.Put(t.Context(), name, stream(other), int64(size), options), s3.CodeExists)
			if got, _ := read(t, c, name, 0); !bytes.Equal(got, content) {
				t.Error("the object has changed")
			}
			wantNoUploads(t, c)
		})
	}
}

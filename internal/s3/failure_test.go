package s3_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/s3"
	"github.com/packhof/packhof/internal/testkit"
)

func TestSettings(t *testing.T) {
	good := s3.Config{Endpoint: "s3.example:9000", Bucket: "b", AccessKey: "a", SecretKey: "s"}
	if _, err := s3.New(good); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*s3.Config)
		code   string
	}{
		"plain http":      {func(c *s3.Config) { c.Endpoint = "http://s3.example" }, "s3/plain-http"},
		"no endpoint":     {func(c *s3.Config) { c.Endpoint = "" }, "s3/config"},
		"other scheme":    {func(c *s3.Config) { c.Endpoint = "ftp://s3.example" }, "s3/config"},
		"a path":          {func(c *s3.Config) { c.Endpoint = "https://s3.example/bucket" }, "s3/config"},
		"keys in it":      {func(c *s3.Config) { c.Endpoint = "https://a:hunter2@s3.example" }, "s3/config"},
		"a signature":     {func(c *s3.Config) { c.Endpoint = "https://s3.example?sig=hunter2" }, "s3/config"},
		"no access key":   {func(c *s3.Config) { c.AccessKey = "" }, "s3/config"},
		"no secret key":   {func(c *s3.Config) { c.SecretKey = "" }, "s3/config"},
		"no bucket":       {func(c *s3.Config) { c.Bucket = "" }, "s3/config"},
		"small parts":     {func(c *s3.Config) { c.PartSize = 1 << 20 }, "s3/config"},
		"no certificate":  {func(c *s3.Config) { c.CA = []byte("x") }, "s3/config"},
		"climbing prefix": {func(c *s3.Config) { c.Prefix = "a/../b" }, "s3/config"},
	} {
		t.Run(name, func(t *testing.T) {
			config := good
			c.change(&config)
			_, err := s3.New(config)
			wantCode(t, err, c.code)
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("it tells a secret: %v", err)
			}
		})
	}
}

func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().String()
}

func TestServersThatCannotBeUsed(t *testing.T) {
	server := testkit.NewS3(t)
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for name, c := range map[string]struct {
		change   func(*s3.Config)
		code     string
		attempts int
	}{
		"wrong secret":      {func(c *s3.Config) { c.SecretKey = "wrong" }, "s3/credentials", 1},
		"unknown key":       {func(c *s3.Config) { c.AccessKey = "nobody" }, "s3/credentials", 1},
		"unknown bucket":    {func(c *s3.Config) { c.Bucket = "nowhere" }, "s3/no-bucket", 1},
		"unreachable":       {func(c *s3.Config) { c.Endpoint = closedPort(t) }, "s3/unreachable", s3.Attempts},
		"unknown authority": {func(c *s3.Config) { c.CA = nil }, "s3/tls-unknown-authority", 1},
		"http behind https": {func(c *s3.Config) { c.Endpoint = "https://" + plain.Listener.Addr().String() }, "s3/plain-http", 1},
	} {
		t.Run(name, func(t *testing.T) {
			waits := new(pauses)
			settings := config(server)
			settings.Sleep = waits.sleep
			c.change(&settings)
			client := newClient(t, settings)
			wantCode(t, client.Check(t.Context()), c.code)
			if waits.count != c.attempts-1 {
				t.Errorf("%d attempts, want %d", waits.count+1, c.attempts)
			}
			content := testkit.Bytes("x", partSize+1)
			for _, size := range []int64{3, partSize + 1} {
				err := client.Put(t.Context(), "a", stream(content[:size]), size, s3.Options{SHA256: cas.DigestOf(content[:size])})
				wantCode(t, err, c.code)
			}
			_, _, err := client.Open(t.Context(), "a", 0)
			wantCode(t, err, c.code)
			_, err = client.AbortStale(t.Context(), "", nil)
			wantCode(t, err, c.code)
		})
	}
	wantNothing(t, newClient(t, config(server)), "a")
}

// Without TLS nothing but the settings may decide; then it works the same.
func TestPlainHTTPWhereAllowed(t *testing.T) {
	server := testkit.NewS3(t)
	behind, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = behind.Scheme, behind.Host
			r.Out.Host = r.In.Host
		},
		Transport: server.Client().Transport,
	})
	defer plain.Close()
	settings := config(server)
	settings.Endpoint = plain.URL
	_, err = s3.New(settings)
	wantCode(t, err, "s3/plain-http")

	settings.Insecure = true
	c := newClient(t, settings)
	content := testkit.Bytes("plain", 2*partSize)
	put(t, c, "a b", content)
	if got, _ := read(t, c, "a b", 0); !bytes.Equal(got, content) {
		t.Error("other bytes come back")
	}
}

func TestAnswers(t *testing.T) {
	server := testkit.NewS3(t)
	waits := new(pauses)
	settings := config(server)
	settings.Sleep = waits.sleep
	c := newClient(t, settings)
	for _, a := range []struct {
		status   int
		s3Code   string
		code     string
		attempts int
	}{
		{403, "AccessDenied", "s3/denied", 1},
		{403, "RequestTimeTooSkewed", "s3/clock", 1},
		{403, "SignatureDoesNotMatch", "s3/credentials", 1},
		{400, "AuthorizationHeaderMalformed", "s3/region", 1},
		{404, "NoSuchBucket", "s3/no-bucket", 1},
		{400, "QuotaExceeded", "s3/full", 1},
		{507, "XMinioStorageFull", "s3/full", 1},
		{405, "MethodNotAllowed", "s3/refused", 1},
		{503, "SlowDown", "s3/failed", s3.Attempts},
		{500, "InternalError", "s3/failed", s3.Attempts},
		{429, "TooManyRequests", "s3/failed", s3.Attempts},
		{400, "BadDigest", "s3/spoilt", s3.Attempts},
	} {
		t.Run(a.s3Code, func(t *testing.T) {
			server.SetFault(testkit.Answer(func(w http.ResponseWriter, r *http.Request) bool {
				w.WriteHeader(a.status)
				fmt.Fprintf(w, "<Error><Code>%s</Code><Message>be\u202Ecause</Message><Region>eu-1</Region></Error>", a.s3Code)
				return true
			}))
			waits.count = 0
			err := c.Put(t.Context(), "a", stream(nil), 0, s3.Options{SHA256: cas.DigestOf(nil)})
			wantCode(t, err, a.code)
			if waits.count != a.attempts-1 {
				t.Errorf("%d attempts, want %d", waits.count+1, a.attempts)
			}
		})
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	server := testkit.NewS3(t)
	c := newClient(t, config(server))
	server.SetFault(testkit.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		_, err := io.WriteString(w, "<html>sign in</html")
		return err == nil
	}))
	wantCode(t, c.Check(t.Context()), "s3/protocol")
	_, err := c.Unfinished(t.Context(), "")
	wantCode(t, err, "s3/protocol")
	_, err = c.Head(t.Context(), "a")
	wantCode(t, err, "s3/protocol")

	server.SetFault(testkit.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		_, err := io.WriteString(w, `<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>a</NextKeyMarker></ListMultipartUploadsResult>`)
		return err == nil
	}))
	_, err = c.Unfinished(t.Context(), "")
	wantCode(t, err, "s3/protocol")

	server.SetFault(testkit.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		_, err := io.WriteString(w, `<ListBucketResult><Contents><Key>plant/a/b</Key></Contents><Contents><Key>plant/a/a</Key></Contents></ListBucketResult>`)
		return err == nil
	}))
	_, err = keys(c.List(t.Context(), ""))
	wantCode(t, err, "s3/protocol")

	server.SetFault(nil)
	put(t, c, "a", []byte("0123456789"))
	server.SetFault(testkit.Answer(func(_ http.ResponseWriter, r *http.Request) bool {
		r.Header.Del("Range") // as servers do that know no ranges
		return false
	}))
	_, _, err = c.Open(t.Context(), "a", 3)
	if err == nil {
		t.Error("the whole object is taken for its end")
	}
}

// What fails in passing is done again, with the same bytes.
func TestRetries(t *testing.T) {
	server := testkit.NewS3(t)
	c := newClient(t, config(server))
	any := func(*http.Request) bool { return true }
	faults := map[string]testkit.Fault{
		"two 503 in a row": testkit.Refuse(testkit.FirstN(2, any), http.StatusServiceUnavailable, ""),
		"a cut connection": testkit.Answer(func() func(http.ResponseWriter, *http.Request) bool {
			first := testkit.FirstN(1, isPut)
			return func(_ http.ResponseWriter, r *http.Request) bool {
				if first(r) {
					_, _ = io.CopyN(io.Discard, r.Body, 100) // some of it; then the connection is lost
					panic(http.ErrAbortHandler)
				}
				return false
			}
		}()),
		"the answer to a completion is lost": lost(testkit.FirstN(1, isCompletion)),
		"the answer to a part is lost":       lost(testkit.FirstN(1, isPart)),
		"the answer to a whole is lost": lost(testkit.FirstN(1, func(r *http.Request) bool {
			return isPut(r) && !isPart(r)
		})),
	}
	for name, fault := range faults {
		for what, size := range map[string]int{"whole": 1000, "in parts": 2*partSize + 5} {
			t.Run(what+"/"+name, func(t *testing.T) {
				key := what + name
				content := testkit.Bytes(key, size)
				server.SetFault(fault)
				err := c.Put(t.Context(), key, stream(content), int64(size), s3.Options{SHA256: cas.DigestOf(content), IfAbsent: true})
				server.SetFault(nil)
				if err != nil {
					t.Fatal(err)
				}
				if got, _ := read(t, c, key, 0); !bytes.Equal(got, content) {
					t.Error("other bytes are there")
				}
				wantNoUploads(t, c)
			})
		}
	}
}

// lost lets the server do what is asked and drops its answer.
func lost(m testkit.Match) testkit.Fault {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !m(r) {
				next.ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		})
	}
}

func TestServerThatDoesNotAnswer(t *testing.T) {
	server := testkit.NewS3(t)
	settings := config(server)
	settings.Stall = 200 * time.Millisecond
	c := newClient(t, settings)
	server.SetFault(testkit.Hang(testkit.Everything))
	_, err := c.Head(t.Context(), "a")
	wantCode(t, err, "s3/stalled")
}

// A server that takes no more bytes is left, and the part is sent again.
func TestServerThatTakesNothing(t *testing.T) {
	server := testkit.NewS3(t)
	settings, waits := config(server), new(pauses)
	settings.Stall = time.Second
	settings.Sleep = waits.sleep
	c := newClient(t, settings)
	release := make(chan struct{})
	first := testkit.FirstN(1, isPart)
	server.SetFault(testkit.Answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if first(r) {
			<-release // without reading: it does not even notice that the client leaves
			panic(http.ErrAbortHandler)
		}
		return false
	}))
	content := testkit.Bytes("still", 3*partSize)
	err := c.Put(t.Context(), "a", stream(content), int64(len(content)), s3.Options{SHA256: cas.DigestOf(content)})
	close(release)
	if err != nil {
		t.Fatal(err)
	}
	if waits.count == 0 {
		t.Error("nothing was sent again")
	}
	if got, _ := read(t, c, "a", 0); !bytes.Equal(got, content) {
		t.Error("other bytes are there")
	}
}

func TestInterruptedDownload(t *testing.T) {
	server := testkit.NewS3(t)
	c := newClient(t, config(server))
	content := testkit.Bytes("download", 3*mib)
	put(t, c, "a", content)
	server.SetFault(testkit.CutAfter(testkit.FirstN(1, method(http.MethodGet)), mib))
	r, _, err := c.Open(t.Context(), "a", 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	wantCode(t, err, s3.CodeInterrupted)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	rest, _ := read(t, c, "a", int64(len(got)))
	if !bytes.Equal(slices.Concat(got, rest), content) {
		t.Errorf("%d and %d bytes are not what was put", len(got), len(rest))
	}

	_, _, err = c.Open(t.Context(), "a", int64(len(content)))
	wantCode(t, err, "s3/refused")
	_, _, err = c.Open(t.Context(), "a", -1)
	wantCode(t, err, "s3/refused")
	_, _, err = c.Open(t.Context(), "b", 0)
	wantCode(t, err, s3.CodeNotFound)
	if errors.Is(err, io.EOF) {
		t.Error("not found reads like an end")
	}
}

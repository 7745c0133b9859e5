package registry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/registry"
	"github.com/packhof/packhof/internal/testkit"
)

const piece = 256 << 10 // what an upload reads at a time

// source opens the same bytes again and again, verified, and counts.
type source struct {
	b      []byte
	opened atomic.Int64
	closed atomic.Int64
}

func (s *source) digest() cas.Digest { return cas.DigestOf(s.b) }
func (s *source) size() int64        { return int64(len(s.b)) }

func (s *source) open(context.Context) (io.ReadCloser, error) {
	s.opened.Add(1)
	return s.reading(cas.Verify(bytes.NewReader(s.b), s.digest(), s.size(), "the source")), nil
}

func (s *source) reading(r io.Reader) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{r, closing(func() error { s.closed.Add(1); return nil })}
}

type closing func() error

func (c closing) Close() error { return c() }

func writer(t *testing.T, r *testkit.Registry, config registry.Config) *registry.Writer {
	t.Helper()
	config.Hosts = map[string]registry.Host{r.Host(): {PlainHTTP: r.CAPEM() == nil, CA: r.CAPEM()}}
	config.Bulk = true
	return newClient(t, config).Writer(ref(t, r.Host()+"/team/app:1"))
}

func has(t *testing.T, w *registry.Writer, d cas.Digest) bool {
	t.Helper()
	_, found, err := w.HasBlob(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func requests(r *testkit.Registry, method string) (n int) {
	for _, q := range r.Requests() {
		if q.Method == method {
			n++
		}
	}
	return n
}

func blobPut(r *http.Request) bool {
	return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/blobs/uploads/")
}

func TestBlobsOfEverySizeArrive(t *testing.T) {
	for _, tls := range []bool{false, true} {
		opts := []testkit.Option{}
		if tls {
			opts = append(opts, testkit.WithTLS(), testkit.WithBasicAuth("robot", "secret"))
		}
		r := testkit.NewRegistry(t, opts...)
		w := writer(t, r, registry.Config{})
		if tls {
			logIn(t, r.Host(), "robot", "secret")
		}
		for _, size := range []int{0, 1, piece - 1, piece, piece + 1, 3*piece - 1, 4 * piece, 4*piece + 7} {
			s := &source{b: testkit.Bytes("blob", size)}
			if has(t, w, s.digest()) {
				t.Fatalf("%d bytes are there already", size)
			}
			if err := w.PutBlob(t.Context(), s.digest(), s.size(), s.open); err != nil {
				t.Fatalf("%d bytes: %v", size, err)
			}
			if got, found, err := w.HasBlob(t.Context(), s.digest()); err != nil || !found || got != s.size() {
				t.Errorf("%d bytes: found %v with %d bytes, %v", size, found, got, err)
			}
			if s.opened.Load() != 1 || s.closed.Load() != 1 {
				t.Errorf("%d bytes: opened %d times, closed %d", size, s.opened.Load(), s.closed.Load())
			}
			if got := read(t, r, s); !bytes.Equal(got, s.b) {
				t.Errorf("%d bytes are others at the registry", size)
			}
		}
	}
}

// read reads a blob back as any client would.
func read(t *testing.T, r *testkit.Registry, s *source) []byte {
	t.Helper()
	config := registry.Config{Hosts: map[string]registry.Host{r.Host(): {PlainHTTP: r.CAPEM() == nil, CA: r.CAPEM()}}, Sleep: new(pauses).sleep}
	c, err := registry.New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	blob, err := c.Blob(t.Context(), ref(t, r.Host()+"/team/app:1"), s.digest(), s.size())
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(blob)
	if err := errors.Join(err, blob.Close()); err != nil {
		t.Fatal(err)
	}
	return b
}

// What is wrong with the content is said as it is, at once, and the registry
// never gets the end of it.
func TestWrongContentIsNeverUploaded(t *testing.T) {
	good := testkit.Bytes("good", 5*piece)
	flipped := bytes.Clone(good)
	flipped[10] ^= 1
	lost := errors.New("the disk is gone")
	for name, c := range map[string]struct {
		content func() (io.Reader, error)
		want    func(error) bool
	}{
		"a flipped bit":   {func() (io.Reader, error) { return verified(flipped, good), nil }, isCorrupt},
		"too short":       {func() (io.Reader, error) { return verified(good[:len(good)-1], good), nil }, isCorrupt},
		"too long":        {func() (io.Reader, error) { return verified(append(bytes.Clone(good), 0), good), nil }, isCorrupt},
		"short, unproven": {func() (io.Reader, error) { return bytes.NewReader(good[:len(good)-1]), nil }, isCorrupt},
		"a broken end": {func() (io.Reader, error) {
			return io.MultiReader(bytes.NewReader(good[:piece+1]), failing{io.ErrUnexpectedEOF}), nil
		}, is(io.ErrUnexpectedEOF)},
		"a broken middle": {func() (io.Reader, error) { return io.MultiReader(bytes.NewReader(good[:piece+1]), failing{lost}), nil }, is(lost)},
		"not there":       {func() (io.Reader, error) { return nil, fs.ErrNotExist }, is(fs.ErrNotExist)},
	} {
		t.Run(name, func(t *testing.T) {
			taken := &counting{ended: make(chan struct{}, 10)}
			r := testkit.NewRegistry(t, testkit.WithFault(taken.fault))
			w := writer(t, r, registry.Config{})
			opened := 0
			err := w.PutBlob(t.Context(), cas.DigestOf(good), int64(len(good)), func(context.Context) (io.ReadCloser, error) {
				opened++
				content, err := c.content()
				return io.NopCloser(content), err
			})
			if !c.want(err) {
				t.Errorf("error %v", err)
			}
			if opened != 1 {
				t.Errorf("opened %d times", opened)
			}
			if has(t, w, cas.DigestOf(good)) {
				t.Error("the blob is there")
			}
			for range requests(r, http.MethodPut) {
				<-taken.ended // what is on its way arrives
			}
			if last := int64(len(good) - piece); taken.n.Load() > last {
				t.Errorf("the registry got %d bytes, beyond the %d that may be sent unproven", taken.n.Load(), last)
			}
		})
	}
}

func verified(b, want []byte) io.Reader {
	return cas.Verify(bytes.NewReader(b), cas.DigestOf(want), int64(len(want)), "the source")
}

func isCorrupt(err error) bool {
	_, ok := errors.AsType[*cas.CorruptError](err)
	return ok
}

func is(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// counting counts the bytes of uploads that reach the server.
type counting struct {
	n     atomic.Int64
	ended chan struct{} // of each upload
}

func (c *counting) fault(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if blobPut(r) {
			r.Body = &counted{r.Body, &c.n}
			defer func() { c.ended <- struct{}{} }()
		}
		next.ServeHTTP(w, r)
	})
}

type counted struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// cutUpload takes n bytes of an upload and drops the connection.
func cutUpload(m testkit.Match, n int64) testkit.Fault {
	return testkit.Answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if !m(r) {
			return false
		}
		_, _ = io.CopyN(io.Discard, r.Body, n) // what arrives before the cut is no matter
		panic(http.ErrAbortHandler)
	})
}

func TestUploadsBeginAgain(t *testing.T) {
	anyOf := func(method string) testkit.Match { return func(r *http.Request) bool { return r.Method == method } }
	for name, fault := range map[string]testkit.Fault{
		"busy at the beginning": testkit.Refuse(testkit.FirstN(2, anyOf(http.MethodPost)), 503, ""),
		"busy at the end":       testkit.Refuse(testkit.FirstN(2, blobPut), 502, ""),
		"too many":              testkit.Refuse(testkit.FirstN(1, blobPut), 429, "1"),
		"cut at once":           cutUpload(testkit.FirstN(1, blobPut), 0),
		"cut in the middle":     cutUpload(testkit.FirstN(2, blobPut), 2*piece),
	} {
		t.Run(name, func(t *testing.T) {
			r := testkit.NewRegistry(t, testkit.WithFault(fault))
			p := new(pauses)
			w := writer(t, r, registry.Config{Sleep: p.sleep})
			s := &source{b: testkit.Bytes("again", 4*piece)}
			if err := w.PutBlob(t.Context(), s.digest(), s.size(), s.open); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(read(t, r, s), s.b) {
				t.Error("other bytes arrived")
			}
			if len(p.all) == 0 || s.opened.Load() != s.closed.Load() {
				t.Errorf("%d pauses; opened %d times and closed %d", len(p.all), s.opened.Load(), s.closed.Load())
			}
		})
	}
}

func TestUploadsGiveUp(t *testing.T) {
	r := testkit.NewRegistry(t, testkit.WithFault(testkit.Refuse(blobPut, 503, "")))
	w := writer(t, r, registry.Config{})
	s := &source{b: testkit.Bytes("never", 100)}
	err := w.PutBlob(t.Context(), s.digest(), s.size(), s.open)
	refused, ok := errors.AsType[*registry.RefusedError](err)
	if !ok || refused.Status != 503 || !refused.Temporary() {
		t.Errorf("error %v", err)
	}
	if got := s.opened.Load(); got != registry.Attempts {
		t.Errorf("%d attempts", got)
	}
}

func TestRefusalsSayWhy(t *testing.T) {
	answer := func(m testkit.Match, status int) testkit.Fault {
		return testkit.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			if !m(r) {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprint(w, `{"errors":[{"code":"DENIED","message":"adding 7.6 MiB\u001b[31m will exceed the limit"}]}`)
			return true
		})
	}
	s := &source{b: testkit.Bytes("refused", 100)}
	put := func(w *registry.Writer) error { return w.PutBlob(t.Context(), s.digest(), s.size(), s.open) }
	for name, c := range map[string]struct {
		refuse testkit.Match
		do     func(w *registry.Writer) error
	}{
		"asking for a blob": {testkit.PathContains("/blobs/sha256"), func(w *registry.Writer) error {
			_, _, err := w.HasBlob(t.Context(), s.digest())
			return err
		}},
		"asking for a tag": {testkit.Manifests, func(w *registry.Writer) error {
			_, _, err := w.HasManifest(t.Context(), "1")
			return err
		}},
		"reading a tag": {testkit.Manifests, func(w *registry.Writer) error {
			_, _, _, err := w.Manifest(t.Context(), "1", limit)
			return err
		}},
		"beginning to upload": {func(r *http.Request) bool { return r.Method == http.MethodPost }, put},
		"ending an upload":    {blobPut, put},
		"putting a manifest": {func(r *http.Request) bool { return r.Method == http.MethodPut }, func(w *registry.Writer) error {
			return w.PutManifest(t.Context(), "1", "application/vnd.oci.image.manifest.v1+json", []byte("{}"))
		}},
		"listing referrers": {testkit.PathContains("/referrers/"), func(w *registry.Writer) error {
			_, _, err := w.Referrers(t.Context(), s.digest())
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := testkit.NewRegistry(t, testkit.WithFault(answer(c.refuse, http.StatusForbidden)))
			p := new(pauses)
			err := c.do(writer(t, r, registry.Config{Sleep: p.sleep}))
			wantIn(t, wantCode(t, err, "registry/refused"), "403 Forbidden", "DENIED: adding 7.6 MiB [31m will exceed the limit", r.Host())
			if len(p.all) > 0 {
				t.Errorf("tried again: %v", p.all)
			}
		})
	}
}

// expiringTokens stands for a registry with Bearer expiringTokens that are over as soon as
// somebody says so. Like Harbor's, its answer to one that is over asks for
// Basic.
type expiringTokens struct {
	mu      sync.Mutex
	serial  int
	expires testkit.Match // when a request of this kind is met, the token is over
}

func (k *expiringTokens) fault(host func() string) testkit.Fault {
	return testkit.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		if r.URL.Path == "/token" {
			k.serial++
			fmt.Fprintf(w, `{"token":"t%d","access_token":"","expires_in":60}`, k.serial)
			return true
		}
		authorization := r.Header.Get("Authorization")
		if authorization != "" && k.expires(r) {
			k.serial += 10
		}
		if authorization == fmt.Sprintf("Bearer t%d", k.serial) {
			return false
		}
		challenge := `Basic realm="harbor"`
		if authorization == "" {
			challenge = fmt.Sprintf(`Bearer realm="http://%s/token",service="harbor-registry"`, host())
		}
		w.Header().Set("WWW-Authenticate", challenge)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
}

func TestTokensAreRenewedInTheMiddle(t *testing.T) {
	manifestPut := func(r *http.Request) bool {
		return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/")
	}
	for name, expires := range map[string]testkit.Match{
		"never":              func(*http.Request) bool { return false },
		"asking":             testkit.FirstN(2, func(r *http.Request) bool { return r.Method == http.MethodHead }),
		"beginning a blob":   testkit.FirstN(1, func(r *http.Request) bool { return r.Method == http.MethodPost }),
		"sending a blob":     testkit.FirstN(1, blobPut),
		"sending a manifest": testkit.FirstN(1, manifestPut),
	} {
		t.Run(name, func(t *testing.T) {
			var r *testkit.Registry
			k := &expiringTokens{expires: expires}
			r = testkit.NewRegistry(t, testkit.WithFault(k.fault(func() string { return r.Host() })))
			p := new(pauses)
			w := writer(t, r, registry.Config{Sleep: p.sleep})
			s := &source{b: testkit.Bytes("token", 8*piece)}
			if has(t, w, s.digest()) {
				t.Fatal("it is there already")
			}
			if err := w.PutBlob(t.Context(), s.digest(), s.size(), s.open); err != nil {
				t.Fatal(err)
			}
			manifest := fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":"application/x","digest":%q,"size":%d},"layers":[]}`, ociManifest, s.digest(), s.size())
			if err := w.PutManifest(t.Context(), "1", ociManifest, manifest); err != nil {
				t.Fatal(err)
			}
			d, b, found, err := w.Manifest(t.Context(), "1", limit)
			if err != nil || !found || !bytes.Equal(b, manifest) || d.Digest != cas.DigestOf(manifest) || d.MediaType != ociManifest {
				t.Errorf("read back %+v, %v, %v", d, found, err)
			}
			if len(p.all) > 0 {
				t.Errorf("waited although nothing was busy: %v", p.all)
			}
		})
	}
}

const ociManifest = "application/vnd.oci.image.manifest.v1+json"

func TestManifestsAreAskedForAndRead(t *testing.T) {
	r := testkit.NewRegistry(t)
	root, _, _ := push(t, r, "team/app:1")
	w := writer(t, r, registry.Config{})
	for _, identifier := range []string{"1", root.String()} {
		d, found, err := w.HasManifest(t.Context(), identifier)
		if err != nil || !found || d.Digest != root || d.MediaType != ociManifest || d.Size <= 0 {
			t.Errorf("%s: %+v, %v, %v", identifier, d, found, err)
		}
		if got, b, found, err := w.Manifest(t.Context(), identifier, limit); err != nil || !found || got != d || cas.DigestOf(b) != root {
			t.Errorf("%s: %+v, %v, %v", identifier, got, found, err)
		}
	}
	for _, identifier := range []string{"2", cas.DigestOf([]byte("x")).String()} {
		if _, found, err := w.HasManifest(t.Context(), identifier); err != nil || found {
			t.Errorf("%s: %v, %v", identifier, found, err)
		}
		if _, _, found, err := w.Manifest(t.Context(), identifier, limit); err != nil || found {
			t.Errorf("%s: %v, %v", identifier, found, err)
		}
	}
	_, _, _, err := w.Manifest(t.Context(), "1", 10)
	wantCode(t, err, "registry/too-large")
	r.SetFault(testkit.Corrupt(testkit.Manifests))
	if _, _, _, err := w.Manifest(t.Context(), root.String(), limit); !isCorrupt(err) {
		t.Errorf("spoilt: %v", err)
	}
}

func TestUploadsGoToTheRegistryOnly(t *testing.T) {
	elsewhere := testkit.NewRegistry(t)
	r := testkit.NewRegistry(t, testkit.WithFault(testkit.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost {
			return false
		}
		w.Header().Set("Location", elsewhere.URL()+"/v2/team/app/blobs/uploads/1")
		w.WriteHeader(http.StatusAccepted)
		return true
	})))
	s := &source{b: []byte("x")}
	err := writer(t, r, registry.Config{}).PutBlob(t.Context(), s.digest(), s.size(), s.open)
	wantIn(t, wantCode(t, err, "registry/redirect-refused"), elsewhere.Host())
	if len(elsewhere.Requests()) > 0 {
		t.Errorf("asked there: %v", elsewhere.Requests())
	}
}

// A registry behind a proxy that ends TLS says http where it means https.
func TestAWrongSchemeOfALocationIsPutRight(t *testing.T) {
	r := testkit.NewRegistry(t, testkit.WithTLS(), testkit.WithFault(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			next.ServeHTTP(&locating{w}, q)
		})
	}))
	s := &source{b: []byte("x")}
	if err := writer(t, r, registry.Config{}).PutBlob(t.Context(), s.digest(), s.size(), s.open); err != nil {
		t.Error(err)
	}
}

type locating struct{ http.ResponseWriter }

func (l *locating) WriteHeader(status int) {
	if at := l.Header().Get("Location"); at != "" {
		l.Header().Set("Location", strings.Replace(at, "https://", "http://", 1))
	}
	l.ResponseWriter.WriteHeader(status)
}

func TestAnUploadThatStandsStillEnds(t *testing.T) {
	over := make(chan struct{})
	r := testkit.NewRegistry(t, testkit.WithFault(testkit.Answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if !blobPut(r) {
			return false
		}
		<-over // nothing of the body is read
		panic(http.ErrAbortHandler)
	})))
	t.Cleanup(func() { close(over) })
	s := &source{b: make([]byte, 32<<20)} // more than the sockets between hold
	err := writer(t, r, registry.Config{Stall: 30 * time.Millisecond}).PutBlob(t.Context(), s.digest(), s.size(), s.open)
	wantIn(t, wantCode(t, err, "registry/unreachable"), "the upload stands still")
	if s.opened.Load() != registry.Attempts || s.closed.Load() != registry.Attempts {
		t.Errorf("opened %d times, closed %d", s.opened.Load(), s.closed.Load())
	}
}

func TestACancelledUploadLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := testkit.NewRegistry(t)
	w := writer(t, r, registry.Config{})
	s := &source{b: testkit.Bytes("cancelled", 32*piece)}
	read := 0
	err := w.PutBlob(ctx, s.digest(), s.size(), func(ctx context.Context) (io.ReadCloser, error) {
		content, err := s.open(ctx)
		return s.reading(readerFunc(func(p []byte) (int, error) {
			n, err := content.Read(p)
			if read += n; read > 16*piece {
				cancel()
			}
			return n, err
		})), err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if has(t, w, s.digest()) {
		t.Error("the blob is there")
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestReferrersAreListed(t *testing.T) {
	d := func(n int) cas.Digest { return cas.DigestOf([]byte{byte(n)}) }
	pages := map[string]string{
		"":         fmt.Sprintf(`{"schemaVersion":2,"manifests":[{"digest":%q},{"digest":"sha512:00"}]}`, d(1)),
		"last=1":   fmt.Sprintf(`{"schemaVersion":2,"manifests":[{"digest":%q}]}`, d(2)),
		"last=2&n": `{"schemaVersion":2,"manifests":[]}`,
	}
	next := map[string]string{"": `</v2/x?prev>; rel="prev", <https://elsewhere.example/v2/y?last=1>; rel="next"`, "last=1": `</v2/x?last=2&n>; rel="next"`}
	r := testkit.NewRegistry(t, testkit.WithFault(testkit.Answer(func(w http.ResponseWriter, q *http.Request) bool {
		if !strings.Contains(q.URL.Path, "/referrers/"+d(0).String()) {
			return false
		}
		w.Header().Set("Link", next[q.URL.RawQuery])
		fmt.Fprint(w, pages[q.URL.RawQuery])
		return true
	})))
	w := writer(t, r, registry.Config{})
	list, api, err := w.Referrers(t.Context(), d(0))
	if err != nil || !api || len(list) != 2 || list[0] != d(1) || list[1] != d(2) {
		t.Errorf("%v, %v, %v", list, api, err)
	}
	if list, api, err := w.Referrers(t.Context(), d(3)); err != nil || api || list != nil {
		t.Errorf("without an API: %v, %v, %v", list, api, err)
	}
	next["last=2&n"] = `</v2/x?last=1>; rel="next"`
	_, _, err = w.Referrers(t.Context(), d(0))
	wantIn(t, wantCode(t, err, "registry/protocol"), "more than 100 pages")
	pages[""] = "no JSON"
	_, _, err = w.Referrers(t.Context(), d(0))
	wantCode(t, err, "registry/protocol")
}

func TestWhatIsNotThereIsAskedForOnce(t *testing.T) {
	r := testkit.NewRegistry(t)
	if has(t, writer(t, r, registry.Config{}), cas.DigestOf([]byte("x"))) || requests(r, http.MethodHead) != 1 {
		t.Errorf("requests: %v", r.Requests())
	}
}

package registry_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/registry"
	"github.com/packhof/packhof/internal/testkit"
)

const limit = 4 << 20

// pauses stands in for waiting and remembers how long it would have been.
type pauses struct {
	mu  sync.Mutex
	all []time.Duration
}

func (p *pauses) sleep(ctx context.Context, d time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, d)
	return ctx.Err()
}

func newClient(t *testing.T, config registry.Config) *registry.Client {
	t.Helper()
	noCredentials(t)
	if config.Sleep == nil {
		config.Sleep = new(pauses).sleep
	}
	c, err := registry.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// noCredentials keeps what the user who runs the tests has out of them.
func noCredentials(t *testing.T) {
	t.Helper()
	for _, name := range []string{"HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"} {
		t.Setenv(name, t.TempDir())
	}
	t.Setenv("REGISTRY_AUTH_FILE", "")
	t.Setenv("DOCKER_CONFIG", "")
}

func logIn(t *testing.T, host, user, password string) {
	t.Helper()
	dir := t.TempDir()
	auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	config := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, auth)
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_CONFIG", dir)
}

func plain(r *testkit.Registry) registry.Config {
	return registry.Config{Hosts: map[string]registry.Host{r.Host(): {PlainHTTP: true}}}
}

func push(t *testing.T, r *testkit.Registry, repoAndTag string) (cas.Digest, cas.Digest, int64) {
	t.Helper()
	image, err := testkit.Image(testkit.ImageSpec{Seed: repoAndTag, PayloadSize: 50_000})
	if err != nil {
		t.Fatal(err)
	}
	hash, err := r.PushImage(t.Context(), repoAndTag, image)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	layer, err := layers[1].Digest()
	if err != nil {
		t.Fatal(err)
	}
	size, err := layers[1].Size()
	if err != nil {
		t.Fatal(err)
	}
	r.ForgetRequests()
	return digest(t, hash.String()), digest(t, layer.String()), size
}

func digest(t *testing.T, s string) cas.Digest {
	t.Helper()
	d, err := cas.ParseDigest(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func ref(t *testing.T, s string) registry.Reference {
	t.Helper()
	r, err := registry.ParseReference(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type coded interface {
	error
	Code() string
	Evidence() []string
}

// wantCode checks the code of an error and returns all that a person sees.
func wantCode(t *testing.T, err error, code string) string {
	t.Helper()
	var c coded
	if !errors.As(err, &c) || c.Code() != code {
		t.Fatalf("error %v, want one of code %s", err, code)
	}
	all := err.Error() + "\n" + strings.Join(c.Evidence(), "\n")
	if r, ok := c.(interface{ Remedy() string }); ok {
		all += "\n" + r.Remedy()
	}
	return all
}

func wantIn(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in what the user sees:\n%s", part, text)
		}
	}
}

func TestResolveAndRead(t *testing.T) {
	r := testkit.NewRegistry(t)
	want, layer, size := push(t, r, "team/app:1.0")
	c := newClient(t, plain(r))
	for _, s := range []string{":1.0", "@" + want.String(), ":other@" + want.String()} {
		at := ref(t, r.Host()+"/team/app"+s)
		d, err := c.Resolve(t.Context(), at, limit)
		if err != nil || d.Digest != want {
			t.Fatalf("%s: %+v, %v; want %s", s, d, err, want)
		}
		b, err := c.Manifest(t.Context(), at, d, limit)
		if err != nil || cas.DigestOf(b) != want {
			t.Errorf("%s: manifest %s, %v; want %s", s, cas.DigestOf(b), err, want)
		}
	}
	if got := readBlob(t, c, ref(t, r.Host()+"/team/app:1.0"), layer, size); cas.DigestOf(got) != layer {
		t.Errorf("blob %s, want %s", cas.DigestOf(got), layer)
	}
}

func readBlob(t *testing.T, c *registry.Client, at registry.Reference, d cas.Digest, size int64) []byte {
	t.Helper()
	body, err := c.Blob(t.Context(), at, d, size)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(body)
	if err := errors.Join(err, body.Close()); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestOneLogInForManyRequests(t *testing.T) {
	r := testkit.NewRegistry(t)
	_, layer, size := push(t, r, "app:1")
	c := newClient(t, plain(r))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			body, err := c.Blob(t.Context(), ref(t, r.Host()+"/app:1"), layer, size)
			if err != nil {
				t.Error(err)
				return
			}
			if err := body.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	pings := 0
	for _, q := range r.Requests() {
		if q.Path == "/v2/" {
			pings++
		}
	}
	if pings != 1 {
		t.Errorf("asked %d times how to log in, want once", pings)
	}
}

func TestResolveWithoutDigestHeaderReads(t *testing.T) {
	r := testkit.NewRegistry(t)
	want, _, _ := push(t, r, "app:1")
	r.SetFault(testkit.Answer(func(w http.ResponseWriter, q *http.Request) bool {
		if q.Method == http.MethodHead {
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			w.Header().Set("Docker-Content-Digest", "sha512:0")
			return true
		}
		return false
	}))
	d, err := newClient(t, plain(r)).Resolve(t.Context(), ref(t, r.Host()+"/app:1"), limit)
	if err != nil || d.Digest != want || d.Size == 0 {
		t.Errorf("resolved to %+v, %v; want %s", d, err, want)
	}
}

func TestPlainHTTPOnlyWhereConfigured(t *testing.T) {
	r := testkit.NewRegistry(t)
	push(t, r, "app:1")
	_, err := newClient(t, registry.Config{}).Resolve(t.Context(), ref(t, r.Host()+"/app:1"), limit)
	wantIn(t, wantCode(t, err, "registry/plain-http"), "packhof.yaml", "plainHTTP: true", r.Host())
	if got := r.Requests(); len(got) != 0 {
		t.Errorf("%d requests went out in the clear: %v", len(got), got)
	}
}

func TestPrivateAuthority(t *testing.T) {
	r := testkit.NewRegistry(t, testkit.WithTLS())
	want, _, _ := push(t, r, "app:1")
	at := ref(t, r.Host()+"/app:1")

	_, err := newClient(t, registry.Config{}).Resolve(t.Context(), at, limit)
	wantIn(t, wantCode(t, err, "registry/tls-unknown-authority"), r.Host(), ".ca in packhof.yaml")

	other := registry.Config{Hosts: map[string]registry.Host{"other.example": {CA: r.CAPEM()}}}
	_, err = newClient(t, other).Resolve(t.Context(), at, limit)
	wantCode(t, err, "registry/tls-unknown-authority")

	known := registry.Config{Hosts: map[string]registry.Host{r.Host(): {CA: r.CAPEM()}}}
	d, err := newClient(t, known).Resolve(t.Context(), at, limit)
	if err != nil || d.Digest != want {
		t.Errorf("with the authority: %+v, %v; want %s", d, err, want)
	}

	_, err = registry.New(registry.Config{Hosts: map[string]registry.Host{r.Host(): {CA: []byte("no PEM")}}})
	wantCode(t, err, "registry/config")
}

func TestCredentials(t *testing.T) {
	r := testkit.NewRegistry(t, testkit.WithBasicAuth("anna", "geheim"))
	want, _, _ := push(t, r, "app:1")
	at := ref(t, r.Host()+"/app:1")

	_, err := newClient(t, plain(r)).Resolve(t.Context(), at, limit)
	wantIn(t, wantCode(t, err, "registry/auth-required"), "docker login "+r.Host(), "DOCKER_CONFIG", "401")

	c := newClient(t, plain(r))
	logIn(t, r.Host(), "anna", "falsch")
	_, err = c.Resolve(t.Context(), at, limit)
	if text := wantCode(t, err, "registry/auth-required"); strings.Contains(text, "falsch") {
		t.Errorf("the password is shown: %s", text)
	}

	c = newClient(t, plain(r))
	logIn(t, r.Host(), "anna", "geheim")
	d, err := c.Resolve(t.Context(), at, limit)
	if err != nil || d.Digest != want {
		t.Errorf("logged in: %+v, %v; want %s", d, err, want)
	}

	c = newClient(t, plain(r))
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_CONFIG", dir)
	_, err = c.Resolve(t.Context(), at, limit)
	wantCode(t, err, "registry/credentials")
}

func TestAnswersHaveCodes(t *testing.T) {
	r := testkit.NewRegistry(t)
	push(t, r, "app:1")
	for name, c := range map[string]struct {
		reference string
		fault     testkit.Fault
		code      string
		parts     []string
	}{
		"no such tag":        {"/app:2", nil, "registry/not-found", []string{"/app has no tag 2", "404", "http://" + r.Host() + "/v2/app/manifests/2"}},
		"no such digest":     {"/app@sha256:" + strings.Repeat("1", 64), nil, "registry/not-found", []string{"has no manifest sha256:1111"}},
		"no such repository": {"/nowhere:1", nil, "registry/not-found", []string{"there is no repository nowhere on " + r.Host()}},
		"forbidden":          {"/app:1", testkit.Refuse(testkit.Manifests, 403, ""), "registry/forbidden", []string{"403"}},
		"rate limited":       {"/app:1", testkit.Refuse(testkit.Manifests, 429, "3600"), "registry/rate-limited", []string{"429", "retry after: 3600"}},
		"always 503":         {"/app:1", testkit.Refuse(testkit.Manifests, 503, ""), "registry/failed", []string{"503"}},
		"503 at the log-in":  {"/app:1", testkit.Refuse(testkit.Everything, 503, ""), "registry/failed", []string{"503"}},
		"teapot":             {"/app:1", testkit.Refuse(testkit.Manifests, 418, ""), "registry/refused", []string{"418"}},
		"no registry at all": {"/app:1", testkit.Refuse(testkit.Everything, 404, ""), "registry/not-found", []string{"404"}},
	} {
		t.Run(name, func(t *testing.T) {
			r.SetFault(c.fault)
			_, err := newClient(t, plain(r)).Resolve(t.Context(), ref(t, r.Host()+c.reference), limit)
			wantIn(t, wantCode(t, err, c.code), c.parts...)
		})
	}
}

func TestUnreachable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]registry.Config{
		"https": {},
		"http":  {Hosts: map[string]registry.Host{host: {PlainHTTP: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			var p pauses
			config.Sleep = p.sleep
			_, err := newClient(t, config).Resolve(t.Context(), ref(t, host+"/app:1"), limit)
			wantIn(t, wantCode(t, err, "registry/unreachable"), host, "refused")
			if len(p.all) < registry.Attempts-1 {
				t.Errorf("gave up after %d waits, want at least %d", len(p.all), registry.Attempts-1)
			}
		})
	}
}

func TestRateLimitIsWaitedFor(t *testing.T) {
	r := testkit.NewRegistry(t)
	want, _, _ := push(t, r, "app:1")
	r.SetFault(testkit.Refuse(testkit.FirstN(2, testkit.Manifests), 429, "31"))
	var p pauses
	config := plain(r)
	config.Sleep = p.sleep
	d, err := newClient(t, config).Resolve(t.Context(), ref(t, r.Host()+"/app:1"), limit)
	if err != nil || d.Digest != want {
		t.Fatalf("%+v, %v; want %s", d, err, want)
	}
	if !slices.Equal(p.all, []time.Duration{31 * time.Second, 31 * time.Second}) {
		t.Errorf("waited %v, want twice the 31s asked for", p.all)
	}
}

func TestAttemptsAreBounded(t *testing.T) {
	r := testkit.NewRegistry(t, testkit.WithFault(testkit.Refuse(testkit.Manifests, 503, "")))
	_, err := newClient(t, plain(r)).Resolve(t.Context(), ref(t, r.Host()+"/app:1"), limit)
	wantCode(t, err, "registry/failed")
	asked := 0
	for _, q := range r.Requests() {
		if strings.Contains(q.Path, "/manifests/") {
			asked++
		}
	}
	if asked != registry.Attempts {
		t.Errorf("asked %d times, want %d", asked, registry.Attempts)
	}
}

func TestCancelledWaitEnds(t *testing.T) {
	r := testkit.NewRegistry(t, testkit.WithFault(testkit.Refuse(testkit.Manifests, 503, "")))
	ctx, cancel := context.WithCancel(t.Context())
	config := plain(r)
	config.Sleep = func(ctx context.Context, _ time.Duration) error {
		cancel()
		return context.Cause(ctx)
	}
	_, err := newClient(t, config).Resolve(ctx, ref(t, r.Host()+"/app:1"), limit)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func TestT23WrongManifest(t *testing.T) {
	r := testkit.NewRegistry(t)
	_, _, _ = push(t, r, "app:1")
	c := newClient(t, plain(r))
	at := ref(t, r.Host()+"/app:1")
	d, err := c.Resolve(t.Context(), at, limit)
	if err != nil {
		t.Fatal(err)
	}
	r.SetFault(testkit.Corrupt(testkit.Manifests))
	_, err = c.Manifest(t.Context(), at, d, limit)
	wantIn(t, wantCode(t, err, "content/corrupt"), d.Digest.String())

	// A registry that answers a digest with another one.
	wrong := strings.Repeat("1", 64)
	r.SetFault(testkit.Answer(func(w http.ResponseWriter, q *http.Request) bool {
		if !strings.Contains(q.URL.Path, wrong) {
			return false
		}
		w.Header().Set("Docker-Content-Digest", d.Digest.String())
		w.Header().Set("Content-Length", "10")
		return true
	}))
	_, err = c.Resolve(t.Context(), ref(t, r.Host()+"/app@sha256:"+wrong), limit)
	wantCode(t, err, "content/corrupt")
}

func TestT22OtherContentType(t *testing.T) {
	r := testkit.NewRegistry(t)
	push(t, r, "app:1")
	c := newClient(t, plain(r))
	at := ref(t, r.Host()+"/app:1")
	d, err := c.Resolve(t.Context(), at, limit)
	if err != nil {
		t.Fatal(err)
	}
	d.MediaType = "application/vnd.oci.image.index.v1+json"
	_, err = c.Manifest(t.Context(), at, d, limit)
	wantCode(t, err, "registry/media-type")
}

func TestManifestOverTheLimit(t *testing.T) {
	r := testkit.NewRegistry(t)
	push(t, r, "app:1")
	c := newClient(t, plain(r))
	at := ref(t, r.Host()+"/app:1")
	d, err := c.Resolve(t.Context(), at, limit)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Manifest(t.Context(), at, d, d.Size); err != nil {
		t.Errorf("exactly the limit: %v", err)
	}
	_, err = c.Resolve(t.Context(), at, d.Size-1)
	wantCode(t, err, "registry/too-large")
	lying := d
	lying.Size = 10
	_, err = c.Manifest(t.Context(), at, lying, d.Size-1)
	wantCode(t, err, "registry/too-large")
}

func TestBlobOfAnotherSize(t *testing.T) {
	r := testkit.NewRegistry(t)
	_, layer, size := push(t, r, "app:1")
	_, err := newClient(t, plain(r)).Blob(t.Context(), ref(t, r.Host()+"/app:1"), layer, size+1)
	wantCode(t, err, "content/corrupt")
}

func TestBrokenDownload(t *testing.T) {
	for name, c := range map[string]struct {
		fault testkit.Fault
		stall time.Duration
		text  string
	}{
		"cut":     {testkit.CutAfter(testkit.Blobs, 1000), time.Minute, "broke off"},
		"stalled": {stallAfter(1000), time.Second, "stands still"},
	} {
		t.Run(name, func(t *testing.T) {
			r := testkit.NewRegistry(t)
			_, layer, size := push(t, r, "app:1")
			r.SetFault(c.fault)
			config := plain(r)
			config.Stall = c.stall
			body, err := newClient(t, config).Blob(t.Context(), ref(t, r.Host()+"/app:1"), layer, size)
			if err != nil {
				t.Fatal(err)
			}
			defer body.Close()
			b, err := io.ReadAll(body)
			if !registry.Interrupted(err) || len(b) != 1000 {
				t.Errorf("%d bytes, %v; want 1000 and an interruption", len(b), err)
			}
			wantIn(t, wantCode(t, err, registry.CodeInterrupted), c.text, layer.String(), "1000 bytes")
		})
	}
}

// stallAfter sends n bytes of a blob and then nothing until the client leaves.
func stallAfter(n int64) testkit.Fault {
	return testkit.Answer(func(w http.ResponseWriter, q *http.Request) bool {
		if !testkit.Blobs(q) {
			return false
		}
		_, _ = w.Write(make([]byte, n))
		_ = http.NewResponseController(w).Flush()
		<-q.Context().Done()
		panic(http.ErrAbortHandler)
	})
}

func TestWhatARegistrySaysIsCleaned(t *testing.T) {
	r := testkit.NewRegistry(t, testkit.WithFault(testkit.Answer(func(w http.ResponseWriter, q *http.Request) bool {
		if !testkit.Blobs(q) {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"errors":[{"code":"DENIED","message":"no \u001b[31m`+strings.Repeat("x", 1000)+`\nrm -rf"}]}`)
		return true
	})))
	_, layer, size := push(t, r, "app:1")
	_, err := newClient(t, plain(r)).Blob(t.Context(), ref(t, r.Host()+"/app:1"), layer, size)
	text := wantCode(t, err, "registry/forbidden")
	wantIn(t, text, "said:  DENIED: no [31mxxx")
	if strings.Contains(text, "\x1b") || strings.Contains(text, "rm -rf") {
		t.Errorf("not cleaned: %q", text)
	}
}

func TestHostsMustBeHosts(t *testing.T) {
	_, err := registry.New(registry.Config{Hosts: map[string]registry.Host{"https://registry.example": {}}})
	wantCode(t, err, "registry/config")
}

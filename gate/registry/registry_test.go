package registry_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/gate/registry"
	"github.com/packhof/packhof/gate/sinktest"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
)

// told is all that a person sees of an error of this code.
func told(t *testing.T, err error, code string) string {
	t.Helper()
	p, ok := errors.AsType[interface {
		error
		Code() string
		Evidence() []string
		Remedy() string
	}](err)
	if !ok || p.Code() != code {
		t.Fatalf("error %v, want one of code %s", err, code)
	}
	return p.Error() + "\n" + strings.Join(p.Evidence(), "\n") + "\n" + p.Remedy()
}

func wantIn(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in what people see:\n%s", part, text)
		}
	}
}

func TestConfigurationsThatCannotBeRight(t *testing.T) {
	for name, config := range map[string]registry.Config{
		"nothing":          {},
		"no host":          {Registry: "plant/images"},
		"a URL":            {Registry: "https://registry.example/plant"},
		"a reference":      {Registry: "registry.example/plant:1.0"},
		"a bad prefix":     {Registry: "registry.example/Plant"},
		"an empty part":    {Registry: "registry.example//plant"},
		"no password":      {Registry: "registry.example", Credentials: registry.Credentials{User: "robot"}},
		"no user":          {Registry: "registry.example", Credentials: registry.Credentials{Password: "secret"}},
		"no authority":     {Registry: "registry.example", CA: []byte("not PEM")},
		"a password in it": {Registry: "robot:secret@registry.example"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := registry.New(config)
			told(t, err, "destination/config")
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("it tells a password: %v", err)
			}
		})
	}
	for _, good := range []string{"registry.example", "registry.example:5000/plant/a", "localhost/plant", "registry.example/plant/"} {
		if _, err := registry.New(registry.Config{Registry: good}); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}

// serials are two releases of a real gate.
type serials struct{ first, second *gate.Release }

// One gate serves all of these tests: making one takes its time.
func TestLoading(t *testing.T) {
	var l serials
	l.first, l.second = sinktest.Releases(t)
	t.Run("who is let in", l.whoIsLetIn)
	t.Run("nothing to plan", l.nothingToPlan)
	t.Run("refusals", l.refusals)
	t.Run("a plan says what stands in the way", l.aPlanSaysWhatStandsInTheWay)
	t.Run("immutable tags", l.immutableTags)
	t.Run("a lost answer to a tag", l.aLostAnswerToATag)
	t.Run("tags of others are none of ours", l.tagsOfOthersAreNoneOfOurs)
	t.Run("verify notices", l.verifyNotices)
	t.Run("the fallback tag says what the specification asks", l.theFallbackTagSaysWhatTheSpecificationAsks)
	t.Run("entries of others stay", l.entriesOfOthersStay)
	t.Run("a tag that lists nothing stands in the way", l.aTagThatListsNothingStandsInTheWay)
	t.Run("another writer of the fallback tag", l.anotherWriterOfTheFallbackTag)
	t.Run("putting at the same time", l.puttingAtTheSameTime)
	t.Run("what a referrer lists", l.whatAReferrerLists)
	t.Run("a layer of two images is sent once", l.aLayerOfTwoImagesIsSentOnce)
	t.Run("a layer that is not taken over is sent", l.aLayerThatIsNotTakenOverIsSent)
}

// load brings a whole release to a destination.
func load(t *testing.T, s *registry.Sink, r *gate.Release) {
	t.Helper()
	put(t, s, r)
	if err := s.Publish(t.Context(), r, r.Names()); err != nil {
		t.Fatalf("publish: %v", err)
	}
	if err := verify(t, s, r); err != nil {
		t.Fatalf("verify: %v", err)
	}
}

func put(t *testing.T, s *registry.Sink, r *gate.Release) {
	t.Helper()
	for _, a := range r.Artifacts() {
		if _, err := s.Put(t.Context(), r, a); err != nil {
			t.Fatalf("put %s: %v", a.Name, err)
		}
	}
}

func verify(t *testing.T, s *registry.Sink, r *gate.Release) error {
	t.Helper()
	for _, a := range r.Artifacts() {
		if err := s.Verify(t.Context(), r, a); err != nil {
			return err
		}
	}
	return nil
}

// image is the artifact for two platforms.
func image(t *testing.T, r *gate.Release) bundle.Artifact { return called(t, r, "team/tool") }

// plain is the artifact for one, to which an index is attached.
func plain(t *testing.T, r *gate.Release) bundle.Artifact { return called(t, r, "team/plain") }

func called(t *testing.T, r *gate.Release, name string) bundle.Artifact {
	t.Helper()
	for _, a := range r.Artifacts() {
		if a.Name == name {
			return a
		}
	}
	t.Fatalf("the release has no %s", name)
	return bundle.Artifact{}
}

func (l serials) whoIsLetIn(t *testing.T) {
	first := l.first
	r := testkit.NewRegistry(t, testkit.WithTLS(), testkit.WithBasicAuth("robot", "secret"))
	right := registry.Config{Registry: r.Host(), CA: r.CAPEM(), Credentials: registry.Credentials{User: "robot", Password: "secret"}}
	t.Run("the right account", func(t *testing.T) { load(t, newSink(t, right), first) })

	wrong := right
	wrong.Credentials.Password = "guess"
	for name, config := range map[string]registry.Config{
		"a wrong password": wrong,
		"nobody":           {Registry: r.Host(), CA: r.CAPEM()},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSink(t, config)
			actions, err := s.Plan(t.Context(), first)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range actions {
				if a.Effect != gate.EffectBlocked || !strings.Contains(a.Reason, "UNAUTHORIZED") {
					t.Errorf("plan: %+v", a)
				}
			}
			_, err = s.Put(t.Context(), first, image(t, first))
			wantIn(t, told(t, err, "destination/refused"), "401 Unauthorized", "UNAUTHORIZED", "check the credentials of this destination")
			if strings.Contains(err.Error(), "guess") {
				t.Errorf("the password is in %q", err)
			}
		})
	}
	for name, c := range map[string]struct {
		config registry.Config
		says   string
	}{
		"an unknown authority": {registry.Config{Registry: r.Host()}, "give this destination the PEM file of the authority"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newSink(t, c.config).Plan(t.Context(), first)
			wantIn(t, told(t, err, "destination/unreachable"), c.says)
		})
	}
	t.Run("http where https is wanted", func(t *testing.T) {
		plain := testkit.NewRegistry(t)
		_, err := newSink(t, registry.Config{Registry: plain.Host()}).Plan(t.Context(), first)
		wantIn(t, told(t, err, "destination/unreachable"), "plain: true")
		for _, q := range plain.Requests() {
			t.Errorf("asked over http: %s %s", q.Method, q.Path)
		}
	})
}

// says answers matching requests in the form of the distribution
// specification.
func says(m testkit.Match, status int, code, message string) testkit.Fault {
	return testkit.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if !m(r) {
			return false
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"errors":[{"code":%q,"message":%q}]}`, code, message)
		return true
	})
}

func putting(part string) testkit.Match {
	return func(r *http.Request) bool { return r.Method == http.MethodPut && strings.Contains(r.URL.Path, part) }
}

// tagPut matches the writing of tags that people use.
func tagPut(r *http.Request) bool {
	return putting("/manifests/")(r) && !strings.Contains(r.URL.Path, "/manifests/sha256")
}

func (l serials) refusals(t *testing.T) {
	first := l.first
	for name, c := range map[string]struct {
		fault testkit.Fault
		code  string
		says  []string
	}{
		"a full project": {says(putting("/blobs/uploads/"), 403, "DENIED", "adding 7.6 MiB of storage resource will exceed the configured upper limit of 5.0 MiB."),
			"destination/refused", []string{"403 Forbidden", "DENIED: adding 7.6 MiB", "quota"}},
		"no such project": {says(func(r *http.Request) bool { return r.Method == http.MethodPost }, 404, "NAME_UNKNOWN", "no such project"),
			"destination/refused", []string{"404 Not Found", "NAME_UNKNOWN", "exists"}},
		"a body too large": {says(putting("/blobs/uploads/"), 413, "", ""), "destination/refused", []string{"413", "raise the limit"}},
		"no such manifest": {says(putting("/manifests/"), 400, "MANIFEST_INVALID", "go away"), "destination/refused", []string{"MANIFEST_INVALID: go away", "the log of"}},
		"a manifest too large": {testkit.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/manifests/sha256-") {
				return false
			}
			_, _ = w.Write(make([]byte, bundle.MaxOCIManifestSize+1)) // the client leaves when it has enough
			return true
		}), "destination/refused", []string{"has more than 4194304 bytes", "have somebody look at that manifest"}},
		"an upload elsewhere": {testkit.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost {
				return false
			}
			w.Header().Set("Location", "http://registry.example/v2/upload")
			w.WriteHeader(http.StatusAccepted)
			return true
		}), "destination/refused", []string{"registry.example", "give out its own address"}},
		"not a registry": {says(func(r *http.Request) bool { return r.URL.Path == "/v2/" }, 404, "", ""),
			"destination/unreachable", []string{"is the address of a registry"}},
		"too many requests": {says(func(r *http.Request) bool { return r.URL.Path == "/v2/" }, 429, "TOOMANYREQUESTS", "slow down"),
			"destination/unreachable", []string{"slow down", "wait until"}},
		"no log-in":   {says(func(r *http.Request) bool { return r.URL.Path == "/v2/" }, 418, "", ""), "destination/refused", []string{"418", "the log of"}},
		"always busy": {says(putting("/blobs/uploads/"), 503, "", ""), "destination/unreachable", []string{"503 Service Unavailable"}},
		"no registry": {testkit.Answer(func(w http.ResponseWriter, _ *http.Request) bool {
			fmt.Fprint(w, "<html>welcome</html>")
			return true
		}), "destination/unreachable", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := testkit.NewRegistry(t, testkit.WithFault(c.fault))
			_, err := newSink(t, registry.Config{Registry: r.Host(), Plain: true}).Put(t.Context(), first, image(t, first))
			wantIn(t, told(t, err, c.code), append(c.says, r.Host())...)
		})
	}
}

func (l serials) aPlanSaysWhatStandsInTheWay(t *testing.T) {
	first := l.first
	r := testkit.NewRegistry(t, testkit.WithFault(says(testkit.Manifests, 403, "DENIED", "the system is in read only mode")))
	actions, err := newSink(t, registry.Config{Registry: r.Host(), Plain: true}).Plan(t.Context(), first)
	if err != nil || len(actions) != len(first.Artifacts()) {
		t.Fatalf("%d actions, %v", len(actions), err)
	}
	for _, a := range actions {
		if a.Effect != gate.EffectBlocked || a.Reason != "DENIED: the system is in read only mode" {
			t.Errorf("%+v", a)
		}
	}
}

// A tag that may not change is left alone when it is right already, and named
// when it is not.
func (l serials) immutableTags(t *testing.T) {
	first, second := l.first, l.second
	r := testkit.NewRegistry(t)
	s := newSink(t, registry.Config{Registry: r.Host(), Plain: true})
	load(t, s, first)
	r.SetFault(says(tagPut, 412, "PRECONDITION", "Failed to process request due to 'team/tool:1.0' configured as immutable."))
	r.ForgetRequests()
	load(t, s, first)
	for _, q := range r.Requests() {
		if q.Method == http.MethodPut {
			t.Errorf("wrote %s, which was right already", q.Path)
		}
	}
	put(t, s, second)
	err := s.Publish(t.Context(), second, second.Names())
	wantIn(t, told(t, err, "destination/refused"), "412 Precondition Failed", "configured as immutable", "the tag may not change there")
	r.SetFault(nil)
	load(t, s, second)
}

// The answer to a tag may be lost although it was set, and the tag be
// immutable from then on.
func (l serials) aLostAnswerToATag(t *testing.T) {
	first := l.first
	r := testkit.NewRegistry(t)
	s := newSink(t, registry.Config{Registry: r.Host(), Plain: true})
	put(t, s, first)
	written := map[string]bool{} // requests come one by one here
	r.SetFault(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			switch {
			case !tagPut(q):
				next.ServeHTTP(w, q)
			case written[q.URL.Path]:
				w.WriteHeader(http.StatusPreconditionFailed)
			default:
				written[q.URL.Path] = true
				next.ServeHTTP(lostWriter{w}, q)
				panic(http.ErrAbortHandler)
			}
		})
	})
	if err := s.Publish(t.Context(), first, first.Names()); err != nil {
		t.Error(err)
	}
	if err := verify(t, s, first); err != nil || len(written) != len(first.Names()) {
		t.Errorf("%d tags written, %v", len(written), err)
	}
}

// lostWriter keeps an answer from arriving.
type lostWriter struct{ http.ResponseWriter }

func (lostWriter) Write(p []byte) (int, error) { return len(p), nil }
func (lostWriter) WriteHeader(int)             {}

func (l serials) tagsOfOthersAreNoneOfOurs(t *testing.T) {
	first := l.first
	r := testkit.NewRegistry(t)
	s := newSink(t, registry.Config{Registry: r.Host(), Plain: true})
	name := first.Names()[0]
	name.Digest = cas.DigestOf([]byte("of another release"))
	if err := s.Publish(t.Context(), first, []gate.Name{name}); err == nil || !strings.Contains(err.Error(), "not in this release") {
		t.Errorf("error %v", err)
	}
	if len(r.Requests()) > 0 {
		t.Errorf("asked for it: %v", r.Requests())
	}
}

func (l serials) verifyNotices(t *testing.T) {
	first, second := l.first, l.second
	a := image(t, first)
	name := first.Name(a)
	child, referrer := a.Referrers[0].Subject, a.Referrers[0].Descriptor.Digest
	sized := testkit.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodHead || !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		w.Header().Set("Content-Length", "5")
		return true
	})
	r := testkit.NewRegistry(t)
	s := newSink(t, registry.Config{Registry: r.Host(), Plain: true})
	for what, c := range map[string]struct {
		spoil func(t *testing.T, r *testkit.Registry, c client)
		says  []string
	}{
		"a child is gone": {func(t *testing.T, _ *testkit.Registry, c client) { c.remove(t, name, "manifests/"+child.String()) },
			[]string{child.String() + " is not there"}},
		"a referrer is gone": {func(t *testing.T, _ *testkit.Registry, c client) { c.remove(t, name, "manifests/"+referrer.String()) },
			[]string{referrer.String() + " is not there"}},
		"the tag is gone":          {func(t *testing.T, _ *testkit.Registry, c client) { c.remove(t, name, "manifests/"+name.Tag) }, []string{"the tag", "is not there"}},
		"a referrer is not listed": {func(t *testing.T, _ *testkit.Registry, c client) { c.remove(t, name, "manifests/sha256-"+child.Hex()) }, []string{"in the list"}},
		"a manifest is rotten": {func(_ *testing.T, r *testkit.Registry, _ client) {
			r.SetFault(testkit.Corrupt(func(q *http.Request) bool {
				return q.Method == http.MethodGet && strings.Contains(q.URL.Path, "/manifests/"+child.String())
			}))
		}, []string{"has other bytes", "want:  " + child.String(), "got:   sha256:"}},
		"blobs have another size": {func(_ *testing.T, r *testkit.Registry, _ client) { r.SetFault(sized) }, []string{"has another size", "got:   5 bytes"}},
		"the tag is another": {func(t *testing.T, r *testkit.Registry, _ client) {
			load(t, newSink(t, registry.Config{Registry: r.Host(), Plain: true}), second)
		}, []string{"is another manifest", "want:  " + a.Root.Digest.String(), "got:   " + image(t, second).Root.Digest.String()}},
		"a type is another": {func(_ *testing.T, r *testkit.Registry, _ client) {
			r.SetFault(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
					if q.Method == http.MethodGet && strings.HasSuffix(q.URL.Path, child.String()) {
						w = typing{w}
					}
					next.ServeHTTP(w, q)
				})
			})
		}, []string{"given out as another type", `got:   "text/plain"`}},
	} {
		t.Run(what, func(t *testing.T) {
			load(t, s, first)
			c.spoil(t, r, client{at: r.Host() + "/", http: r.Client()})
			defer r.SetFault(nil)
			wantIn(t, told(t, s.Verify(t.Context(), first, a), "destination/mismatch"), append(c.says, "release the case again")...)
		})
	}
}

// typing sends everything as text.
type typing struct{ http.ResponseWriter }

func (w typing) WriteHeader(status int) {
	w.Header().Set("Content-Type", "text/plain")
	w.ResponseWriter.WriteHeader(status)
}

func (w typing) Write(p []byte) (int, error) {
	w.Header().Set("Content-Type", "text/plain")
	return w.ResponseWriter.Write(p)
}

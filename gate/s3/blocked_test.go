package s3_test

import (
	"bytes"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	destination "github.com/packhof/packhof/gate/s3"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/s3"
	"github.com/packhof/packhof/internal/testkit"
)

// overwrite makes an object as another program with our metadata would.
func (s *store) overwrite(key string, content []byte) {
	s.t.Helper()
	err := s.client.Put(s.t.Context(), key, bytes.NewReader(content), int64(len(content)), s3.Options{SHA256: cas.DigestOf(content)})
	if err != nil {
		s.t.Fatal(err)
	}
}

func TestBlocked(t *testing.T) {
	all, l := newStore(t), newLab(t)
	// The gate itself lets no tree lie in another; other gates may have loaded
	// to the same bucket.
	another := newLab(t)
	plainTree := l.dataset(contents{"a": "1", "sub/b": "2"})
	for name, c := range map[string]struct {
		release *gate.Release
		prepare func(s *store)
		reason  string
	}{
		"the account may nothing": {plainTree, func(s *store) {
			s.server.SetFault(testkit.Refuse(testkit.Everything, http.StatusForbidden, ""))
		}, "does not allow it"},
		"an object of others": {plainTree, func(s *store) { s.foreign("set/1.0/a", "theirs") }, "was not written by a gate"},
		"a list of others":    {plainTree, func(s *store) { s.foreign("set/1.0/SHA256SUMS", "theirs") }, "was not written by a gate"},
		"a list with our metadata": {plainTree, func(s *store) {
			s.overwrite("set/1.0/SHA256SUMS", []byte(strings.Repeat("0", 64)+"  ../up\n"))
		}, "was not written by a gate"},
		"within another name": {another.release(func(f *testkit.Forged) {
			contents{"c": "1"}.add(t, f, bundle.Dataset, "set/1.0/sub")
		}), func(s *store) { s.load(plainTree) }, "within the folder"},
		"around another name": {plainTree, func(s *store) {
			s.load(another.release(func(f *testkit.Forged) { contents{"c": "1"}.add(t, f, bundle.Dataset, "set/1.0/sub") }))
		}, "within the folder"},
		"a file and a folder": {l.dataset(contents{"a": "1", "a/b": "2"}), nil, "a file and a folder"},
		"a list and a folder": {l.dataset(contents{"SHA256SUMS/b": "2"}), nil, "a file and a folder"},
		"a name of our own":   {l.dataset(contents{"x/.packhof/y": "1"}), nil, "keeps for itself"},
		"too long a name": {l.dataset(contents{strings.Repeat(strings.Repeat("n", 250)+"/", 4) + "nnnnnnnnn": "1"}), nil,
			"longer than 1024 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			s := all.empty(t)
			if c.prepare != nil {
				c.prepare(s)
			}
			before := s.objects()
			action := s.plan(c.release)
			if action.Effect != gate.EffectBlocked || !strings.Contains(action.Reason, c.reason) {
				t.Errorf("plan: %+v", action)
			}
			if after := s.objects(); len(after) != len(before) {
				t.Errorf("planning changed %v to %v", before.keys(), after.keys())
			}
		})
	}
}

// Put does not rely on Plan where content of others is at stake.
func TestPutReplacesNothingOfOthers(t *testing.T) {
	s, r := newStore(t), newLab(t).dataset(contents{"a": "1"})
	s.foreign("set/1.0/a", "theirs")
	_, err := s.sink.Put(t.Context(), r, r.Artifacts()[0])
	wantCode(t, err, "destination/refused")
	if s.objects()["set/1.0/a"] != "theirs" {
		t.Error("it was replaced")
	}
}

// What a load that ended early has left stands in nobody's way.
func TestLeftovers(t *testing.T) {
	s, l := newStore(t), newLab(t)
	s.put(l.dataset(contents{"a": "old", "b": "1", "c": "2"}))
	r := l.dataset(contents{"a": "new", "b": "1"})
	if action := s.plan(r); action.Effect != gate.EffectCreate {
		t.Errorf("plan: %+v", action)
	}
	if receipt := s.put(r); receipt.Kept == 0 {
		t.Errorf("receipt: %+v", receipt)
	}
	s.publish(r)
	if err := s.verify(r); err != nil {
		t.Error(err)
	}
	s.check("set/1.0")
	wantOnly(t, s, r, contents{"a": "new", "b": "1"})
}

func TestErrors(t *testing.T) {
	server, r := testkit.NewS3(t), newLab(t).dataset(contents{"a": "1"})
	a := r.Artifacts()[0]
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nowhere := "https://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*s3.Config)
		fault  testkit.Fault
		code   string
	}{
		"nobody there":      {func(c *s3.Config) { c.Endpoint = nowhere }, nil, "destination/unreachable"},
		"unknown authority": {func(c *s3.Config) { c.CA = nil }, nil, "destination/unreachable"},
		"out of order":      {nil, testkit.Refuse(testkit.Everything, http.StatusServiceUnavailable, ""), "destination/unreachable"},
		"wrong secret":      {func(c *s3.Config) { c.SecretKey = "wrong" }, nil, "destination/refused"},
		"no bucket":         {func(c *s3.Config) { c.Bucket = "other" }, nil, "destination/refused"},
		"may not write":     {nil, testkit.Refuse(isWrite, http.StatusForbidden, ""), "destination/refused"},
		"disk full":         {nil, testkit.Refuse(isWrite, http.StatusInsufficientStorage, ""), "destination/refused"},
	} {
		t.Run(name, func(t *testing.T) {
			config := settings(server, "plant/a")
			if c.change != nil {
				c.change(&config)
			}
			server.SetFault(c.fault)
			sink := destination.New(destination.Config{Client: newClient(t, config)})
			_, err := sink.Put(t.Context(), r, a)
			wantCode(t, err, c.code)
			if r, ok := err.(interface{ Remedy() string }); !ok || r.Remedy() == "" {
				t.Errorf("no remedy: %v", err)
			}
		})
	}
}

// Publish does not name what was never put, and takes no name that is not of
// the release.
func TestPublishWithoutPut(t *testing.T) {
	s, l := newStore(t), newLab(t)
	one := l.dataset(contents{"a": "1"})
	s.load(one)
	two := l.dataset(contents{"a": "2"})
	wantCode(t, s.sink.Publish(t.Context(), two, two.Names()), "destination/mismatch")
	if err := s.verify(one); err != nil {
		t.Error(err)
	}
	if err := s.sink.Publish(t.Context(), two, one.Names()); err == nil {
		t.Error("it took a name of another release")
	}
}

func TestReadingThatBreaksOff(t *testing.T) {
	s, r := newStore(t), newLab(t).dataset(contents{"a": strings.Repeat("1", 1000)})
	s.load(r)
	reads := func(q *http.Request) bool { return q.Method == http.MethodGet && q.URL.RawQuery == "" }
	s.server.SetFault(testkit.CutAfter(testkit.FirstN(2, reads), 10))
	if err := s.verify(r); err != nil {
		t.Error(err)
	}
	s.server.SetFault(testkit.CutAfter(reads, 10))
	wantCode(t, s.verify(r), "destination/unreachable")
	s.server.SetFault(testkit.Corrupt(testkit.FirstN(1, reads)))
	wantCode(t, s.verify(r), "destination/mismatch")
}

package mirror_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/config"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/mirror"
)

func TestReadLockOf(t *testing.T) {
	y := newYard(t)
	path := filepath.Join(y.dir, "packhof.lock")
	if err := y.plan(t).Write(path); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		edit func(s *mirror.Spec)
		want []string // evidence; nil: the lock fits
	}{
		"nothing": {func(*mirror.Spec) {}, nil},
		"what does not travel": {func(s *mirror.Spec) {
			s.Key, s.Store, s.Scan.Timeout = "other.key", "other", 1
			s.Hosts = map[string]mirror.Host{"a": {CA: "ca.pem"}}
		}, nil},
		"the order":        {func(s *mirror.Spec) { s.Artifacts[0], s.Artifacts[1] = s.Artifacts[1], s.Artifacts[0] }, nil},
		"note":             {func(s *mirror.Spec) { s.Note = "another" }, []string{`changed:  note, from "a note" to "another"`}},
		"no note":          {func(s *mirror.Spec) { s.Note = "" }, []string{`changed:  note, from "a note" to none`}},
		"validFor":         {func(s *mirror.Spec) { s.ValidFor = config.Span(time.Hour) }, []string{"changed:  validFor, from 30d to 1h0m0s"}},
		"audience":         {func(s *mirror.Spec) { s.Audience = []string{testkit.GateID} }, []string{"changed:  audience, from every gate to " + testkit.GateID}},
		"plainHTTP":        {func(s *mirror.Spec) { s.Hosts = map[string]mirror.Host{"b": {PlainHTTP: true}, "a": {PlainHTTP: true}} }, []string{"changed:  hosts with plainHTTP, from none to a, b"}},
		"another artifact": {func(s *mirror.Spec) { s.Artifacts[1].Version = "2" }, []string{"added:    model b 2", "removed:  model b 1"}},
		"one more": {func(s *mirror.Spec) {
			s.Artifacts = append(s.Artifacts, mirror.ArtifactSpec{Kind: bundle.Image, Image: "x:1"})
		}, []string{"added:    image x:1"}},
		"one less":  {func(s *mirror.Spec) { s.Artifacts = s.Artifacts[1:] }, []string{"removed:  dataset a 1"}},
		"one twice": {func(s *mirror.Spec) { s.Artifacts = append(s.Artifacts, s.Artifacts[0]) }, []string{"added:    dataset a 1"}},
		"platforms and labels": {func(s *mirror.Spec) {
			s.Artifacts[0].Platforms, s.Artifacts[0].Labels = []string{"linux/arm64"}, map[string]string{"team": "press"}
		}, []string{"changed:  labels, platforms of dataset a 1"}},
		"everything": {func(s *mirror.Spec) {
			s.Note, s.Artifacts = "", nil
			for i := range 20 {
				s.Artifacts = append(s.Artifacts, mirror.ArtifactSpec{Image: fmt.Sprint("x:", i)})
			}
		}, append(append([]string{`changed:  note, from "a note" to none`}, added(10)...), "and 12 more")},
	} {
		edited := openYard(t, y.dir).spec
		c.edit(edited)
		l, err := mirror.ReadLockOf(path, edited)
		if c.want == nil {
			if err != nil || l.Serial != 1 {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		wantCode(t, name, err, "lock/stale")
		var stale *problem.Problem
		if !errors.As(err, &stale) || l != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, stale.Evidence()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	_, err := mirror.ReadLockOf(filepath.Join(y.dir, "none.lock"), y.spec)
	wantCode(t, "no lock", err, "lock/missing")
}

func added(n int) (lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprint("added:    image x:", i))
	}
	return lines
}

package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/mirror"
)

func TestPlanSettlesThePosition(t *testing.T) {
	y := newYard(t)
	first := y.plan(t)
	if first.Epoch != 1 || first.Serial != 1 || first.Previous != nil || !slices.Equal(first.Audience, []string{testkit.GateID}) || !slices.Equal(first.Roots, []int64{1, 2}) {
		t.Errorf("the first lock: %+v", first)
	}
	if again := y.plan(t); again.Serial != 1 {
		t.Errorf("planned again without an export: serial %d", again.Serial)
	}
	sealed, _ := y.export(t, first)
	second := y.plan(t)
	if second.Serial != 2 || second.Previous == nil || *second.Previous != sealed.Manifest {
		t.Errorf("after an export: serial %d, previous %v, want 2 and %s", second.Serial, second.Previous, sealed.Manifest)
	}
	if got := second.Expires.Sub(second.Created.Time); got != 30*24*time.Hour {
		t.Errorf("valid for %s", got)
	}
}

func TestPlanKnowsEpochs(t *testing.T) {
	y := newYard(t)
	if err := y.ledger(t).Seal(mirror.LedgerEntry{Epoch: 1, Serial: 9, Manifest: cas.DigestOf(nil), Lock: cas.DigestOf(nil)}); err != nil {
		t.Fatal(err)
	}
	if l := y.plan(t); l.Epoch != 1 || l.Serial != 10 {
		t.Errorf("epoch %d, serial %d", l.Epoch, l.Serial)
	}
	if err := y.ledger(t).Seal(mirror.LedgerEntry{Epoch: 2, Serial: 10, Manifest: cas.DigestOf(nil), Lock: cas.DigestOf(nil)}); err != nil {
		t.Fatal(err)
	}
	_, err := y.planner(t).Plan(t.Context(), y.spec)
	wantCode(t, "a ledger of a later epoch than the root", err, "ledger/epoch")
}

func TestPlanAudience(t *testing.T) {
	y := newYard(t)
	y.spec.Audience = []string{testkit.GateID, testkit.GateID}
	if l := y.plan(t); !slices.Equal(l.Audience, []string{testkit.GateID}) {
		t.Errorf("a gate named twice: %v", l.Audience)
	}
	y.spec.Audience = []string{"gate-zzzzzzzzzzzzzzzz"}
	_, err := y.planner(t).Plan(t.Context(), y.spec)
	wantCode(t, "a gate that nobody knows", err, "config/invalid")
	y.spec.Audience = nil
	if err := os.Remove(filepath.Join(y.dir, "trust", "root-2.json")); err != nil {
		t.Fatal(err)
	}
	_, err = y.planner(t).Plan(t.Context(), y.spec)
	wantCode(t, "a root without gates", err, "trust/no-gate")
	y.spec.Channel = "plant-8"
	_, err = y.planner(t).Plan(t.Context(), y.spec)
	wantCode(t, "a channel that nobody knows", err, "trust/no-channel")
}

func TestPlanNamesAreUnique(t *testing.T) {
	y := newYard(t)
	y.spec.Artifacts = append(y.spec.Artifacts, y.spec.Artifacts[0])
	_, err := y.planner(t).Plan(t.Context(), y.spec)
	var field *problem.FieldError
	if !errors.As(err, &field) || field.Path != "artifacts[2]" || !strings.Contains(field.What, "artifacts[0]") {
		t.Errorf("one artifact twice: %v", err)
	}
	y.spec.Artifacts[2].Version = "2"
	if _, err := y.planner(t).Plan(t.Context(), y.spec); err != nil {
		t.Errorf("two versions of one artifact: %v", err)
	}
}

func TestPlanReportsAllFailuresTogether(t *testing.T) {
	y := newYard(t)
	y.shelf.broken["a"] = problem.New("source/not-found", "there is no a").With("asked:  twice").Hint("look")
	if _, err := y.planner(t).Plan(t.Context(), y.spec); problem.CodeOf(err) != "export/incomplete" {
		t.Errorf("one failure: %v", err)
	}
	y.shelf.broken["b"] = errors.New("b is gone")
	_, err := y.planner(t).Plan(t.Context(), y.spec)
	wantCode(t, "two failures", err, "export/incomplete")
	var incomplete *mirror.IncompleteError
	if !errors.As(err, &incomplete) || incomplete.Total != 2 || !errors.Is(err, y.shelf.broken["b"]) || incomplete.Remedy() == "" {
		t.Fatalf("two failures: %v", err)
	}
	if diff := cmp.Diff([]string{"there is no a", "  asked:  twice", "  hint: look", "  code: source/not-found", "b is gone"}, incomplete.Evidence()); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := y.planner(t).Plan(ctx, y.spec); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	p := y.planner(t)
	p.Sources = nil
	if _, err := p.Plan(t.Context(), y.spec); err == nil {
		t.Error("planned without sources")
	}
}

func TestPlanCarriesTimes(t *testing.T) {
	y := newYard(t)
	first := y.plan(t)
	y.now = y.now.Add(24 * time.Hour)
	y.shelf.trees["b"]["more"] = []byte("more")
	p := y.planner(t)
	p.Before = first
	second, err := p.Plan(t.Context(), y.spec)
	if err != nil {
		t.Fatal(err)
	}
	if got := second.Artifacts[0].Subjects[0].Since; got != first.Created {
		t.Errorf("a, unchanged, is here since %s, want %s", got, first.Created)
	}
	if got := second.Artifacts[1].Subjects[0].Since; got != second.Created || got == first.Created {
		t.Errorf("b, changed, is here since %s, want %s", got, second.Created)
	}
}

func TestCompare(t *testing.T) {
	pin := func(name, version, content string) mirror.Pinned {
		return mirror.Pinned{Kind: bundle.Image, Name: name, Version: version, Root: bundle.Descriptor{Digest: cas.DigestOf([]byte(content))}}
	}
	lock := func(pins ...mirror.Pinned) *mirror.Lock { return &mirror.Lock{Artifacts: pins} }
	for name, c := range map[string]struct {
		before, after *mirror.Lock
		want          []string
	}{
		"the first lock":  {nil, lock(pin("a", "1", "x")), []string{"+ a 1"}},
		"nothing changed": {lock(pin("a", "1", "x")), lock(pin("a", "1", "x")), []string{" a 1"}},
		"rebuilt":         {lock(pin("a", "1", "x")), lock(pin("a", "1", "y")), []string{"~ a 1 was x"}},
		"new version":     {lock(pin("a", "1", "x")), lock(pin("a", "2", "y")), []string{"~ a 2 was x"}},
		"same, renamed":   {lock(pin("a", "1", "x")), lock(pin("a", "2", "x")), []string{"~ a 2 was x"}},
		"removed":         {lock(pin("a", "1", "x"), pin("b", "1", "y")), lock(pin("b", "1", "y")), []string{" b 1", "- a 1"}},
		"one more version beside": {
			lock(pin("a", "1", "x")), lock(pin("a", "1", "x"), pin("a", "2", "y")), []string{" a 1", "+ a 2"},
		},
		"window of versions": {
			lock(pin("a", "1", "x"), pin("a", "2", "y")), lock(pin("a", "2", "y"), pin("a", "3", "z")), []string{" a 2", "~ a 3 was x"},
		},
		"two new of one": {
			lock(pin("a", "1", "x")), lock(pin("a", "2", "y"), pin("a", "3", "z")), []string{"~ a 2 was x", "+ a 3"},
		},
	} {
		var got []string
		changes := mirror.Compare(c.before, c.after)
		for _, change := range changes {
			line := fmt.Sprintf("%s %s %s", change.Sign(), change.Name, change.Version)
			if change.Previous != nil {
				for _, content := range []string{"x", "y", "z"} {
					if cas.DigestOf([]byte(content)) == *change.Previous {
						line += " was " + content
					}
				}
			}
			got = append(got, line)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if any := mirror.AnyChange(changes); any != (name != "nothing changed") {
			t.Errorf("%s: any change: %v", name, any)
		}
	}
}

func TestLockRoundTrip(t *testing.T) {
	y := newYard(t)
	l := y.plan(t)
	path := filepath.Join(y.dir, "packhof.lock")
	if err := l.Write(path); err != nil {
		t.Fatal(err)
	}
	back, err := mirror.ReadLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l, back); diff != "" {
		t.Errorf("read back it differs (-written +read):\n%s", diff)
	}
	for range 20 { // maps have no order of their own
		one, err := l.Encode()
		if err != nil {
			t.Fatal(err)
		}
		two, err := back.Encode()
		if err != nil || string(one) != string(two) {
			t.Fatalf("encoded twice it differs: %v", err)
		}
	}
	a, err := l.Digest()
	if b, err2 := back.Digest(); a != b || err != nil || err2 != nil {
		t.Errorf("digests %s and %s", a, b)
	}
}

func TestLockIsStrict(t *testing.T) {
	y := newYard(t)
	b, err := y.plan(t).Encode()
	if err != nil {
		t.Fatal(err)
	}
	good := string(b)
	path := filepath.Join(y.dir, "packhof.lock")
	_, err = mirror.ReadLock(path)
	wantCode(t, "no lock", err, "lock/missing")
	for name, text := range map[string]string{
		"unknown key":   strings.Replace(good, `"channel"`, `"chanel": 1, "channel"`, 1),
		"duplicate key": strings.Replace(good, `"channel"`, `"channel": "plant-8", "channel"`, 1),
		"other format":  strings.Replace(good, "packhof.lock/v1", "packhof.lock/v2", 1),
		"bad channel":   strings.Replace(good, `"plant-7"`, `"../x"`, 1),
		"no artifacts":  `{"format":"packhof.lock/v1","channel":"plant-7","artifacts":[]}`,
		"trailing data": good + "{}",
		"bad digest":    strings.Replace(good, "sha256:", "sha256:../", 1),
		"bad time":      strings.Replace(good, "2026-11-30T12:00:00Z", "2026-11-30 12:00", 1),
		"conflict":      "<<<<<<< HEAD\n" + good,
		"empty":         "",
	} {
		if text == good {
			t.Fatalf("%s changes nothing", name)
		}
		write(t, path, []byte(text))
		_, err := mirror.ReadLock(path)
		wantCode(t, name, err, "lock/malformed")
	}
	_, err = mirror.ReadLock(y.dir)
	wantCode(t, "a folder", err, "config/unreadable")
}

func FuzzReadLock(f *testing.F) {
	f.Add([]byte(`{"format":"packhof.lock/v1","channel":"plant-7","artifacts":[{}]}`))
	f.Add([]byte(`{}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(dir, "packhof.lock")
		write(t, path, b)
		l, err := mirror.ReadLock(path)
		if err != nil {
			if problem.CodeOf(err) == "" {
				t.Errorf("refused without a code: %v", err)
			}
			return
		}
		if err := l.Write(path); err != nil {
			return // a time that cannot be written
		}
		if back, err := mirror.ReadLock(path); err != nil || !cmp.Equal(l, back) {
			t.Errorf("written and read again: %v", err)
		}
	})
}

package mirror_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/mirror"
)

// controlYard has a document of each kind to send, and a gate that reads it.
func controlYard(t *testing.T) *yard {
	t.Helper()
	y := newYard(t)
	y.enrol(t, y.now, bundle.Reads())
	write(t, filepath.Join(y.dir, "rules.tar"), []byte("rules"))
	y.spec.Documents = []mirror.DocumentSpec{{Type: bundle.DocumentTrust}, {Type: bundle.DocumentRevocations}, {Type: bundle.DocumentPolicy, Version: "3", File: "rules.tar", Critical: true}}
	return y
}

func (y *yard) planControl(t *testing.T, before *mirror.Lock) *mirror.Lock {
	t.Helper()
	p := y.planner(t)
	p.Control, p.Before = true, before
	l, err := p.Plan(t.Context(), y.spec)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestControlBundle: both kinds count in one serial, and a control bundle is
// signed in a role of its own.
func TestControlBundle(t *testing.T) {
	y := controlYard(t)
	content := y.plan(t)
	first, _ := y.export(t, content)
	l := y.planControl(t, content)
	if l.Serial != 2 || *l.Previous != first.Manifest || len(l.Artifacts) != 0 {
		t.Errorf("serial %d after %v with %d artifacts", l.Serial, l.Previous, len(l.Artifacts))
	}
	s, volume := y.export(t, l)
	b := y.verify(t, volume)
	m := b.Manifest()
	if m.Kind != bundle.KindControl || s.Documents != 3 || len(m.Documents) != 3 || string(b.Voucher().Role()) != "control:"+channel {
		t.Errorf("kind %s, documents %+v, vouched for in %s", m.Kind, m.Documents, b.Voucher().Role())
	}
	trust := y.trust(t)
	want := []bundle.Document{
		{Type: "trust", Version: "2", Blob: trust.Newest().Digest}, {Type: "revocations", Version: "1", Blob: trust.Revoked().Digest},
		{Type: "policy", Version: "3", Blob: cas.DigestOf([]byte("rules")), Critical: true},
	}
	if !slices.Equal(m.Documents, want) {
		t.Errorf("documents %+v, want %+v", m.Documents, want)
	}
	p := y.planner(t)
	p.Before = l
	after, err := p.Plan(t.Context(), y.spec)
	if err != nil || after.Artifacts[0].Subjects[0].Since != content.Artifacts[0].Subjects[0].Since {
		t.Errorf("the time of an SBOM did not outlive a control bundle: %v", err)
	}
	if _, again := y.export(t, l); string(again) != string(volume) {
		t.Error("exported again it has other bytes")
	}
}

func TestDocumentsThatAreLostOrChanged(t *testing.T) {
	y := controlYard(t)
	l := y.planControl(t, nil)
	_, before := y.export(t, l)
	lose := func() {
		t.Helper()
		for _, d := range l.Documents {
			if err := os.Remove(y.store.Path(d.Blob)); err != nil {
				t.Fatal(err)
			}
		}
	}
	lose()
	if _, again := y.export(t, l); string(again) != string(before) {
		t.Error("exported from lost documents it has other bytes")
	}
	lose()
	write(t, filepath.Join(y.dir, "rules.tar"), []byte("other rules"))
	_, err := y.exporter(t).Export(t.Context(), l, t.TempDir())
	wantCode(t, "a document that was edited", err, "source/moved")
}

func TestLockOfAControlBundleIsStale(t *testing.T) {
	y := controlYard(t)
	path := filepath.Join(t.TempDir(), "packhof.lock")
	if err := y.planControl(t, nil).Write(path); err != nil {
		t.Fatal(err)
	}
	if _, err := mirror.ReadLockOf(path, y.spec); err != nil {
		t.Fatal(err)
	}
	y.spec.Artifacts = nil // has no say in it
	if _, err := mirror.ReadLockOf(path, y.spec); err != nil {
		t.Error(err)
	}
	for name, edit := range map[string]func(){
		"documents": func() { y.spec.Documents[2].Version = "4" },
		"answers": func() {
			y.spec.Answers = []mirror.AnswerSpec{{Request: "R-1", Outcome: bundle.OutcomeLater}}
		},
		"withdraws": func() {
			y.spec.Withdraws = []mirror.WithdrawSpec{{Digest: cas.DigestOf(nil).String(), Reason: "x"}}
		},
	} {
		spec := *y.spec
		y.spec.Documents = slices.Clone(spec.Documents)
		edit()
		_, err := mirror.ReadLockOf(path, y.spec)
		wantCode(t, name, err, "lock/stale")
		y.spec = &spec
	}
}

func TestNoticesTravel(t *testing.T) {
	y := newYard(t)
	y.enrol(t, y.now, bundle.Reads())
	gone, better := cas.DigestOf([]byte("gone")), cas.DigestOf([]byte("better"))
	y.spec.Answers = []mirror.AnswerSpec{{Request: "R-1", Outcome: bundle.OutcomeDelivered, Text: "as asked"}}
	y.spec.Withdraws = []mirror.WithdrawSpec{{Digest: gone.String(), Reason: "wrong weights", Replacement: better.String()}}
	_, volume := y.export(t, y.plan(t))
	m := y.verify(t, volume).Manifest()
	if len(m.Answers) != 1 || m.Answers[0] != (bundle.Answer{Request: "R-1", Outcome: bundle.OutcomeDelivered, Text: "as asked"}) {
		t.Errorf("answers %+v", m.Answers)
	}
	if len(m.Withdraws) != 1 || m.Withdraws[0].Digest != gone || *m.Withdraws[0].Replacement != better || m.Withdraws[0].Reason != "wrong weights" {
		t.Errorf("withdraws %+v", m.Withdraws)
	}
	root := m.Artifacts[0].Root.Digest
	y.spec.Withdraws = []mirror.WithdrawSpec{{Digest: root.String(), Reason: "x"}}
	_, err := y.planner(t).Plan(t.Context(), y.spec)
	wantCode(t, "what comes along is withdrawn", err, "config/invalid")
}

func TestNoticesThatCannotBeRight(t *testing.T) {
	digest := cas.DigestOf(nil).String()
	for name, edit := range map[string]func(*mirror.Spec){
		"a type that nobody knows":     func(s *mirror.Spec) { s.Documents[0].Type = "poem" },
		"a trust document from a file": func(s *mirror.Spec) { s.Documents[0].File = "root.json" },
		"a document without a file":    func(s *mirror.Spec) { s.Documents[2].File = "" },
		"a document without a version": func(s *mirror.Spec) { s.Documents[2].Version = "" },
		"an answer to nothing":         func(s *mirror.Spec) { s.Answers = []mirror.AnswerSpec{{Outcome: "later"}} },
		"an outcome that nobody knows": func(s *mirror.Spec) { s.Answers = []mirror.AnswerSpec{{Request: "x", Outcome: "never"}} },
		"a request answered twice": func(s *mirror.Spec) {
			s.Answers = slices.Repeat([]mirror.AnswerSpec{{Request: "x", Outcome: "later"}}, 2)
		},
		"something that is no digest":   func(s *mirror.Spec) { s.Withdraws = []mirror.WithdrawSpec{{Digest: "x", Reason: "x"}} },
		"a withdrawal without a reason": func(s *mirror.Spec) { s.Withdraws = []mirror.WithdrawSpec{{Digest: digest}} },
		"something withdrawn twice": func(s *mirror.Spec) {
			s.Withdraws = slices.Repeat([]mirror.WithdrawSpec{{Digest: digest, Reason: "x"}}, 2)
		},
		"something that replaces itself": func(s *mirror.Spec) {
			s.Withdraws = []mirror.WithdrawSpec{{Digest: digest, Reason: "x", Replacement: digest}}
		},
	} {
		y := controlYard(t)
		edit(y.spec)
		wantCode(t, name, y.spec.Validate(), "config/invalid")
	}
}

func TestPlansOfNothing(t *testing.T) {
	y := controlYard(t)
	y.spec.Documents = nil
	p := y.planner(t)
	p.Control = true
	_, err := p.Plan(t.Context(), y.spec)
	wantCode(t, "no documents", err, "config/invalid")
	y = controlYard(t)
	y.spec.Artifacts = nil
	_, err = y.planner(t).Plan(t.Context(), y.spec)
	wantCode(t, "no artifacts", err, "config/invalid")
}

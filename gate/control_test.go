package gate_test

import (
	"slices"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

// control makes a control bundle that follows another one, with one document.
func (l *lab) control(before *testkit.Forged, serial int64, change func(*bundle.Manifest)) *testkit.Forged {
	l.t.Helper()
	rules := []byte("rules of the plant")
	return testkit.Forge(l.t, func(m *bundle.Manifest) {
		m.Audience, m.Kind, m.Serial, m.Artifacts, m.Blobs, m.Totals = []string{l.id}, bundle.KindControl, serial, []bundle.Artifact{}, nil, bundle.Totals{}
		if before != nil {
			digest := before.Head.Digest()
			m.Previous = &digest
		}
		testkit.AddBlob(m, rules, bundle.RoleContent)
		m.Documents = []bundle.Document{{Type: bundle.DocumentPolicy, Version: "3", Blob: cas.DigestOf(rules)}}
		if change != nil {
			change(m)
		}
	}, rules)
}

// TestControlBundle: it is a case like any other, its documents stay with it,
// and what the channel holds stays as it is.
func TestControlBundle(t *testing.T) {
	l := newLab(t)
	one := l.forge(nil)
	l.trust(one)
	l.approve(l.mustReceive(one).ID)
	l.mustRelease(1)
	two := l.control(one, 2, nil)
	c := l.mustReceive(two)
	v := mustReview(l, c.ID).Review
	want := []gate.ReviewDocument{{Type: "policy", Version: "3", Digest: two.Manifest.Documents[0].Blob, Size: 18, State: gate.DocumentKept}}
	if v.Kind != "control" || !slices.Equal(v.Documents, want) || len(v.Removed) != 0 || len(v.Artifacts) != 0 {
		t.Errorf("the review says %+v, removed %+v", v.Documents, v.Removed)
	}
	if c.State == gate.Awaiting {
		l.approve(c.ID)
	}
	if c := l.mustRelease(c.ID); c.State != gate.Loaded {
		t.Errorf("released it is %s", c.State)
	}
	three := l.next(two, 3)
	if v := mustReview(l, l.mustReceive(three).ID).Review; v.Artifacts[0].Change != "unchanged" {
		t.Errorf("after a control bundle the same artifact counts as %s", v.Artifacts[0].Change)
	}
}

func TestDocumentThatMustBeApplied(t *testing.T) {
	l := newLab(t)
	l.trust(l.forge(nil))
	_, err := l.receive(l.control(nil, 1, func(m *bundle.Manifest) { m.Documents[0].Critical = true }))
	if problem.CodeOf(err) != "bundle/critical-document" {
		t.Errorf("a critical document of policy: %v", err)
	}
}

// TestTrustAsADocument: it can only be the one that the head brings.
func TestTrustAsADocument(t *testing.T) {
	l := newLab(t)
	one := l.forge(nil)
	l.trust(one)
	brings := func(version string, raw []byte) *testkit.Forged {
		return testkit.Forge(t, func(m *bundle.Manifest) {
			m.Audience, m.Kind, m.Artifacts, m.Blobs, m.Totals = []string{l.id}, bundle.KindControl, []bundle.Artifact{}, nil, bundle.Totals{}
			testkit.AddBlob(m, raw, bundle.RoleContent)
			m.Documents = []bundle.Document{{Type: bundle.DocumentTrust, Version: version, Blob: cas.DigestOf(raw), Critical: true}}
		}, raw)
	}
	c := l.mustReceive(brings("1", one.Root.Bytes))
	if d := mustReview(l, c.ID).Review.Documents; len(d) != 1 || d[0].State != gate.DocumentInForce {
		t.Errorf("documents %+v", d)
	}
	m := *brings("1", one.Root.Bytes).Manifest
	for _, wrong := range []bundle.Document{{Type: bundle.DocumentTrust, Version: "2", Blob: m.TrustRoot.Digest}, {Type: bundle.DocumentRevocations, Version: "1", Blob: m.TrustRoot.Digest}} {
		m.Documents = []bundle.Document{wrong}
		if err := m.Validate(); problem.CodeOf(err) != "format/invalid" {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}

// TestWithdrawal: it is shown to who decides, marks what its channel released
// here, and takes nothing away.
func TestWithdrawal(t *testing.T) {
	l := newLab(t)
	one := l.forge(nil)
	l.trust(one)
	l.approve(l.mustReceive(one).ID)
	l.mustRelease(1)
	root := one.Manifest.Artifacts[0].Root.Digest
	better := cas.DigestOf([]byte("better"))
	two := l.control(one, 2, func(m *bundle.Manifest) {
		m.Withdraws = []bundle.Withdrawal{{Digest: root, Reason: "wrong line", Replacement: &better}}
		m.Answers = []bundle.Answer{{Request: "R-1", Outcome: bundle.OutcomeLater, Text: "soon"}}
		m.Extensions = map[string]bundle.Extension{"example.color": {Value: []byte(`"blue"`)}}
	})
	v := mustReview(l, l.mustReceive(two).ID).Review
	if len(v.Withdraws) != 1 || v.Withdraws[0].Reason != "wrong line" || *v.Withdraws[0].Replacement != better || !slices.Equal(v.Withdraws[0].Released, []string{"depot: notes:1.0"}) {
		t.Errorf("the review says of what is withdrawn %+v", v.Withdraws)
	}
	if len(v.Answers) != 1 || v.Answers[0].Text != "soon" || !slices.Equal(v.Ignored, []string{"example.color"}) {
		t.Errorf("answers %+v, ignored %v", v.Answers, v.Ignored)
	}
	l.restart() // the rows that mark are sealed like the others
	c, err := l.gate.Case(t.Context(), operator, 1)
	if err != nil || c.Withdrawn != 1 || c.Loads[0].Withdrawn != "wrong line" || c.State != gate.Loaded {
		t.Errorf("the released case: %+v, %v", c, err)
	}
	cases, err := l.gate.Cases(t.Context(), operator)
	if err != nil || cases[1].Withdrawn != 1 || cases[0].Withdrawn != 0 {
		t.Errorf("the list: %+v, %v", cases, err)
	}
	tag, err := l.gate.Depot().Tag(t.Context(), "notes", "1.0")
	if err != nil || tag.Withdrawn != "wrong line" {
		t.Errorf("in the depot: %+v, %v", tag, err)
	}
	three := l.next(two, 3)
	if v := mustReview(l, l.mustReceive(three).ID).Review; v.Artifacts[0].Withdrawn != "wrong line" {
		t.Errorf("sent again after it was withdrawn: %+v", v.Artifacts[0])
	}
}

// TestFirstSerialsThatWereGivenUp: who names no serial before it has given up
// those that are lower.
func TestFirstSerialsThatWereGivenUp(t *testing.T) {
	l := newLab(t)
	third := l.forge(func(m *bundle.Manifest) { m.Serial = 3 })
	l.trust(third)
	v := mustReview(l, l.mustReceive(third).ID).Review
	if len(v.Missing) != 0 || !slices.Equal(v.Abandoned, []int64{1, 2}) {
		t.Errorf("missing %v, abandoned %v", v.Missing, v.Abandoned)
	}
}

package gate_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/signing"
)

// outside is what the connected side believes once it has enrolled the gate.
func outside(t *testing.T, l *lab, f *testkit.Forged) *signing.Trust {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(l.dir, "enrol.json"))
	if err != nil {
		t.Fatal(err)
	}
	enrolment, err := bundle.ParseEnrolment(b)
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := enrolment.Receipt.Public()
	if err != nil {
		t.Fatal(err)
	}
	log, err := enrolment.Log.Public()
	if err != nil {
		t.Fatal(err)
	}
	return f.Enrolled(t, l.id, receipt, log)
}

// TestWhatIsLackingIsAskedFor: while volumes are missing, receipt and want list
// say exactly what; a set of just that makes the bundle whole, and the receipt
// then says so.
func TestWhatIsLackingIsAskedFor(t *testing.T) {
	l := newLab(t)
	f, paths := inVolumes(t, l)
	trust := outside(t, l, f)
	c, err := l.gate.Receive(t.Context(), operator, paths[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	holds := func() (bundle.Holding, []bundle.Piece) {
		t.Helper()
		signed, err := l.gate.IssueReceipt(t.Context(), operator)
		if err != nil {
			t.Fatal(err)
		}
		r, err := bundle.OpenReceipt(signed, trust, testkit.Noon())
		if err != nil {
			t.Fatal(err)
		}
		return r.Holds(f.Manifest, f.Head.Digest())
	}
	state, lacks := holds()
	if state != bundle.HoldsPart {
		t.Errorf("with one volume of %d the gate holds %q", len(paths), state)
	}
	raw, err := l.gate.WantList(t.Context(), operator, c.ID)
	if err != nil {
		t.Fatal(err)
	}
	want, err := bundle.ParseWant(raw)
	if err != nil {
		t.Fatal(err)
	}
	var bytes int64
	for _, p := range lacks {
		bytes += p.Length
	}
	if bytes != c.Lacks.Bytes || want.Manifest != f.Head.Digest() || want.Gate != l.id {
		t.Errorf("the receipt lacks %d bytes, the case %d; the want list is %+v", bytes, c.Lacks.Bytes, want)
	}
	set, err := bundle.PlanSet(f.Head, bundle.SetOptions{Only: want.Pieces})
	if err != nil {
		t.Fatal(err)
	}
	written, err := set.WriteTo(t.Context(), t.TempDir(), f.Content, bundle.SetWriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c, err = l.gate.Receive(t.Context(), operator, written[0].Path, nil)
	if err != nil || c.State != gate.Awaiting {
		t.Fatalf("with the repair: %+v, %v", c, err)
	}
	if state, lacks := holds(); state != bundle.HoldsAll || lacks != nil {
		t.Errorf("with the repair the gate holds %q, lacks %v", state, lacks)
	}
	if _, err := l.gate.WantList(t.Context(), operator, c.ID); problem.CodeOf(err) != "case/whole" {
		t.Errorf("something is wanted still: %v", err)
	}
}

// TestReceiptOfAnEmptyGate says nothing, and that is signed as well.
func TestReceiptOfAnEmptyGate(t *testing.T) {
	l := newLab(t)
	f := l.forge(nil)
	l.trust(f)
	signed, err := l.gate.IssueReceipt(t.Context(), operator)
	if err != nil {
		t.Fatal(err)
	}
	r, err := bundle.OpenReceipt(signed, outside(t, l, f), testkit.Noon())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]bundle.ReceiptChannel{}, r.Channels); diff != "" || r.Gate != l.id {
		t.Errorf("the receipt of %s (-want +got):\n%s", r.Gate, diff)
	}
	key := filepath.Join(l.dir, "keys", "receipt.pem")
	if err := os.WriteFile(key, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.gate.IssueReceipt(t.Context(), operator); problem.CodeOf(err) != "gate/receipt-key" {
		t.Errorf("with a broken key: %v", err)
	}
}

// TestOnlyTrustMakesNothingOfABundle: what nobody vouches for any more is not
// held; a gate that cannot read its rows issues no receipt.
func TestOnlyTrustMakesNothingOfABundle(t *testing.T) {
	l, f, _, _ := waiting(t, 1)
	trust := outside(t, l, f)
	held := func() bundle.Holding {
		t.Helper()
		signed, err := l.gate.IssueReceipt(t.Context(), operator)
		if err != nil {
			t.Fatal(err)
		}
		r, err := bundle.OpenReceipt(signed, trust, testkit.Noon())
		if err != nil {
			t.Fatal(err)
		}
		state, _ := r.Holds(f.Manifest, f.Head.Digest())
		return state
	}
	if got := held(); got != bundle.HoldsAll {
		t.Errorf("holds %q, want all", got)
	}
	if _, err := l.gate.UpdateTrust(t.Context(), gate.Console("root"), revoke(t, f, "plant-7")); err != nil {
		t.Fatal(err)
	}
	if got := held(); got != bundle.HoldsNone {
		t.Errorf("holds %q of what is revoked", got)
	}
	l.edit(`UPDATE belief SET floor = floor + 1`)
	if _, err := l.gate.IssueReceipt(t.Context(), operator); problem.CodeOf(err) != "audit/contradiction" {
		t.Errorf("with edited rows: %v", err)
	}
}

// TestAReceiptHasRoom for so much that is lacking, of one bundle and of all:
// beyond that, a bundle counts as not held, and smaller ones still have room.
func TestAReceiptHasRoom(t *testing.T) {
	got := gate.Listed(10_001, 10_000, 10_000, 10_000, 10_000, 9_999, 2, 1, 1)
	if diff := cmp.Diff([]bool{false, true, true, true, true, true, false, true, false}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

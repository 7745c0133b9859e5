package mirror_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/mirror"
	"github.com/packhof/packhof/signing"
)

// receiptOf signs, as the gate of the yard, what it holds.
func (y *yard) receiptOf(t testing.TB, made time.Time, reads []string, bundles ...bundle.ReceiptBundle) []byte {
	t.Helper()
	return receiptBy(t, "receipt", testkit.GateID, made, reads, bundles...)
}

func receiptBy(t testing.TB, key, gate string, made time.Time, reads []string, bundles ...bundle.ReceiptBundle) []byte {
	t.Helper()
	signer, err := testkit.NewSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	c := bundle.ReceiptChannel{Channel: channel, Epoch: 1, Serial: 1, Bundles: append([]bundle.ReceiptBundle{}, bundles...)}
	for _, b := range bundles {
		c.Epoch, c.Serial = b.Epoch, b.Serial
	}
	raw, err := bundle.SignReceipt(t.Context(), signer, &bundle.Receipt{
		Format: bundle.FormatReceipt, Gate: gate, Created: bundle.At(made), Program: "packhof-gate 1.0", Reads: reads, Channels: []bundle.ReceiptChannel{c},
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// heldAs is what a receipt says of a serial that was exported.
func heldAs(s *mirror.Summary, state bundle.Holding, lacks ...bundle.Piece) bundle.ReceiptBundle {
	return bundle.ReceiptBundle{Epoch: s.Epoch, Serial: s.Serial, Manifest: s.Manifest, State: state, Lacks: lacks}
}

func (y *yard) keep(t testing.TB, raw []byte) {
	t.Helper()
	if _, err := y.gates(t).Keep(raw); err != nil {
		t.Fatal(err)
	}
}

func TestReceiptsThatAreKept(t *testing.T) {
	y := newYard(t)
	s, _ := y.export(t, y.plan(t))
	newer, older := y.now.Add(2*time.Hour), y.now.Add(time.Hour)
	held := heldAs(s, bundle.HoldsAll)
	for _, step := range []struct {
		what string
		raw  []byte
		code string
	}{
		{"one of nobody's key", receiptBy(t, "stranger", testkit.GateID, older, bundle.Reads(), held), "signing/not-genuine"},
		{"one of a gate that nobody enrolled", receiptBy(t, "receipt", "gate-zzzzbbbbccccdddd", older, bundle.Reads(), held), "signing/unknown-role"},
		{"the first", y.receiptOf(t, newer, bundle.Reads(), held), ""},
		{"the same again", y.receiptOf(t, newer, bundle.Reads(), held), ""},
		{"an older one", y.receiptOf(t, older, []string{bundle.FormatV1}), "receipt/older"},
	} {
		_, err := y.gates(t).Keep(step.raw)
		if problem.CodeOf(err) != step.code || (err == nil) != (step.code == "") {
			t.Errorf("%s: %v (%s), want %q", step.what, err, problem.CodeOf(err), step.code)
		}
	}
	list := y.gates(t).List(channel)
	if len(list) != 1 || list[0].Receipt == nil || list[0].Receipt.Time != newer || list[0].Serial != 1 || !slices.Equal(list[0].Reads, bundle.Reads()) {
		t.Errorf("kept: %+v", list)
	}
}

func TestKeptReceiptThatWasEdited(t *testing.T) {
	y := newYard(t)
	y.keep(t, y.receiptOf(t, y.now, bundle.Reads()))
	path := filepath.Join(y.dir, "trust", "gates", testkit.GateID+".receipt.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, []byte(string(raw[:len(raw)-1])+" }"))
	_, err = mirror.ReadGates(filepath.Join(y.dir, "trust"), y.trust(t), y.now)
	wantCode(t, "an edited receipt", err, "receipt/unusable")
	write(t, path, receiptBy(t, "stranger", testkit.GateID, y.now, bundle.Reads()))
	_, err = mirror.ReadGates(filepath.Join(y.dir, "trust"), y.trust(t), y.now)
	wantCode(t, "a receipt of somebody else", err, "receipt/unusable")
}

// enrol keeps an enrolment of the yard's gate.
func (y *yard) enrol(t testing.TB, made time.Time, reads []string) {
	t.Helper()
	receipt := testkit.Key("receipt")
	public, err := signing.NewPublicKey(&receipt.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile("../testdata/enrol.json")
	if err != nil {
		t.Fatal(err)
	}
	e, err := bundle.ParseEnrolment(raw)
	if err != nil {
		t.Fatal(err)
	}
	e.Gate, e.Created, e.Reads, e.Receipt.SPKI = testkit.GateID, bundle.At(made), reads, public.DER()
	if raw, err = bundle.EncodeEnrolment(e); err != nil {
		t.Fatal(err)
	}
	if err := mirror.KeepEnrolment(filepath.Join(y.dir, "trust"), testkit.GateID, raw); err != nil {
		t.Fatal(err)
	}
}

// TestGateThatReadsLess: what an audience does not read is not written; the
// newest word of each gate counts, and a gate of which nothing is known reads
// the bare format.
func TestGateThatReadsLess(t *testing.T) {
	audience := []string{testkit.GateID}
	y := newYard(t)
	wantCode(t, "nothing is known", y.gates(t).Read(audience, bundle.FormatV1, bundle.ReadsControl), "receipt/old-gate")
	if err := y.gates(t).Read(audience, bundle.FormatV1); err != nil {
		t.Errorf("the bare format: %v", err)
	}
	y.enrol(t, y.now, bundle.Reads())
	if err := y.gates(t).Read(audience, bundle.FormatV1, bundle.ReadsControl); err != nil {
		t.Errorf("by its enrolment: %v", err)
	}
	y.keep(t, y.receiptOf(t, y.now.Add(time.Hour), []string{bundle.FormatV1}))
	wantCode(t, "set back to an older program", y.gates(t).Read(audience, bundle.ReadsControl), "receipt/old-gate")
	y.enrol(t, y.now.Add(2*time.Hour), bundle.Reads())
	if err := y.gates(t).Read(audience, bundle.ReadsControl); err != nil {
		t.Errorf("enrolled anew: %v", err)
	}
	wantCode(t, "what nobody reads", y.gates(t).Read(audience, "pigeons"), "receipt/old-gate")
	wantCode(t, "a gate that nobody knows", y.gates(t).Read([]string{"gate-zzzzbbbbccccdddd"}, bundle.ReadsPacks), "receipt/old-gate")
}

func TestOldGateStopsPlanAndExport(t *testing.T) {
	y := newYard(t)
	y.spec.Withdraws = []mirror.WithdrawSpec{{Digest: cas.DigestOf([]byte("gone")).String(), Reason: "wrong"}}
	_, err := y.planner(t).Plan(t.Context(), y.spec)
	wantCode(t, "plan", err, "receipt/old-gate")
	y.enrol(t, y.now, bundle.Reads())
	l := y.plan(t)
	y.keep(t, y.receiptOf(t, y.now.Add(time.Hour), []string{bundle.FormatV1, bundle.ReadsControl}))
	_, err = y.exporter(t).Export(t.Context(), l, t.TempDir())
	wantCode(t, "export", err, "receipt/old-gate")
	if _, sealed := y.ledger(t).Last(); sealed {
		t.Error("it took up a serial")
	}
}

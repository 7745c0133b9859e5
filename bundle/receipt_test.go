package bundle_test

import (
	"bytes"
	"crypto/ed25519"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/signing"
)

// enrolled is the trust of f with its gate added, and the gate's receipt key.
func enrolled(t testing.TB, f *testkit.Forged) (*signing.Trust, signing.Signer) {
	t.Helper()
	receipt, err := testkit.NewSigner("receipt")
	if err != nil {
		t.Fatal(err)
	}
	log, err := signing.NewPublicKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)).Public())
	if err != nil {
		t.Fatal(err)
	}
	return f.Enrolled(t, testkit.GateID, receipt.Public(), log), receipt
}

func receiptOf(f *testkit.Forged) *bundle.Receipt {
	blob := f.Manifest.Blobs[0]
	return &bundle.Receipt{
		Format: bundle.FormatReceipt, Gate: testkit.GateID, Created: bundle.At(testkit.Noon()), Program: "packhof-gate 1.0", Reads: []string{bundle.FormatV1},
		Channels: []bundle.ReceiptChannel{
			{Channel: "plant-7", Epoch: 1, Serial: 3, Bundles: []bundle.ReceiptBundle{
				{Epoch: 1, Serial: 1, Manifest: f.Head.Digest(), State: bundle.HoldsAll},
				{Epoch: 1, Serial: 2, Manifest: cas.DigestOf([]byte("2")), State: bundle.HoldsPart, Lacks: []bundle.Piece{{Blob: blob.Digest, Length: 1}, {Blob: blob.Digest, Offset: 512, Length: 7}}},
				{Epoch: 1, Serial: 3, Manifest: cas.DigestOf([]byte("3")), State: bundle.HoldsNone},
			}},
			{Channel: "plant-8", Epoch: 2, Serial: 1, Bundles: []bundle.ReceiptBundle{}},
		},
	}
}

func TestReceiptRoundTrip(t *testing.T) {
	f := testkit.Forge(t, nil)
	trust, key := enrolled(t, f)
	want := receiptOf(f)
	b, err := bundle.SignReceipt(t.Context(), key, want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := bundle.OpenReceipt(b, trust, testkit.Noon())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("it changed on its way (-want +got):\n%s", diff)
	}
	if state, lacks := got.Holds(f.Manifest, f.Head.Digest()); state != bundle.HoldsAll || lacks != nil {
		t.Errorf("the bundle is %s, lacks %v", state, lacks)
	}
	if state, _ := got.Holds(f.Manifest, cas.DigestOf([]byte("3"))); state != bundle.HoldsNone {
		t.Errorf("another manifest of the serial is %s", state)
	}
}

// TestReceiptsThatDoNotCount: of another gate, by another key, changed on the
// way, or saying what cannot be.
func TestReceiptsThatDoNotCount(t *testing.T) {
	f := testkit.Forge(t, nil)
	trust, key := enrolled(t, f)
	good, err := bundle.SignReceipt(t.Context(), key, receiptOf(f))
	if err != nil {
		t.Fatal(err)
	}
	byAnother, err := bundle.SignReceipt(t.Context(), f.Signer, receiptOf(f))
	if err != nil {
		t.Fatal(err)
	}
	ofAnother := receiptOf(f)
	ofAnother.Gate = "gate-bbbbccccddddeeee"
	foreign, err := bundle.SignReceipt(t.Context(), key, ofAnother)
	if err != nil {
		t.Fatal(err)
	}
	for what, b := range map[string][]byte{
		"the release key's": byAnother, "another gate's": foreign, "changed": bytes.Replace(good, []byte(`"serial":3`), []byte(`"serial":4`), 1),
		"no gate": bytes.Replace(good, []byte(testkit.GateID), []byte("gate-x"), 1), "cut": good[:len(good)-1], "two of it": append(bytes.Clone(good), good...),
		"with more": bytes.Replace(good, []byte(`{"receipt"`), []byte(`{"x":1,"receipt"`), 1),
	} {
		if r, err := bundle.OpenReceipt(b, trust, testkit.Noon()); err == nil || problem.CodeOf(err) == "" {
			t.Errorf("%s receipt: %v, %v", what, r, err)
		}
	}
	if _, err := bundle.OpenReceipt(good, trust, testkit.Noon().AddDate(4, 0, 0)); err == nil {
		t.Error("a key that has run out counts")
	}
	blob := f.Manifest.Blobs[0].Digest
	for what, change := range map[string]func(r *bundle.Receipt){
		"format":           func(r *bundle.Receipt) { r.Format = "packhof.receipt/v2" },
		"gate":             func(r *bundle.Receipt) { r.Gate = "x" },
		"program":          func(r *bundle.Receipt) { r.Program = "x\x1b[2J" },
		"reads":            func(r *bundle.Receipt) { r.Reads = nil },
		"channels":         func(r *bundle.Receipt) { r.Channels[1].Channel = "plant-7" },
		"stream":           func(r *bundle.Receipt) { r.Channels[1].Serial = 0 },
		"beyond newest":    func(r *bundle.Receipt) { r.Channels[0].Serial = 2 },
		"order":            func(r *bundle.Receipt) { r.Channels[0].Bundles[1].Serial = 1 },
		"state":            func(r *bundle.Receipt) { r.Channels[0].Bundles[0].State = "sold" },
		"lacks and held":   func(r *bundle.Receipt) { r.Channels[0].Bundles[1].State = bundle.HoldsAll },
		"part of nothing":  func(r *bundle.Receipt) { r.Channels[0].Bundles[1].Lacks = nil },
		"negative":         func(r *bundle.Receipt) { r.Channels[0].Bundles[1].Lacks[0].Offset = -1 },
		"overlap":          func(r *bundle.Receipt) { r.Channels[0].Bundles[1].Lacks[1] = bundle.Piece{Blob: blob} },
		"beyond the limit": func(r *bundle.Receipt) { r.Channels[0].Bundles[1].Lacks[1].Length = 1 << 62 },
	} {
		r := receiptOf(f)
		change(r)
		if _, err := bundle.SignReceipt(t.Context(), key, r); problem.CodeOf(err) == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestWantList(t *testing.T) {
	const size = 3*bundle.ChunkSize + 5
	large, small := cas.Digest{1}, cas.Digest{2}
	m := &bundle.Manifest{Channel: "plant-7", Epoch: 1, Serial: 4, Blobs: []bundle.Blob{{Digest: small, Size: 10}, {Digest: large, Size: size, Chunks: &small}}}
	slices.SortFunc(m.Blobs, func(a, b bundle.Blob) int { return a.Digest.Compare(b.Digest) })
	manifest := cas.DigestOf([]byte("manifest"))
	w := bundle.NewWant(testkit.GateID, bundle.At(testkit.Noon()), m, manifest, []bundle.Piece{
		{Blob: large, Offset: 512, Length: 512}, {Blob: large, Offset: 2048, Length: bundle.ChunkSize}, {Blob: large, Offset: size - 1, Length: 1},
		{Blob: small, Length: 10}, {Blob: cas.DigestOf([]byte("foreign")), Length: 1},
	})
	want := []bundle.Piece{{Blob: large, Length: 2 * bundle.ChunkSize}, {Blob: large, Offset: 3 * bundle.ChunkSize, Length: 5}, {Blob: small, Length: 10}}
	if diff := cmp.Diff(want, w.Pieces); diff != "" {
		t.Errorf("it wants (-want +got):\n%s", diff)
	}
	b, err := bundle.EncodeWant(w)
	if err != nil {
		t.Fatal(err)
	}
	got, err := bundle.ParseWant(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w, got); diff != "" {
		t.Errorf("it changed on its way (-want +got):\n%s", diff)
	}
	for what, change := range map[string]func(w *bundle.Want){
		"format": func(w *bundle.Want) { w.Format = "x" }, "gate": func(w *bundle.Want) { w.Gate = "x" }, "bundle": func(w *bundle.Want) { w.Serial = 0 },
		"nothing": func(w *bundle.Want) { w.Pieces = nil }, "twice": func(w *bundle.Want) { w.Pieces = append(w.Pieces, w.Pieces[0]) },
	} {
		other := *w
		change(&other)
		if _, err := bundle.EncodeWant(&other); problem.CodeOf(err) == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func FuzzReceipt(f *testing.F) {
	forged := testkit.Forge(f, nil)
	trust, key := enrolled(f, forged)
	good, err := bundle.SignReceipt(f.Context(), key, receiptOf(forged))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"receipt":{"gate":"` + testkit.GateID + `"},"signature":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := bundle.OpenReceipt(b, trust, testkit.Noon()); err == nil && !bytes.Equal(b, good) {
			t.Errorf("accepted %q, which was not signed", b)
		} else if err != nil && problem.CodeOf(err) == "" {
			t.Errorf("refused without a code: %v", err)
		}
	})
}

func FuzzWant(f *testing.F) {
	f.Add([]byte(`{"channel":"plant-7","created":"2026-11-30T12:00:00Z","epoch":1,"format":"packhof.want/v1","gate":"gate-aaaabbbbccccdddd","manifest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","pieces":[{"blob":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","length":2,"offset":0}],"serial":4}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := bundle.ParseWant(b)
		if err != nil {
			if problem.CodeOf(err) == "" {
				t.Errorf("refused without a code: %v", err)
			}
			return
		}
		if _, err := bundle.EncodeWant(w); err != nil {
			t.Errorf("accepted and cannot be written: %v", err)
		}
	})
}

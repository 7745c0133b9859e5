package mirror_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/mirror"
)

// sealedTwice is a project with two serials, which share some content, and
// their manifests.
func sealedTwice(t *testing.T) (y *yard, one, two []byte) {
	t.Helper()
	y = newYard(t)
	seal := func(serial int64) []byte {
		y.export(t, y.plan(t))
		entry, ok := y.ledger(t).Find(1, serial)
		if !ok {
			t.Fatalf("serial %d is not sealed", serial)
		}
		b, err := y.store.ReadAll(entry.Manifest, bundle.MaxManifestSize)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	one = seal(1)
	y.shelf.trees["a"]["new.csv"] = testkit.Bytes("new", 3000)
	return y, one, seal(2)
}

func manifest(t *testing.T, b []byte) *bundle.Manifest {
	t.Helper()
	m, err := bundle.ParseManifestUnsafe(b)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// less is the blobs of a manifest without some.
func less(m *bundle.Manifest, without ...bundle.Blob) (pieces []bundle.Piece) {
	held := map[cas.Digest]bool{}
	for _, b := range without {
		held[b.Digest] = true
	}
	for _, b := range m.Blobs {
		if !held[b.Digest] {
			pieces = append(pieces, bundle.Piece{Blob: b.Digest, Length: b.Size})
		}
	}
	return pieces
}

// receiptOf is what a gate says of one bundle of a channel.
func receiptOf(channel string, bundles ...bundle.ReceiptBundle) *bundle.Receipt {
	return &bundle.Receipt{
		Gate: testkit.GateID, Program: "packhof-gate test", Reads: []string{bundle.FormatV1},
		Channels: []bundle.ReceiptChannel{{Channel: channel, Epoch: 1, Serial: 1, Bundles: bundles}},
	}
}

// TestWhatAReceiptLeavesOut: a set brings what the receipt does not prove to be
// there, and says what of the receipt did not count.
func TestWhatAReceiptLeavesOut(t *testing.T) {
	y, raw1, raw2 := sealedTwice(t)
	one, two := manifest(t, raw1), manifest(t, raw2)
	shared, _ := two.Blob(cas.DigestOf(testkit.Bytes("values", 5000)))
	held := func(serial int64, raw []byte, state bundle.Holding, lacks ...bundle.Piece) bundle.ReceiptBundle {
		return bundle.ReceiptBundle{Epoch: 1, Serial: serial, Manifest: cas.DigestOf(raw), State: state, Lacks: lacks}
	}
	sharedPiece := bundle.Piece{Blob: shared.Digest, Length: shared.Size}
	withoutShared := []bundle.Blob{}
	for _, b := range one.Blobs {
		if b.Digest != shared.Digest {
			withoutShared = append(withoutShared, b)
		}
	}
	for name, c := range map[string]struct {
		receipt *bundle.Receipt
		want    []bundle.Piece
		warning string
	}{
		"nothing at all":               {receiptOf(channel), less(two), ""},
		"the one before":               {receiptOf(channel, held(1, raw1, bundle.HoldsAll)), less(two, one.Blobs...), ""},
		"a part of the one before":     {receiptOf(channel, held(1, raw1, bundle.HoldsPart, sharedPiece)), less(two, withoutShared...), ""},
		"nothing of the one before":    {receiptOf(channel, held(1, raw1, bundle.HoldsNone)), less(two), ""},
		"this very one":                {receiptOf(channel, held(2, raw2, bundle.HoldsAll)), []bundle.Piece{}, ""},
		"a part of this very one":      {receiptOf(channel, held(2, raw2, bundle.HoldsPart, sharedPiece)), []bundle.Piece{sharedPiece}, ""},
		"nothing of this very one":     {receiptOf(channel, held(1, raw1, bundle.HoldsAll), held(2, raw2, bundle.HoldsNone)), less(two, one.Blobs...), ""},
		"another bundle of the serial": {receiptOf(channel, held(1, raw2, bundle.HoldsAll)), less(two), "was not sealed here"},
		"a serial that there is not":   {receiptOf(channel, held(7, raw1, bundle.HoldsAll)), less(two), "was not sealed here"},
		"another channel":              {receiptOf("plant-8", held(1, raw1, bundle.HoldsAll)), less(two), ""},
	} {
		checkOnly(t, y, name, c.receipt, raw2, c.want, c.warning)
	}
	remove(t, y.store.Path(cas.DigestOf(raw1)))
	checkOnly(t, y, "a manifest that the store has lost", receiptOf(channel, held(1, raw1, bundle.HoldsAll)), raw2, less(two), "has lost the manifest of serial 1")
}

func checkOnly(t *testing.T, y *yard, name string, r *bundle.Receipt, raw []byte, want []bundle.Piece, warning string) {
	t.Helper()
	var warned []string
	e := y.exporter(t)
	e.Since, e.Warn = []*bundle.Receipt{r}, func(what string, _ []string) { warned = append(warned, what) }
	got, err := e.Only(raw)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
	said := strings.Join(warned, "\n")
	if warning == "" && said != "" || !strings.Contains(said, warning) {
		t.Errorf("%s: warned of %q, want %q", name, said, warning)
	}
}

// TestGatesThatASetIsNotFor: receipts and want lists of a gate that the bundle
// is not meant for, or that cannot read it, plan nothing.
func TestGatesThatASetIsNotFor(t *testing.T) {
	y, _, raw := sealedTwice(t)
	m := manifest(t, raw)
	other, old := receiptOf(channel), receiptOf(channel)
	other.Gate, old.Reads = "gate-of-nobody", []string{"packhof.bundle/v0"}
	want := func(change func(*bundle.Want)) *bundle.Want {
		w := bundle.NewWant(testkit.GateID, bundle.At(testkit.Noon()), m, cas.DigestOf(raw), less(m))
		change(w)
		return w
	}
	for name, c := range map[string]struct {
		since *bundle.Receipt
		want  *bundle.Want
		code  string
	}{
		"a receipt of another gate":      {other, nil, "receipt/other-gate"},
		"a receipt of an old gate":       {old, nil, "receipt/old-gate"},
		"a want list of another gate":    {nil, want(func(w *bundle.Want) { w.Gate = "gate-of-nobody" }), "want/other-gate"},
		"a want list of another serial":  {nil, want(func(w *bundle.Want) { w.Serial = 1 }), "want/other-bundle"},
		"a want list of another channel": {nil, want(func(w *bundle.Want) { w.Channel = "plant-8" }), "want/other-bundle"},
		"a want list of other bytes":     {nil, want(func(w *bundle.Want) { w.Manifest = cas.DigestOf(nil) }), "want/other-bundle"},
	} {
		e := y.exporter(t)
		e.Want = c.want
		if c.since != nil {
			e.Since = []*bundle.Receipt{c.since}
		}
		_, err := e.Only(raw)
		wantCode(t, name, err, c.code)
	}
	e := y.exporter(t)
	e.Want = want(func(*bundle.Want) {})
	if got, err := e.Only(raw); err != nil || !cmp.Equal(got, e.Want.Pieces) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestSealedLocks: what was sealed can be sent again as long as the store has
// its lock.
func TestSealedLocks(t *testing.T) {
	y, _, _ := sealedTwice(t)
	for serial := int64(1); serial <= 2; serial++ {
		l, _, err := mirror.SealedLock(y.store, y.ledger(t), 1, serial)
		if err != nil || l.Serial != serial {
			t.Fatalf("serial %d: %+v, %v", serial, l, err)
		}
	}
	_, _, err := mirror.SealedLock(y.store, y.ledger(t), 1, 3)
	wantCode(t, "a serial that was never sealed", err, "serial/not-sealed")
	entry, _ := y.ledger(t).Find(1, 1)
	remove(t, y.store.Path(entry.Lock))
	_, _, err = mirror.SealedLock(y.store, y.ledger(t), 1, 1)
	wantCode(t, fmt.Sprintf("the lock %s", entry.Lock.Short()), err, "serial/lock-lost")
}

// TestSetsAreRemembered: a set that brings a part is sent again by its id, and
// does not count as the last time where all of it went out.
func TestSetsAreRemembered(t *testing.T) {
	y := newYard(t)
	y.shelf.trees["a"]["large.bin"] = testkit.Bytes("large", 200_000)
	l := y.plan(t)
	recipients, err := mirror.Recipients([]string{"age168lzr602ae8gugh93hy0n2a66nx4yftn882c2gzuzcacgjeleqgs4x63ar"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := y.exporter(t)
	e.VolumeSizes = []int64{90_000}
	whole, _ := exportWith(t, e, l)
	raw, err := y.store.ReadAll(whole.Manifest, bundle.MaxManifestSize)
	if err != nil {
		t.Fatal(err)
	}
	large, _ := manifest(t, raw).Blob(cas.DigestOf(testkit.Bytes("large", 200_000)))
	e = y.exporter(t)
	e.VolumeSizes, e.Recipients = []int64{120_000}, recipients
	e.Want = &bundle.Want{Gate: testkit.GateID, Channel: channel, Epoch: 1, Serial: 1, Manifest: whole.Manifest, Pieces: []bundle.Piece{{Blob: large.Digest, Length: large.Size}}}
	part, err := e.Export(t.Context(), l, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	_, last, err := mirror.SealedLock(y.store, y.ledger(t), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(last.Sizes, []int64{90_000}) || len(last.Recipients) != 0 {
		t.Errorf("all of it last went out in %v to %v, want the sizes of the whole set, in the clear", last.Sizes, last.Recipients)
	}
	_, shipped, err := mirror.FindSet(y.store, y.ledger(t), part.Set.Short())
	if err != nil {
		t.Fatal(err)
	}
	again := y.exporter(t)
	again.Again, again.VolumeSizes, again.Recipients = &shipped, shipped.Sizes, shipped.Recipients
	sent, err := again.Export(t.Context(), l, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if sent.Set != part.Set || sent.Complete || len(sent.Recipients) != 1 {
		t.Errorf("sent again: %+v, want the set %s, encrypted", sent, part.Set.Short())
	}
	again.VolumeSizes = []int64{90_000}
	_, err = again.Export(t.Context(), l, t.TempDir())
	wantCode(t, "in other sizes", err, "volume/no-such-set")
	_, _, err = mirror.FindSet(y.store, y.ledger(t), "")
	wantCode(t, "no id", err, "volume/no-such-set")
}

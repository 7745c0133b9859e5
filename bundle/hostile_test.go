package bundle_test

import (
	"bytes"
	"context"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/hex"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/signing"
)

const block = 512

// rawEntry is an entry of a volume as it stands there.
type rawEntry struct {
	name string
	data []byte
}

// entriesOf takes a good volume apart.
func entriesOf(t *testing.T, volume []byte) []rawEntry {
	t.Helper()
	var entries []rawEntry
	for at := 0; volume[at] != 0; {
		name, _, _ := bytes.Cut(volume[at:at+100], []byte{0})
		size, err := strconv.ParseInt(string(volume[at+124:at+135]), 8, 64)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, rawEntry{string(name), volume[at+block : at+block+int(size)]})
		at += block + (int(size)+block-1)/block*block
	}
	return entries
}

// assemble lays entries with right headers and right sums, whatever they are.
func assemble(entries []rawEntry) []byte {
	var out, sums bytes.Buffer
	add := func(e rawEntry) {
		h := make([]byte, block)
		copy(h, e.name)
		copy(h[100:], "0000644\x000000000\x000000000\x00"+fmt.Sprintf("%011o", len(e.data))+"\x0000000000000\x00        0")
		copy(h[257:], "ustar\x0000")
		copy(h[329:], "0000000\x000000000\x00")
		sum := 0
		for _, b := range h {
			sum += int(b)
		}
		copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
		out.Write(h)
		out.Write(e.data)
		out.Write(make([]byte, (block-len(e.data)%block)%block))
		digest := sha256.Sum256(e.data)
		fmt.Fprintf(&sums, "%s  %s\n", hex.EncodeToString(digest[:]), e.name)
	}
	for _, e := range entries {
		if e.name != "SHA256SUMS" {
			add(e)
		}
	}
	add(rawEntry{"SHA256SUMS", bytes.Clone(sums.Bytes())})
	out.Write(make([]byte, 2*block))
	return out.Bytes()
}

// mustRefuse checks a volume whose sums are right and which is wrong all the
// same.
func mustRefuse(t *testing.T, f *testkit.Forged, what string, entries []rawEntry) {
	t.Helper()
	volume := assemble(entries)
	if bytes.Equal(volume, f.Volume) {
		t.Fatalf("%s: the case changes nothing", what)
	}
	if err := check(f, volume); problem.CodeOf(err) == "" {
		t.Errorf("%s: not refused with a code: %v", what, err)
	}
}

func TestAssembleIsFaithful(t *testing.T) {
	f := testkit.Forge(t, nil)
	if !bytes.Equal(assemble(entriesOf(t, f.Volume)), f.Volume) {
		t.Fatal("taken apart and put together, the volume differs")
	}
}

func TestT04DuplicateOfEachEntry(t *testing.T) {
	f := testkit.Forge(t, nil)
	entries := entriesOf(t, f.Volume)
	for i, e := range entries[:len(entries)-1] {
		other := rawEntry{e.name, append(bytes.Clone(e.data), 'x')}
		for at := range entries {
			mustRefuse(t, f, fmt.Sprintf("%s again at place %d", e.name, at), slices.Insert(slices.Clone(entries), at, e))
			mustRefuse(t, f, fmt.Sprintf("%s with other bytes at place %d", e.name, at), slices.Insert(slices.Clone(entries), at, other))
		}
		mustRefuse(t, f, "without "+e.name, slices.Delete(slices.Clone(entries), i, i+1))
	}
}

func TestT26EntriesReorderedOrAdded(t *testing.T) {
	f := testkit.Forge(t, nil)
	entries := entriesOf(t, f.Volume)
	for i := range len(entries) - 2 {
		swapped := slices.Clone(entries)
		swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
		mustRefuse(t, f, "swapped "+entries[i].name+" and "+entries[i+1].name, swapped)
	}
	payload := []byte("extra")
	for _, name := range []string{
		"extra", "blobs/sha256/" + cas.DigestOf(payload).Hex(), "blobs/sha256/" + cas.DigestOf(payload).Hex() + ".s0000",
		"trust/root-2.json", "trust/root-0.json", "trust/root-01.json", "trust/revocations-2.json", "trust/other-1.json", "trust/root-1.txt",
		"signatures/short.sigstore.json", "signatures/ffffffffffffffff.json",
	} {
		for at := range entries {
			mustRefuse(t, f, fmt.Sprintf("%s added at place %d", name, at), slices.Insert(slices.Clone(entries), at, rawEntry{name, payload}))
		}
	}
}

func TestT26MixOfTwoBundles(t *testing.T) {
	a := testkit.Forge(t, nil)
	b := testkit.Forge(t, func(m *bundle.Manifest) { m.Note = "another bundle" })
	entries := entriesOf(t, a.Volume)
	mixed := 0
	for _, foreign := range entriesOf(t, b.Volume) {
		i := slices.IndexFunc(entries, func(e rawEntry) bool { return e.name == foreign.name })
		if i < 0 || foreign.name == "SHA256SUMS" || bytes.Equal(entries[i].data, foreign.data) {
			continue
		}
		mixed++
		replaced := slices.Clone(entries)
		replaced[i] = foreign
		mustRefuse(t, a, foreign.name+" of another bundle", replaced)
	}
	if mixed != 3 { // manifest, signature, volume.json
		t.Errorf("%d entries differ between the two bundles", mixed)
	}
}

// TestT26ForeignVolumeJSON: unsigned as it is, it may say only one thing.
func TestT26ForeignVolumeJSON(t *testing.T) {
	f := testkit.Forge(t, nil)
	entries := entriesOf(t, f.Volume)
	i := slices.IndexFunc(entries, func(e rawEntry) bool { return e.name == "volume.json" })
	good := string(entries[i].data)
	for _, edit := range [][3]string{
		{f.Head.Digest().String(), "sha256:" + strings.Repeat("0", 64), "volume/foreign"},
		{"volume/v1", "volume/v2", "format/unknown"},
		{`"length":700`, `"length":701`, "volume/damaged"},
		{`"count":1`, `"count":1,"count":1`, "volume/damaged"},
		{`"count":1`, `"count":2`, "volume/damaged"},
		{`"number":1`, `"number":2`, "volume/damaged"},
		{`"number":1`, `"number": 1`, "volume/damaged"},
	} {
		changed := slices.Clone(entries)
		changed[i].data = []byte(strings.Replace(good, edit[0], edit[1], 1))
		if err := check(f, assemble(changed)); problem.CodeOf(err) != edit[2] {
			t.Errorf("volume.json with %s: %v, want %s", edit[1], err, edit[2])
		}
	}
}

func TestT08OversizeHeadEntries(t *testing.T) {
	f := testkit.Forge(t, nil)
	entries := entriesOf(t, f.Volume)
	for i, e := range entries {
		limit := map[string]int{"packhof.json": bundle.MaxManifestSize, "oci-layout": 30, "index.json": 32 << 20, "volume.json": 32 << 20}[e.name]
		switch {
		case strings.HasPrefix(e.name, "trust/root"):
			limit = signing.MaxRoot
		case strings.HasPrefix(e.name, "trust/revocations"):
			limit = signing.MaxRevocations
		case strings.HasPrefix(e.name, "signatures/"):
			limit = signing.MaxBundle
		}
		if limit == 0 {
			continue
		}
		large := slices.Clone(entries)
		large[i].data = make([]byte, limit+1)
		volume := assemble(large)
		_, err := bundle.Open(bytes.NewReader(volume), int64(len(volume)), "x.tar")
		var damaged *bundle.DamagedError
		if !errors.As(err, &damaged) || damaged.Entry != e.name || !strings.Contains(damaged.What, "more than the") {
			t.Errorf("%s with %d bytes: %v", e.name, limit+1, err)
		}
	}
}

// twoOfTwo makes a bundle whose role asks for two signers, and gives both.
func twoOfTwo(t *testing.T) (f *testkit.Forged, second *testkit.Signer) {
	t.Helper()
	f = testkit.Forge(t, nil)
	second, err := testkit.NewSigner("second")
	if err != nil {
		t.Fatal(err)
	}
	draft := f.Trust.Root().Next(testkit.Noon().AddDate(3, 0, 0))
	rule := signing.Rule{Role: signing.BundleRole("plant-7"), Threshold: 2}
	for owner, s := range map[string]*testkit.Signer{"release@example": f.Signer, "security@example": second} {
		rule.Keys = append(rule.Keys, signing.Key{Public: s.Public(), Owner: owner, NotBefore: testkit.Noon(), NotAfter: testkit.Noon().AddDate(3, 0, 0)})
	}
	if err := draft.SetRole(rule); err != nil {
		t.Fatal(err)
	}
	root, err := draft.Sign(t.Context(), f.Signer)
	if err != nil {
		t.Fatal(err)
	}
	f.Manifest.TrustRoot = bundle.Versioned{Version: 2, Digest: cas.DigestOf(root)}
	manifest, err := bundle.EncodeManifest(f.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Seal(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
	f.Head.Roots = append(f.Head.Roots, bundle.TrustDocument{Version: 2, Bytes: root})
	return f, second
}

func signature(t *testing.T, s *testkit.Signer, manifest []byte) bundle.Signature {
	t.Helper()
	b, err := signing.Sign(t.Context(), s, manifest)
	if err != nil {
		t.Fatal(err)
	}
	return bundle.Signature{Key: s.Public().ID().Short(), Bytes: b}
}

func TestTwoSignaturesInAnyOrder(t *testing.T) {
	f, second := twoOfTwo(t)
	if err := f.Lay(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := check(f, f.Volume); problem.CodeOf(err) != "signing/threshold" {
		t.Fatalf("one signature of two: %v", err)
	}
	one, two := f.Head.Signatures[0], signature(t, second, f.Head.Manifest)
	var volumes [][]byte
	for _, order := range [][]bundle.Signature{{one, two}, {two, one}} {
		f.Head.Signatures = order
		if err := f.Lay(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := check(f, f.Volume); err != nil {
			t.Error(err)
		}
		volumes = append(volumes, f.Volume)
	}
	if !bytes.Equal(volumes[0], volumes[1]) {
		t.Error("the order in which people signed shows in the volume")
	}
}

func TestT30MalleatedSignatureCountsOnce(t *testing.T) {
	f, _ := twoOfTwo(t)
	twin := f.Head.Signatures[0]
	for name, twin := range map[string]bundle.Signature{
		"the same bytes again":     {Key: "0123456789abcdef", Bytes: twin.Bytes},
		"the same with n-s for s":  {Key: "0123456789abcdef", Bytes: malleate(t, twin.Bytes)},
		"signed again by that key": {Key: "ffffffffffffffff", Bytes: signature(t, f.Signer, f.Head.Manifest).Bytes},
	} {
		changed := *f
		changed.Head.Signatures = []bundle.Signature{f.Head.Signatures[0], twin}
		if err := changed.Lay(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := check(f, changed.Volume); problem.CodeOf(err) != "signing/threshold" {
			t.Errorf("%s counts as a second person: %v", name, err)
		}
	}
}

// malleate turns (r, s) into (r, n-s), which verifies just as well.
func malleate(t *testing.T, raw []byte) []byte {
	t.Helper()
	var doc map[string]jsontext.Value
	var message map[string]jsontext.Value
	var der []byte
	var rs struct{ R, S *big.Int }
	if err := errors.Join(json.Unmarshal(raw, &doc), json.Unmarshal(doc["messageSignature"], &message), json.Unmarshal(message["signature"], &der)); err != nil {
		t.Fatal(err)
	}
	if _, err := asn1.Unmarshal(der, &rs); err != nil {
		t.Fatal(err)
	}
	rs.S = new(big.Int).Sub(elliptic.P256().Params().N, rs.S)
	der, err := asn1.Marshal(rs)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(v any) jsontext.Value {
		b, err := json.Marshal(v)
		value := jsontext.Value(b)
		if err = errors.Join(err, value.Canonicalize()); err != nil {
			t.Fatal(err)
		}
		return value
	}
	message["signature"] = encode(der)
	doc["messageSignature"] = encode(message)
	return encode(doc)
}

func TestT30TooManySignatures(t *testing.T) {
	f := testkit.Forge(t, nil)
	one := f.Head.Signatures[0]
	for i := range signing.MaxSignatures {
		f.Head.Signatures = append(f.Head.Signatures, bundle.Signature{Key: fmt.Sprintf("%016x", i), Bytes: one.Bytes})
	}
	if _, err := bundle.OpenSealed("x", f.Head, f.Content).Verify(f.Trust, testkit.Noon()); problem.CodeOf(err) != "signing/too-many-signatures" {
		t.Errorf("%d signatures: %v", len(f.Head.Signatures), err)
	}
	if err := f.Lay(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := check(f, f.Volume); problem.CodeOf(err) != "format/invalid" {
		t.Errorf("a volume with %d signatures: %v", len(f.Head.Signatures), err)
	}
}

// shifting is a medium that changes after it was opened.
type shifting struct {
	data  []byte
	flips int // index of a byte, from when it is set; -1 for none
}

func (s *shifting) ReadAt(p []byte, at int64) (int, error) {
	n, err := bytes.NewReader(s.data).ReadAt(p, at)
	if i := int64(s.flips) - at; s.flips >= 0 && i >= 0 && i < int64(n) {
		p[i] ^= 0xff
	}
	return n, err
}

func TestT13ContentChangesAfterOpen(t *testing.T) {
	f := testkit.Forge(t, nil)
	at := 0
	for _, e := range entriesOf(t, f.Volume) {
		if len(e.data) == 0 {
			t.Fatalf("the entry %s is empty", e.name)
		}
		medium := &shifting{data: f.Volume, flips: -1}
		sealed, err := bundle.Open(medium, int64(len(f.Volume)), "x.tar")
		if err != nil {
			t.Fatal(err)
		}
		b, err := sealed.Verify(f.Trust, testkit.Noon())
		if err != nil {
			t.Fatal(err)
		}
		medium.flips = at + block
		if err := b.Check(t.Context(), nil); problem.CodeOf(err) == "" {
			t.Errorf("%s changed after Open, and Check says %v", e.name, err)
		}
		if d, err := cas.ParseHex(strings.TrimPrefix(e.name, "blobs/sha256/")); err == nil {
			if _, err := b.ReadAll(d, 1<<20); problem.CodeOf(err) != "content/corrupt" {
				t.Errorf("%s changed after Open, and reading it gives %v", e.name, err)
			}
		}
		at += block + (len(e.data)+block-1)/block*block
	}
}

// brokenOff is content whose readers end early, with an error that some
// readers of archives use for "nothing more".
type brokenOff struct{ testkit.Memory }

func (c brokenOff) Open(d cas.Digest) (io.ReadCloser, error) {
	r := io.MultiReader(bytes.NewReader(c.Memory[d][:1]), failing{io.ErrUnexpectedEOF})
	return io.NopCloser(r), nil
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestContentThatBreaksOffIsNoSuccess(t *testing.T) {
	f := testkit.Forge(t, nil)
	if err := verified(t, f, brokenOff{f.Content}).Check(t.Context(), nil); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
	if _, err := bundle.HashChunks(t.Context(), failing{io.ErrUnexpectedEOF}, cas.Digest{}, 10); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("chunks of a reader that breaks off: %v", err)
	}
}

func TestBlobsOutsideTheManifest(t *testing.T) {
	f := testkit.Forge(t, nil)
	other := f.Content.Add([]byte("not named"))
	b := verified(t, f, f.Content)
	if _, err := b.Open(t.Context(), other); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("opened a blob that the manifest does not name: %v", err)
	}
	if _, err := b.ReadAll(other, 100); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read a blob that the manifest does not name: %v", err)
	}
	if _, err := b.ReadAll(b.Manifest().Artifacts[0].Root.Digest, 10); err == nil {
		t.Error("read more than was allowed")
	}
}

func TestTrustDocumentsThatTheManifestDoesNotName(t *testing.T) {
	f := testkit.Forge(t, nil)
	lost := f.Head
	lost.Roots = nil
	if _, err := bundle.OpenSealed("x", lost, f.Content).Verify(f.Trust, testkit.Noon()); problem.CodeOf(err) != "bundle/trust-missing" {
		t.Errorf("without a root: %v", err)
	}
	other := f.Head
	other.Revocations = bundle.TrustDocument{Version: 2, Bytes: f.Head.Revocations.Bytes}
	if _, err := bundle.OpenSealed("x", other, f.Content).Verify(f.Trust, testkit.Noon()); problem.CodeOf(err) != "bundle/trust-differs" {
		t.Errorf("with other revocations: %v", err)
	}
	broken := f.Head
	broken.Roots = []bundle.TrustDocument{f.Root, {Version: 2, Bytes: []byte("{}")}}
	if trust, err := bundle.OpenSealed("x", broken, f.Content).Trust(f.Trust, testkit.Noon()); problem.CodeOf(err) == "" || trust != f.Trust {
		t.Errorf("a broken root: %v", err)
	}
	broken = f.Head
	broken.Revocations.Bytes = []byte("{}")
	if _, err := bundle.OpenSealed("x", broken, f.Content).Trust(f.Trust, testkit.Noon()); problem.CodeOf(err) == "" {
		t.Errorf("a broken revocation list: %v", err)
	}
}

func TestCheckEndsWithItsContext(t *testing.T) {
	f := testkit.Forge(t, nil)
	b := genuine(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Check(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled check: %v", err)
	}
	if err := verified(t, f, f.Content).Check(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled check of a store: %v", err)
	}
}

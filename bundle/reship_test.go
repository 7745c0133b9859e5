package bundle_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/signing"
)

// reshipped writes what is in a folder as another set.
func reshipped(t *testing.T, from, to string, limits []int64) {
	t.Helper()
	found, err := bundle.Find(from)
	if err != nil {
		t.Fatal(err)
	}
	sealed := found.Bundles[0]
	defer sealed.Close()
	set, content, err := sealed.Reship(limits, nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= set.Count(); n++ {
		plan, err := set.Volume(n)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := plan.WriteTo(t.Context(), to, content, bundle.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func filesOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = b
	}
	return files
}

// TestSplitAndJoin: split, split otherwise and joined again, it is the same
// file, and each set on the way verifies.
func TestSplitAndJoin(t *testing.T) {
	f := spreadBundle(t, 0, 40_000, 2_000)
	whole, thirds, mixed, again := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	written(t, f, whole, bundle.SetOptions{})
	smallest := base(t, f)
	reshipped(t, whole, thirds, []int64{smallest + 10_000})
	reshipped(t, thirds, mixed, []int64{smallest + 512, smallest + 20_000})
	reshipped(t, mixed, again, nil)
	for _, dir := range []string{thirds, mixed} {
		if err := onlyBundle(t, f, dir).Check(t.Context(), nil); err != nil || len(filesOf(t, dir)) < 2 {
			t.Errorf("%d volumes: %v", len(filesOf(t, dir)), err)
		}
	}
	if diff := cmp.Diff(filesOf(t, whole), filesOf(t, again)); diff != "" {
		t.Error("split and joined again it is another file")
	}
	if !bytes.Equal(f.Volume, filesOf(t, again)["plant-7-000001.tar"]) {
		t.Error("it is not the volume that it was at first")
	}
	// A volume is missing.
	for name := range filesOf(t, thirds) {
		if err := os.Remove(filepath.Join(thirds, name)); err != nil {
			t.Fatal(err)
		}
		break
	}
	found, err := bundle.Find(thirds)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Bundles[0].Close()
	if _, _, err := found.Bundles[0].Reship(nil, nil); problem.CodeOf(err) != "volume/not-complete" {
		t.Errorf("a set with a hole was joined: %v", err)
	}
}

// TestJoinFoldsSignaturesIn: what a second signer put beside the volumes stands
// in the joined one.
func TestJoinFoldsSignaturesIn(t *testing.T) {
	f := spreadBundle(t, 3000)
	late := f.Head.Signatures[0]
	f.Head.Signatures = nil
	dir, to := t.TempDir(), t.TempDir()
	written(t, f, dir, bundle.SetOptions{Limits: []int64{base(t, f) + 1024}})
	if err := os.WriteFile(filepath.Join(dir, "plant-7-000001."+late.Key+".sigstore.json"), late.Bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	reshipped(t, dir, to, nil)
	if !bytes.Equal(f.Volume, filesOf(t, to)["plant-7-000001.tar"]) {
		t.Error("with the signature folded in it is not the volume of that signer")
	}
}

// TestJoinKeepsTheGoodSignature: a false signature that names the same key and
// lies first does not take its place, with a trust root; without one, nothing
// is joined.
func TestJoinKeepsTheGoodSignature(t *testing.T) {
	f := spreadBundle(t, 3000)
	other := testkit.Forge(t, func(m *bundle.Manifest) { m.Note = "another" })
	late := f.Head.Signatures[0]
	false1 := bytes.Replace(late.Bytes, signatureValue(t, late.Bytes), signatureValue(t, other.Head.Signatures[0].Bytes), 1)
	f.Head.Signatures = nil
	dir := t.TempDir()
	written(t, f, dir, bundle.SetOptions{})
	for name, b := range map[string][]byte{"a": false1, "b": late.Bytes} {
		if err := os.WriteFile(filepath.Join(dir, "plant-7-000001."+name+".sigstore.json"), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		root *signing.Root
		code string
	}{
		"no root":      {nil, "volume/signatures-differ"},
		"another root": {anotherRoot(t), "volume/signatures-differ"},
		"the root":     {f.Trust.Root(), ""},
	} {
		found, err := bundle.Find(dir)
		if err != nil {
			t.Fatal(err)
		}
		sealed := found.Bundles[0]
		if !sealed.IsAmbiguous() {
			t.Errorf("%s: nothing is to be chosen", name)
		}
		set, content, err := sealed.Reship(nil, c.root)
		if problem.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %q", name, err, c.code)
		}
		if c.code == "" {
			to := t.TempDir()
			if _, err := set.WriteTo(t.Context(), to, content, bundle.SetWriteOptions{}); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(f.Volume, filesOf(t, to)["plant-7-000001.tar"]) {
				t.Errorf("%s: the good signature is lost", name)
			}
		}
		if err := sealed.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestVolumeSizes(t *testing.T) {
	for text, want := range map[string][]int64{
		"4GiB-1": {4<<30 - 1}, "fat32": {4<<30 - 1}, "FAT32": {4<<30 - 1}, "700MB": {700e6}, "8589934592": {8 << 30}, "1 k": {1024},
		"4GiB,16GiB": {4 << 30, 16 << 30}, "cd, 1t-1MiB": {692 << 20, 1<<40 - 1<<20}, "dvd": {4_700_372_992 - 8<<20}, "1": {1},
	} {
		if got, err := bundle.ParseVolumeSizes(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ",", "-1", "1-1", "1-2", "x", "1.5GiB", "9999999999TiB", "+1", "1GiBB", "1,", "0", "0x10", "4GiB-x", "1e3", "٤"} {
		if got, err := bundle.ParseVolumeSizes(text); problem.CodeOf(err) != "volume/size-malformed" {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// anotherRoot is a trust root that knows nobody who signs here.
func anotherRoot(t *testing.T) *signing.Root {
	t.Helper()
	signer, err := testkit.NewSigner("somebody else")
	if err != nil {
		t.Fatal(err)
	}
	return rootOf(t, signer, signing.Channel{Name: "plant-7", Epoch: 1})
}

// rootOf is a first trust root by one key, with one channel.
func rootOf(t *testing.T, signer signing.Signer, channel signing.Channel) *signing.Root {
	t.Helper()
	raw, err := signing.NewRoot(t.Context(), signing.RootParams{
		Signer: signer, Owner: "release@example", Channels: []signing.Channel{channel},
		Now: testkit.Noon(), Expires: testkit.Noon().AddDate(3, 0, 0), KeyNotAfter: testkit.Noon().AddDate(3, 0, 0),
	})
	if err != nil {
		t.Fatal(err)
	}
	root, err := signing.ParseRoot(raw)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// TestNamesThatTheChannelMayNotCarry: the root says how names have to begin.
func TestNamesThatTheChannelMayNotCarry(t *testing.T) {
	for prefix, code := range map[string]string{"models/": "bundle/name-not-allowed", "not": ""} {
		f := testkit.Forge(t, nil)
		root := rootOf(t, f.Signer, signing.Channel{Name: "plant-7", Epoch: 1, Prefixes: []string{prefix}})
		f.Root = bundle.TrustDocument{Version: 1, Bytes: root.Bytes()}
		f.Manifest.TrustRoot = bundle.Versioned{Version: 1, Digest: cas.DigestOf(root.Bytes())}
		var err error
		if f.Trust, err = signing.NewTrust(root, nil).UpdateRevocations(f.Revoked.Bytes, testkit.Noon()); err != nil {
			t.Fatal(err)
		}
		manifest, err := bundle.EncodeManifest(f.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Seal(t.Context(), manifest); err != nil {
			t.Fatal(err)
		}
		if err := check(f, f.Volume); problem.CodeOf(err) != code {
			t.Errorf("names that begin with %q: %v, want %q", prefix, err, code)
		}
	}
}

// TestVolumesThatDoNotGoTogether: the same manifest with other trust documents,
// and a folder that holds too much.
func TestVolumesThatDoNotGoTogether(t *testing.T) {
	f := spreadBundle(t, 3000)
	one, two, crowd := t.TempDir(), t.TempDir(), t.TempDir()
	written(t, f, one, bundle.SetOptions{})
	f.Head.Revocations.Bytes = append(bytes.Clone(f.Head.Revocations.Bytes), '\n')
	written(t, f, two, bundle.SetOptions{})
	if _, err := bundle.Find(one, two); problem.CodeOf(err) != "volume/head-differs" {
		t.Errorf("%v", err)
	}
	for n := range 10_001 {
		if err := os.WriteFile(filepath.Join(crowd, fmt.Sprint(n)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := bundle.Find(crowd); problem.CodeOf(err) != "volume/crowded" {
		t.Errorf("%v", err)
	}
}

package bundle_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/signing"
)

// check opens, verifies and proves a volume, as "packhof verify" does.
func check(f *testkit.Forged, volume []byte) error {
	sealed, err := bundle.Open(bytes.NewReader(volume), int64(len(volume)), "plant-7-000001.tar")
	if sealed == nil {
		return err
	}
	trust, err := sealed.Trust(f.Trust, testkit.Noon())
	if err != nil {
		return err
	}
	b, err := sealed.Verify(trust, testkit.Noon())
	if err != nil {
		return err
	}
	return b.Check(context.Background(), nil)
}

// genuine opens and verifies the volume of f.
func genuine(t *testing.T, f *testkit.Forged) *bundle.Bundle {
	t.Helper()
	sealed, err := bundle.Open(bytes.NewReader(f.Volume), int64(len(f.Volume)), "x.tar")
	if err != nil {
		t.Fatal(err)
	}
	b, err := sealed.Verify(f.Trust, testkit.Noon())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRoundTrip(t *testing.T) {
	f := testkit.Forge(t, nil)
	if err := check(f, f.Volume); err != nil {
		t.Fatal(err)
	}
	b := genuine(t, f)
	if diff := cmp.Diff(f.Manifest, b.Manifest()); diff != "" {
		t.Errorf("the manifest changed on its way (-sealed +read):\n%s", diff)
	}
	for d, want := range f.Content {
		got, err := b.ReadAll(d, 1<<20)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("blob %s: %d bytes, %v", d, len(got), err)
		}
	}
	if got := b.Voucher().Signers(); len(got) != 1 || got[0].Owner != "release@example" {
		t.Errorf("signers %v", got)
	}
}

func TestSameBytesTwice(t *testing.T) {
	a, b := testkit.Forge(t, nil), testkit.Forge(t, nil)
	if !bytes.Equal(a.Volume, b.Volume) {
		t.Error("two bundles of the same content differ")
	}
}

// TestT10EveryFlippedByte goes on behind Open only where Open took the volume:
// TestWhatOpenRefusesNeverVerifies is about the rest. The trust documents are
// judged anew only where the flip is in them.
func TestT10EveryFlippedByte(t *testing.T) {
	f := testkit.Forge(t, nil)
	volume := bytes.Clone(f.Volume)
	noticed := func() error {
		sealed, err := bundle.Open(bytes.NewReader(volume), int64(len(volume)), "plant-7-000001.tar")
		if err != nil {
			return err
		}
		trust := f.Trust
		if head := sealed.Head(); !slices.EqualFunc(head.Roots, f.Head.Roots, sameDocument) || !sameDocument(head.Revocations, f.Head.Revocations) {
			if trust, err = sealed.Trust(trust, testkit.Noon()); err != nil {
				return err
			}
		}
		b, err := sealed.Verify(trust, testkit.Noon())
		if err != nil {
			return err
		}
		return b.Check(context.Background(), nil)
	}
	if err := noticed(); err != nil {
		t.Fatalf("before any flip: %v", err)
	}
	for i := range volume {
		volume[i] ^= 0xff
		if err := noticed(); err == nil {
			t.Fatalf("byte %d of %d flipped, and nobody noticed", i, len(volume))
		} else if problem.CodeOf(err) == "" {
			t.Fatalf("byte %d flipped: %v has no code", i, err)
		}
		volume[i] ^= 0xff
	}
}

func sameDocument(a, b bundle.TrustDocument) bool {
	return a.Version == b.Version && bytes.Equal(a.Bytes, b.Bytes)
}

func TestWhatOpenRefusesNeverVerifies(t *testing.T) {
	f := testkit.Forge(t, nil)
	volume := bytes.Clone(f.Volume)
	tried := 0
	for i := 0; i < len(volume); i += 31 { // prime: every place of a header comes up
		volume[i] ^= 0xff
		sealed, err := bundle.Open(bytes.NewReader(volume), int64(len(volume)), "x.tar")
		if sealed != nil && err != nil {
			tried++
			if b, err := sealed.Verify(f.Trust, testkit.Noon()); b != nil || problem.CodeOf(err) == "" {
				t.Fatalf("byte %d flipped, Open refused, and Verify gives %v", i, err)
			}
		}
		volume[i] ^= 0xff
	}
	if tried < 100 {
		t.Fatalf("only %d of %d bytes came this far", tried, len(volume))
	}
}

func TestT06EveryTruncation(t *testing.T) {
	f := testkit.Forge(t, nil)
	for n := range f.Volume {
		sealed, err := bundle.Open(bytes.NewReader(f.Volume[:n]), int64(n), "x.tar")
		if problem.CodeOf(err) == "" {
			t.Fatalf("cut to %d of %d bytes, and Open says %v", n, len(f.Volume), err)
		}
		if sealed == nil || n%97 != 0 {
			continue
		}
		if _, err := sealed.Verify(f.Trust, testkit.Noon()); problem.CodeOf(err) == "" {
			t.Fatalf("cut to %d of %d bytes, and Verify says %v", n, len(f.Volume), err)
		}
	}
}

func TestT30SignatureStripping(t *testing.T) {
	f := testkit.Forge(t, nil)
	f.Head.Signatures = nil
	if err := f.Lay(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := check(f, f.Volume)
	var untrusted *signing.UntrustedError
	if !errors.As(err, &untrusted) {
		t.Errorf("a bundle without signatures: %v", err)
	}
}

func TestT31ManifestChangedAfterSigning(t *testing.T) {
	f := testkit.Forge(t, nil)
	for name, manifest := range map[string][]byte{
		"another word":  bytes.Replace(f.Head.Manifest, []byte(`"version":"1.0"`), []byte(`"version":"1.1"`), 1),
		"a blank added": bytes.Replace(f.Head.Manifest, []byte(`,"`), []byte(`, "`), 1),
	} {
		changed := *f
		changed.Head.Manifest = manifest
		if err := changed.Lay(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := check(f, changed.Volume); problem.CodeOf(err) != "signing/not-genuine" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestT30ForeignSigner(t *testing.T) {
	f := testkit.Forge(t, nil)
	stranger, err := testkit.NewSigner("stranger")
	if err != nil {
		t.Fatal(err)
	}
	f.Signer = stranger
	if err := f.Seal(t.Context(), f.Head.Manifest); err != nil {
		t.Fatal(err)
	}
	if err := check(f, f.Volume); problem.CodeOf(err) != "signing/not-genuine" {
		t.Errorf("signed by a stranger: %v", err)
	}
}

func TestT20T21StrictManifest(t *testing.T) {
	good := string(testkit.Forge(t, nil).Head.Manifest)
	cases := map[string]string{
		"T-20 duplicate key":    strings.Replace(good, `"channel":"plant-7"`, `"channel":"plant-8","channel":"plant-7"`, 1),
		"T-20 unknown key":      strings.Replace(good, `"channel":`, `"chanel":1,"channel":`, 1),
		"T-20 other case":       strings.Replace(good, `"channel":`, `"Channel":`, 1),
		"T-20 trailing data":    good + "{}",
		"T-20 not JSON":         "hello",
		"T-20 empty":            "",
		"T-21 deep nesting":     strings.Replace(good, `"format":`, `"extensions":{"x":{"critical":false,"value":`+strings.Repeat("[", 100)+strings.Repeat("]", 100)+`}},"format":`, 1),
		"T-03 digest as path":   strings.Replace(good, `"digest":"sha256:`, `"digest":"sha256:../`, 1),
		"unknown format":        strings.Replace(good, "packhof.bundle/v1", "packhof.bundle/v2", 1),
		"wrong totals":          strings.Replace(good, `"files":4`, `"files":5`, 1),
		"time with a zone":      strings.Replace(good, "2026-11-30T12:00:00Z", "2026-11-30T13:00:00+01:00", 1),
		"critical extension":    strings.Replace(good, `"format":`, `"extensions":{"x":{"critical":true,"value":1}},"format":`, 1),
		"control character":     strings.Replace(good, `"name":"notes"`, `"name":"no\u0000tes"`, 1),
		"bidi mark":             strings.Replace(good, `"name":"notes"`, `"name":"no\u202etes"`, 1),
		"serial zero":           strings.Replace(good, `"serial":1`, `"serial":0`, 1),
		"channel with a path":   strings.Replace(good, `"channel":"plant-7"`, `"channel":"../x"`, 1),
		"silent about the SBOM": strings.Replace(good, `"status":"absent"`, `"status":"unknown"`, 1),
	}
	for name, manifest := range cases {
		t.Run(name, func(t *testing.T) {
			if manifest == good {
				t.Fatal("the case changes nothing")
			}
			f := testkit.Forge(t, nil)
			if err := f.Seal(t.Context(), []byte(manifest)); err == nil {
				t.Fatal("the writer laid a volume for it")
			}
			sealed := bundle.OpenSealed("x", f.Head, f.Content)
			if _, err := sealed.Verify(f.Trust, testkit.Noon()); problem.CodeOf(err) == "" {
				t.Errorf("signed by the right key, it was not refused with a code: %v", err)
			}
		})
	}
}

func TestUnknownHarmlessExtensionIsFine(t *testing.T) {
	f := testkit.Forge(t, func(m *bundle.Manifest) {
		m.Extensions = map[string]bundle.Extension{"example.color": {Value: []byte(`{"paint":"blue"}`)}}
	})
	if err := check(f, f.Volume); err != nil {
		t.Error(err)
	}
}

func TestT26BlobsMissingStrayOrForeign(t *testing.T) {
	extra := []byte("belongs to nothing")
	stray := testkit.Forge(t, func(m *bundle.Manifest) { testkit.AddBlob(m, extra, bundle.RoleContent) }, extra)
	if err := check(stray, stray.Volume); problem.CodeOf(err) != "bundle/stray-blob" {
		t.Errorf("a blob that belongs to nothing: %v", err)
	}
	f := testkit.Forge(t, nil)
	for d := range f.Content {
		wrong := testkit.Memory{}
		for k, v := range f.Content {
			wrong[k] = v
		}
		wrong[d] = bytes.Repeat([]byte("x"), len(wrong[d]))
		b := verified(t, f, wrong)
		if err := b.Check(t.Context(), nil); problem.CodeOf(err) != "content/corrupt" {
			t.Errorf("other bytes for %s: %v", d, err)
		}
		delete(wrong, d)
		if err := verified(t, f, wrong).Check(t.Context(), nil); err == nil {
			t.Errorf("%s is missing, and nobody noticed", d)
		}
	}
}

func verified(t *testing.T, f *testkit.Forged, content bundle.Content) *bundle.Bundle {
	t.Helper()
	b, err := bundle.OpenSealed("quarantine", f.Head, content).Verify(f.Trust, testkit.Noon())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestT22AmbiguousManifest(t *testing.T) {
	d := strings.Repeat("a", 64)
	child := `{"mediaType":"x","digest":"sha256:` + d + `","size":1}`
	for name, doc := range map[string]string{
		"manifests in a manifest": `{"schemaVersion":2,"config":` + child + `,"manifests":[` + child + `]}`,
		"no config":               `{"schemaVersion":2,"layers":[` + child + `]}`,
		"schema 1":                `{"schemaVersion":1,"config":` + child + `}`,
		"other media type":        `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","config":` + child + `}`,
		"duplicate config":        `{"schemaVersion":2,"config":` + child + `,"config":` + child + `}`,
		"negative size":           `{"schemaVersion":2,"config":{"mediaType":"x","digest":"sha256:` + d + `","size":-1}}`,
		"bad digest":              `{"schemaVersion":2,"config":{"mediaType":"x","digest":"sha256:x","size":1}}`,
		"deep":                    `{"schemaVersion":2,"config":` + child + `,"x":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`,
	} {
		if _, err := bundle.ParseOCI([]byte(doc), bundle.TypeOCIManifest); problem.CodeOf(err) != "oci/malformed" {
			t.Errorf("%s: %v", name, err)
		}
	}
	index := `{"schemaVersion":2,"manifests":[],"layers":[` + child + `]}`
	if _, err := bundle.ParseOCI([]byte(index), bundle.TypeOCIIndex); problem.CodeOf(err) != "oci/malformed" {
		t.Errorf("layers in an index: %v", err)
	}
	if _, err := bundle.ParseOCI([]byte(index), "text/plain"); problem.CodeOf(err) != "oci/malformed" {
		t.Errorf("an unknown media type: %v", err)
	}
}

// zeros is a blob of zeros of any size, and nothing on a disk.
type zeros map[cas.Digest]int64

func (z zeros) Has(d cas.Digest) (bool, error) { _, ok := z[d]; return ok, nil }

func (z zeros) Open(d cas.Digest) (io.ReadCloser, error) {
	return io.NopCloser(io.LimitReader(zeroReader{}, z[d])), nil
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// both looks for a blob in two places.
type both struct{ a, b bundle.Content }

func (c both) Has(d cas.Digest) (bool, error) {
	if ok, err := c.a.Has(d); ok || err != nil {
		return ok, err
	}
	return c.b.Has(d)
}

func (c both) Open(d cas.Digest) (io.ReadCloser, error) {
	if ok, _ := c.a.Has(d); ok {
		return c.a.Open(d)
	}
	return c.b.Open(d)
}

func TestT08BlobOver4GiB(t *testing.T) {
	if testing.Short() {
		t.Skip("hashes 4 GiB three times")
	}
	const size = 4<<30 + 1
	f, plan, digest := plannedZeros(t, size)
	dir := t.TempDir()
	path, err := plan.WriteTo(t.Context(), dir, both{f.Content, zeros{digest: size}}, bundle.WriteOptions{NoReadback: true})
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := bundle.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer sealed.Close()
	b, err := sealed.Verify(f.Trust, testkit.Noon())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Check(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	store := newStore(t).Lazy()
	if err := b.CopyTo(t.Context(), store, bundle.CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	if there, err := store.Has(digest, size); err != nil || !there {
		t.Errorf("the blob that comes in two pieces was not copied: %v", err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() != plan.Size() {
		t.Errorf("planned %d bytes, wrote %d, %v", plan.Size(), info.Size(), err)
	}
}

// plannedZeros seals a bundle whose one artifact is a file of that many zeros,
// which nobody holds in memory, and plans its volume.
func plannedZeros(t *testing.T, size int64) (*testkit.Forged, *bundle.VolumePlan, cas.Digest) {
	t.Helper()
	digest, list := hashZeros(t, size)
	f := testkit.Forge(t, nil)
	f.Manifest.Blobs, f.Manifest.Artifacts, f.Manifest.Totals = nil, nil, bundle.Totals{}
	f.AddTree(t, bundle.Model, "large", []bundle.File{{Path: "weights.gguf", Size: size, Digest: digest}})
	f.AddChunks(digest, f.Content.Add(list), int64(len(list)))
	manifest, err := bundle.EncodeManifest(f.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Seal(t.Context(), manifest); err == nil {
		t.Fatal("the content is not in memory, and the volume was laid all the same")
	}
	plan, err := bundle.PlanComplete(f.Head)
	if err != nil {
		t.Fatal(err)
	}
	return f, plan, digest
}

// hashZeros gives the digest and the chunk list of that many zeros.
func hashZeros(t *testing.T, size int64) (cas.Digest, []byte) {
	t.Helper()
	sum := func(n int64) cas.Digest {
		h := sha256.New()
		if _, err := io.CopyBuffer(h, io.LimitReader(zeroReader{}, n), make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		return cas.Digest(h.Sum(nil))
	}
	digest := sum(size)
	chunks := slices.Repeat([]cas.Digest{sum(bundle.ChunkSize)}, int(size/bundle.ChunkSize))
	if rest := size % bundle.ChunkSize; rest > 0 {
		chunks = append(chunks, sum(rest))
	}
	list, err := bundle.EncodeChunkList(digest, size, chunks)
	if err != nil {
		t.Fatal(err)
	}
	return digest, list
}

func TestWriteToLeavesNothingHalfWritten(t *testing.T) {
	f := testkit.Forge(t, nil)
	plan, err := bundle.PlanComplete(f.Head)
	if err != nil {
		t.Fatal(err)
	}
	for d := range f.Content {
		wrong := testkit.Memory{}
		for k, v := range f.Content {
			wrong[k] = v
		}
		wrong[d] = append(bytes.Clone(wrong[d]), 'x')
		dir := t.TempDir()
		if _, err := plan.WriteTo(t.Context(), dir, wrong, bundle.WriteOptions{}); problem.CodeOf(err) != "content/corrupt" {
			t.Errorf("wrong content was written: %v", err)
		}
		assertEmpty(t, dir)
	}
	cause := errors.New("pulled the plug")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	dir := t.TempDir()
	if _, err := plan.WriteTo(ctx, dir, f.Content, bundle.WriteOptions{}); !errors.Is(err, cause) {
		t.Errorf("a cancelled write: %v", err)
	}
	assertEmpty(t, dir)
}

func assertEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
}

func TestWriteToReadsBack(t *testing.T) {
	f := testkit.Forge(t, nil)
	plan, err := bundle.PlanComplete(f.Head)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path, err := plan.WriteTo(t.Context(), dir, f.Content, bundle.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, f.Volume) || filepath.Base(path) != "plant-7-000001.tar" {
		t.Errorf("%s holds %d bytes, %v", path, len(got), err)
	}
}

func TestBaseName(t *testing.T) {
	for _, c := range []struct {
		epoch, serial int64
		want          string
	}{{1, 42, "plant-7-000042"}, {3, 42, "plant-7-e3-000042"}, {1, 12345678, "plant-7-12345678"}} {
		if got := bundle.BaseName(&bundle.Manifest{Channel: "plant-7", Epoch: c.epoch, Serial: c.serial}); got != c.want {
			t.Errorf("epoch %d, serial %d: %s, want %s", c.epoch, c.serial, got, c.want)
		}
	}
}

func TestRefNames(t *testing.T) {
	m := &bundle.Manifest{}
	for _, a := range [][2]string{
		{"docker.io/library/nginx", "1.27"}, {"localhost:5000/app", "v1@x"}, {"a", "1"}, {"a", "1"}, {"häßlich", "1"}, {"..", ".."}, {"x__y", "1..0-"},
	} {
		m.Artifacts = append(m.Artifacts, bundle.Artifact{Name: a[0], Version: a[1], Root: bundle.Descriptor{Digest: cas.DigestOf([]byte(a[0]))}})
	}
	short := cas.DigestOf([]byte("a")).Short()
	want := []string{"docker.io/library/nginx_1.27", "localhost_5000/app_v1_x", "a_1-" + short, "a_1-" + short + "-2", "h_lich_1", cas.DigestOf([]byte("..")).Short(), "x_y_1.0"}
	if diff := cmp.Diff(want, bundle.RefNames(m)); diff != "" {
		t.Error(diff)
	}
}

func TestT01T07Paths(t *testing.T) {
	for _, good := range []string{"a", "a/b.c", "weights/model-00001-of-00002.safetensors", "ä/é", ".hidden", "a b", "-x", "CON"} {
		if err := bundle.CheckPath(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", `a\b`, "a\x00b", "a\nb", "a\u202eb", "a\ufeffb", "a\x80b",
		strings.Repeat("a", 256), strings.Repeat("a/", 600),
	} {
		if err := bundle.CheckPath(bad); problem.CodeOf(err) != "artifact/bad-path" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestBuildTreeSplitsAtItsLimits(t *testing.T) {
	var files []bundle.File
	for i := range 2500 {
		b := fmt.Appendf(nil, "%d", i)
		files = append(files, bundle.File{Path: fmt.Sprintf("d/%04d", i), Size: int64(len(b)), Digest: cas.DigestOf(b)})
	}
	tree, err := bundle.BuildTree(bundle.Dataset, "many", "1", files)
	if err != nil {
		t.Fatal(err)
	}
	if tree.Root.MediaType != bundle.TypeOCIIndex {
		t.Fatalf("2500 files became a %s", tree.Root.MediaType)
	}
	layers := 0
	for _, b := range tree.Documents {
		if len(b) > 1<<20 {
			t.Errorf("a manifest has %d bytes", len(b))
		}
		if doc, err := bundle.ParseOCI(b, bundle.TypeOCIManifest); err == nil {
			layers += len(doc.Layers)
			if len(doc.Layers) > 1000 {
				t.Errorf("a manifest has %d layers", len(doc.Layers))
			}
		}
	}
	if layers != 2500 {
		t.Errorf("%d layers in all", layers)
	}
}

func TestEnrolment(t *testing.T) {
	good, err := os.ReadFile("../testdata/enrol.json")
	if err != nil {
		t.Fatal(err)
	}
	e, err := bundle.ParseEnrolment(good)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := bundle.EncodeEnrolment(e); err != nil || !bytes.Equal(again, bytes.TrimSpace(good)) {
		t.Errorf("encoded again it differs: %v", err)
	}
	for name, edit := range map[string]func(string) string{
		"unknown key":  func(s string) string { return strings.Replace(s, `"owner"`, `"ownr":1,"owner"`, 1) },
		"other format": func(s string) string { return strings.Replace(s, "enrolment/v1", "enrolment/v9", 1) },
		"gate id":      func(s string) string { return strings.Replace(s, `"gate-`, `"../gate-`, 1) },
		"swapped keys": func(s string) string {
			return strings.Replace(strings.Replace(s, `"log"`, `"xxx"`, 1), `"receipt"`, `"log"`, 1)
		},
		"wrong algorithm": func(s string) string { return strings.Replace(s, `"ed25519"`, `"rsa"`, 1) },
		"broken key":      func(s string) string { return strings.Replace(s, `"spki":"`, `"spki":"AAAA`, 1) },
		"too large":       func(s string) string { return s + strings.Repeat(" ", 70000) },
	} {
		if _, err := bundle.ParseEnrolment([]byte(edit(string(good)))); problem.CodeOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzManifest(f *testing.F) {
	forged := testkit.Forge(f, nil)
	f.Add(forged.Head.Manifest)
	f.Fuzz(func(t *testing.T, b []byte) {
		head := forged.Head
		head.Manifest = b
		sealed := bundle.OpenSealed("fuzz", head, forged.Content)
		claims, err := sealed.Claims()
		if err != nil {
			return
		}
		if _, err := bundle.PlanComplete(head); err != nil {
			t.Fatalf("serial %d parses and cannot be laid: %v", claims.Serial, err)
		}
	})
}

func FuzzParseOCI(f *testing.F) {
	f.Add([]byte(`{"schemaVersion":2,"manifests":[]}`), true)
	f.Fuzz(func(t *testing.T, b []byte, index bool) {
		mediaType := bundle.TypeOCIManifest
		if index {
			mediaType = bundle.TypeOCIIndex
		}
		doc, err := bundle.ParseOCI(b, mediaType)
		if err == nil && !index && doc.Config == nil {
			t.Error("a manifest without a config")
		}
	})
}

func FuzzOpen(f *testing.F) {
	forged := testkit.Forge(f, nil)
	f.Add(forged.Volume)
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := check(forged, b); err == nil && !bytes.Equal(b, forged.Volume) {
			t.Error("other bytes than those that were signed were accepted")
		}
	})
}

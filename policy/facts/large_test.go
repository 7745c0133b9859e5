package facts_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/policy/facts"
	"github.com/packhof/packhof/signing"
)

// tiny is the content of many small files, made when it is read: in memory it
// would be what is measured.
type tiny struct {
	testkit.Memory
	numbers map[cas.Digest]int
}

func tinyFile(i int) []byte { return fmt.Appendf(nil, "line %d\n", i) }

func (c tiny) Has(d cas.Digest) (bool, error) {
	if _, ok := c.numbers[d]; ok {
		return true, nil
	}
	return c.Memory.Has(d)
}

func (c tiny) Open(d cas.Digest) (io.ReadCloser, error) {
	if i, ok := c.numbers[d]; ok {
		return io.NopCloser(bytes.NewReader(tinyFile(i))), nil
	}
	return c.Memory.Open(d)
}

func (c tiny) open(d cas.Digest) (facts.ReadAtCloser, int64, error) {
	if i, ok := c.numbers[d]; ok {
		b := tinyFile(i)
		return closed{bytes.NewReader(b)}, int64(len(b)), nil
	}
	b, ok := c.Memory[d]
	if !ok {
		return nil, 0, &cas.NotFoundError{Digest: d}
	}
	return closed{bytes.NewReader(b)}, int64(len(b)), nil
}

// largeTree is a bundle of a tree with so many paths below a folder, and so
// many contents among them, under so many names.
func largeTree(t testing.TB, folder string, paths, contents, artifacts int) (facts.Subject, tiny) {
	t.Helper()
	f := forge(t)
	content := tiny{f.Content, map[cas.Digest]int{}}
	files := make([]bundle.File, paths)
	for i := range paths {
		b := tinyFile(i % contents)
		d := cas.DigestOf(b)
		content.numbers[d] = i % contents
		files[i] = bundle.File{Path: fmt.Sprintf("%spart-%03d/%06d.txt", folder, i/1000, i), Size: int64(len(b)), Digest: d}
	}
	tree, err := bundle.BuildTree(bundle.Dataset, "many", "1.0", files)
	if err != nil {
		t.Fatal(err)
	}
	m := f.Manifest
	origin := m.Artifacts[0].Origin
	m.Artifacts = nil
	for i := range artifacts {
		m.Artifacts = append(m.Artifacts, bundle.Artifact{
			Kind: bundle.Dataset, Name: fmt.Sprintf("many-%03d", i), Version: "1.0", Root: tree.Root, Referrers: []bundle.Referrer{}, Origin: origin,
			SBOM: []bundle.SBOM{{Subject: tree.Root.Digest, Status: bundle.SBOMAbsent, Reason: "made by hand"}},
		})
	}
	m.Blobs, m.Totals = nil, bundle.Totals{}
	for _, document := range tree.Documents {
		m.Blobs = append(m.Blobs, bundle.Blob{Digest: f.Content.Add(document), Size: int64(len(document)), Role: bundle.RoleMetadata})
	}
	for d, i := range content.numbers {
		m.Blobs = append(m.Blobs, bundle.Blob{Digest: d, Size: int64(len(tinyFile(i))), Role: bundle.RoleContent})
	}
	slices.SortFunc(m.Blobs, func(a, b bundle.Blob) int { return a.Digest.Compare(b.Digest) })
	for _, b := range m.Blobs {
		m.Totals.Files++
		m.Totals.Bytes += b.Size
	}
	for i := range m.Artifacts {
		m.Artifacts[i].Size = m.Totals.Bytes
	}
	manifest, err := bundle.EncodeManifest(m)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := signing.Sign(t.Context(), f.Signer, manifest)
	if err != nil {
		t.Fatal(err)
	}
	f.Head.Manifest = manifest
	f.Head.Signatures = []bundle.Signature{{Key: f.Signer.Public().ID().Short(), Bytes: signature}}
	return f.subject(f.verified(bundle.OpenSealed("x", f.Head, content))), content
}

// mostMemory is what looking into content, and stating facts, may take.
const mostMemory = 256 << 20 // bytes

func wantLittle(t *testing.T, what string, do func()) {
	t.Helper()
	peak := testkit.PeakHeap(do)
	t.Logf("%s took %d MiB", what, peak>>20)
	if peak > mostMemory {
		t.Errorf("%s took %d MiB", what, peak>>20)
	}
}

func TestManyFilesTakeLittleMemory(t *testing.T) {
	s, content := largeTree(t, "data/", manyFiles, manyFiles, 1)
	wantLittle(t, "inspection", func() {
		reports, err := facts.Inspect(t.Context(), s.Bundle, content.open, limits())
		if err != nil || reports.Len() != manyFiles {
			t.Fatalf("%d reports, %v", reports.Len(), err)
		}
		s.Inspection = reports
	})
	wantLittle(t, "stating", func() {
		in, err := facts.State(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(in.Artifacts[0].Inspection.Files); n != manyFiles || in.Artifacts[0].Inspection.Status != "done" {
			t.Errorf("%d files, %s", n, in.Artifacts[0].Inspection.Reason)
		}
		if _, err := in.Digest(); err != nil {
			t.Error(err)
		}
	})
}

// listing is a tree below a folder, under so many names.
type listing struct {
	folder           string
	paths, artifacts int
}

func sharedTree() listing { return listing{strings.Repeat("folder/", 135), 1_000, 40} }

// A few MiB of manifests can name any number of paths: that ends before any
// content is opened, with the limit and how far it came.
func TestMoreFactsThanCanBeJudged(t *testing.T) {
	for name, c := range tooLarge() {
		t.Run(name, func(t *testing.T) {
			s, _ := largeTree(t, c.folder, c.paths, 1, c.artifacts)
			wantLittle(t, "inspection", func() {
				_, err := facts.Inspect(t.Context(), s.Bundle, func(d bundle.Digest) (facts.ReadAtCloser, int64, error) {
					return nil, 0, errors.New("opened " + d.String())
				}, limits())
				wantTooLarge(t, err)
			})
			wantLittle(t, "stating", func() {
				_, err := facts.State(t.Context(), s)
				wantTooLarge(t, err)
			})
		})
	}
}

func wantTooLarge(t *testing.T, err error) {
	t.Helper()
	var told interface {
		Code() string
		Evidence() []string
		Remedy() string
	}
	if !errors.As(err, &told) || told.Code() != "policy/too-large" {
		t.Fatalf("want policy/too-large, got %v", err)
	}
	if e := strings.Join(told.Evidence(), "\n"); !strings.Contains(e, "33554432 bytes") || !strings.Contains(e, "files of") || !strings.Contains(told.Remedy(), "plant-7, serial 1") {
		t.Errorf("evidence %q, remedy %q", e, told.Remedy())
	}
}

// Facts of other kinds are counted as well.
func TestMoreLabelsThanCanBeJudged(t *testing.T) {
	f := forge(t)
	root := f.platform(fmt.Sprintf(`{"os":"linux","architecture":"amd64","config":{"Labels":{"x":"%s"}}}`, strings.Repeat("x", 4_000_000)), configType, layerType)
	for i := range 9 {
		f.image(root, root.Digest).Version = fmt.Sprint(i)
	}
	_, err := facts.State(t.Context(), f.subject(f.seal()))
	wantTooLarge(t, err)
}

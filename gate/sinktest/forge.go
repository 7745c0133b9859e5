package sinktest

import (
	"bytes"
	"slices"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
)

// serial is a forged bundle; for whom is settled when a gate is there.
type serial struct {
	*testkit.Forged
	number int64
}

// payload is the size of the largest blob: enough to be interrupted in.
const payload = 1 << 20

// forgeSerials makes two serials of one channel. Between them the image and
// the model change, and the notes stay as they are.
func forgeSerials(t testing.TB) (first, second *serial) {
	t.Helper()
	return forgeSerial(t, 1, "first"), forgeSerial(t, 2, "second")
}

func forgeSerial(t testing.TB, number int64, seed string) *serial {
	t.Helper()
	f := testkit.Forge(t, nil)
	f.AddImage(t, "team/tool", "1.0", testkit.ImageSpec{Seed: seed, PayloadSize: payload}, "amd64", "arm64")
	f.AddImage(t, "team/plain", "1.0", testkit.ImageSpec{Seed: seed, PayloadSize: 2000})
	attachIndex(t, f, seed)
	contents := map[string][]byte{
		"weights.bin":                   testkit.Bytes(seed+" weights", 700_000),
		"config.json":                   []byte(`{"seed":"` + seed + `"}`),
		"empty":                         {},
		"docs/with space, ä+ü & %41.md": []byte("the same in both serials\n"),
		"docs/copy.md":                  []byte("the same in both serials\n"),
	}
	var files []bundle.File
	for path, b := range contents {
		files = append(files, bundle.File{Path: path, Size: int64(len(b)), Digest: f.Content.Add(b)})
	}
	f.AddTree(t, bundle.Model, "demo/Model", files)
	f.Manifest.Serial = number
	return &serial{Forged: f, number: number}
}

// address seals the bundle for a gate, behind the serial before it.
func (s *serial) address(t testing.TB, id string, before *serial) {
	t.Helper()
	s.Manifest.Audience = []string{id}
	if before != nil {
		d := before.Head.Digest()
		s.Manifest.Previous = &d
	}
	s.Reseal(t)
}

// wanted is what a client has to see of an artifact.
type wanted struct {
	blobs map[string][]byte // by digest, referrers included
	files map[string][]byte // by path; nil unless it is a tree
}

func (s *serial) wants(t testing.TB, a bundle.Artifact) wanted {
	t.Helper()
	w := wanted{blobs: map[string][]byte{}}
	read := func(d bundle.OCIDescriptor) ([]byte, error) { return s.Content[d.Digest], nil }
	visit := func(d bundle.OCIDescriptor, _ bundle.Role) error {
		w.blobs[d.Digest.String()] = s.Content[d.Digest]
		return nil
	}
	for _, d := range append([]bundle.Descriptor{a.Root}, referrersOf(a)...) {
		if err := bundle.Walk(bundle.OCIDescriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}, read, visit); err != nil {
			t.Fatal(err)
		}
	}
	if a.Kind != bundle.Image {
		w.files = treeOf(t, s, a)
	}
	return w
}

// treeOf reads the files of a tree of one manifest; a blob that is there under
// two paths counts twice.
func treeOf(t testing.TB, s *serial, a bundle.Artifact) map[string][]byte {
	t.Helper()
	doc, err := bundle.ParseOCI(s.Content[a.Root.Digest], a.Root.MediaType)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, layer := range doc.Layers {
		files[layer.Annotations["org.opencontainers.image.title"]] = s.Content[layer.Digest]
	}
	return files
}

func referrersOf(a bundle.Artifact) []bundle.Descriptor {
	var all []bundle.Descriptor
	for _, r := range a.Referrers {
		all = append(all, r.Descriptor)
	}
	return all
}

// checkSeen compares what a client sees under a name with what was promised.
func (s *serial) checkSeen(t testing.TB, h Harness, r *gate.Release) {
	t.Helper()
	for _, a := range r.Artifacts() {
		seen := h.Read(t, r.Name(a))
		if seen == nil {
			t.Errorf("%s is not there", r.Name(a))
			continue
		}
		want := s.wants(t, a)
		wantMap := want.blobs
		if byPath(seen) {
			wantMap = want.files
		}
		for key, b := range wantMap {
			if got, ok := seen[key]; !ok {
				t.Errorf("%s lacks %s", r.Name(a), key)
			} else if !bytes.Equal(got, b) {
				t.Errorf("%s has other bytes as %s", r.Name(a), key)
			}
		}
		for key := range seen {
			if _, ok := wantMap[key]; !ok {
				t.Errorf("%s has %s, which nobody promised", r.Name(a), key)
			}
		}
	}
}

// byPath tells files from blobs.
func byPath(seen map[string][]byte) bool {
	for key := range seen {
		if _, err := cas.ParseDigest(key); err != nil {
			return true
		}
	}
	return false
}

// contents are the bytes of a release's blobs, large first.
func contents(t testing.TB, r *gate.Release) [][]byte {
	t.Helper()
	var all [][]byte
	for _, b := range r.Manifest().Blobs {
		content, err := r.ReadAll(b.Digest, b.Size)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, content)
	}
	slices.SortFunc(all, func(a, b []byte) int { return len(b) - len(a) })
	return all
}

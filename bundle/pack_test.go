package bundle_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

// threeFiles are enough for a pack that has a prefix, an empty file and padding.
func threeFiles() map[string][]byte {
	return map[string][]byte{
		"a.txt":                                  []byte("one"),
		"b/empty":                                nil,
		strings.Repeat("deep/", 25) + "long.bin": testkit.Bytes("long", 1500),
	}
}

// manySmall are files with made up sizes: PlanPacks needs no content.
func manySmall(n int, size func(i int) int64) []bundle.File {
	files := make([]bundle.File, n)
	for i := range files {
		files[i] = bundle.File{Path: fmt.Sprintf("part-%03d/%06d.jpg", i/1000, i), Size: size(i)}
	}
	return files
}

func TestPlanOfPacks(t *testing.T) {
	big := func(i int) int64 { return int64(i*7919) % bundle.PackBelow }
	for name, c := range map[string]struct {
		kind        bundle.Kind
		files       []bundle.File
		least, most int
	}{
		"few files":          {bundle.Dataset, manySmall(500, big), 0, 0},
		"a model":            {bundle.Model, manySmall(2_000, big), 0, 0},
		"one more":           {bundle.Files, manySmall(501, big), 1, 3},
		"many":               {bundle.Dataset, manySmall(20_000, big), 30, 60},
		"many that are tiny": {bundle.Dataset, manySmall(200_000, func(int) int64 { return 9 }), 8, 20},
	} {
		t.Run(name, func(t *testing.T) {
			own, packs := bundle.PlanPacks(c.kind, c.files)
			if len(packs) < c.least || len(packs) > c.most {
				t.Errorf("%d packs, want %d to %d", len(packs), c.least, c.most)
			}
			all := slices.Clone(own)
			for _, pack := range packs {
				var bytes int64
				for _, f := range pack {
					bytes += f.Size + 1024
				}
				if bytes > 1<<30 || len(pack) > 40_000 {
					t.Errorf("a pack of %d files, about %d bytes", len(pack), bytes)
				}
				all = append(all, pack...)
			}
			slices.SortFunc(all, func(a, b bundle.File) int { return strings.Compare(a.Path, b.Path) })

		})
	}
}

// shapeOf tells packs of one tree apart.
func shapeOf(pack []bundle.File) string {
	var bytes int64
	for _, f := range pack {
		bytes += f.Size
	}
	return fmt.Sprintln(pack[0].Path, pack[len(pack)-1].Path, len(pack), bytes)
}

// A small change moves few packs, whatever the order in which files are found.
func TestSmallChangesMoveFewPacks(t *testing.T) {
	files := manySmall(60_000, func(i int) int64 { return 100_000 + int64(i%50_000) })
	_, before := bundle.PlanPacks(bundle.Dataset, files)
	known := map[string]bool{}
	for _, pack := range before {
		known[shapeOf(pack)] = true
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		at := r.IntN(len(files))
		changed := slices.Delete(slices.Clone(files), at, at+1)
		changed = append(changed, bundle.File{Path: files[at].Path + ".new", Size: 77})
		r.Shuffle(len(changed), func(i, j int) { changed[i], changed[j] = changed[j], changed[i] })
		_, after := bundle.PlanPacks(bundle.Dataset, changed)
		moved := 0
		for _, pack := range after {
			if !known[shapeOf(pack)] {
				moved++
			}
		}
		if moved > 3 {
			t.Errorf("file %d moved %d of %d packs", at, moved, len(after))
		}
	}
}

func TestTitlesOfPacksAreFree(t *testing.T) {
	for first, want := range map[string]string{"a": "packs/0001.tar", "packs": "packs-2/0001.tar", "packs/0001.tar": "packs-2/0001.tar"} {
		if got := bundle.PackTitles([]bundle.File{{Path: first}}, 1); got[0] != want {
			t.Errorf("beside %s: %s", first, got[0])
		}
	}
}

func TestPackedTreeIsListedAndOpened(t *testing.T) {
	f := testkit.Forge(t, nil)
	files := threeFiles()
	pack, x := testkit.PackOf(t, files)
	own := testkit.Bytes("own", 3000)
	f.AddPacked(t, bundle.Dataset, "welds", []bundle.File{{Path: "own.bin", Size: 3000, Digest: f.Content.Add(own)}}, pack, x.Encode())
	files["own.bin"] = own
	for name, content := range map[string]bundle.Content{"seekable": f.Content, "a stream": streams{f.Content}} {
		b := verifiedWith(t, f, content)
		if err := b.Check(t.Context(), nil); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		list, err := bundle.ListTree(f.Manifest.Artifacts[1].Root, b.Document)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string][]byte{}
		for _, file := range list.Files {
			r, err := b.OpenTreeFile(file)
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(r)
			if err := errors.Join(err, r.Close()); err != nil {
				t.Fatal(err)
			}
			got[file.Path] = append([]byte(nil), content...)
		}
		if d := cmp.Diff(files, got); d != "" {
			t.Errorf("%s:\n%.500s", name, d)
		}
	}
}

// streams is content that cannot seek.
type streams struct{ bundle.Content }

func (s streams) Open(d bundle.Digest) (io.ReadCloser, error) {
	r, err := s.Content.Open(d)
	return struct{ io.ReadCloser }{r}, err
}

func verifiedWith(t *testing.T, f *testkit.Forged, content bundle.Content) *bundle.Bundle {
	t.Helper()
	b, err := bundle.OpenSealed("x", f.Head, content).Verify(f.Trust, testkit.Noon())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func wantBadPack(t *testing.T, what string, err error) {
	t.Helper()
	if problem.CodeOf(err) != "bundle/bad-pack" {
		t.Errorf("%s: %v, want bundle/bad-pack", what, err)
	}
}

// A genuine bundle whose pack and index do not fit each other is refused, as
// one whose parts are missing is.
func TestPacksThatDoNotFit(t *testing.T) {
	pack, good := testkit.PackOf(t, threeFiles())
	change := func(do func(x *bundle.PackIndex)) []byte {
		x := *good
		x.Files = slices.Clone(good.Files)
		do(&x)
		return x.Encode()
	}
	text := string(good.Encode())
	sum := hex.EncodeToString(good.Files[0].SHA512[:])
	for name, index := range map[string][]byte{
		"another pack":         change(func(x *bundle.PackIndex) { x.Pack = cas.DigestOf(nil) }),
		"another size":         change(func(x *bundle.PackIndex) { x.Size += 512 }),
		"a size lies":          change(func(x *bundle.PackIndex) { x.Files[0].Size++ }),
		"overlapping":          change(func(x *bundle.PackIndex) { x.Files[1].Offset -= 512 }),
		"beyond the pack":      change(func(x *bundle.PackIndex) { x.Files[2].Size = 1 << 19 }),
		"a gap":                change(func(x *bundle.PackIndex) { x.Files[2].Offset += 512 }),
		"one path twice":       change(func(x *bundle.PackIndex) { x.Files[1].Path = "a.txt" }),
		"out of order":         change(func(x *bundle.PackIndex) { x.Files[1].Path = "A" }),
		"out of the folder":    change(func(x *bundle.PackIndex) { x.Files[0].Path = "../a" }),
		"an absolute path":     change(func(x *bundle.PackIndex) { x.Files[0].Path = "/a" }),
		"a line break":         change(func(x *bundle.PackIndex) { x.Files[0].Path = "a\nb" }),
		"too long for ustar":   change(func(x *bundle.PackIndex) { x.Files[0].Path = strings.Repeat("a", 101) }),
		"a negative size":      change(func(x *bundle.PackIndex) { x.Files[0].Size = -1 }),
		"too large for a pack": change(func(x *bundle.PackIndex) { x.Files[0].Size = bundle.PackBelow }),
		"one file less":        change(func(x *bundle.PackIndex) { x.Files = x.Files[:2] }),
		"another name":         change(func(x *bundle.PackIndex) { x.Files[0].Path = "a.txu" }),
		"another digest":       change(func(x *bundle.PackIndex) { x.Files[0].Digest = cas.DigestOf(nil) }),
		"no file":              change(func(x *bundle.PackIndex) { x.Files = nil }),
		"nothing":              {},
		"no line feed":         []byte(strings.TrimSuffix(text, "\n")),
		"a line more":          []byte(text + "\n"),
		"another format":       []byte(strings.Replace(text, "index/v1", "index/v2", 1)),
		"a blank":              []byte(strings.Replace(text, `,"path"`, `, "path"`, 1)),
		"a key more":           []byte(strings.Replace(text, `,"path"`, `,"path2":"x","path"`, 1)),
		"a key twice":          []byte(strings.Replace(text, `{"offset":512,`, `{"offset":512,"offset":512,`, 1)),
		"digits in capitals":   []byte(strings.Replace(text, sum, strings.ToUpper(sum), 1)),
		"a SHA-512 cut off":    []byte(strings.Replace(text, sum, sum[:126], 1)),
		"a SHA-512 too long":   []byte(strings.Replace(text, sum, sum+"00", 1)),
		"more files than any":  []byte(strings.Replace(text, `"files":3`, `"files":9999999`, 1)),
		"a number too large":   []byte(strings.Replace(text, `"size":3}`, `"size":99999999999999999999}`, 1)),
	} {
		t.Run(name, func(t *testing.T) {
			f := testkit.Forge(t, nil)
			f.AddPacked(t, bundle.Files, "tree", nil, pack, index)
			wantBadPack(t, name, verifiedWith(t, f, f.Content).Check(t.Context(), nil))
		})
	}
}

// Packs, indices and files of one tree that contradict each other.
func TestTreesWhosePacksDoNotFit(t *testing.T) {
	pack, x := testkit.PackOf(t, threeFiles())
	layers := func(packs, indices int, own ...string) []bundle.OCIDescriptor {
		var list []bundle.OCIDescriptor
		for _, path := range own {
			list = append(list, bundle.OCIDescriptor{MediaType: "application/octet-stream", Digest: cas.DigestOf([]byte("x")), Size: 1, Annotations: map[string]string{bundle.TitleAnnotation: path}})
		}
		for range packs {
			list = append(list, bundle.OCIDescriptor{MediaType: bundle.TypePack, Digest: x.Pack, Size: x.Size, Annotations: map[string]string{bundle.TitleAnnotation: "packs/0001.tar"}})
		}
		for range indices {
			list = append(list, bundle.OCIDescriptor{MediaType: bundle.TypePackIndex, Digest: cas.DigestOf(x.Encode()), Size: int64(len(x.Encode()))})
		}
		return list
	}
	with := func(list []bundle.OCIDescriptor, i int, do func(*bundle.OCIDescriptor)) []bundle.OCIDescriptor {
		do(&list[i])
		return list
	}
	for name, c := range map[string]struct {
		layers []bundle.OCIDescriptor
		fits   bool
	}{
		"as it should be":       {layers(1, 1), true},
		"no index":              {layers(1, 0), false},
		"no pack":               {layers(0, 1), false},
		"two packs":             {layers(2, 1), false},
		"two indices":           {layers(1, 2), false},
		"a path inside as well": {layers(1, 1, "a.txt"), false},
		"a file like the pack":  {layers(1, 1, "packs/0001.tar"), false},
		"an index with a title": {with(layers(1, 1), 1, func(d *bundle.OCIDescriptor) { d.Annotations = map[string]string{bundle.TitleAnnotation: "i"} }), false},
		"a pack without one":    {with(layers(1, 1), 0, func(d *bundle.OCIDescriptor) { d.Annotations = nil }), false},
		"a pack of other size":  {with(layers(1, 1), 0, func(d *bundle.OCIDescriptor) { d.Size-- }), false},
		"an index too large":    {with(layers(1, 1), 1, func(d *bundle.OCIDescriptor) { d.Size = bundle.MaxPackIndex + 1 }), false},
	} {
		t.Run(name, func(t *testing.T) {
			content := testkit.Memory{}
			content.Add(pack)
			content.Add(x.Encode())
			manifest, err := json.Marshal(bundle.OCI{SchemaVersion: 2, MediaType: bundle.TypeOCIManifest, Config: &bundle.OCIDescriptor{MediaType: "x/y", Digest: cas.DigestOf(nil)}, Layers: c.layers})
			if err != nil {
				t.Fatal(err)
			}
			root := bundle.Descriptor{MediaType: bundle.TypeOCIManifest, Digest: content.Add(manifest), Size: int64(len(manifest))}
			_, err = bundle.ListTree(root, func(d bundle.OCIDescriptor) ([]byte, error) { return content[d.Digest], nil })
			if c.fits && err != nil {
				t.Error(err)
			}
			if !c.fits {
				wantBadPack(t, name, err)
			}
		})
	}
}

// Every byte of a pack is what the index says, wherever it is.
func TestEveryByteOfAPackCounts(t *testing.T) {
	pack, x := testkit.PackOf(t, threeFiles())
	if err := bundle.CheckPack(t.Context(), bytes.NewReader(pack), x); err != nil {
		t.Fatal(err)
	}
	for i := range pack {
		flipped := slices.Clone(pack)
		flipped[i] ^= 1
		if err := bundle.CheckPack(t.Context(), bytes.NewReader(flipped), x); err == nil {
			t.Fatalf("byte %d can be another one", i)
		}
	}
	for _, n := range []int{0, 1, 511, 512, len(pack) - 512, len(pack) - 1} {
		if err := bundle.CheckPack(t.Context(), bytes.NewReader(pack[:n]), x); !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			t.Errorf("%d of %d bytes: %v", n, len(pack), err)
		}
	}
}

func FuzzPackIndex(f *testing.F) {
	_, x := testkit.PackOf(f, threeFiles())
	f.Add(x.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := bundle.ParsePackIndex(b)
		if err != nil {
			return
		}
		if !bytes.Equal(x.Encode(), b) {
			t.Errorf("written again it is another one: %q", b)
		}
		var at int64
		for _, file := range x.Files {
			if bundle.CheckPath(file.Path) != nil || file.Offset < at || file.Offset+file.Size > x.Size {
				t.Errorf("%+v in a pack of %d bytes", file, x.Size)
			}
			at = file.Offset + file.Size
		}
	})
}

// The example of docs/artifacts.md is what comes out.
func TestExampleOfThePage(t *testing.T) {
	page, err := os.ReadFile("../docs/artifacts.md")
	if err != nil {
		t.Fatal(err)
	}
	pack, x := testkit.PackOf(t, map[string][]byte{"a.txt": []byte("one\n"), "b/c.txt": []byte("two\n")})
	if want := "```json\n" + string(x.Encode()) + "```\n"; !strings.Contains(string(page), want) {
		t.Errorf("the page lacks\n%s", want)
	}
	if want := fmt.Sprintf("a pack of %d bytes", len(pack)); !strings.Contains(string(page), want) {
		t.Errorf("the page lacks %q", want)
	}
}

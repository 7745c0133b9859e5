package scan_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/packhof/packhof/sbom"
	"github.com/packhof/packhof/sbom/scan"
	"github.com/packhof/packhof/sbom/scan/scantest"
)

var tool = sbom.Tool{Name: "packhof-scan", Version: "test"}

// scanned runs one scan with temporary data of its own, which must be gone afterwards.
func scanned(t *testing.T, request sbom.Request) (sbom.Response, error) {
	t.Helper()
	scratch := t.TempDir()
	t.Setenv("TMPDIR", scratch)
	response, err := scan.Run(t.Context(), request, tool)
	left, readErr := os.ReadDir(scratch)
	if readErr != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, readErr)
	}
	return response, err
}

func checked(t *testing.T, request sbom.Request) (sbom.Response, sbom.Report) {
	t.Helper()
	response, err := scanned(t, request)
	if err != nil {
		t.Fatal(err)
	}
	report, err := sbom.Check(response.Document, sbom.Expect{Subject: request.Subject, Time: request.Time})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(response.Document, []byte(request.Dir)) || bytes.Contains(response.Document, []byte(os.TempDir())) {
		t.Errorf("the document names a path of this host:\n%s", response.Document)
	}
	return response, report
}

// packages returns "name version" of all components besides files.
func packages(t *testing.T, response sbom.Response) []string {
	t.Helper()
	bom, err := sbom.Read(response.Document)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range *bom.Components {
		if c.Type != cyclonedx.ComponentTypeFile {
			names = append(names, c.Name+" "+c.Version)
		}
	}
	slices.Sort(names)
	return names
}

func TestImageHasItsPackages(t *testing.T) {
	program := scantest.GoProgram(t)
	root := scantest.Tar(t, scantest.Debian(program))
	for name, layer := range map[string]v1.Layer{"gzip": scantest.Gzip(t, root), "zstd": scantest.Zstd(t, root)} {
		t.Run(name, func(t *testing.T) {
			response, report := checked(t, scantest.Image(t, layer))
			got := packages(t, response)
			got = slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "stdlib ") })
			want := []string{"crane-control 1.2-3", "debian 12", "example.test/tiny UNKNOWN", "libhook2 2.4-1", "pallet 0.9"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if report.Licences["Apache-2.0"] != 1 || report.Licences["MIT"] != 1 || report.Files != 0 {
				t.Errorf("report %+v", report)
			}
		})
	}
}

func TestUpperLayerRemovesPackages(t *testing.T) {
	below := scantest.Gzip(t, scantest.Tar(t, scantest.Debian(nil)))
	above := scantest.Zstd(t, scantest.Tar(t, map[string][]byte{
		"usr/lib/python3/dist-packages/.wh.pallet-0.9.dist-info": nil,
	}))
	response, _ := checked(t, scantest.Image(t, below, above))
	want := []string{"crane-control 1.2-3", "debian 12", "libhook2 2.4-1"}
	if diff := cmp.Diff(want, packages(t, response)); diff != "" {
		t.Error(diff)
	}
}

func TestDependenciesHaveOneRoot(t *testing.T) {
	request := scantest.Image(t, scantest.Gzip(t, scantest.Tar(t, scantest.Debian(nil))))
	response, _ := checked(t, request)
	bom, err := sbom.Read(response.Document)
	if err != nil {
		t.Fatal(err)
	}
	edges := map[string][]string{}
	for _, d := range *bom.Dependencies {
		for _, ref := range *d.Dependencies {
			edges[short(d.Ref)] = append(edges[short(d.Ref)], short(ref))
		}
	}
	want := map[string][]string{
		short(request.Subject.Digest):  {"os:debian", "pkg:deb/debian/crane-control", "pkg:pypi/pallet"},
		"pkg:deb/debian/crane-control": {"pkg:deb/debian/libhook2"},
	}
	if diff := cmp.Diff(want, edges); diff != "" {
		t.Error(diff)
	}
}

func short(ref string) string { name, _, _ := strings.Cut(ref, "@"); return name }

func TestTreeHasItsFilesAndPackages(t *testing.T) {
	files := map[string][]byte{
		"weights/model.bin":                 []byte("weights"),
		"README.md":                         []byte("# grabber"),
		"lib/pallet-0.9.dist-info/METADATA": []byte("Metadata-Version: 2.1\nName: pallet\nVersion: 0.9\nLicense: MIT\n"),
		"tools/package-lock.json":           []byte(`{"name":"t","version":"1.0.0","lockfileVersion":3,"packages":{"":{"name":"t","version":"1.0.0"},"node_modules/winch":{"version":"3.1.4","license":"ISC"}}}`),
		"go.mod":                            []byte("module example.test/grab\n\ngo 1.22\n\nrequire example.test/rope v1.5.0\n"),
		"weird \"name\" <&>  ünï.txt":       nil,
	}
	kinds := map[string]cyclonedx.ComponentType{
		"model": cyclonedx.ComponentTypeMachineLearningModel, "dataset": cyclonedx.ComponentTypeData,
	}
	for kind, componentType := range kinds {
		t.Run(kind, func(t *testing.T) {
			request := scantest.Tree(t, kind, files)
			response, report := checked(t, request)
			for _, want := range []string{"pallet 0.9", "winch 3.1.4", "example.test/rope v1.5.0"} {
				if !slices.Contains(packages(t, response), want) {
					t.Errorf("%s is missing in %q", want, packages(t, response))
				}
			}
			if report.Files != len(files) {
				t.Errorf("%d files instead of %d", report.Files, len(files))
			}
			bom, err := sbom.Read(response.Document)
			if err != nil {
				t.Fatal(err)
			}
			if bom.Metadata.Component.Type != componentType {
				t.Errorf("type %s", bom.Metadata.Component.Type)
			}
			if diff := cmp.Diff(hashes(request.Files), fileHashes(*bom.Components)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func hashes(files []sbom.File) map[string][]string {
	of := map[string][]string{}
	for _, f := range files {
		of[f.Path] = []string{f.SHA256, f.SHA512}
	}
	return of
}

func fileHashes(components []cyclonedx.Component) map[string][]string {
	of := map[string][]string{}
	for _, c := range components {
		if c.Type == cyclonedx.ComponentTypeFile {
			for _, h := range *c.Hashes {
				of[c.Name] = append(of[c.Name], h.Value)
			}
		}
	}
	return of
}

// The same content in another place, with its files listed in another order,
// gives the same bytes.
func TestSameContentSameBytes(t *testing.T) {
	program := scantest.GoProgram(t)
	requests := map[string]func() sbom.Request{
		"image": func() sbom.Request {
			return scantest.Image(t, scantest.Gzip(t, scantest.Tar(t, scantest.Debian(program))))
		},
		"tree": func() sbom.Request { return scantest.Tree(t, "files", scantest.Debian(program)) },
	}
	for name, request := range requests {
		t.Run(name, func(t *testing.T) {
			first, _ := checked(t, request())
			again, _ := checked(t, request())
			if diff := cmp.Diff(string(first.Document), string(again.Document)); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

func TestBlobsMayBeALinkToAStore(t *testing.T) {
	request := scantest.Image(t, scantest.Gzip(t, scantest.Tar(t, scantest.Debian(nil))))
	store := filepath.Join(t.TempDir(), "store")
	if err := os.Rename(filepath.Join(request.Dir, "blobs"), store); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(store, filepath.Join(request.Dir, "blobs")); err != nil {
		t.Fatal(err)
	}
	checked(t, request)
}

func TestHostileImagesEndInAnError(t *testing.T) {
	root := scantest.Tar(t, scantest.Debian(nil))
	zeros := scantest.Tar(t, map[string][]byte{"zeros": make([]byte, 8<<20)})
	small := func(t *testing.T) sbom.Request { return scantest.Image(t, scantest.Gzip(t, root)) }
	tests := []struct {
		name string
		make func(t *testing.T) sbom.Request
		want string
	}{
		{"gzip bomb", func(t *testing.T) sbom.Request {
			r := scantest.Image(t, scantest.Gzip(t, zeros))
			r.MaxUnpacked = 4 << 20
			return r
		}, "scan/unpacked"},
		{"zstd bomb", func(t *testing.T) sbom.Request {
			r := scantest.Image(t, scantest.Zstd(t, zeros))
			r.MaxUnpacked = 4 << 20
			return r
		}, "scan/unpacked"},
		{"bomb in parts", func(t *testing.T) sbom.Request {
			r := scantest.Image(t, scantest.Gzip(t, zeros), scantest.Zstd(t, zeros))
			r.MaxUnpacked = 12 << 20
			return r
		}, "scan/unpacked"},
		{"layer is changed", func(t *testing.T) sbom.Request { return spoil(t, small(t), largest, flip) }, "scan/damaged"},
		{"layer is truncated", func(t *testing.T) sbom.Request { return spoil(t, small(t), largest, cut) }, "scan/damaged"},
		{"layer is longer", func(t *testing.T) sbom.Request { return spoil(t, small(t), largest, extend) }, "scan/damaged"},
		{"manifest is changed", func(t *testing.T) sbom.Request {
			r := small(t)
			return spoil(t, r, named(r.Subject.Digest), flip)
		}, "scan/damaged"},
		{"layer is no tar", func(t *testing.T) sbom.Request {
			return scantest.Image(t, scantest.Gzip(t, bytes.Repeat([]byte("garbage "), 1000)))
		}, "scan/failed"},
		{"another subject", func(t *testing.T) sbom.Request {
			r := small(t)
			r.Subject.Digest = "sha256:" + strings.Repeat("a", 64)
			return r
		}, "scan/content"},
		{"another media type", func(t *testing.T) sbom.Request {
			r := small(t)
			r.Subject.MediaType = "application/vnd.oci.image.index.v1+json"
			return r
		}, "scan/content"},
		{"no layout", func(t *testing.T) sbom.Request {
			r := small(t)
			r.Dir = t.TempDir()
			return r
		}, "scan/content"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := scanned(t, tt.make(t))
			e, ok := errors.AsType[*scan.Error](err)
			if !ok || e.Code() != tt.want {
				t.Errorf("want %s, got %v", tt.want, err)
			}
		})
	}
}

type pick func(t *testing.T, blobs []string) string

func largest(t *testing.T, blobs []string) string {
	t.Helper()
	return slices.MaxFunc(blobs, func(a, b string) int { return int(size(t, a) - size(t, b)) })
}

func named(digest string) pick {
	return func(_ *testing.T, blobs []string) string {
		return filepath.Join(filepath.Dir(blobs[0]), strings.TrimPrefix(digest, "sha256:"))
	}
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func flip(b []byte) []byte   { b[len(b)/2] ^= 1; return b }
func cut(b []byte) []byte    { return b[:len(b)-1] }
func extend(b []byte) []byte { return append(b, 0) }

func spoil(t *testing.T, request sbom.Request, which pick, how func([]byte) []byte) sbom.Request {
	t.Helper()
	blobs, err := filepath.Glob(filepath.Join(request.Dir, "blobs", "sha256", "*"))
	if err != nil {
		t.Fatal(err)
	}
	path := which(t, blobs)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, how(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return request
}

func TestTreeMustBeWhatTheRequestSays(t *testing.T) {
	tests := map[string]func(t *testing.T, r *sbom.Request){
		"file too many": func(t *testing.T, r *sbom.Request) { put(t, r, "extra", "x") },
		"file too few":  func(t *testing.T, r *sbom.Request) { remove(t, r, "a.txt") },
		"other size":    func(t *testing.T, r *sbom.Request) { put(t, r, "a.txt", "longer") },
		"link for a file": func(t *testing.T, r *sbom.Request) {
			remove(t, r, "a.txt")
			if err := os.Symlink("/etc/passwd", filepath.Join(r.Dir, "a.txt")); err != nil {
				t.Fatal(err)
			}
		},
		"link for a directory": func(t *testing.T, r *sbom.Request) {
			if err := os.Symlink("/", filepath.Join(r.Dir, "d")); err != nil {
				t.Fatal(err)
			}
		},
		"directory for a file": func(t *testing.T, r *sbom.Request) {
			remove(t, r, "a.txt")
			if err := os.Mkdir(filepath.Join(r.Dir, "a.txt"), 0o755); err != nil {
				t.Fatal(err)
			}
		},
		"no directory": func(_ *testing.T, r *sbom.Request) { r.Dir += "/a.txt" },
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		t.Run(name, func(t *testing.T) {
			request := scantest.Tree(t, "files", map[string][]byte{"a.txt": []byte("a"), "b/c.txt": []byte("c")})
			tests[name](t, &request)
			_, err := scanned(t, request)
			e, ok := errors.AsType[*scan.Error](err)
			if !ok || e.Code() != "scan/content" {
				t.Errorf("got %v", err)
			}
		})
	}
}

func put(t *testing.T, r *sbom.Request, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.Dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, r *sbom.Request, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(r.Dir, name)); err != nil {
		t.Fatal(err)
	}
}

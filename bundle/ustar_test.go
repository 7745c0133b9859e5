package bundle

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tarOf lays entries in our profile.
func tarOf(files ...headEntry) []byte {
	var out bytes.Buffer
	w := &volumeWriter{w: &out}
	for _, f := range files {
		_ = w.small(f) // a buffer never fails
	}
	out.Write(make([]byte, endSize))
	return out.Bytes()
}

func list(b []byte) ([]entry, error) {
	return listEntries(bytes.NewReader(b), int64(len(b)), "test.tar")
}

func TestHeaderIsWhatOthersRead(t *testing.T) {
	volume := tarOf(headEntry{"packhof.json", []byte("{}")}, headEntry{"blobs/sha256/" + strings.Repeat("a", 64), bytes.Repeat([]byte("x"), 1000)}, headEntry{sumsName, nil})
	r := tar.NewReader(bytes.NewReader(volume))
	for _, want := range []struct {
		name string
		size int64
	}{{"packhof.json", 2}, {"blobs/sha256/" + strings.Repeat("a", 64), 1000}, {sumsName, 0}} {
		h, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if h.Name != want.name || h.Size != want.size || h.Mode != 0o644 || h.Typeflag != tar.TypeReg || h.Uid != 0 || h.ModTime.Unix() != 0 {
			t.Errorf("archive/tar reads %+v, want %v", h, want)
		}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("archive/tar ends with %v", err)
	}
}

func TestListAcceptsOnlyTheProfile(t *testing.T) {
	good := tarOf(headEntry{"packhof.json", []byte("{}")}, headEntry{"oci-layout", []byte(ociLayout)})
	if got, err := list(good); err != nil || len(got) != 2 || got[1].offset != 3*blockSize {
		t.Fatalf("the good archive: %v, %v", got, err)
	}
	edit := func(f func(b []byte) []byte) []byte { return f(bytes.Clone(good)) }
	rename := func(name string) []byte { return tarOf(headEntry{name, []byte("x")}) }
	cases := map[string][]byte{
		"T-01 parent":                rename("../etc/passwd"),
		"T-01 absolute":              rename("/etc/passwd"),
		"T-01 parent inside":         rename("blobs/../../x"),
		"T-01 backslash":             rename(`a\b`),
		"T-07 upper case":            rename("Packhof.json"),
		"T-07 colon":                 rename("sha256:aa"),
		"T-07 trailing slash":        rename("dir/"),
		"T-07 empty part":            rename("a//b"),
		"T-07 dot":                   rename("a/./b"),
		"T-07 unicode":               rename("ä"),
		"T-07 space":                 rename("a b"),
		"T-04 duplicate":             tarOf(headEntry{"a", nil}, headEntry{"b", nil}, headEntry{"a", nil}),
		"T-02 symbolic link":         edit(func(b []byte) []byte { b[156] = '2'; return fixSum(b) }),
		"T-02 hard link":             edit(func(b []byte) []byte { b[156] = '1'; return fixSum(b) }),
		"T-02 directory":             edit(func(b []byte) []byte { b[156] = '5'; return fixSum(b) }),
		"T-05 pax header":            edit(func(b []byte) []byte { b[156] = 'x'; return fixSum(b) }),
		"T-05 global pax":            edit(func(b []byte) []byte { b[156] = 'g'; return fixSum(b) }),
		"T-05 gnu long name":         edit(func(b []byte) []byte { b[156] = 'L'; return fixSum(b) }),
		"T-05 gnu sparse":            edit(func(b []byte) []byte { b[156] = 'S'; return fixSum(b) }),
		"T-05 old regular flag":      edit(func(b []byte) []byte { b[156] = 0; return fixSum(b) }),
		"T-05 gnu magic":             edit(func(b []byte) []byte { copy(b[257:], "ustar  \x00"); return fixSum(b) }),
		"T-05 prefix":                edit(func(b []byte) []byte { b[345] = 'p'; return fixSum(b) }),
		"T-05 base-256 size":         edit(func(b []byte) []byte { b[124] = 0x80; return fixSum(b) }),
		"T-05 negative size":         edit(func(b []byte) []byte { copy(b[124:], "-0000000002\x00"); return fixSum(b) }),
		"T-05 wrong checksum":        edit(func(b []byte) []byte { b[148]++; return b }),
		"T-05 data in the padding":   edit(func(b []byte) []byte { b[blockSize+10] = 'x'; return b }),
		"mode":                       edit(func(b []byte) []byte { b[104] = '7'; return fixSum(b) }),
		"owner":                      edit(func(b []byte) []byte { b[114] = '1'; return fixSum(b) }),
		"time":                       edit(func(b []byte) []byte { b[146] = '1'; return fixSum(b) }),
		"user name":                  edit(func(b []byte) []byte { copy(b[265:], "root"); return fixSum(b) }),
		"T-06 no end":                good[:len(good)-endSize],
		"T-06 half an end":           good[:len(good)-blockSize],
		"T-06 trailing byte":         append(bytes.Clone(good), 0),
		"T-06 trailing block":        append(bytes.Clone(good), make([]byte, blockSize)...),
		"T-06 second archive":        append(bytes.Clone(good), good...),
		"T-06 empty file":            nil,
		"T-06 cut within a header":   good[:100],
		"T-06 cut within an entry":   good[:blockSize+1],
		"T-06 data between the ends": edit(func(b []byte) []byte { b[len(b)-1] = 1; return b }),
		"T-08 too large an entry":    hugeEntry(),
	}
	for name, b := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := list(b)
			var damaged *DamagedError
			if !errors.As(err, &damaged) || damaged.Volume != "test.tar" {
				t.Errorf("got %v, want a DamagedError", err)
			}
		})
	}
}

func TestT06CutAnywhere(t *testing.T) {
	good := tarOf(headEntry{"packhof.json", []byte("{}")}, headEntry{"a", bytes.Repeat([]byte("y"), 700)})
	for n := range good {
		if _, err := list(good[:n]); err == nil {
			t.Fatalf("an archive cut to %d of %d bytes was accepted", n, len(good))
		}
	}
}

func hugeEntry() []byte {
	h := header("a", maxEntrySize+1)
	return append(h[:], make([]byte, endSize)...)
}

// fixSum makes the checksum of the first header right again.
func fixSum(b []byte) []byte {
	copy(b[148:156], "        ")
	sum := 0
	for _, c := range b[:blockSize] {
		sum += int(c)
	}
	copy(b[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

// FuzzContainer: whatever our reader accepts, Go's, GNU's and Python's list in
// the same way.
func FuzzContainer(f *testing.F) {
	f.Add(tarOf(headEntry{"packhof.json", []byte("{}")}))
	f.Add(tarOf(headEntry{"a", nil}, headEntry{"b/c", []byte("x")}))
	gnu, _ := exec.LookPath("tar")
	python, _ := exec.LookPath("python3")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		ours, err := list(b)
		if err != nil {
			return
		}
		var names []string
		for _, e := range ours {
			names = append(names, e.name)
		}
		if got := goNames(t, b); !slices.Equal(got, names) {
			t.Fatalf("archive/tar lists %q, we list %q", got, names)
		}
		path := filepath.Join(dir, "x.tar")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		if gnu != "" {
			compareNames(t, names, gnu, "-tf", path)
		}
		if python != "" {
			compareNames(t, names, python, "-c", "import sys,tarfile\nfor m in tarfile.open(sys.argv[1],'r:'): print(m.name)", path)
		}
	})
}

func goNames(t *testing.T, b []byte) []string {
	t.Helper()
	var names []string
	r := tar.NewReader(bytes.NewReader(b))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return names
		}
		if err != nil {
			t.Fatalf("archive/tar refuses what we accept: %v", err)
		}
		names = append(names, h.Name)
	}
}

func compareNames(t *testing.T, want []string, program string, args ...string) {
	t.Helper()
	out, err := exec.Command(program, args...).Output()
	if err != nil {
		t.Fatalf("%s refuses what we accept: %v", program, err)
	}
	if got := strings.Fields(string(out)); !slices.Equal(got, want) {
		t.Fatalf("%s lists %q, we list %q", program, got, want)
	}
}

package inspect_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"

	"github.com/packhof/packhof/sbom/inspect"
)

// samples is one of each format that is looked into.
func samples(t testing.TB) [][]byte {
	evil := pickleCall("os", "system")
	array := npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n", evil)
	archive := tarred(t, tar.Header{Name: "a/b.pkl", Uname: string(evil)}, tar.Header{Name: "c", Typeflag: tar.TypeSymlink, Linkname: "../d"})
	return [][]byte{
		evil, pickleText("os", "system"), pickleData(), append(pickleData(), evil...),
		safetensors(twoTensors, 22), plainGGUF().bytes(), array, append(plainArray(), array...),
		npy("{'descr': [(('t', 'a'), '<i4', (2,)), ('b', [('c', '|S5')])], 'fortran_order': False, 'shape': (1L,), }\n", make([]byte, 13)), onnx("com.example", "../x"),
		append([]byte("\x89HDF\r\n\x1a\n"), `"Lambda"`...), []byte(`{"auto_map":{"a":[1,2,{"class_name":"Lambda"}]}}`),
		[]byte(`{"x":[NaN,-Infinity],"chat_template":[{"name":"a","template":"{{ x.__class__ }}"}]}`),
		zipped(t, zip.Store, member{"m/data.pkl", evil}, member{"m/code/x.py", []byte("x")}),
		zipped(t, zip.Deflate, member{"x.npy", array}), plainZip("../a\xff", evil).bytes(), large(plainZip("a", evil)),
		archive, gzipped(t, archive), xzed(t, archive, 1<<16), zstded(t, archive),
		[]byte("\x78\x9c\xcb\x48\xcd\xc9\xc9\x07\x00\x06\x2c\x02\x15"), []byte("#!/bin/sh\n"), append([]byte("MZ"), make([]byte, 80)...),
	}
}

// large writes the end of a small archive in the form for large ones.
func large(z rawZip) []byte {
	le := binary.LittleEndian
	b := z.bytes()
	end := b[len(b)-22:]
	b = slices.Clone(b[:len(b)-22])
	at, size, begin := uint64(len(b)), uint64(le.Uint32(end[12:])), uint64(le.Uint32(end[16:]))
	b = le.AppendUint64(append(b, "PK\x06\x06"...), 44)
	b = append(b, 45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	b = le.AppendUint64(le.AppendUint64(b, 1), 1)
	b = le.AppendUint64(le.AppendUint64(b, size), begin)
	b = le.AppendUint64(append(b, "PK\x06\x07\x00\x00\x00\x00"...), at)
	b = append(b, 1, 0, 0, 0)
	return append(append(b, "PK\x05\x06\x00\x00\x00\x00"...), bytes.Repeat([]byte{0xff}, 14)...)[:len(b)+20]
}

func TestLargeFormOfZip(t *testing.T) {
	data := append(large(plainZip("a.pkl", pickleCall("os", "system"))), 0, 0)
	r := look(t, data, "x", inspect.Limits{})
	if r.Format != inspect.Zip || !r.Has(inspect.CodeGlobal) || r.Unreadable || len(r.Findings) != 2 {
		t.Errorf("%+v", r)
	}
}

// checkReport holds what is true of every report, whatever the file.
func checkReport(t *testing.T, data []byte, name string) {
	t.Helper()
	limits := inspect.Limits{Bytes: 1 << 20, Header: 64 << 10, Buffer: 64 << 10, Window: 1 << 20, Entries: 100, Findings: 50, Opcodes: 10_000}
	r, err := inspect.File(t.Context(), bytes.NewReader(data), int64(len(data)), name, limits)
	switch {
	case err != nil:
		t.Fatalf("a file in memory could not be read: %v", err)
	case r.Format == "" || r.Findings == nil || len(r.Findings) > limits.Findings:
		t.Fatalf("%+v", r)
	case r.Unreadable != (r.Reason != ""):
		t.Fatalf("unreadable %v, reason %q", r.Unreadable, r.Reason)
	}
	if len(r.AsTemplate) > 300 || !utf8.ValidString(r.AsTemplate) {
		t.Fatalf("%+v", r)
	}
	for _, f := range r.Findings {
		if inspect.Hinders(f.Code) && !r.Unreadable {
			t.Fatalf("readable with %+v", f)
		}
		if f.Code == "" || len(f.Detail) > 300 || len(f.Path) > 300 || !utf8.ValidString(f.Detail+f.Path) {
			t.Fatalf("%+v", f)
		}
	}
	if bytes.HasPrefix(data, []byte("\x80\x04")) && r.Format == inspect.Pickle && !r.Has(inspect.CodePickle) {
		t.Fatalf("a pickle without its finding: %+v", r)
	}
}

func TestBytesChangedAndLengthsCut(t *testing.T) {
	for _, sample := range samples(t) {
		for i := 0; i < len(sample); i += 1 + len(sample)/250 {
			checkReport(t, sample[:i], "x.pkl")
			for _, b := range []byte{0x00, 0xff, sample[i] ^ 1} {
				changed := slices.Clone(sample)
				changed[i] = b
				checkReport(t, changed, "x.pt")
			}
		}
	}
}

// zerosInTar is a small file that unpacks to a large one.
func zerosInTar(t *testing.T, size int64) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	err := w.WriteHeader(&tar.Header{Name: "zeros", Size: size, Mode: 0o644})
	for chunk := make([]byte, 1<<20); err == nil && size > 0; size -= int64(len(chunk)) {
		_, err = w.Write(chunk)
	}
	if err := errors.Join(err, w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestMemoryStaysFlat unpacks far more than may be held, under a limit that
// has the garbage collected in time: what grows all the same is held.
func TestMemoryStaysFlat(t *testing.T) {
	archive := zipped(t, zip.Store, member{"a.gz", zerosInTar(t, 160<<20)})
	debug.FreeOSMemory()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	old := debug.SetMemoryLimit(int64(before.Sys-before.HeapReleased) + 48<<20)
	defer debug.SetMemoryLimit(old)
	r := look(t, archive, "x", inspect.Limits{})
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapSys-after.HeapReleased) - int64(before.HeapSys-before.HeapReleased); grown > 96<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	if r.Format != inspect.Zip || len(r.Findings) > 0 || r.Unreadable {
		t.Errorf("%+v", r)
	}
}

func FuzzFile(f *testing.F) {
	for _, sample := range samples(f) {
		f.Add(sample, "model.safetensors")
		f.Add(sample, "x.tgz")
		f.Add(sample, "x.jinja")
	}
	f.Fuzz(func(t *testing.T, data []byte, name string) { checkReport(t, data, name) })
}

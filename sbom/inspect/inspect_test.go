package inspect_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/sbom/inspect"
)

func look(t *testing.T, data []byte, name string, limits inspect.Limits) inspect.Report {
	t.Helper()
	report, err := inspect.File(t.Context(), bytes.NewReader(data), int64(len(data)), name, limits)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return report
}

func codes(r inspect.Report) []string {
	var codes []string
	for _, f := range r.Findings {
		if !slices.Contains(codes, f.Code) {
			codes = append(codes, f.Code)
		}
	}
	slices.Sort(codes)
	return codes
}

func TestHarmlessFilesHaveNoFindings(t *testing.T) {
	var many bytes.Buffer
	for range 5000 {
		many.WriteString("cat\ndog\n.hidden is a line, and (this) is no call. 12°C\n")
	}
	for _, c := range []struct {
		name   string
		data   []byte
		format inspect.Format
	}{
		{"empty", nil, inspect.Empty},
		{"model.safetensors", safetensors(twoTensors, 22), inspect.Safetensors},
		{"no-tensors.safetensors", safetensors("{}", 0), inspect.Safetensors},
		// A header of 640 bytes: the file begins with 0x80 0x02, as a pickle does.
		{"begins-like-a-pickle.safetensors", safetensors(twoTensors+strings.Repeat(" ", 640-len(twoTensors)), 22), inspect.Safetensors},
		{"model.gguf", plainGGUF().bytes(), inspect.GGUF},
		{"values.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }\n", make([]byte, 16)), inspect.Npy},
		{"record.npy", npy("{'descr': [('time', '<M8[ns]'), ('ok', '|b1')], 'fortran_order': False, 'shape': (1,), }\n", make([]byte, 9)), inspect.Npy},
		{"README.md", many.Bytes(), inspect.Text},
		{"Time.csv", []byte("Time,value\n1,2\n"), inspect.Text},
		{"umlaut.txt", []byte("Grüße aus dem Lagerhaus\n"), inspect.Text},
		{".gitignore", []byte("coverage\ndist\n.env\n"), inspect.Text},
		{"config.json", []byte(`{"hidden_size":16,"class_name":"Dense"}`), inspect.JSON},
		{"rows.jsonl", []byte("{\"a\":1}\n{\"a\":2}\n"), inspect.Text},
		{"almost.json", []byte(`{"loss": NaN}`), inspect.Text},
		{"a.tar", tarred(t, tar.Header{Name: "a/b.txt", Uname: "text\n"}, tar.Header{Name: "a/", Typeflag: tar.TypeDir}, tar.Header{Name: "a/c", Typeflag: tar.TypeSymlink, Linkname: "b.txt"}), inspect.Tar},
		{"a.tar.gz", gzipped(t, tarred(t, tar.Header{Name: "a.safetensors", Uname: string(safetensors(twoTensors, 22))})), inspect.Gzip},
		{"text.gz", gzipped(t, many.Bytes()), inspect.Gzip},
		{"text.zst", zstded(t, many.Bytes()), inspect.Zstd},
		{"text.xz", xzed(t, many.Bytes()[:5000], 1<<20), inspect.XZ},
		{"two.xz", append(xzed(t, []byte("one"), 1<<16), xzed(t, []byte("two"), 1<<16)...), inspect.XZ},
		{"a.zip", zipped(t, zip.Deflate, member{"a.txt", many.Bytes()}, member{"b/c.json", []byte("{}")}), inspect.Zip},
		{"stored.zip", zipped(t, zip.Store, member{"a.txt", many.Bytes()}), inspect.Zip},
		{"empty.zip", zipped(t, zip.Store), inspect.Zip},
		{"a.npz", zipped(t, zip.Store, member{"x.npy", npy("{'descr': '<f4', 'shape': ()}\n", make([]byte, 4))}), inspect.Npz},
		{"m.keras", zipped(t, zip.Store, member{"config.json", []byte(`{"class_name":"Dense"}`)}, member{"metadata.json", []byte("{}")}), inspect.Keras},
		{"m.onnx", onnx("ai.onnx.ml", "weights.bin"), inspect.ONNX},
		{"m.h5", append([]byte("\x89HDF\r\n\x1a\n"), bytes.Repeat([]byte(`"Dense" `), 100_000)...), inspect.HDF5},
		{"noise", bytes.Repeat([]byte{0, 1, 2, 0xfe}, 3000), inspect.Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := look(t, c.data, c.name, inspect.Limits{})
			if r.Format != c.format || len(r.Findings) > 0 || r.Unreadable || r.Mismatch || r.Reason != "" {
				t.Errorf("%+v, want nothing but the format %s", r, c.format)
			}
		})
	}
}

func TestPicklesAreFoundWhereverTheyHide(t *testing.T) {
	evil := pickleCall("os", "system")
	array := npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n", evil)
	torch := zipped(t, zip.Store, member{"m/data.pkl", evil}, member{"m/version", []byte("3\n")}, member{"m/data/0", make([]byte, 64)})
	inTar := tarred(t, tar.Header{Name: "m/weights.bin", Uname: string(evil)})
	for _, c := range []struct {
		name   string
		data   []byte
		format inspect.Format
		path   string
	}{
		{"by protocol 4", evil, inspect.Pickle, ""},
		{"model.safetensors", evil, inspect.Pickle, ""},
		{"by protocol 0", pickleText("os", "system"), inspect.Pickle, ""},
		{"notes.txt", pickleText("os", "system"), inspect.Pickle, ""},
		{"by INST", []byte("(ios\nsystem\n."), inspect.Pickle, ""},
		{"protocol 1, and no PROTO", []byte("cos\nsystem\nq\x00U\x01a\x85R."), inspect.Pickle, ""},
		{"broken behind the call", append(bytes.TrimSuffix(evil, []byte(".")), 0xff, 0xff), inspect.Pickle, ""},
		{"the second of two", append(pickleData(), evil...), inspect.Pickle, ""},
		{"in a string", append(append([]byte{0x80, 3, 'C', byte(len(evil))}, evil...), '.'), inspect.Pickle, "bytes at 4"},
		{"model.pt", torch, inspect.TorchZip, "m/data.pkl"},
		{"model.npy", array, inspect.Npy, ""},
		{"model.npz", zipped(t, zip.Deflate, member{"x.npy", array}), inspect.Npz, "x.npy"},
		{"model.tar", inTar, inspect.Tar, "m/weights.bin"},
		{"model.tar.gz", gzipped(t, inTar), inspect.Gzip, "model.tar/m/weights.bin"},
		{"model.tar.xz", xzed(t, inTar, 1<<16), inspect.XZ, "model.tar/m/weights.bin"},
		{"model.tar.zst", zstded(t, inTar), inspect.Zstd, "model.tar/m/weights.bin"},
		{"model.joblib", gzipped(t, evil), inspect.Gzip, "model"},
		{"zip in tar in gzip", gzipped(t, tarred(t, tar.Header{Name: "in.zip", Uname: string(torch)})), inspect.Gzip, "zip in tar in gzip/in.zip/m/data.pkl"},
		{"picture.png", append(append([]byte("\x89PNG\r\n\x1a\n"), 1, 2, 3), torch...), inspect.PNG, "m/data.pkl"},
		{"in front of a zip", append(slices.Clone(evil), zipped(t, zip.Store, member{"a", []byte("text")})...), inspect.Pickle, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := look(t, c.data, c.name, inspect.Limits{})
			want := []inspect.Finding{{Code: inspect.CodePickle, Path: c.path}, {Code: inspect.CodeGlobal, Detail: "os.system", Path: c.path}}
			if r.Format != c.format {
				t.Errorf("format %s, want %s", r.Format, c.format)
			}
			for _, f := range want {
				if !slices.ContainsFunc(r.Findings, func(g inspect.Finding) bool {
					return g.Code == f.Code && g.Path == f.Path && (f.Detail == "" || f.Detail == g.Detail)
				}) {
					t.Errorf("no %+v in %+v", f, r.Findings)
				}
			}
		})
	}
}

func TestGlobalsOfPickles(t *testing.T) {
	long := strings.Repeat("x", 200)
	for name, c := range map[string]struct {
		data    string
		globals []string
		more    []string // further codes
	}{
		"data only":                {string(pickleData()), nil, nil},
		"two names, one twice":     {"\x80\x02ca.b\nc\n)Rca.b\nc\n)Rcd\ne\n)R\x87.", []string{"a.b.c", "d.e"}, nil},
		"names by memo":            {"\x80\x04\x8c\x02os\x94\x8c\x06system\x9400h\x00h\x01\x93)R.", []string{"os.system"}, nil},
		"memo overwritten":         {"\x80\x04\x8c\x01aq\x00\x8c\x02osq\x000\x8c\x06system\x940h\x00h\x01\x93)R.", []string{"os.system"}, nil},
		"name computed":            {"\x80\x04\x8c\x02os)\x93.", []string{"os.?"}, nil},
		"name too long":            {"\x80\x04\x8c\x02os\x8c\xc8" + long + "\x93.", []string{"os.?"}, nil},
		"name by DUP":              {"\x80\x04\x8c\x04this2\x93.", []string{"this.this"}, nil},
		"extension":                {"\x80\x02\x82\x05.", nil, []string{"pickle.extension"}},
		"frames that lie":          {"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7fcos\nsystem\n)R.", []string{"os.system"}, nil},
		"an object hidden by POP":  {"\x80\x02(cos\nsystem\nS'ls'\no0N.", []string{"os.system"}, nil},
		"trailing bytes":           {string(pickleData()) + "\xff\xff\xff", nil, []string{"pickle.trailing"}},
		"no STOP":                  {"\x80\x02cos\nsystem\n)R", []string{"os.system"}, []string{"pickle.malformed"}},
		"stack empty":              {"\x80\x02cos\nsystem\n)RR.", []string{"os.system"}, []string{"pickle.malformed"}},
		"memo empty":               {"\x80\x02cos\nsystem\n)Rh\x07.", []string{"os.system"}, []string{"pickle.malformed"}},
		"string longer than file":  {"\x80\x02cos\nsystem\n)RX\xff\xff\xff\x7fa.", []string{"os.system"}, []string{"pickle.malformed"}},
		"a mark under the reducer": {"\x80\x02cos\nsystem\n()R.", []string{"os.system"}, []string{"pickle.malformed"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := look(t, []byte(c.data), "x", inspect.Limits{})
			var globals []string
			for _, f := range r.Findings {
				if f.Code == inspect.CodeGlobal {
					globals = append(globals, f.Detail)
				}
			}
			want := append([]string{"pickle.content"}, c.more...)
			if len(c.globals) > 0 {
				want = append(want, inspect.CodeGlobal)
			}
			slices.Sort(want)
			if d := cmp.Diff(c.globals, globals); d != "" || r.Format != inspect.Pickle {
				t.Errorf("format %s, globals (-want +got)\n%s", r.Format, d)
			}
			if d := cmp.Diff(want, codes(r)); d != "" {
				t.Errorf("codes (-want +got)\n%s", d)
			}
			if broken := slices.Contains(c.more, "pickle.malformed"); r.Unreadable != broken {
				t.Errorf("unreadable %v, want %v", r.Unreadable, broken)
			}
		})
	}
}

func TestZipArchivesThatSayTwoThings(t *testing.T) {
	plain := plainZip("a.txt", []byte("only text"))
	evil := plainZip("a.txt", pickleCall("os", "system"))
	change := func(z rawZip, f func(*rawZip)) []byte { f(&z); return z.bytes() }
	for name, c := range map[string]struct {
		data       []byte
		codes      []string
		unreadable bool
	}{
		"nothing wrong":       {plain.bytes(), nil, false},
		"bytes in front":      {append([]byte("#!/bin/sh\nexit\n"), plain.bytes()...), []string{"script.content", "zip.prefix"}, false},
		"bytes behind":        {append(plain.bytes(), "more"...), []string{"zip.trailing"}, false},
		"another archive":     {append(plain.bytes(), plain.bytes()...), []string{"zip.prefix"}, false},
		"two names":           {change(evil, func(z *rawZip) { z.localName = "b.txt" }), []string{"pickle.content", "pickle.global", "zip.mismatch", "name.mismatch"}, false},
		"encrypted by flag":   {change(evil, func(z *rawZip) { z.flags, z.localFlags = 1, 1 }), []string{"pickle.content", "pickle.global", "zip.encrypted", "name.mismatch"}, true},
		"strong by flag":      {change(evil, func(z *rawZip) { z.flags, z.localFlags = 0x40, 0x40 }), []string{"pickle.content", "pickle.global", "zip.encrypted", "name.mismatch"}, true},
		"flags differ":        {change(plain, func(z *rawZip) { z.localFlags = 1 }), []string{"zip.mismatch"}, false},
		"methods differ":      {change(plain, func(z *rawZip) { z.localMethod = 8 }), []string{"zip.mismatch"}, false},
		"unknown method":      {change(plain, func(z *rawZip) { z.localMethod, z.method = 14, 14 }), []string{"content.opaque"}, true},
		"listed twice":        {change(plain, func(z *rawZip) { z.twice = true }), []string{"zip.duplicate", "zip.mismatch"}, false},
		"hidden bytes":        {change(plain, func(z *rawZip) { z.gap = []byte("hidden") }), []string{"zip.hidden"}, false},
		"leads out":           {change(plain, func(z *rawZip) { z.localName, z.centralName = "../a", "../a" }), []string{"archive.path"}, false},
		"wrong size":          {change(plain, func(z *rawZip) { z.size = 3 }), []string{"zip.mismatch"}, false},
		"directory cut short": {plain.bytes()[:len(plain.bytes())-30], []string{"zip.malformed"}, true},
		"wrong checksum": {change(plainZip("a.pkl", evil.data), func(z *rawZip) {
			z.data, z.method, z.localMethod, z.crc = deflated(t, evil.data), 8, 8, 99
		}), []string{"pickle.content", "pickle.global", "zip.crc"}, false},
		"larger than announced": {change(plain, func(z *rawZip) {
			z.data, z.method, z.localMethod, z.size = deflated(t, []byte("only text, and more")), 8, 8, 9
		}), []string{"zip.mismatch", "zip.crc"}, false},
		"broken content": {change(plain, func(z *rawZip) { z.method, z.localMethod = 8, 8 }), []string{"archive.malformed"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := look(t, c.data, "x", inspect.Limits{})
			slices.Sort(c.codes)
			if d := cmp.Diff(c.codes, codes(r)); d != "" || r.Unreadable != c.unreadable {
				t.Errorf("unreadable %v (%s), codes (-want +got)\n%s", r.Unreadable, r.Reason, d)
			}
		})
	}
}

func TestWhatElseCanRunCodeOrIsNotWhatItSays(t *testing.T) {
	lambda := `{"class_name":"Model","config":{"layers":[{"class_name":"L\u0061mbda","config":{}}]}}`
	for _, c := range []struct {
		name  string
		data  []byte
		codes []string
	}{
		{"lib", append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 60)...), []string{"executable.content"}},
		{"setup", append([]byte("MZ"), make([]byte, 100)...), []string{"executable.content"}},
		{"A.class", []byte("\xca\xfe\xba\xbe\x00\x00\x00\x41\x00\x10"), []string{"executable.content"}},
		{"fat", []byte("\xca\xfe\xba\xbe\x00\x00\x00\x02\x01\x00\x00\x07"), []string{"executable.content"}},
		{"module.pyc", append([]byte{0xcb, 0x0d, 0x0d, 0x0a}, make([]byte, 20)...), []string{"executable.content"}},
		{"run.sh", []byte("#!/bin/sh\ntrue\n"), []string{"script.content"}},
		{"modeling.py", []byte("import os\n"), []string{"python.source"}},
		{"config.json", []byte(`{"auto_map":{"AutoModel":"modeling.Model"}}`), []string{"model.remote-code"}},
		{"model.safetensors", []byte("version https://git-lfs.example/spec/v1\noid sha256:00\n"), []string{"lfs.stub", "name.mismatch"}},
		{"model.gguf", []byte("nothing but text"), []string{"name.mismatch"}},
		{"weights.onnx", nil, []string{"name.mismatch"}},
		{"m.keras", zipped(t, zip.Deflate, member{"config.json", []byte(lambda)}, member{"metadata.json", []byte("{}")}), []string{"keras.lambda"}},
		{"m.h5", append(append([]byte("\x89HDF\r\n\x1a\n"), make([]byte, 256<<10-12)...), lambda...), []string{"keras.lambda"}},
		{"m.onnx", onnx("com.example", "../../etc/passwd"), []string{"onnx.custom-domain", "onnx.external-path"}},
		{"script.pt", zipped(t, zip.Store, member{"m/data.pkl", pickleData()}, member{"m/code/a.py", []byte("x = 1\n")}), []string{"pickle.content", "python.source", "torch.code"}},
		{"t.gguf", gguf{3, 4, 1, "{{ x.__class__.mro() }}", 0, "a", "b"}.bytes(), []string{"template.suspicious"}},
		{"x.7z", []byte("7z\xbc\xaf\x27\x1c\x00\x04 and so on"), []string{"content.opaque"}},
		{"x.tar", tarred(t, tar.Header{Name: "../x", Uname: "y"}, tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, tar.Header{Name: "p", Typeflag: tar.TypeFifo}), []string{"archive.path", "archive.special"}},
		{"y.tar", append(tarred(t, tar.Header{Name: "x", Uname: "y"}), tarred(t, tar.Header{Name: "z", Uname: "y"})...), []string{"archive.trailing"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := look(t, c.data, c.name, inspect.Limits{})
			if d := cmp.Diff(c.codes, codes(r)); d != "" {
				t.Errorf("%+v\n(-want +got)\n%s", r, d)
			}
			if r.Mismatch != slices.Contains(c.codes, "name.mismatch") || r.Unreadable != slices.Contains(c.codes, "content.opaque") {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestNamedIsWhatFileWouldSay(t *testing.T) {
	names := []string{"x", "a.py", "b.pkl", "c/d.safetensors", "e.txt", "chat_template.jinja", "t.json"}
	for _, data := range [][]byte{
		[]byte("import os\n"), pickleCall("os", "system"), safetensors(twoTensors, 22), []byte("#!/bin/sh\nexit\n"),
		[]byte("{{ x|" + strings.Repeat(" ", 500) + "attr('y') }}"), []byte(`{"chat_template":"{{ x.__class__ }}"}`), bytes.Repeat([]byte("word "), 1<<18),
	} {
		for _, first := range names {
			r := look(t, data, first, inspect.Limits{})
			for _, name := range names {
				if d := cmp.Diff(look(t, data, name, inspect.Limits{}), r.Named(name)); d != "" {
					t.Errorf("%s after %s (-want +got)\n%s", name, first, d)
				}
			}
		}
	}
}

func TestMalformedFilesAreUnreadable(t *testing.T) {
	change := func(f func(*gguf)) []byte { g := plainGGUF(); f(&g); return g.bytes() }
	for name, c := range map[string]struct {
		data []byte
		code string
	}{
		"safetensors: gap":           {safetensors(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}`, 8), "safetensors.malformed"},
		"safetensors: overlap":       {safetensors(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}}`, 6), "safetensors.malformed"},
		"safetensors: content left":  {safetensors(twoTensors, 23), "safetensors.malformed"},
		"safetensors: content short": {safetensors(twoTensors, 21), "safetensors.malformed"},
		"safetensors: name twice":    {safetensors(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 0), "safetensors.malformed"},
		"safetensors: size":          {safetensors(`{"a":{"dtype":"U8","shape":[5],"data_offsets":[0,4]}}`, 4), "safetensors.malformed"},
		"safetensors: overflow":      {safetensors(`{"a":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0), "safetensors.malformed"},
		"safetensors: type":          {safetensors(`{"a":{"dtype":"Q1","shape":[4],"data_offsets":[0,4]}}`, 4), "safetensors.malformed"},
		"safetensors: metadata":      {safetensors(`{"__metadata__":{"a":1}}`, 0), "safetensors.malformed"},
		"safetensors: more JSON":     {safetensors(`{} {}`, 0), "safetensors.malformed"},
		"gguf: version":              {change(func(g *gguf) { g.version = 1 }), "gguf.malformed"},
		"gguf: many keys":            {change(func(g *gguf) { g.keys = 1 << 40 }), "file.limit"},
		"gguf: too few tensors":      {change(func(g *gguf) { g.tensors = 2 }), "gguf.malformed"},
		"gguf: key twice":            {change(func(g *gguf) { g.another = g.firstKey }), "gguf.malformed"},
		"gguf: unaligned":            {change(func(g *gguf) { g.tensorOffset = 3 }), "gguf.malformed"},
		"gguf: tensor behind":        {change(func(g *gguf) { g.tensorOffset = 1 << 62 }), "gguf.malformed"},
		"npy: no type":               {npy("{'shape': (2,)}\n", nil), "npy.malformed"},
		"gzip: cut off":              {gzipped(t, bytes.Repeat([]byte("text "), 5000))[:60], "archive.malformed"},
		"xz: cut off":                {xzed(t, bytes.Repeat([]byte("text "), 500), 1<<16)[:100], "archive.malformed"},
		"zstd: cut off":              {zstded(t, bytes.Repeat([]byte("text "), 500))[:20], "archive.malformed"},
		"tar: cut off":               {tarred(t, tar.Header{Name: "x", Uname: strings.Repeat("y", 2000)})[:1024], "tar.malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			if r := look(t, c.data, "x", inspect.Limits{}); !r.Has(c.code) || !r.Unreadable || r.Reason == "" {
				t.Errorf("%+v, want the code %s", r, c.code)
			}
		})
	}
}

func TestObjectArraysInWhateverSpelling(t *testing.T) {
	for _, descr := range []string{`'|O'`, `"O8"`, `'object'`, `[('a', '<i4'), ('b', '|O')]`, `'\x4f'`, `'<f8', 'descr': '|O'`} {
		header := "{'descr': " + descr + ", 'fortran_order': False, 'shape': (1,), }\n"
		if r := look(t, npy(header, pickleData()), "x.npy", inspect.Limits{}); !r.Has(inspect.CodePickle) {
			t.Errorf("%s: %+v", descr, r)
		}
	}
}

func TestLimitsAreReported(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB
	nested := zipped(t, zip.Store, member{"a.pkl", pickleCall("os", "system")})
	for range 5 {
		nested = zipped(t, zip.Store, member{"a.zip", nested})
	}
	behind := append(append([]byte("\x80\x02X\x00\x00\x10\x00"), text...), pickleText("os", "system")...)
	many := make([]member, 50)
	for i := range many {
		many[i] = member{strings.Repeat("a", i+1), []byte("x")}
	}
	for name, c := range map[string]struct {
		data   []byte
		limits inspect.Limits
		code   string
	}{
		"bytes":            {zipped(t, zip.Deflate, member{"a", text}), inspect.Limits{Bytes: 100 << 10}, "archive.limit"},
		"bytes of a tar":   {gzipped(t, tarred(t, tar.Header{Name: "a", Uname: string(text)})), inspect.Limits{Bytes: 100 << 10}, "archive.limit"},
		"bytes of a file":  {append([]byte("\x89HDF\r\n\x1a\n"), text...), inspect.Limits{Bytes: 600 << 10}, "file.limit"},
		"header":           {safetensors(twoTensors, 22), inspect.Limits{Header: 100}, "file.limit"},
		"directory":        {zipped(t, zip.Store, many...), inspect.Limits{Header: 100}, "archive.limit"},
		"entries":          {zipped(t, zip.Store, many...), inspect.Limits{Entries: 10}, "archive.limit"},
		"entries of a tar": {tarred(t, tar.Header{Name: "a"}, tar.Header{Name: "b"}), inspect.Limits{Entries: 1}, "archive.limit"},
		"depth":            {nested, inspect.Limits{}, "archive.limit"},
		"buffer":           {gzipped(t, behind), inspect.Limits{Buffer: 64 << 10}, "archive.limit"},
		"window":           {xzed(t, text[:100], 1<<22), inspect.Limits{Window: 1 << 20}, "archive.limit"},
		"window of zstd":   {zstded(t, bytes.Repeat(text, 5)), inspect.Limits{Window: 1 << 20}, "archive.limit"},
		"opcodes":          {append([]byte{0x80, 2}, bytes.Repeat([]byte("N0"), 5000)...), inspect.Limits{Opcodes: 1000}, "file.limit"},
		"opcodes of what may be a pickle": {append(bytes.Repeat([]byte("N0"), 5000), pickleText("os", "system")...),
			inspect.Limits{Opcodes: 1000}, "file.limit"},
		"JSON": {append(append([]byte(`{"a":"`), text...), `"}`...), inspect.Limits{Header: 1000}, "file.limit"},
	} {
		t.Run(name, func(t *testing.T) {
			if r := look(t, c.data, "x", c.limits); !r.Has(c.code) || !r.Unreadable || r.Reason == "" {
				t.Errorf("%+v, want the code %s", r, c.code)
			}
		})
	}
}

func TestFindingsAreBounded(t *testing.T) {
	data := []byte{0x80, 2}
	for i := range 100 {
		data = append(data, "ca\nb"+strings.Repeat("x", i)+"\n0"...)
	}
	r := look(t, append(data, 'N', '.'), "x", inspect.Limits{Findings: 10})
	if len(r.Findings) != 10 || !r.Unreadable {
		t.Errorf("%d findings, unreadable %v", len(r.Findings), r.Unreadable)
	}
}

func TestFilesThatAreShorterThanAnnounced(t *testing.T) {
	data := safetensors(twoTensors, 22)
	for _, announced := range []int64{int64(len(data)) + 1<<30, 1 << 62} {
		r, err := inspect.File(t.Context(), bytes.NewReader(data[:60]), announced, "x", inspect.Limits{})
		if err != nil || !r.Unreadable || !r.Has(inspect.CodeShort) {
			t.Errorf("%+v, %v", r, err)
		}
	}
	// What lies behind the announced end is not looked at.
	r, err := inspect.File(t.Context(), bytes.NewReader(append(data, "more"...)), int64(len(data)), "x", inspect.Limits{})
	if err != nil || len(r.Findings) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := inspect.File(t.Context(), bytes.NewReader(nil), -1, "x", inspect.Limits{}); err == nil {
		t.Error("a negative size was taken")
	}
}

type readerFunc func(p []byte, off int64) (int, error)

func (f readerFunc) ReadAt(p []byte, off int64) (int, error) { return f(p, off) }

func TestReadersThatFail(t *testing.T) {
	broken := errors.New("the disk says no")
	for name, reader := range map[string]readerFunc{
		"an error":       func([]byte, int64) (int, error) { return 0, broken },
		"too many bytes": func(p []byte, _ int64) (int, error) { return len(p) + 1, nil },
		"less than none": func([]byte, int64) (int, error) { return -1, nil },
		"no progress":    func([]byte, int64) (int, error) { return 0, nil },
		"late": func(p []byte, off int64) (int, error) {
			if off > 4000 {
				return 0, broken
			}
			return copy(p, bytes.Repeat([]byte{0xfe}, len(p))), nil
		},
	} {
		if r, err := inspect.File(t.Context(), reader, 1<<20, "x", inspect.Limits{}); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := inspect.File(ctx, bytes.NewReader(pickleData()), 20, "x", inspect.Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// sparse is a large file of zeros with something at some places.
type sparse struct {
	size   int64
	pieces map[int64][]byte
	read   int64
}

func (s *sparse) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	s.read += int64(len(p))
	for at, piece := range s.pieces {
		if from := max(at, off); from < min(at+int64(len(piece)), off+int64(len(p))) {
			copy(p[from-off:], piece[from-at:])
		}
	}
	if off+int64(len(p)) > s.size {
		return int(max(s.size-off, 0)), io.EOF
	}
	return len(p), nil
}

func TestLargeFilesAreNotReadThrough(t *testing.T) {
	const size = 8 << 30
	header := `{"a":{"dtype":"U8","shape":[8589934592],"data_offsets":[0,8589934592]}}`
	big := tar.Header{Name: "big", Size: size, Mode: 0o644}
	var first bytes.Buffer
	if err := tar.NewWriter(&first).WriteHeader(&big); err != nil {
		t.Fatal(err)
	}
	evil := tarred(t, tar.Header{Name: "evil", Uname: string(pickleCall("os", "system"))})
	for name, c := range map[string]struct {
		file   *sparse
		format inspect.Format
		pickle bool
	}{
		"zeros":       {&sparse{size: size}, inspect.Unknown, false},
		"safetensors": {&sparse{size: size + 8 + int64(len(header)), pieces: map[int64][]byte{0: safetensors(header, 0)}}, inspect.Safetensors, false},
		"gguf":        {&sparse{size: size, pieces: map[int64][]byte{0: plainGGUF().bytes()}}, inspect.GGUF, false},
		"text":        {&sparse{size: size, pieces: map[int64][]byte{0: bytes.Repeat([]byte("word "), 2000)}}, inspect.Text, false},
		"tar":         {&sparse{size: size + 1024 + int64(len(evil)), pieces: map[int64][]byte{0: first.Bytes(), size + int64(first.Len()): evil}}, inspect.Tar, true},
		"pickle with a large string": {&sparse{size: size + 100, pieces: map[int64][]byte{
			0: []byte("\x80\x04\x8e\x00\x00\x00\x00\x02\x00\x00\x00"), size + 11: []byte("cos\nsystem\n)R.")}}, inspect.Pickle, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := inspect.File(t.Context(), c.file, c.file.size, "x", inspect.Limits{})
			if err != nil || r.Format != c.format || r.Has(inspect.CodePickle) != c.pickle || r.Has(inspect.CodeGlobal) != c.pickle {
				t.Errorf("%+v, %v", r, err)
			}
			if c.file.read > 4<<20 {
				t.Errorf("%d bytes were read", c.file.read)
			}
		})
	}
}

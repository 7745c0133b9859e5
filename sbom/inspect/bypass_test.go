package inspect_test

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"

	"github.com/packhof/packhof/sbom/inspect"
)

// TestPicklesInWhatPythonTakesForNumbers has places of the memo that Python
// reads and strconv does not, and some that other readers might.
func TestPicklesInWhatPythonTakesForNumbers(t *testing.T) {
	for _, place := range []string{"+1", "1_0", " 1", "1\t", "\v1\r", "-1", "1\x00 and more", strings.Repeat("0", 500) + "1", "0x1", "١", "99999999999999999999"} {
		for form, data := range map[string]string{
			"put":         "cos\nsystem\np" + place + "\n(S'echo'\ntR.",
			"put and get": "cos\nsystem\np" + place + "\n0g" + place + "\n(S'echo'\ntR.",
		} {
			r := look(t, []byte(data), "notes.txt", inspect.Limits{})
			if r.Format != inspect.Pickle || !slices.Contains(r.Findings, inspect.Finding{Code: inspect.CodeGlobal, Detail: "os.system"}) {
				t.Errorf("%s, place %.20q: %+v", form, place, r)
			}
		}
	}
	// A name taken from a place that could have been overwritten is not known.
	r := look(t, []byte("Vos\np1\n0Vposix\np+1\n0g1\nVsystem\n\x93(S'echo'\ntR."), "notes.txt", inspect.Limits{})
	if !slices.Contains(r.Findings, inspect.Finding{Code: inspect.CodeGlobal, Detail: "?.system"}) {
		t.Errorf("%+v", r)
	}
}

func TestPicklesWithNamesThatAreNotListed(t *testing.T) {
	long := strings.Repeat("path.os.", 40) + "system"
	for _, data := range []string{"cos\n" + long + "\n(tR.", "(S'echo'\nios\n" + long + "\n.", "cmein-modul\nx\n(tR.", "cgrün\nx\n(tR."} {
		r := look(t, []byte(data), "notes.txt", inspect.Limits{})
		if r.Format != inspect.Pickle || !r.Has(inspect.CodePickle) || !r.Has(inspect.CodeGlobal) {
			t.Errorf("%.40q: %+v", data, r)
		}
	}
}

// TestNoPickleBehindWhatAWalkRemembers fills each thing that a walk remembers
// before it comes to the point.
func TestNoPickleBehindWhatAWalkRemembers(t *testing.T) {
	t.Parallel()
	fill := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	names, places := fill(1<<16+2, "Vn%d\n0"), "Vx\n"+fill(1<<18+2, "p%d\n")
	globals := fill(10_001, "ca\nn%d\n0")
	for name, c := range map[string]struct {
		data    string
		finding string // of the name; "" if it need not be known
		bound   bool
	}{
		"names, GLOBAL":       {names + "cos\nsystem\n(S'echo'\ntR.", "os.system", false},
		"names, INST":         {names + "(S'echo'\nios\nsystem\n.", "os.system", false},
		"names, STACK_GLOBAL": {names + "Vos\nVsystem\n\x93(S'echo'\ntR.", "?.?", true},
		"places, by memo":     {"Vos\np999999\n0" + places + "g999999\nVsystem\n\x93(tR.", "?.system", true},
		"globals":             {globals + "cos\nsystem\n(S'echo'\ntR.", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := look(t, []byte(c.data), "notes.txt", inspect.Limits{Findings: 20_000})
			if r.Format != inspect.Pickle || !r.Has(inspect.CodePickle) || r.Unreadable != c.bound || r.Has(inspect.CodeFileLimit) != c.bound {
				t.Errorf("format %s, unreadable %v: %s", r.Format, r.Unreadable, r.Reason)
			}
			if c.finding != "" && !slices.Contains(r.Findings, inspect.Finding{Code: inspect.CodeGlobal, Detail: c.finding}) {
				t.Errorf("no %s", c.finding)
			}
		})
	}
	// Nothing is called in what could be seen; it is no text for all that.
	for _, data := range []string{names + "??", places + "??", strings.Repeat("(", 1<<20+10)} {
		if r := look(t, []byte(data), "notes.txt", inspect.Limits{}); r.Format != inspect.Unknown || !r.Unreadable || !r.Has(inspect.CodeFileLimit) {
			t.Errorf("%.20q: format %s, %+v", data, r.Format, r.Findings)
		}
	}
}

func plainArray() []byte {
	return npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }\n", make([]byte, 8))
}

func TestHeadersOfNpyThatPythonReadsAnotherWay(t *testing.T) {
	evil := pickleText("os", "system")
	for _, header := range []string{
		`{'descr': '<f4', 'des' 'cr': '|O', 'fortran_order': False, 'shape': (1,), }`,
		`{'descr': '<f4', "descr": '|O', 'fortran_order': False, 'shape': (1,), }`,
		`{'descr': '<f4', 'd\x65scr': '|O', 'fortran_order': False, 'shape': (1,), }`,
		`{'descr': '<f4', u'descr': '|O', 'fortran_order': False, 'shape': (1,), }`,
		`{'descr': '|' 'O', 'fortran_order': False, 'shape': (1,), }`,
		`{'descr': '|T16', 'fortran_order': False, 'shape': (1,), }`,
		`{'descr': [('a', '<f4'), ('b', '|' 'O')], 'fortran_order': False, 'shape': (1,), }`,
		`{'descr': '<f4', **{'descr': '|O'}, 'fortran_order': False, 'shape': (1,), }`,
		`{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } # '|O'`,
		`{'descr': '<f4', 'fortran_order': False, 'shape': (01,), }`,
		`{'descr': '<f4', 'fortran_order': False, 'shape': (1), }`,
		`{'descr': ` + strings.Repeat("(", 5000) + `'|O'`,
	} {
		array := npy(header+"\n", evil)
		for name, data := range map[string][]byte{"x.npy": array, "x.npz": zipped(t, zip.Deflate, member{"x.npy", array}), "two.npy": append(plainArray(), array...)} {
			r := look(t, data, name, inspect.Limits{})
			path := ""
			if name == "x.npz" {
				path = "x.npy"
			}
			if !r.Unreadable || !slices.ContainsFunc(r.Findings, func(f inspect.Finding) bool { return f.Code == inspect.CodePickle && f.Path == path }) {
				t.Errorf("%s, %.60s: %+v", name, header, r)
			}
			if !slices.ContainsFunc(r.Findings, func(f inspect.Finding) bool { return f.Code == inspect.CodeGlobal && f.Detail == "os.system" }) {
				t.Errorf("%s, %.60s: what is behind was not looked at: %+v", name, header, r)
			}
		}
	}
}

func TestWhatStandsBehindAnArray(t *testing.T) {
	objects := npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n", pickleCall("os", "system"))
	short := npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }\n", make([]byte, 23))
	wrapped := npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n", nil)
	for name, c := range map[string]struct {
		data       []byte
		codes      []string
		unreadable bool
	}{
		"another array":         {append(plainArray(), plainArray()...), nil, false},
		"an array of objects":   {append(plainArray(), objects...), []string{"pickle.content", "pickle.global"}, false},
		"a pickle":              {append(plainArray(), pickleCall("os", "system")...), []string{"archive.trailing", "pickle.content", "pickle.global"}, false},
		"text":                  {append(plainArray(), "some text"...), []string{"archive.trailing"}, false},
		"too few elements":      {short, []string{"npy.malformed"}, true},
		"more than can be":      {wrapped, []string{"npy.malformed", "pickle.content"}, true},
		"more arrays than many": {bytes.Repeat(plainArray(), 12), []string{"file.limit"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := look(t, c.data, "x.npy", inspect.Limits{Entries: 10})
			if got := codes(r); !slices.Equal(got, c.codes) || r.Format != inspect.Npy || r.Unreadable != c.unreadable {
				t.Errorf("%+v", r)
			}
		})
	}
	npz := zipped(t, zip.Store, member{"a/x.npy", append(plainArray(), objects...)})
	if r := look(t, npz, "x.npz", inspect.Limits{}); !slices.Contains(r.Findings, inspect.Finding{Code: inspect.CodeGlobal, Detail: "os.system", Path: "a/x.npy"}) {
		t.Errorf("%+v", r)
	}
}

func TestHeadersThatNumpyWrites(t *testing.T) {
	for header, size := range map[string]int{
		"{'descr': '|V2', 'fortran_order': True, 'shape': (2, 3), }                \n":                                                      12,
		"{'descr': '<U3', 'fortran_order': False, 'shape': (2,), }\n":                                                                       24,
		"{'descr': '<c16', 'fortran_order': False, 'shape': (), }\n":                                                                        16,
		"{'descr': '|b1', 'fortran_order': False, 'shape': (3L,), }\n":                                                                      3,
		"{'descr': '<f8', 'fortran_order': False, 'shape': (0, 5), }\n":                                                                     0,
		"{'descr': [('a', '<i4', (2, 2)), (('title', 'b'), [('c', '|S5'), ('', '|V3')], (2,))], 'fortran_order': False, 'shape': (2,), }\n": 64,
		"{'descr': [(\"it's\", '<M8[25s]'), ('größe', '<f2')], 'fortran_order': False, 'shape': (1,), }\n":                                  10,
	} {
		if r := look(t, npy(header, make([]byte, size)), "x.npy", inspect.Limits{}); r.Format != inspect.Npy || len(r.Findings) > 0 {
			t.Errorf("%s: %+v", header, r)
		}
		if r := look(t, npy(header, make([]byte, size+1)), "x.npy", inspect.Limits{}); !r.Has(inspect.CodeTrailing) {
			t.Errorf("%s: another size was computed: %+v", header, r)
		}
	}
}

func TestSpellingsOfCodeInKeras(t *testing.T) {
	for object, found := range map[string]bool{
		`{"class_name":"__lambda__","config":{}}`:                      true,
		`{"class_name":"\u005f_lambda__"}`:                             true,
		`{"class_name":"Custom>Lambda"}`:                               true,
		`{"class_name":"lambda"}`:                                      true,
		`{"module":"x","registered_name":"keras.layers>Lambda"}`:       true,
		`{"function_type":"lambda","function":["4wEAAA=="]}`:           true,
		`{"class_name":"Dense","name":"lambda","lambda":"a"}`:          false,
		`{"class_name":"LambdaCallback","config":{"factor":"Lambda"}}`: false,
	} {
		keras := zipped(t, zip.Deflate, member{"config.json", []byte(object)}, member{"metadata.json", []byte("{}")})
		for name, data := range map[string][]byte{"config.json": []byte(object), "m.keras": keras} {
			if r := look(t, data, name, inspect.Limits{}); r.Has(inspect.CodeLambda) != found {
				t.Errorf("%s, %s: %+v", name, object, r)
			}
		}
	}
	for _, word := range []string{`"__lambda__"`, `"\u005f_lambda__"`, `"Custom>Lambda"`} {
		if r := look(t, append([]byte("\x89HDF\r\n\x1a\n"), word...), "m.h5", inspect.Limits{}); !r.Has(inspect.CodeLambda) {
			t.Errorf("%s: %+v", word, r)
		}
	}
}

func TestNamesThatSayPython(t *testing.T) {
	cells := `{"cells":[{"cell_type":"code","source":["!true\n"]}],"nbformat":4}`
	for name, data := range map[string]string{"a.pyw": "import os\n", "A.PYW": "import os\n", "b.ipynb": cells, "c.ipynb": cells + "x", "d.py": "[1, 2]\n"} {
		if r := look(t, []byte(data), name, inspect.Limits{}); !r.Has(inspect.CodePython) || r.Mismatch {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// There is no writer of bzip2 here: bzip2Zeros is it of a million zeros,
// bzip2Header of the header of a tar archive whose one entry has far more.
const (
	bzip2Zeros  = "QlpoOTFBWSZTWXnTnkgAB6jAQMAAAAIACCAAMMwJqmmVJDapSQ8XckU4UJB5055I"
	bzip2Header = "QlpoOTFBWSZTWWGbiIkAACVbgMiAQABfgAAIYgCeEAgAIABUU0aANBmoGjSZENqGmTYcEJ1jmHqTCKi2IQuQBLILNN1MXalGmqsXKNdVgw9f4u5IpwoSDDNxESA="
)

func unbase64(t *testing.T, text string) []byte {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestSlowDecodersEndEarly has data that a limit on bytes alone lets through.
func TestSlowDecodersEndEarly(t *testing.T) {
	t.Parallel()
	zeros := unbase64(t, bzip2Zeros)
	entries := zipped(t, zip.Store, member{"a", zeros}, member{"b", zeros}, member{"c", zeros})
	endless := append(unbase64(t, bzip2Header), bytes.Repeat(unbase64(t, bzip2Zeros), 3)...)
	var packed bytes.Buffer
	w, err := xz.WriterConfig{DictCap: 1 << 16}.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	text := written(t, &packed, w, bytes.Repeat([]byte("0123456789abcdef"), 1<<16))
	for name, c := range map[string]struct {
		data  []byte
		limit int64
		fits  bool
	}{
		"bzip2":             {zeros, 20 << 20, true},
		"bzip2, less":       {zeros, 12 << 20, false},
		"members together":  {entries, 40 << 20, false},
		"members that fit":  {entries, 52 << 20, true},
		"an archive within": {endless, 30 << 20, false},
		"xz":                {text, 5 << 20, true},
		"xz, less":          {text, 3 << 20, false},
	} {
		r := look(t, c.data, "x", inspect.Limits{Bytes: c.limit})
		if r.Unreadable == c.fits || r.Has(inspect.CodeArchiveLimit) == c.fits {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestKeysOfSafetensorsAreBounded(t *testing.T) {
	keys := func(n int) []byte {
		var b strings.Builder
		b.WriteString(`{"__metadata__":{`)
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `"%x":""`, i)
		}
		return safetensors(b.String()+"}}", 0)
	}
	if r := look(t, keys(200_000), "x.safetensors", inspect.Limits{}); len(r.Findings) > 0 || r.Unreadable {
		t.Errorf("%+v", r)
	}
	data := keys(450_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := look(t, data, "x.safetensors", inspect.Limits{})
	runtime.ReadMemStats(&after)
	if !r.Unreadable || !r.Has(inspect.CodeFileLimit) {
		t.Errorf("%+v", r)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("%d bytes were allocated", took)
	}
}

func TestOneTotalForSeveralFiles(t *testing.T) {
	archive := zipped(t, zip.Deflate, member{"a", bytes.Repeat([]byte("text "), 100_000)}) // 500,000 bytes
	total := inspect.NewTotal(1_200_000)
	for i, fits := range []bool{true, true, false, false} {
		r := look(t, archive, "a.zip", inspect.Limits{Total: total})
		if r.Unreadable == fits || r.Has(inspect.CodeArchiveLimit) == fits && r.Has(inspect.CodeFileLimit) == fits {
			t.Errorf("file %d: %+v", i, r)
		}
	}
}

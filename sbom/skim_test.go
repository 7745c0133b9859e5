package sbom_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/sbom"
)

func opened(doc string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(doc)), nil }
}

// Whatever Read takes, Skim counts alike, and what one refuses the other does.
func TestSkimReadsAsReadDoes(t *testing.T) {
	good := string(document(t))
	for name, doc := range map[string]string{
		"ours":                   good,
		"white space at the end": good + "\n",
		"an older version": `{"bomFormat":"CycloneDX","specVersion":"1.4","metadata":{"tools":[{"vendor":"v","name":"old","version":"0.1"}]},
			"components":[{"type":"library","name":"a","components":[{"type":"file","name":"b"},{"type":"library","licenses":[{"expression":"MIT"}]}]}]}`,
		"nothing in it":            `{"bomFormat":"CycloneDX","specVersion":"1.6","components":null,"dependencies":null}`,
		"empty lists":              `{"bomFormat":"CycloneDX","specVersion":"1.6","components":[],"dependencies":[]}`,
		"format at the end":        `{"components":[{"type":"file"}],"bomFormat":"CycloneDX"}`,
		"empty":                    "",
		"garbage":                  "garbage",
		"a list":                   `[]`,
		"another format":           `{"spdxVersion":"SPDX-2.3"}`,
		"cut":                      good[:len(good)-1],
		"two documents":            good + "{}",
		"a name twice":             strings.Replace(good, `"bomFormat"`, `"version":1,"bomFormat"`, 1),
		"a name in another case":   strings.Replace(good, `"components"`, `"Components"`, 1),
		"components are no list":   `{"bomFormat":"CycloneDX","components":7}`,
		"a component is no object": `{"bomFormat":"CycloneDX","components":[7]}`,
		"a dependency is none":     `{"bomFormat":"CycloneDX","dependencies":["a"]}`,
		"a version is none":        strings.Replace(good, `"specVersion":"1.6"`, `"specVersion":"9"`, 1),
		"deep":                     strings.Repeat("[", 65) + strings.Repeat("]", 65),
		"not UTF-8":                strings.Replace(good, "a.txt", "a\xff.txt", 1),
	} {
		t.Run(name, func(t *testing.T) {
			bom, wanted := sbom.Read([]byte(doc))
			head, report, err := sbom.Skim(opened(doc))
			if codeOf(err) != codeOf(wanted) || (err == nil) != (wanted == nil) {
				t.Fatalf("Skim says %v, Read %v", err, wanted)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(sbom.Count(bom), report); diff != "" {
				t.Error(diff)
			}
			bom.Components, bom.Dependencies = nil, nil
			if diff := cmp.Diff(bom.Metadata, head.Metadata); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func codeOf(err error) string {
	var e *sbom.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return ""
}

// long is a document of very many files, which is nowhere as a whole.
type long struct {
	files, at int
	rest      []byte
}

func (l *long) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		sum := strings.Repeat("0a", 32)
		switch {
		case l.at == 0:
			l.rest = []byte(`{"bomFormat":"CycloneDX","specVersion":"1.6","components":[{"type":"file"}`)
		case l.at <= l.files:
			path := fmt.Sprintf("part-%03d/%06d.txt", l.at/1000, l.at)
			l.rest = fmt.Appendf(nil, `,{"bom-ref":"file:%s","hashes":[{"alg":"SHA-256","content":"%s"},{"alg":"SHA-512","content":"%s%s"}],"name":"%s","properties":[{"name":"packhof:file:size","value":"1"}],"type":"file"}`,
				path, sum, sum, sum, path)
		case l.at == l.files+1:
			l.rest = []byte(`]}`)
		default:
			return 0, io.EOF
		}
		l.at++
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// The document of 200,000 files has 80 MB, and costs what one of few files does.
func TestSkimHoldsOnePart(t *testing.T) {
	files := 200_000
	if raced || testing.Short() {
		files = 20_000
	}
	const most = 24 << 20
	peak := testkit.PeakHeap(func() {
		_, report, err := sbom.Skim(func() (io.ReadCloser, error) { return io.NopCloser(&long{files: files}), nil })
		if err != nil || report.Files != files+1 {
			t.Errorf("%d files, %v", report.Files, err)
		}
	})
	if peak > most {
		t.Errorf("it held %d MiB", peak>>20)
	}
}

// What does not fit into memory is refused while it is read, and not when all
// of it is there.
func TestSkimRefusesWhatIsTooLarge(t *testing.T) {
	letters := func() io.Reader { return &repeated{'a'} }
	for name, doc := range map[string]func() io.Reader{
		"a text without end": func() io.Reader { return io.MultiReader(strings.NewReader(`{"bomFormat":"`), letters()) },
		"nothing but a text": func() io.Reader { return io.MultiReader(strings.NewReader(`"`), letters()) },
		"blanks without end": func() io.Reader { return io.MultiReader(strings.NewReader(`{`), &repeated{' '}) },
		"a component of all": func() io.Reader {
			return io.MultiReader(strings.NewReader(`{"components":[{"x":[`), &cycle{text: strings.Repeat(`"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",`, 1000)})
		},
		"too many components": func() io.Reader {
			return io.MultiReader(strings.NewReader(`{"components":[`), &cycle{text: strings.Repeat(`{},`, 10_000)})
		},
		"many that are small": func() io.Reader {
			return io.MultiReader(strings.NewReader(`{"components":[`), &cycle{text: `"` + strings.Repeat("a", 1<<20) + `",`})
		},
	} {
		t.Run(name, func(t *testing.T) {
			if raced && strings.HasPrefix(name, "many") {
				t.Skip("256 MiB take their time under the race detector")
			}
			peak := testkit.PeakHeap(func() {
				_, _, err := sbom.Skim(func() (io.ReadCloser, error) { return io.NopCloser(doc()), nil })
				want(t, err, "sbom/too-large")
			})
			if most := uint64(9 * sbom.MaxPart); peak > most {
				t.Errorf("it held %d MiB", peak>>20)
			}
		})
	}
}

type repeated struct{ letter byte }

func (r *repeated) Read(p []byte) (int, error) {
	copy(p, bytes.Repeat([]byte{r.letter}, len(p)))
	return len(p), nil
}

type cycle struct {
	text string
	at   int
}

func (c *cycle) Read(p []byte) (n int, err error) {
	for n < len(p) {
		k := copy(p[n:], c.text[c.at:])
		n, c.at = n+k, (c.at+k)%len(c.text)
	}
	return n, nil
}

// A reader that fails says so, whatever was read before.
func TestSkimTellsWhyAReaderFails(t *testing.T) {
	torn, gone := errors.New("torn"), errors.New("gone")
	for name, open := range map[string]func() (io.ReadCloser, error){
		"at once":       func() (io.ReadCloser, error) { return nil, gone },
		"in the middle": func() (io.ReadCloser, error) { return failing{strings.NewReader(`{"bomFormat":`), torn}, nil },
		"behind its end": func() (io.ReadCloser, error) {
			return failing{strings.NewReader(`{"bomFormat":"CycloneDX"}`), torn}, nil
		},
		"behind what is none": func() (io.ReadCloser, error) {
			return failing{strings.NewReader(`]` + strings.Repeat(" ", 1<<20)), torn}, nil
		},
	} {
		if _, _, err := sbom.Skim(open); !errors.Is(err, torn) && !errors.Is(err, gone) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type failing struct {
	r   io.Reader
	err error
}

func (f failing) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if errors.Is(err, io.EOF) {
		err = f.err
	}
	return n, err
}

func (failing) Close() error { return nil }

package policy

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
)

// canonicalForm is what two general programs make of an input.
func canonicalForm(t testing.TB, in *Input) []byte {
	t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	value := jsontext.Value(raw)
	if err := value.Canonicalize(); err != nil {
		t.Fatal(err)
	}
	return value
}

// odd has text and numbers that are written in more than one way elsewhere.
func odd(t testing.TB) *Input {
	in := filled(t)
	in.Bundle.Untrusted.Note = "\"\\/<>&\u2028\u2029\x00\x1f\x7f\b\f\n\r\té€😀\ufffd"
	in.Bundle.Gap = []int64{maxInteger, 0, 1e15}
	in.Artifacts[0].Platforms = nil
	return in
}

func TestInputInOnePass(t *testing.T) {
	for name, in := range map[string]*Input{"clean": clean(t), "filled": filled(t), "odd": odd(t)} {
		t.Run(name, func(t *testing.T) {
			want := canonicalForm(t, in)
			got, digest, err := in.Append([]byte("before "))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("before "+string(want), string(got)); diff != "" {
				t.Errorf("canonical form (-want +got)\n%s", diff)
			}
			if alone, err := in.Digest(); err != nil || alone != digestOf(want) || digest != alone {
				t.Errorf("digests %s and %s, want %s, %v", alone, digest, digestOf(want), err)
			}
			value, err := ast.ValueFromReader(bytes.NewReader(want))
			if err != nil {
				t.Fatal(err)
			}
			if value.Compare(in.value()) != 0 || value.Hash() != in.value().Hash() {
				t.Errorf("rules would see\n%s\nand not\n%s", in.value(), value)
			}
			read, err := ReadInput(jsontext.NewDecoder(bytes.NewReader(want)))
			if err != nil {
				t.Fatal(err)
			}
			if again, err := read.Digest(); err != nil || again != digest {
				t.Errorf("read back it has digest %s, want %s, %v", again, digest, err)
			}
		})
	}
}

// What is wrong with an input in Go is said in the words for the same document.
func TestInputThatDoesNotFit(t *testing.T) {
	for name, spoil := range map[string]func(*Input){
		"enum":    func(in *Input) { in.Artifacts[0].SBOM[0].Status = "perhaps" },
		"pattern": func(in *Input) { in.Artifacts[0].Digest = "sha256:0" },
		"minimum": func(in *Input) { in.Bundle.Bytes = -1 },
		"integer": func(in *Input) { in.Time.SkewSeconds = maxInteger + 1 },
		"filled":  func(in *Input) { in.Bundle.Channel = "" },
		"claims":  func(in *Input) { in.Bundle.Threshold = 100 },
	} {
		t.Run(name, func(t *testing.T) {
			in := clean(t)
			spoil(in)
			raw, err := json.Marshal(in)
			if err != nil {
				t.Fatal(err)
			}
			_, want := DecodeInput(raw)
			_, _, got := in.Encode()
			_, sum := in.Digest()
			if want == nil || got == nil || sum == nil {
				t.Fatalf("want %v, got %v and %v", want, got, sum)
			}
			if diff := cmp.Diff(want.Error()+strings.Join(want.(*Error).Evidence(), "\n"), got.Error()+strings.Join(got.(*Error).Evidence(), "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInputThatCannotBeWritten(t *testing.T) {
	large := clean(t)
	for range 34 {
		large.Removed = append(large.Removed, Removed{Kind: "model", Name: strings.Repeat("x", 1<<20), Digest: large.Artifacts[0].Digest})
	}
	broken := clean(t)
	broken.Bundle.Untrusted.Note = "\xff"
	for want, in := range map[string]*Input{codeTooLarge: large, codeInvalidInput: broken} {
		_, _, err := in.Encode()
		e, ok := err.(*Error)
		if !ok || e.Code() != want {
			t.Errorf("want %s, got %v", want, err)
		}
	}
}

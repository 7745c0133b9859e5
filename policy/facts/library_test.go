package facts_test

import (
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/policy"
	"github.com/packhof/packhof/policy/facts"
)

// TestTheLibraryJudgesTheseFacts has the rules that ship judge what is stated
// here: both must mean the same by the names of facts.
func TestTheLibraryJudgesTheseFacts(t *testing.T) {
	source, err := policy.Library()
	if err != nil {
		t.Fatal(err)
	}
	rules, err := policy.Compile(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		files   map[string][]byte
		verdict policy.Verdict
		rule    string
	}{
		"a pickle by another name": {map[string][]byte{"model.safetensors": evil}, policy.Deny, "model_pickle"},
		"code beside the weights":  {map[string][]byte{"modeling.py": text}, policy.Review, "model_code"},
		"an unknown format":        {map[string][]byte{"weights.bin": {0, 1, 2, 3, 0xfe}}, policy.Review, "model_format"},
		"a closed archive":         {map[string][]byte{"a.7z": []byte("7z\xbc\xaf\x27\x1c")}, policy.Review, "content_unreadable"},
		"text":                     {map[string][]byte{"a.txt": []byte("text")}, policy.Review, "sbom_present"},
	} {
		t.Run(name, func(t *testing.T) {
			f := forge(t)
			f.files(bundle.Model, "model", c.files)
			model := f.Manifest.Artifacts[1]
			f.Manifest.Artifacts = []bundle.Artifact{model}
			b := f.seal()
			s := f.subject(b)
			reports, err := facts.Inspect(t.Context(), b, f.open, limits())
			if err != nil {
				t.Fatal(err)
			}
			s.Inspection = reports
			d, err := rules.Evaluate(t.Context(), state(t, s))
			if err != nil {
				t.Fatal(err)
			}
			fired := false
			for _, finding := range d.Findings {
				fired = fired || finding.Rule == c.rule && finding.Artifact == model.Root.Digest.String()
			}
			if d.Verdict != c.verdict || !fired || len(d.Errors) > 0 {
				t.Errorf("verdict %s, findings %+v, errors %+v; want %s by %s", d.Verdict, d.Findings, d.Errors, c.verdict, c.rule)
			}
		})
	}
}

// A strict plant takes no digest that only the first fetch gave.
func TestStrictPins(t *testing.T) {
	source, err := policy.Library()
	if err != nil {
		t.Fatal(err)
	}
	f := forge(t)
	f.Manifest.Artifacts[0].Origin.Verified = bundle.VerifiedLock
	in := inspected(f)
	for pins, want := range map[string]policy.Verdict{"digest": policy.Deny, "first-resolve": policy.Review} {
		strict, err := source.Configure(map[string]any{"accepted_pins": []any{pins}})
		if err != nil {
			t.Fatal(err)
		}
		rules, err := policy.Compile(t.Context(), strict)
		if err != nil {
			t.Fatal(err)
		}
		d, err := rules.Evaluate(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if d.Verdict != want {
			t.Errorf("%s: verdict %s, want %s: %+v %+v", pins, d.Verdict, want, d.Findings, d.Errors)
		}
	}
}

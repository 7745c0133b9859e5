package policy

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const never = " if {\n\tsome a in input.artifacts\n\ta.size < 0\n}\n"

func TestRulesMustKeepTheirContract(t *testing.T) {
	good := head + checkAll + finding + never
	mustCompile(t, one(good))
	tests := map[string]string{
		"not Rego":                   "package packhof.rules.x\n\nfindings contains",
		"empty":                      "",
		"other package":              strings.Replace(good, "packhof.rules.x", "packhof.rules.y", 1),
		"package outside":            strings.Replace(good, "packhof.rules.x", "system", 1),
		"no metadata":                good[strings.Index(good, "package"):],
		"no title":                   strings.Replace(good, "# title: X\n", "", 1),
		"no German title":            strings.Replace(good, "#   title_de: X\n", "", 1),
		"no message":                 strings.Replace(good, "#   message: x\n", "", 1),
		"no remedy":                  strings.Replace(good, "#   remedy: x\n", "", 1),
		"message is no text":         strings.Replace(good, "message: x\n", "message: [x]\n", 1),
		"placeholders differ":        strings.Replace(good, "message: x\n", "message: \"{file}\"\n", 1),
		"bad placeholder":            strings.NewReplacer("message: x\n", "message: \"{a b}\"\n", "message_de: x\n", "message_de: \"{a b}\"\n").Replace(good),
		"unknown key":                strings.Replace(good, "message: x\n", "message: x\n#   level: deny\n", 1),
		"no kinds":                   strings.Replace(good, "[image, chart, model, dataset, files, packages]", "[]", 1),
		"unknown kind":               strings.Replace(good, "[image, chart,", "[imaje, chart,", 1),
		"kind twice":                 strings.Replace(good, "[image, chart,", "[image, image,", 1),
		"schemas":                    strings.Replace(good, "# custom:", "# schemas:\n#   - input: {}\n# custom:", 1),
		"no findings":                head + checkAll,
		"no checked":                 head + finding + never,
		"findings not a set":         head + checkAll + "\nfindings := []\n",
		"checked not a set":          head + "\nchecked[a.digest] := true if some a in input.artifacts\n" + finding + never,
		"findings by name":           head + checkAll + "\nfindings.x contains 1\n" + finding + never,
		"a test among rules":         good + "\ntest_x if true\n",
		"with":                       head + checkAll + finding + " if {\n\tsome a in input.artifacts\n\ta.size < 0 with input as {}\n}\n",
		"a fact nobody states":       head + checkAll + finding + " if {\n\tsome a in input.artifacts\n\ta.sbom.presnt\n}\n",
		"unused variable":            head + checkAll + finding + " if {\n\tsome a in input.artifacts\n\tx := a.size\n}\n",
		"character nobody sees":      good + "# \u202e\n",
		"Rego of another generation": head + checkAll + "\nfindings[f] { f := 1 }\n",
	}
	for name, text := range tests {
		mustNotCompile(t, name, one(text), codeInvalidRule)
	}
}

func TestSourcesAreLimitedAndNamed(t *testing.T) {
	good := head + checkAll + finding + never
	many := Source{Modules: map[string]string{}, Config: map[string]any{}}
	for i := range 2*MaxModules + 1 {
		many.Modules["x"+strings.Repeat("y", i/26)+string(rune('a'+i%26))+".rego"] = good
	}
	tests := []struct {
		name, code string
		source     Source
	}{
		{"no rules", codeInvalidRule, Source{}},
		{"tests only", codeInvalidRule, Source{Modules: map[string]string{"x_test.rego": "package packhof.rules.x_test"}}},
		{"odd file", codeUnknownFile, Source{Modules: map[string]string{"x.txt": good}}},
		{"folder", codeUnknownFile, Source{Modules: map[string]string{"a/x.rego": good}}},
		{"odd name", codeUnknownFile, Source{Modules: map[string]string{"X.rego": good}}},
		{"large", codeTooLarge, one(good + strings.Repeat("#\n", MaxModuleSize/2))},
		{"many", codeTooLarge, many},
		{"nested config", codeInvalidData, Source{Modules: map[string]string{"x.rego": good}, Config: map[string]any{"a": map[string]any{}}}},
		{"odd name of a parameter", codeInvalidData, Source{Modules: map[string]string{"x.rego": good}, Config: map[string]any{"a.b": "c"}}},
		{"null parameter", codeInvalidData, Source{Modules: map[string]string{"x.rego": good}, Config: map[string]any{"a": nil}}},
	}
	for _, tt := range tests {
		mustNotCompile(t, tt.name, tt.source, tt.code)
	}
}

func TestReadSourceRefusesWhatItDoesNotKnow(t *testing.T) {
	good := &fstest.MapFile{Data: []byte(head + checkAll + finding + never)}
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	tests := []struct {
		name, code string
		files      fstest.MapFS
	}{
		{"other data", codeUnknownFile, fstest.MapFS{"x.rego": good, "data.json": file("{}")}},
		{"folder", codeUnknownFile, fstest.MapFS{"x.rego": good, "more/y.rego": good}},
		{"config of nothing", codeInvalidData, fstest.MapFS{"x.rego": good, "config.json": file("")}},
		{"config of null", codeInvalidData, fstest.MapFS{"x.rego": good, "config.json": file("null")}},
		{"config twice", codeInvalidData, fstest.MapFS{"x.rego": good, "config.json": file(`{"a":1,"a":2}`)}},
		{"large config", codeTooLarge, fstest.MapFS{"x.rego": good, "config.json": file(strings.Repeat(" ", MaxConfigSize+1))}},
		{"large rule", codeTooLarge, fstest.MapFS{"x.rego": file(strings.Repeat(" ", MaxModuleSize+1))}},
		{"nothing", codeInvalidRule, fstest.MapFS{}},
	}
	for _, tt := range tests {
		_, err := ReadSource(tt.files)
		if e, ok := err.(*Error); !ok || e.Code() != tt.code {
			t.Errorf("%s: want %s, got %v", tt.name, tt.code, err)
		}
	}
	if s, err := ReadSource(fstest.MapFS{"x.rego": good, "config.json": file(`{"a":["b"]}`)}); err != nil || len(s.Modules) != 1 || len(s.Config) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestConfigureChangesWhatIsKnown(t *testing.T) {
	s := mustLibrary(t)
	for name, overrides := range map[string]map[string]any{
		"unknown":    {"allowed_sorces": []any{"*"}},
		"other type": {"allowed_sources": "*"},
		"other list": {"allowed_sources": []any{1.0}},
		"nested":     {"allowed_sources": []any{[]any{"*"}}},
	} {
		if _, err := s.Configure(overrides); err == nil || err.(*Error).Code() != codeInvalidData {
			t.Errorf("%s: %v", name, err)
		}
	}
	changed, err := s.Configure(map[string]any{"allowed_sources": []any{"other.example"}})
	if err != nil {
		t.Fatal(err)
	}
	if d := mustEvaluate(t, mustCompile(t, changed), clean(t)); d.Verdict != Deny || d.Findings[0].Rule != "source_allowed" {
		t.Errorf("%+v", d)
	}
	if d := mustEvaluate(t, mustCompile(t, s), clean(t)); d.Verdict != Allow {
		t.Errorf("the library itself has changed: %+v", d)
	}
}

func TestDigestNamesWhatJudges(t *testing.T) {
	digest := func(s Source) string {
		d, err := s.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	good := head + checkAll + finding + never
	base := digest(one(good))
	tested := one(good)
	tested.Modules["x_test.rego"] = "package packhof.rules.x_test\n"
	if digest(tested) != base || mustCompile(t, tested).Digest() != base {
		t.Error("tests change the digest")
	}
	other := one(good)
	other.Config["most"] = 4.0
	if digest(other) == base || digest(one(good+"\n")) == base {
		t.Error("rules and parameters do not change the digest")
	}
}

func TestArtifactWithoutADecisionIsAnError(t *testing.T) {
	images := strings.Replace(head, "[image, chart, model, dataset, files, packages]", "[image]", 1) +
		"\nchecked contains a.digest if {\n\tsome a in input.artifacts\n\ta.kind == \"image\"\n}\n" + finding + never
	d := mustEvaluate(t, mustCompile(t, one(images)), clean(t))
	if d.Verdict != Failed || len(d.Errors) != 2 || !strings.Contains(d.Errors[1].Message, "model the-model") {
		t.Errorf("%+v", d)
	}
}

func TestRulesWithoutProofAreRefused(t *testing.T) {
	rule := head + checkAll + finding + " if {\n\tsome a in input.artifacts\n\ta.version == \"latest\"\n}\n"
	with := func(tests string) Source {
		s := one(rule)
		s.Modules["x_test.rego"] = "package packhof.rules.x_test\n\nimport data.packhof.rules.x\n\n" + tests
		return s
	}
	fires := "test_fires if count(x.findings) == 1 with input as {\"artifacts\": [{\"version\": \"latest\", \"digest\": \"d\"}]}\n"
	passes := "test_passes if count(x.findings) == 0 with input as {\"artifacts\": [{\"version\": \"1\", \"digest\": \"d\"}]}\n"
	for name, tests := range map[string]string{
		"none fires":           passes,
		"none passes":          fires,
		"sham":                 "test_fires if x.checked == set()\n\ntest_passes if true with input as x.findings\n",
		"one fails":            fires + passes + "test_more if false\n",
		"one is put off":       fires + passes + "todo_test_more if true\n",
		"one ends in an error": fires + passes + "test_more if not to_number(concat(\"\", [\"x\", \"y\"]))\n",
		"named otherwise":      strings.ReplaceAll(fires, "test_fires", "test_a") + strings.ReplaceAll(passes, "test_passes", "test_b"),
	} {
		if err := CheckTests(t.Context(), with(tests)); err == nil || err.(*Error).Code() != codeUntested {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := CheckTests(t.Context(), with(fires+passes)); err != nil {
		t.Errorf("%v %v", err, err.(*Error).Evidence())
	}
	if err := CheckTests(t.Context(), one(rule)); err == nil {
		t.Error("a rule without tests is accepted")
	}
}

func TestWordsAreThereInBothLanguages(t *testing.T) {
	p := mustCompile(t, mustLibrary(t))
	for _, r := range p.Rules() {
		de, en := Words(r, Finding{}, "de"), Words(r, Finding{}, "en")
		if de.Title == en.Title || de.Sentence == en.Sentence || de.Remedy == en.Remedy {
			t.Errorf("%s says the same in both languages: %+v", r.ID, de)
		}
	}
	r := Rule{English: Wording{Message: "{n} of {all} in {file}: {flag} {none}"}}
	got := Words(r, Finding{Params: map[string]any{"n": 3.0, "all": 1e6, "file": "a\u200b{n}\x00\xff", "flag": true}}, "en").Sentence
	if diff := cmp.Diff("3 of 1000000 in a⟨U+200B⟩{n}⟨U+0000⟩⟨U+FFFD⟩: true ?", got); diff != "" {
		t.Error(diff)
	}
	long := Words(Rule{English: Wording{Message: "{x}"}}, Finding{Params: map[string]any{"x": strings.Repeat("ü", 600)}}, "en").Sentence
	if len([]rune(long)) != 501 || !strings.HasSuffix(long, "…") {
		t.Errorf("%d runes", len([]rune(long)))
	}
}

func TestDecisionsAreReadBackStrictly(t *testing.T) {
	p := mustCompile(t, mustLibrary(t))
	d := mustEvaluate(t, p, denied(t)["pickle"])
	document, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := DecodeDecision(document, d.PolicyDigest, d.InputDigest)
	if err != nil {
		t.Fatal(err)
	}
	one, _ := d.FindingsDigest()
	two, _ := back.FindingsDigest()
	if one == "" || one != two {
		t.Errorf("findings digests %q, %q", one, two)
	}
	for _, change := range [][2]string{
		{`"verdict":"deny"`, `"verdict":"allow"`},
		{`"verdict":"deny"`, `"verdict":"deny","waived":true`},
		{`"level":"deny"`, `"level":"info"`},
		{`"level":"deny"`, `"level":"fatal"`},
		{`"rule":"model_pickle"`, `"rule":""`},
		{`"errors":[]`, `"errors":null`},
		{`"errors":[]`, `"errors":[{"rule":"x","message":""}]`},
		{`"params":{"count":1`, `"params":{"count":[1]`},
		{`{"errors"`, ` {"errors"`},
		{d.PolicyDigest, d.InputDigest},
		{d.InputDigest, d.PolicyDigest},
	} {
		changed := strings.Replace(string(document), change[0], change[1], 1)
		if changed == string(document) {
			t.Fatalf("%s is not in %s", change[0], document)
		}
		if _, err := DecodeDecision([]byte(changed), d.PolicyDigest, d.InputDigest); err == nil || err.(*Error).Code() != codeInvalidReply {
			t.Errorf("%s is read as a decision: %v", change[1], err)
		}
	}
}

func TestSameInputSameDecision(t *testing.T) {
	in := denied(t)["pickle"]
	in.Artifacts[0].Image.Configs[0].User = "root"
	in.Artifacts[0].Licences = []string{"BUSL-1.1"}
	var first string
	for range 3 {
		b, err := mustEvaluate(t, mustCompile(t, mustLibrary(t)), in).Encode()
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = string(b)
		}
		if diff := cmp.Diff(first, string(b)); diff != "" {
			t.Fatal(diff)
		}
	}
	d := mustEvaluate(t, mustCompile(t, mustLibrary(t)), in)
	var order []string
	for _, f := range d.Findings {
		order = append(order, f.Rule)
	}
	if diff := cmp.Diff([]string{"licence_denied", "model_pickle", "image_root"}, order); diff != "" {
		t.Error(diff)
	}
}

func FuzzDecodeInput(f *testing.F) {
	for _, in := range []*Input{clean(f), filled(f)} {
		document, _, err := in.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(document)
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		in, err := DecodeInput(document)
		if err != nil {
			return
		}
		canonical, digest, err := in.Encode()
		if err != nil {
			t.Fatalf("an accepted input cannot be written: %v", err)
		}
		if want := canonicalForm(t, in); string(want) != string(canonical) {
			t.Fatalf("canonical form\n%s\nwant\n%s", canonical, want)
		}
		again, err := DecodeInput(canonical)
		if err != nil {
			t.Fatal(err)
		}
		if _, other, err := again.Encode(); err != nil || other != digest {
			t.Fatalf("%v: digests %s and %s", err, digest, other)
		}
	})
}

func FuzzDecodeDecision(f *testing.F) {
	f.Add([]byte(`{"errors":[],"findings":[{"artifact":"","level":"deny","params":{"x":1},"rule":"x"}],"inputDigest":"","policyDigest":"","verdict":"deny"}`))
	f.Add([]byte(`{"errors":[],"findings":[],"inputDigest":"","policyDigest":"","verdict":"allow"}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		d, err := DecodeDecision(document, "", "")
		if err != nil {
			return
		}
		if d.Verdict != d.due() {
			t.Fatalf("%+v", d)
		}
	})
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(`{"a":["b",1,true]}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		config, err := ParseConfig(document)
		if err == nil && checkConfig(config) != nil {
			t.Fatal(config)
		}
	})
}

func FuzzVisible(f *testing.F) {
	f.Add("a\u202e\x00\xff")
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range Visible(s) {
			if hidden(r) {
				t.Fatalf("%q still has %U", Visible(s), r)
			}
		}
	})
}

// TestInWords: a finding of a rule that is not in force any more is shown by
// the rule's name.
func TestInWords(t *testing.T) {
	library, err := Library()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Compile(t.Context(), library)
	if err != nil {
		t.Fatal(err)
	}
	known := p.Rules()[0]
	words := p.InWords([]Finding{{Rule: known.ID}, {Rule: "gone"}}, "de")
	if len(words) != 2 || words[0].Title != known.German.Title || words[0].Sentence == "" || words[1].Title != "gone" || words[1].Sentence != "" {
		t.Errorf("%+v", words)
	}
	if none := p.InWords(nil, "en"); none == nil || len(none) != 0 {
		t.Errorf("%+v", none)
	}
}

package policy

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// denied are inputs that the library denies, each for another reason.
func denied(t testing.TB) map[string]*Input {
	change := func(f func(in *Input)) *Input {
		in := clean(t)
		f(in)
		return in
	}
	return map[string]*Input{
		"no SBOM": change(func(in *Input) {
			s := &in.Artifacts[0].SBOM[0]
			s.Status, s.Bound, s.Format, s.Reason = "absent", false, "", "no scanner"
		}),
		"SBOM of something else": change(func(in *Input) {
			s := &in.Artifacts[0].SBOM[0]
			s.Bound, s.Reason = false, "names another subject"
		}),
		"plain http": change(func(in *Input) { in.Artifacts[0].Origin.Transport = "plain" }),
		"not pinned": change(func(in *Input) { in.Artifacts[0].Origin.Pinned = false }),
		"a pickle attached": change(func(in *Input) {
			r := attached("signature", in.Artifacts[0].Digest)
			r.Inspection.Files[0].Format = "pickle"
			in.Artifacts[0].Referrers = []Referrer{r}
		}),
		"licence":     change(func(in *Input) { in.Artifacts[0].Licences = []string{"AGPL-3.0-only"} }),
		"pickle":      change(func(in *Input) { in.Artifacts[1].Inspection.Files[0].Format = "pickle" }),
		"uninspected": change(func(in *Input) { in.Artifacts[1].Inspection = Inspection{Status: "failed", Reason: "crashed"} }),
	}
}

func TestCleanIsAllowed(t *testing.T) {
	p := mustCompile(t, mustLibrary(t))
	d := mustEvaluate(t, p, clean(t))
	if d.Verdict != Allow || len(d.Findings) != 0 || len(d.Errors) != 0 {
		t.Errorf("%+v", d)
	}
	for name, in := range denied(t) {
		if d := mustEvaluate(t, p, in); d.Verdict != Deny {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestT40MissingFactsNeverAllow(t *testing.T) {
	in := filled(t)
	in.Artifacts[1].Inspection.Files[0].Format = "pickle" // to be denied
	document, _, err := in.Encode()
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	mutate(t, document, func(at, how string, mutant []byte) {
		count++
		if _, err := DecodeInput(mutant); err == nil {
			t.Errorf("%s %s is accepted", at, how)
		} else if e, ok := err.(*Error); !ok || e.Code() != codeInvalidInput || len(e.Evidence()) == 0 {
			t.Errorf("%s %s: %v, without code or evidence", at, how, err)
		}
	})
	if count < 1800 {
		t.Errorf("only %d mutants", count)
	}
}

// filled has something in every list, so that every property is mutated.
func filled(t testing.TB) *Input {
	in := clean(t)
	in.Bundle.Gap = []int64{40}
	in.Bundle.Omitted = []Omission{{Name: "left", Untrusted: OmissionUntrusted{Reason: "gone"}}}
	in.Removed = []Removed{{Kind: "image", Name: "old", Version: "1", Digest: in.Artifacts[0].Digest}}
	a := &in.Artifacts[0]
	a.Destinations = []string{"depot"}
	a.Signatures = []Signature{{Subject: a.Digest, Kind: "signature", MediaType: "application/x", Verified: true, By: "vendor@example"}}
	a.Referrers = []Referrer{attached("signature", a.Digest)}
	a.Referrers[0].Inspection.Files[0].Findings = []FileFinding{{Code: "name.mismatch", Untrusted: FileFindingUntrusted{Path: "p", Detail: "d"}}}
	a.Untrusted.Labels = []Label{{Name: "a", Value: "b"}}
	a.Image.Configs[0].Command = []string{"serve"}
	a.Image.Configs[0].Untrusted.Labels = []Label{{Name: "a", Value: "b"}}
	in.Artifacts[1].Inspection.Files[0].Findings = []FileFinding{{Code: "name.mismatch", Untrusted: FileFindingUntrusted{Path: "p", Detail: "d"}}}
	return in
}

// attached is a referrer with one document.
func attached(kind, subject string) Referrer {
	file := InspectedFile{Path: "a", Digest: subject, Size: 1, Format: "json", Findings: []FileFinding{}}
	return Referrer{
		Digest: subject, Subject: subject, Kind: kind, Inspection: Inspection{Status: "done", Files: []InspectedFile{file}},
		Untrusted: ReferrerUntrusted{ArtifactType: "application/vnd.example"},
	}
}

// Facts that fit the schema and still would hide something.
func TestT40ContradictingFactsAreRefused(t *testing.T) {
	tests := map[string]func(in *Input){
		"no SBOM entry":              func(in *Input) { in.Artifacts[0].SBOM = nil },
		"image without configs":      func(in *Input) { in.Artifacts[0].Image.Configs = nil },
		"image not applicable":       func(in *Input) { in.Artifacts[0].Image = Image{Status: "not-applicable"} },
		"unread without a reason":    func(in *Input) { in.Artifacts[0].Image = Image{Status: "unread"} },
		"model not applicable":       func(in *Input) { in.Artifacts[1].Inspection = Inspection{Status: "not-applicable", Reason: "x"} },
		"inspected without files":    func(in *Input) { in.Artifacts[1].Inspection.Files = nil },
		"inspected without a format": func(in *Input) { in.Artifacts[1].Inspection.Files[0].Format = "" },
		"referrer not applicable": func(in *Input) {
			in.Artifacts[0].Referrers = []Referrer{attached("other", in.Bundle.Digest)}
			in.Artifacts[0].Referrers[0].Inspection = Inspection{Status: "not-applicable", Reason: "x"}
		},
		"referrer inspected without files": func(in *Input) {
			in.Artifacts[0].Referrers = []Referrer{attached("other", in.Bundle.Digest)}
			in.Artifacts[0].Referrers[0].Inspection.Files = nil
		},
		"referrer inspected without a format": func(in *Input) {
			in.Artifacts[0].Referrers = []Referrer{attached("other", in.Bundle.Digest)}
			in.Artifacts[0].Referrers[0].Inspection.Files[0].Format = ""
		},
		"absent and bound": func(in *Input) {
			in.Artifacts[0].SBOM[0].Status, in.Artifacts[0].SBOM[0].Reason = "absent", "x"
		},
		"nobody vouched":       func(in *Input) { in.Bundle.Signers = nil },
		"threshold of nothing": func(in *Input) { in.Bundle.Threshold = 0 },
		"no artifacts":         func(in *Input) { in.Artifacts = nil },
		"no time":              func(in *Input) { in.Time.Floor = "" },
		"impossible time":      func(in *Input) { in.Bundle.Expires = "2026-13-01T00:00:00Z" },
		"wrong skew":           func(in *Input) { in.Time.SkewSeconds = 0 },
		"verified by nobody": func(in *Input) {
			in.Artifacts[0].Signatures = []Signature{{Subject: in.Artifacts[0].Digest, Kind: "signature", Verified: true}}
		},
		"unchanged and other": func(in *Input) {
			in.Artifacts[0].Change = Change{State: "unchanged", FromVersion: "1", FromDigest: in.Bundle.Digest}
		},
		"from no host":          func(in *Input) { in.Artifacts[0].Origin.Host = "" },
		"control with contents": func(in *Input) { in.Bundle.Kind = "control" },
	}
	p := mustCompile(t, mustLibrary(t))
	for name, change := range tests {
		in := clean(t)
		change(in)
		d, err := p.Evaluate(t.Context(), in)
		if e, ok := err.(*Error); d != nil || !ok || e.Code() != codeInvalidInput {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
}

func TestT41BuiltinErrorsBlock(t *testing.T) {
	for _, call := range []string{
		`to_number(concat("", ["9.8-high", input.bundle.channel])) > 7`,
		`1 / (input.bundle.serial - input.bundle.serial) > 7`,
		`json.unmarshal(input.bundle.channel).x > 7`,
		`regex.match(concat("", ["(", input.bundle.channel]), "x")`,
		`units.parse_bytes(input.bundle.channel) > 7`,
		`time.parse_rfc3339_ns(input.bundle.channel) > 7`,
		`base64.decode(input.time.floor) == "x"`,
		`format_int(input.bundle.serial, 3) == "x"`,
		`semver.compare(input.bundle.channel, "1.0.0") > 0`,
		`hex.decode(input.bundle.channel) == "x"`,
	} {
		mustBreak(t, "builtin "+call, head+checkAll+finding+" if {\n\tsome a in input.artifacts\n\t"+call+"\n}\n")
	}
}

const finding = "\nfindings contains {\"artifact\": a.digest, \"level\": \"deny\", \"params\": {}}"

// mustBreak wants a rule that compiles, and gives an error for clean facts.
func mustBreak(t *testing.T, name, text string) {
	t.Helper()
	p, err := Compile(t.Context(), one(text))
	if err != nil {
		t.Errorf("%s: %v %v", name, err, err.(*Error).Evidence())
		return
	}
	d := mustEvaluate(t, p, clean(t))
	if d.Verdict != Failed || len(d.Errors) == 0 || d.Errors[len(d.Errors)-1].Rule != "x" {
		t.Errorf("%s: want an error of rule x, got %+v", name, d)
	}
}

func TestT41WrongResultsBlock(t *testing.T) {
	none := finding + " if {\n\tsome a in input.artifacts\n\ta.name == \"\"\n}\n"
	always := func(object string) string {
		return checkAll + "\nfindings contains " + object + " if some a in input.artifacts\n"
	}
	for name, body := range map[string]string{
		"looked at nothing":        "\nchecked contains a.digest if {\n\tsome a in input.artifacts\n\ta.name == \"\"\n}\n" + none,
		"looked at one kind only":  "\nchecked contains a.digest if {\n\tsome a in input.artifacts\n\ta.kind == \"image\"\n}\n" + none,
		"looked at the bundle too": checkAll + "\nchecked contains \"\"\n" + none,
		"looked at a name":         "\nchecked contains a.name if some a in input.artifacts\n" + none,
		"looked at numbers":        "\nchecked contains a.size if some a in input.artifacts\n" + none,
		"level unknown":            always(`{"artifact": a.digest, "level": "denied", "params": {}}`),
		"artifact unknown":         always(`{"artifact": a.name, "level": "deny", "params": {}}`),
		"about the bundle":         always(`{"artifact": "", "level": "deny", "params": {}}`),
		"no params":                always(`{"artifact": a.digest, "level": "deny"}`),
		"one member more":          always(`{"artifact": a.digest, "level": "deny", "params": {}, "waived": true}`),
		"params of lists":          always(`{"artifact": a.digest, "level": "deny", "params": {"x": [1]}}`),
		"params of null":           always(`{"artifact": a.digest, "level": "deny", "params": {"x": null}}`),
		"odd name of a param":      always(`{"artifact": a.digest, "level": "deny", "params": {"x}": 1}}`),
		"long param":               always(`{"artifact": a.digest, "level": "deny", "params": {"x": concat("", [y | some y in ["xxxxxxxx"]; some _ in numbers.range(1, 1000)])}}`),
		"huge number":              always(`{"artifact": a.digest, "level": "deny", "params": {"x": 1e400}}`),
		"text instead of a set":    always(`"deny"`),
		"conflict":                 always(`{"artifact": a.digest, "level": two(a), "params": {}}`) + "\ntwo(_) := \"deny\"\n\ntwo(a) := \"info\" if a.size > 0\n",
	} {
		mustBreak(t, name, head+body)
	}
	needy := strings.Replace(head, "message: x\n#   message_de: x", "message: \"x {file}\"\n#   message_de: \"x {file}\"", 1)
	mustBreak(t, "param of the message missing", needy+always(`{"artifact": a.digest, "level": "deny", "params": {}}`))
}

func TestT42ArtifactTextReachesNoRule(t *testing.T) {
	evil := "}}\ndata.packhof.config.allowed_sources \u202e{files} {{\x1b[31m package evil"
	in := clean(t)
	in.Bundle.Untrusted.Note = evil
	in.Artifacts[0].Name = evil
	in.Artifacts[0].Untrusted.Labels = []Label{{Name: evil, Value: evil}}
	in.Artifacts[0].Version = "latest"
	in.Artifacts[1].Inspection.Files[0].Path = evil
	in.Artifacts[1].Inspection.Files[0].Format = "pickle"
	p := mustCompile(t, mustLibrary(t))
	d := mustEvaluate(t, p, in)
	if len(d.Findings) != 2 || d.Verdict != Deny {
		t.Fatalf("%+v", d)
	}
	for _, f := range d.Findings {
		rule, _ := p.Rule(f.Rule)
		for _, lang := range []string{"de", "en"} {
			text := Words(rule, f, lang)
			if strings.ContainsAny(text.Sentence, "\u202e\x1b\n") {
				t.Errorf("%q", text.Sentence)
			}
			if f.Rule == "model_pickle" && !strings.Contains(text.Sentence, "allowed_sources ⟨U+202E⟩{files}") {
				t.Errorf("a placeholder within a parameter was filled: %q", text.Sentence)
			}
		}
	}
}

func TestT42DataOutsideTheConfigIsRefused(t *testing.T) {
	for name, body := range map[string]string{
		"other root":         "data.foo == 1",
		"other rule":         "data.packhof.rules.other.findings == set()",
		"all rules":          "data.packhof.rules == {}",
		"everything":         "data == {}",
		"computed":           "data[a.name] == 1",
		"whole config":       "data.packhof.config == {}",
		"computed parameter": "data.packhof.config[a.name] == 1",
		"unknown parameter":  "data.packhof.config.lists == 1",
		"through an alias":   "x := data.packhof\n\tx.config.lists == 1",
	} {
		text := head + checkAll + finding + " if {\n\tsome a in input.artifacts\n\t" + body + "\n}\n"
		mustNotCompile(t, name, one(text), codeInvalidRule)
	}
	known := head + checkAll + finding + " if {\n\tsome a in input.artifacts\n\ta.name in data.packhof.config.list\n}\n"
	mustCompile(t, one(known))
}

func mustNotCompile(t *testing.T, name string, s Source, code string) {
	t.Helper()
	_, err := Compile(t.Context(), s)
	e, ok := err.(*Error)
	if !ok || e.Code() != code {
		t.Errorf("%s: want %s, got %v", name, code, err)
		return
	}
	if code == codeInvalidRule && len(s.Rules()) > 0 && (len(e.Evidence()) == 0 || !strings.Contains(e.Evidence()[0], ".rego:")) {
		t.Errorf("%s: no file and line in %q", name, e.Evidence())
	}
}

func TestT43ForbiddenBuiltins(t *testing.T) {
	calls := map[string]string{
		"http.send":                    `http.send({"method": "get", "url": "http://127.0.0.1"})`,
		"net.lookup_ip_addr":           `net.lookup_ip_addr("localhost")`,
		"net.cidr_expand":              `net.cidr_expand("127.0.0.0/8")`,
		"opa.runtime":                  `opa.runtime()`,
		"time.now_ns":                  `time.now_ns()`,
		"time.clock":                   `time.clock([1, "Local"])`,
		"rand.intn":                    `rand.intn("x", 7)`,
		"uuid.rfc4122":                 `uuid.rfc4122("x")`,
		"rego.parse_module":            `rego.parse_module("x.rego", "package x")`,
		"io.jwt.decode_verify":         `io.jwt.decode_verify("x", {})`,
		"io.jwt.encode_sign":           `io.jwt.encode_sign({}, {}, {})`,
		"crypto.x509.parse_keypair":    `crypto.x509.parse_keypair("", "")`,
		"providers.aws.sign_req":       `providers.aws.sign_req({}, {}, 1)`,
		"json.match_schema":            `json.match_schema({}, {"$ref": "http://127.0.0.1/"})`,
		"graphql.is_valid":             `graphql.is_valid("", "")`,
		"yaml.unmarshal":               `yaml.unmarshal("x")`,
		"trace":                        `trace("x")`,
		"strings.render_template":      `strings.render_template("{{.}}", {})`,
		"a function that is not there": `packhof.allow()`,
	}
	for name, call := range calls {
		mustNotCompile(t, name, one(head+checkAll+finding+" if {\n\tsome a in input.artifacts\n\t"+call+"\n}\n"), codeInvalidRule)
		mustNotCompile(t, name+" through with", one(head+checkAll+finding+" if {\n\tsome a in input.artifacts\n\tcount(a.name) == 3 with count as "+functionOf(call)+"\n}\n"), codeInvalidRule)
		s := one(head + checkAll + finding + " if {\n\tsome a in input.artifacts\n\ta.size < 0\n}\n")
		s.Modules["x_test.rego"] = "package packhof.rules.x_test\n\nimport data.packhof.rules.x\n\ntest_x if {\n\tcount(x.findings) == 0 with count as " + functionOf(call) + "\n}\n"
		if _, err := Test(t.Context(), s); err == nil {
			t.Errorf("%s can be called by a test", name)
		}
	}
}

func functionOf(call string) string { name, _, _ := strings.Cut(call, "("); return name }

// What is allowed is there, and gives the same for the same arguments.
func TestT43AllowedBuiltinsAreDeterministic(t *testing.T) {
	c := capabilities()
	if len(c.Builtins) != len(builtins()) || c.AllowNet == nil {
		t.Errorf("%d builtins of %d allowed exist", len(c.Builtins), len(builtins()))
	}
	for _, b := range c.Builtins {
		for _, prefix := range []string{"http.", "net.", "opa.", "rand.", "uuid.", "io.", "crypto.", "rego.", "graphql.", "yaml."} {
			if b.IsNondeterministic() || strings.HasPrefix(b.Name, prefix) {
				t.Errorf("%s is allowed", b.Name)
			}
		}
	}
	if !slices.ContainsFunc(ast.CapabilitiesForThisVersion().Builtins, func(b *ast.Builtin) bool { return b.Name == "http.send" }) {
		t.Error("the engine has no http.send: this test looks at the wrong list")
	}
}

// The engine itself stops at the context's end; package judge stops what does not.
func TestT44TimeIsAnError(t *testing.T) {
	bomb := "some i in numbers.range(1, 1000000); some j in numbers.range(1, 1000000); i * j == -1"
	p := mustCompile(t, one(head+checkAll+finding+" if {\n\tsome a in input.artifacts\n\t"+bomb+"\n}\n"))
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	d, err := p.Evaluate(ctx, clean(t))
	if err != nil {
		t.Fatal(err)
	}
	if d.Verdict != Failed || len(d.Errors) != 1 || d.Errors[0].Rule != "x" || !strings.Contains(d.Errors[0].Message, "cancel") {
		t.Errorf("%+v", d)
	}
}

//go:build linux

package judge_test

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/policy"
	"github.com/packhof/packhof/policy/judge"
)

// roleVar makes the test binary play the child.
const roleVar = "JUDGE_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		os.Exit(play(role))
	}
	os.Exit(m.Run())
}

// play is an honest judge, or one of those that must not be believed.
func play(role string) int {
	var answer bytes.Buffer
	if role != "deaf" {
		var err error
		peak := testkit.PeakHeap(func() { err = judge.Serve(context.Background(), os.Stdin, &answer) })
		if role == "frugal" && peak > mostMemory {
			err = fmt.Errorf("took %d MiB", peak>>20)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	text := answer.String()
	switch role {
	case "crash":
		panic("the judge is not well")
	case "deaf":
		text = ""
	case "garbage":
		text = "allow"
	case "twice":
		text += text
	case "lenient":
		text = strings.Replace(text, `"verdict":"deny"`, `"verdict":"allow"`, 1)
	case "forgetful":
		text = `{"errors":[],"findings":[],"inputDigest":"` + digestIn(text, "inputDigest") + `","policyDigest":"","verdict":"allow"}`
	case "unasked":
		text = strings.Replace(text, digestIn(text, "proofDigest"), "sha256:"+strings.Repeat("0", 64), 1)
	case "denying":
		text = `{"proofDigest":"` + digestIn(text, "proofDigest") + `","refusal":{"code":"usage","text":"","evidence":[],"remedy":""}}`
	case "elsewhere":
		text = strings.Replace(text, digestIn(text, "inputDigest"), "sha256:"+strings.Repeat("0", 64), 1)
	case "flood":
		for {
			if _, err := os.Stdout.Write(make([]byte, 1<<20)); err != nil {
				return 1
			}
		}
	}
	if _, err := io.WriteString(os.Stdout, text); err != nil {
		return 1
	}
	return 0
}

func digestIn(text, name string) string {
	_, rest, _ := strings.Cut(text, `"`+name+`":"`)
	digest, _, _ := strings.Cut(rest, `"`)
	return digest
}

func self(t *testing.T, role string) judge.Child {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return judge.Child{Program: program, Env: []string{roleVar + "=" + role}, WorkDir: t.TempDir(), Timeout: time.Minute}
}

func decide(t *testing.T, c judge.Child, s policy.Source) *policy.Decision {
	t.Helper()
	d, err := c.Evaluate(t.Context(), s, input(t))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func input(t *testing.T) *policy.Input {
	t.Helper()
	document, err := os.ReadFile("../testdata/clean.json")
	if err != nil {
		t.Fatal(err)
	}
	in, err := policy.DecodeInput(document)
	if err != nil {
		t.Fatal(err)
	}
	in.Artifacts[0].Version = "latest" // gives a finding
	return in
}

// rule is a policy of one rule, which denies everything and has more besides.
func rule(more string) policy.Source {
	return policy.Source{Config: map[string]any{}, Modules: map[string]string{"no.rego": `# METADATA
# title: No
# custom:
#   kinds: [image, chart, model, dataset, files, packages]
#   title_de: Nein
#   message: no
#   message_de: nein
#   remedy: none
#   remedy_de: keine
package packhof.rules.no

checked contains a.digest if some a in input.artifacts

findings contains {"artifact": a.digest, "level": "deny", "params": {}} if some a in input.artifacts
` + more}}
}

func TestChildDecidesAsTheEngineDoes(t *testing.T) {
	library, err := policy.Library()
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]policy.Source{"library": library, "denying": rule("")} {
		t.Run(name, func(t *testing.T) {
			p, err := policy.Compile(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			want, err := p.Evaluate(t.Context(), input(t))
			if err != nil {
				t.Fatal(err)
			}
			if want.Verdict == policy.Failed || len(want.Findings) == 0 {
				t.Fatalf("nothing to compare: %+v", want)
			}
			got := decide(t, self(t, "judge"), s)
			if diff := cmp.Diff(encode(t, want), encode(t, got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func encode(t *testing.T, d *policy.Decision) string {
	t.Helper()
	b, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestChildThatCannotBeBelievedBlocks(t *testing.T) {
	tests := []struct{ role, want string }{
		{"crash", "ended with exit code 2"},
		{"deaf", "does not count"},
		{"garbage", "does not count"},
		{"twice", "does not count"},
		{"lenient", "the verdict does not follow"},
		{"forgetful", "by another policy"},
		{"elsewhere", "about other facts"},
		{"flood", "wrote more output"},
	}
	for _, tt := range tests {
		t.Run(tt.role, func(t *testing.T) {
			c := self(t, tt.role)
			mustFail(t, decide(t, c, rule("")), "", tt.want)
			left, err := os.ReadDir(c.WorkDir)
			if err != nil || len(left) != 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestMissingProgramBlocks(t *testing.T) {
	c := self(t, "judge")
	c.Program += "-not-there"
	mustFail(t, decide(t, c, rule("")), "", "no such program")
}

func TestPolicyThatDoesNotCompileBlocks(t *testing.T) {
	mustFail(t, decide(t, self(t, "judge"), rule("nonsense")), "", "no.rego:")
}

func TestT44Bombs(t *testing.T) {
	tests := []struct{ name, body string }{
		{"processor", "bomb if { some i in numbers.range(1, 100000); some j in numbers.range(1, 100000); i * j == -1 }\n"},
		{"processor in one call", "bomb if { count(numbers.range(1, 10000000000)) == 0 }\n"},
		{"memory", "bomb if { y := sprintf(\"%01000000d\", [1]); x := [s | some i in numbers.range(1, 5000); s := concat(\"\", [y, format_int(i, 10)])]; count(x) == 0 }\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := self(t, "judge")
			if tt.name != "memory" { // whose end is not a matter of time
				c.Timeout = 4 * time.Second
			}
			s := rule("\nfindings contains {\"artifact\": \"\", \"level\": \"info\", \"params\": {}} if bomb\n\n" + tt.body)
			d := decide(t, c, s)
			mustFail(t, d, "*", "") // who stops it, the judge or its bounds, depends on the machine
			t.Log(d.Errors)
		})
	}
}

// mustFail wants exactly one error; rule "*" is any.
func mustFail(t *testing.T, d *policy.Decision, rule, want string) {
	t.Helper()
	if d.Verdict != policy.Failed || !d.Verdict.Blocks() || len(d.Errors) == 0 || len(d.Findings) != 0 {
		t.Fatalf("want an error that blocks, got %+v", d)
	}
	if e := d.Errors[len(d.Errors)-1]; rule != "*" && e.Rule != rule || !strings.Contains(e.Message, want) {
		t.Errorf("want rule %q, %q, got %+v", rule, want, d.Errors)
	}
	if d.PolicyDigest == "" || d.InputDigest == "" {
		t.Errorf("the decision does not say what it is about: %+v", d)
	}
}

func TestCallersEndIsAnErrorAndNoDecision(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	d, err := self(t, "judge").Evaluate(ctx, rule(""), input(t))
	if d != nil || !errors.Is(err, enough) {
		t.Errorf("got %+v, %v", d, err)
	}
}

func TestServeRefusesWhatIsNoRequest(t *testing.T) {
	source := rule("")
	digest, err := source.Digest()
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(map[string]any{"task": "judge", "source": source, "policyDigest": digest, "milliseconds": 60_000})
	if err != nil {
		t.Fatal(err)
	}
	rules, facts := string(b), encodedInput(t)
	var answer bytes.Buffer
	if err := judge.Serve(t.Context(), strings.NewReader(rules+facts), &answer); err != nil || answer.Len() == 0 {
		t.Fatalf("what is one: error %v, answer %q", err, answer.String())
	}
	for _, text := range []string{
		"", "{}", "null", strings.Repeat(" ", 8), `{"unknown":1}`,
		`{"task":"prove","source":{},"policyDigest":"","milliseconds":1000}`, `{"task":"allow","source":{},"policyDigest":"","milliseconds":1000}`,
		rules, rules + "{}", rules + "null", rules + facts + "{}", rules + facts[:len(facts)-1], strings.Replace(rules, "60000", "0", 1) + facts,
		rules + strings.Replace(facts, `"preview"`, `"Preview"`, 1), rules + strings.Replace(facts, `"preview"`, `"preview":false,"preview"`, 1),
		rules + strings.Repeat(" ", policy.MaxInput+5*policy.MaxPolicySize) + facts,
	} {
		answer.Reset()
		if err := judge.Serve(t.Context(), strings.NewReader(text), &answer); err == nil || answer.Len() != 0 {
			t.Errorf("%.200q: error %v, answer %q", text, err, answer.String())
		}
	}
}

func encodedInput(t *testing.T) string {
	t.Helper()
	document, _, err := input(t).Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(document)
}

func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"task":"prove","source":{"modules":{},"config":{}},"policyDigest":"","milliseconds":1000}`))
	f.Add([]byte(`{"task":"judge","source":{"modules":{},"config":{}},"policyDigest":"","milliseconds":1000}{}`))
	f.Fuzz(func(t *testing.T, ask []byte) {
		var answer bytes.Buffer
		if err := judge.Serve(t.Context(), bytes.NewReader(ask), &answer); err != nil && answer.Len() != 0 {
			t.Errorf("an answer beside an error: %q", answer.String())
		}
	})
}

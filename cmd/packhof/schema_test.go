package main

import (
	"encoding/json/v2"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// everything uses every key of packhof.yaml.
const everything = `apiVersion: packhof/v1
kind: Export
channel: plant-1
audience: [gate-aaaabbbbccccdddd]
key: keys/packhof.key
trust: trust
store: .packhof
validFor: 30d
note: all of it
hosts:
  registry.example:5000:
    plainHTTP: true
    ca: ca.pem
scan:
  program: bin/packhof-scan
  timeout: 10m
  memory: 2GiB
artifacts:
  - kind: image
    name: app
    version: "1"
    image: registry.example/app:1
    platforms: [linux/amd64]
    labels: {team: a}
  - name: folder
    version: "1"
    dir: notes
  - name: one
    version: "1"
    file: enrol.json
  - name: web
    version: "1"
    url: https://files.example/a
    sha256: "` + zeros + `"
documents:
  - type: policy
    version: "3"
    file: rules.tar
    critical: true
answers:
  - request: R-1
    outcome: later
    text: soon
withdraws:
  - digest: "sha256:1111111111111111111111111111111111111111111111111111111111111111"
    reason: wrong
    replacement: "sha256:2222222222222222222222222222222222222222222222222222222222222222"
`

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

// Every key of packhof.yaml, misspelt, is an error with its line and a
// suggestion; with a value of the wrong form, an error with its line.
func TestEveryKeyOfTheConfiguration(t *testing.T) {
	l := newLab(t)
	schema := l.schema("export")
	tested := map[string]bool{}
	for i, line := range strings.Split(everything, "\n") {
		indent := line[:len(line)-len(strings.TrimLeft(line, " -"))]
		key, _, ok := strings.Cut(line[len(indent):], ":")
		if !ok || strings.Contains(key, ".") || tested[key] {
			continue
		}
		tested[key] = true
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			c := l.clone(t)
			checkKey(c, i, strings.Replace(line, key, key+"x", 1), "config/unknown-key", fmt.Sprintf("did you mean %q?", key))
			c.cutAfterKey(i, indent+key+": 1.5")
			o := c.run("plan")
			if o.Exit != 2 || !strings.Contains(o.Stderr, "code: config/invalid ") || !strings.Contains(o.Stderr, fmt.Sprintf("packhof.yaml:%d:%d: ", i+1, len(indent)+1)) {
				t.Errorf("exit %d for %q in line %d\n%s", o.Exit, indent+key+": 1.5", i+1, o.Stderr)
			}
		})
	}
	for _, key := range schema.keys() {
		if !tested[key] {
			t.Errorf("the schema has the key %s, which this test lacks", key)
		}
	}
}

func checkKey(l *lab, i int, line, code, hint string) {
	l.T.Helper()
	lines := strings.Split(everything, "\n")
	lines[i] = line
	l.Write("packhof.yaml", strings.Join(lines, "\n"))
	o := l.run("plan")
	if o.Exit != 2 || !strings.Contains(o.Stderr, "code: "+code+" ") || !strings.Contains(o.Stderr, hint) || !strings.Contains(o.Stderr, fmt.Sprintf("packhof.yaml:%d:", i+1)) {
		l.T.Errorf("exit %d for %q in line %d, want %s, %s\n%s", o.Exit, line, i+1, code, hint, o.Stderr)
	}
}

// cutAfterKey writes the configuration with one line replaced, and without the
// lines that belonged to it.
func (l *lab) cutAfterKey(i int, line string) {
	l.T.Helper()
	lines := strings.Split(everything, "\n")
	depth := len(line) - len(strings.TrimLeft(line, " -"))
	rest := lines[i+1:]
	for len(rest) > 0 && len(rest[0])-len(strings.TrimLeft(rest[0], " -")) > depth {
		rest = rest[1:]
	}
	l.Write("packhof.yaml", strings.Join(slices.Concat(lines[:i], []string{line}, rest), "\n"))
}

// schema is as much of a JSON Schema as ours use.
type schema struct {
	Defs                 map[string]schema `json:"$defs"`
	Ref                  string            `json:"$ref"`
	Type                 string            `json:"type"`
	Properties           map[string]schema `json:"properties"`
	AdditionalProperties any               `json:"additionalProperties"`
	Required             []string          `json:"required"`
	Enum                 []any             `json:"enum"`
	Items                *schema           `json:"items"`
}

// UnmarshalJSON takes true for the schema that everything fits.
func (s *schema) UnmarshalJSON(b []byte) error {
	if string(b) == "true" {
		return nil
	}
	type plain schema
	return json.Unmarshal(b, (*plain)(s))
}

func (l *lab) schema(kind string) schema {
	l.T.Helper()
	var s schema
	if err := json.Unmarshal([]byte(l.mustRun("schema", kind).Stdout), &s); err != nil {
		l.T.Fatal(err)
	}
	return s
}

// keys lists the keys of all objects.
func (s schema) keys() []string {
	keys := slices.Collect(maps.Keys(s.Properties))
	for _, def := range s.Defs {
		keys = append(keys, def.keys()...)
	}
	return keys
}

// check finds what in a document is not as the schema has it.
func (s schema) check(defs map[string]schema, path string, document any) (wrong []string) {
	if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
		return defs[name].check(defs, path, document)
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, document) {
		wrong = append(wrong, fmt.Sprintf("%s: %v is not one of %v", path, document, s.Enum))
	}
	switch d := document.(type) {
	case map[string]any:
		for _, name := range s.Required {
			if _, ok := d[name]; !ok {
				wrong = append(wrong, path+" lacks "+name)
			}
		}
		for name, member := range d {
			wrong = append(wrong, s.checkMember(defs, path, name, member)...)
		}
		return append(wrong, s.checkType(path, "object")...)
	case []any:
		for i, item := range d {
			wrong = append(wrong, s.Items.check(defs, fmt.Sprintf("%s[%d]", path, i), item)...)
		}
		return append(wrong, s.checkType(path, "array")...)
	case string:
		return append(wrong, s.checkType(path, "string")...)
	case bool:
		return append(wrong, s.checkType(path, "boolean")...)
	}
	return append(wrong, s.checkType(path, "integer")...)
}

func (s schema) checkType(path, got string) []string {
	if s.Type == got || s.Type == "" {
		return nil
	}
	return []string{fmt.Sprintf("%s is of type %s, want %s", path, got, s.Type)}
}

func (s schema) checkMember(defs map[string]schema, path, name string, member any) []string {
	if property, ok := s.Properties[name]; ok {
		return property.check(defs, path+"."+name, member)
	}
	if s.AdditionalProperties == false {
		return []string{path + " has the unknown " + name}
	}
	return nil
}

// The schemas that packhof prints fit the documents that it reads and writes:
// the packhof.yaml of init, one with every key, packhof.lock, the manifest and
// enrol.json; and they refuse a misspelt key.
func TestSchemas(t *testing.T) {
	l := newLab(t)
	l.exported()
	l.mustRun("init", "-f", "fresh/packhof.yaml")
	l.Write("everything.yaml", everything)
	for _, test := range []struct{ kind, file string }{
		{"export", "fresh/packhof.yaml"}, {"export", "everything.yaml"}, {"lock", "packhof.lock"},
		{"manifest", "medium/plant-1-000001.packhof.json"}, {"enrolment", "enrol.json"},
	} {
		s := l.schema(test.kind)
		var document map[string]any
		asJSON, err := yaml.YAMLToJSON([]byte(l.Read(test.file))) // JSON is YAML too
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(asJSON, &document); err != nil {
			t.Fatal(err)
		}
		for _, wrong := range s.check(s.Defs, test.kind, document) {
			t.Errorf("%s: %s", test.file, wrong)
		}
		document["misspelt"] = true
		if s.check(s.Defs, test.kind, document) == nil {
			t.Errorf("the schema %s takes an unknown key", test.kind)
		}
	}
}

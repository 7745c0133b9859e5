package inspect_test

import (
	"archive/tar"
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/sbom/inspect"
)

func TestTemplatesThatReachForPython(t *testing.T) {
	const evil = "{{ x.__class__ }}"
	inKey := func(path string) []inspect.Finding {
		return []inspect.Finding{{Code: inspect.CodeTemplate, Detail: `chat_template has "__"`, Path: path}}
	}
	whole := func(path string) []inspect.Finding {
		return []inspect.Finding{{Code: inspect.CodeTemplate, Detail: `the template has "__"`, Path: path}}
	}
	for what, c := range map[string]struct {
		name, text string
		findings   []inspect.Finding
	}{
		"a text":                     {"tokenizer_config.json", `{"a":1,"chat_template":"` + evil + `"}`, inKey("")},
		"whatever the name":          {"x", `{"chat_template":"` + evil + `"}`, inKey("")},
		"a list":                     {"tokenizer_config.json", `{"chat_template":[{"name":"default","template":"fine"},{"name":"tools","template":"` + evil + `"}]}`, inKey("")},
		"an object":                  {"processor_config.json", `{"chat_template":{"default":{"text":"` + evil + `"}}}`, inKey("")},
		"deep down":                  {"x.json", `[[{"a":{"chat_template":"` + evil + `"}}]]`, inKey("")},
		"several":                    {"x.json", `{"chat_templates":["` + evil + `"]}`, inKey("")},
		"with escapes":               {"x.json", `{"ch\u0061t_template":"{{ x._\u005fclass }}"}`, inKey("")},
		"the second of two":          {"x.json", `{"chat_template":"fine","chat_template":"` + evil + `"}`, inKey("")},
		"behind NaN":                 {"x.json", `{"a":"\"NaN\\","b":[NaN,Infinity,-Infinity],"chat_template":"` + evil + `"}`, inKey("")},
		"a file":                     {"chat_template.jinja", "{% set y = 1 %}" + evil, whole("")},
		"one of several files":       {"additional_chat_templates/Tools.JINJA", evil, whole("")},
		"a file with a statement":    {"chat_template.jinja", "{% import 'x' as y %}", []inspect.Finding{{Code: inspect.CodeTemplate, Detail: `the template has "import"`}}},
		"a file of another ending":   {"chat_template.txt", evil, whole("")},
		"a file that is a script":    {"chat_template.j2", "#!/bin/sh\n" + evil, append([]inspect.Finding{{Code: inspect.CodeScript}}, whole("")...)},
		"a file that is JSON":        {"chat_template.jinja", `{"a":"` + evil + `"}`, whole("")},
		"a file in an archive":       {"model.tar", string(tarred(t, tar.Header{Name: "m/chat_template.jinja", Uname: evil})), whole("m/chat_template.jinja")},
		"a key in an archive":        {"model.tar", string(tarred(t, tar.Header{Name: "m/a.json", Uname: `{"chat_template":"` + evil + `"}`})), inKey("m/a.json")},
		"a text beside":              {"x.json", `{"chat_template":"fine","name":"__init__"}`, []inspect.Finding{}},
		"a text behind a list":       {"x.json", `[{"a":{"chat_template":["fine"]},"b":"__init__"},"__init__"]`, []inspect.Finding{}},
		"a text above":               {"x.json", `[{"chat_template":"fine"},"__init__"]`, []inspect.Finding{}},
		"a key and no text":          {"x.json", `{"chat_template":null,"a":{"__init__":"__init__"}}`, []inspect.Finding{}},
		"a harmless template":        {"chat_template.jinja", "{% for m in messages %}{{ m['content'] | trim }}{% endfor %}", []inspect.Finding{}},
		"a template without a tag":   {"chat_template.jinja", "please import __this__", []inspect.Finding{}},
		"a text of another name":     {"README.md", evil, []inspect.Finding{}},
		"another text in an archive": {"model.tar", string(tarred(t, tar.Header{Name: "README.md", Uname: evil})), []inspect.Finding{}},
	} {
		t.Run(what, func(t *testing.T) {
			r := look(t, []byte(c.text), c.name, inspect.Limits{})
			if d := cmp.Diff(c.findings, r.Findings); d != "" || r.Unreadable || r.Mismatch {
				t.Errorf("%+v\n(-want +got)\n%s", r, d)
			}
		})
	}
}

func TestTemplatesTooLongToBeSeenWhole(t *testing.T) {
	text := bytes.Repeat([]byte("harmless "), 1<<17)
	if r := look(t, text, "chat_template.jinja", inspect.Limits{}); !r.Has(inspect.CodeTemplate) {
		t.Errorf("%+v", r)
	}
	if r := look(t, text[:1<<20], "chat_template.jinja", inspect.Limits{}); len(r.Findings) > 0 {
		t.Errorf("exactly the limit: %+v", r)
	}
	long := append(append([]byte(`{"chat_template":"`), text...), `__"}`...)
	if r := look(t, long, "x.json", inspect.Limits{}); !r.Has(inspect.CodeTemplate) {
		t.Errorf("the end of a key: %+v", r)
	}
}

package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/internal/problem"
)

// check finds what is wrong with a garden.
func (g *garden) check() error {
	var wrong problem.Fields
	if g.Channel == "" {
		wrong.Add("channel", "there is none", "write  channel:")
	}
	if g.Count > 9 {
		wrong.Add("count", "it is more than 9", "")
	}
	for i, b := range g.Beds {
		if b.Name == "" {
			wrong.Add(fmt.Sprintf("beds[%d]", i), "it has no name", "add  name:")
		}
	}
	return wrong.Err()
}

func loadChecked(t testing.TB, text string) (garden, error) {
	t.Helper()
	var g garden
	_, err := Read(written(t, text), Form{Into: &g, Check: g.check})
	return g, err
}

func TestAllMistakesAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		kind string
		want []string // line:column: what   (fix)
	}{
		"in keys, types and values": {"channel: x\ncuont: 3\ncount: 12\nopen: yes\nbeds:\n- name: a\n- {}\n", "config/invalid", []string{
			`2:1: unknown key "cuont"   (did you mean "count"?)`,
			`3:1: count: it is more than 9`,
			`4:1: open: text stands where true or false belongs`,
			`7:3: beds[1]: it has no name   (add  name:)`,
		}},
		"of one kind": {"channel: x\nchanel: y\nbeds:\n- name: a\n  plant: b\n", "config/unknown-key", []string{
			`2:1: unknown key "chanel"   (did you mean "channel"?)`,
			`5:3: unknown key "plant"   (did you mean "plants"?)`,
		}},
		"in values": {"count: 12\nbeds:\n- {}\n", "config/invalid", []string{
			`1:1: channel: there is none   (write  channel:)`,
			`1:1: count: it is more than 9`,
			`3:3: beds[0]: it has no name   (add  name:)`,
		}},
		"in items of a list": {"channel: x\nbeds:\n- name: a\n  plants: [true, b, 3]\n- name: 7\n", "config/invalid", []string{
			`4:12: beds[0].plants[0]: true or false stands where text belongs   (put it in quotes)`,
			`4:21: beds[0].plants[2]: a number stands where text belongs   (put it in quotes)`,
			`5:3: beds[1].name: a number stands where text belongs   (put it in quotes)`,
		}},
		"and one that is missing elsewhere": {"channel: x\ncuont: 3\nbeds:\n- {}\n- nmae: a\n", "config/invalid", []string{
			`2:1: unknown key "cuont"   (did you mean "count"?)`,
			`4:3: beds[0]: it has no name   (add  name:)`,
			`5:3: unknown key "nmae"   (did you mean "name"?)`,
		}},
		"and one that is missing beside a wrong type": {"open: 1\nbeds: [{}]\n", "config/invalid", []string{
			`1:1: open: a number stands where true or false belongs`,
			`1:1: channel: there is none   (write  channel:)`,
			`2:8: beds[0]: it has no name   (add  name:)`,
		}},
		"in hosts": {"channel: x\nhosts:\n  a.example:5000: {plainhttp: true}\n  b.example: 7\n", "config/invalid", []string{
			`3:20: unknown key "plainhttp"   (did you mean "plainHTTP"?)`,
			`4:3: hosts.b.example: a number stands where a group of keys belongs`,
		}},
	} {
		_, err := loadChecked(t, c.text)
		all, ok := errors.AsType[*Mistakes](err)
		if !ok {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, line := range all.Evidence() {
			got = append(got, strings.TrimPrefix(line, all.File+":"))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if problem.CodeOf(err) != c.kind || all.Error() != fmt.Sprintf("%s has %d mistakes", all.File, len(c.want)) {
			t.Errorf("%s: %s, %v", name, problem.CodeOf(err), err)
		}
	}
}

// What follows from another mistake is none of its own.
func TestEchoesAreNotTold(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a misspelt key is missing, too": {"chanel: x\n", `1:1: unknown key "chanel"`},
		"of an item":                     {"channel: x\nbeds:\n- nmae: a\n", `3:3: unknown key "nmae"`},
		"an item of another form":        {"channel: x\nbeds:\n- a\n", `3:3: beds[0]: text stands where a group of keys belongs`},
		"a file of another form":         {"- x\n", `1:1: the file: a list stands where a group of keys belongs`},
		"a value of another form":        {"channel: x\ncount: [12]\n", `2:1: count: a list stands where a number belongs`},
	} {
		_, err := loadChecked(t, c.text)
		e, ok := errors.AsType[*Mistake](err)
		if !ok || !strings.HasSuffix(e.Error(), ":"+c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

func TestMistakesAreBounded(t *testing.T) {
	text := "channel: x\n"
	for i := range 500 {
		text += fmt.Sprintf("k%d: 1\n", i)
	}
	_, err := loadChecked(t, text)
	all, ok := errors.AsType[*Mistakes](err)
	if !ok || len(all.Evidence()) != maxMistakes || !strings.HasSuffix(all.Error(), "has more than 20 mistakes") {
		t.Errorf("%v", err)
	}
}

// What a mistake left behind of an earlier attempt is not there in the end.
func TestValuesAreFreshAfterMistakes(t *testing.T) {
	g, err := loadChecked(t, "channel: x\nbeds: [{name: a}, {name: b}]\nnobody: 1\n")
	if err == nil || len(g.Beds) != 2 {
		t.Errorf("%v, %+v", err, g)
	}
}

// An error that is not about a field ends the loading as it is.
func TestOtherErrorsOfACheck(t *testing.T) {
	other := errors.Join(problem.Field("channel", "is wrong", ""), errors.New("the disk is broken"))
	if _, err := Read(written(t, "channel: x\n"), Form{Into: new(garden), Check: func() error { return other }}); err != other {
		t.Errorf("got %v", err)
	}
}

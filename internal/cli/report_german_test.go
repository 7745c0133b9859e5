package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/packhof/packhof/internal/problem"
)

func TestReportInGerman(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"known": {
			problem.New("volume/damaged", "x.tar is damaged").With("want:  a").Hint("copy it again"),
			"packhof-gate: Fehler: Bytes der Datei fehlen oder sind nicht die richtigen.\n  erwartet:  a\nWortlaut: x.tar is damaged\nAbhilfe: den Datenträger erneut beschreiben lassen\n" +
				"Code: volume/damaged   Exit-Code 11   (packhof-gate help errors volume/damaged)\n",
		},
		"for another gate": {
			problem.New("audience/other", "the bundle is meant for another gate").With("for:   gate-a", "here:  gate-b"),
			"packhof-gate: Fehler: Die Lieferung ist für andere Gates bestimmt.\n  für:   gate-a\n  hier:  gate-b\nWortlaut: the bundle is meant for another gate\n" +
				"Abhilfe: zu dem Gate bringen, für das sie bestimmt ist, oder den Absender bitten, dieses Gate aufzunehmen: packhof trust add-gate enrol.json\nCode: audience/other   Exit-Code 12   (packhof-gate help errors audience/other)\n",
		},
		"a remedy in English": {
			problem.New("case/waiting", "case 3 waits").Hint("ask somebody"),
			"packhof-gate: Fehler: Der Vorgang wartet auf eine Freigabe.\nWortlaut: case 3 waits\nAbhilfe (englisch): ask somebody\nCode: case/waiting   Exit-Code 13   (packhof-gate help errors case/waiting)\n",
		},
		"a command": {
			problem.New("case/waiting", "case 3 waits").Hint("packhof-gate show 3"),
			"packhof-gate: Fehler: Der Vorgang wartet auf eine Freigabe.\nWortlaut: case 3 waits\nAbhilfe: packhof-gate show 3\nCode: case/waiting   Exit-Code 13   (packhof-gate help errors case/waiting)\n",
		},
		"unknown": {
			problem.New("no/such", "nobody knows"),
			"packhof-gate: Fehler: nobody knows\nCode: no/such   Exit-Code 1   (packhof-gate help errors no/such)\n",
		},
	} {
		var out strings.Builder
		app := &App{Name: "packhof-gate", Stderr: &out, German: true}
		app.report(c.err)
		if out.String() != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, out.String(), c.want)
		}
	}
	var out strings.Builder
	app := &App{Name: "packhof-gate", Stderr: &out, German: true, Format: "json"}
	app.report(errors.New("an error"))
	if !strings.Contains(out.String(), `"error":"an error"`) {
		t.Errorf("%s", out.String())
	}
}

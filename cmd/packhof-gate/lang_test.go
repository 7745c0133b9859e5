package main

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/packhof/packhof/internal/cli"
)

// TestGerman: with --lang de all of a bundle's way is told in German, and
// nothing of the frame is left in English.
func TestGerman(t *testing.T) {
	t.Parallel()
	l := arrived(t)
	for _, step := range []struct {
		run  []string
		want []string
	}{
		{[]string{"inspect", bundleFile}, []string{"Lieferung ", "echt ", "ja: unterschrieben von release@example", "ART ", "Vorschau des Ergebnisses", "ZU ENTSCHEIDEN  nicht erfüllt: ", "Abhilfe: "}},
		{[]string{"verify", bundleFile}, []string{"echt, aktuell und vollständig: plant-1, Nummer 1"}},
		{[]string{"receive", bundleFile}, []string{"Vorgang 1: plant-1, Nummer 1: wartet", "Ergebnis: zu entscheiden; Sperrbefunde: 0, zu entscheiden: 1, Hinweise: 0", "weiter:  packhof-gate show 1, dann  packhof-gate approve 1"}},
		{[]string{"list"}, []string{"VORGANG ", "wartet", "0 von 1"}},
		{[]string{"show", "1"}, []string{"Dateien ", "neu", "fehlt", "depot als notes:1", "unterschrieben von", "2 Dateien untersucht", "eingegangen", "WANN"}},
		{[]string{"approve", "1", "--as", "anna", "--reason", "nur Notizen", "--yes", "--review", "DIGEST"}, []string{"Vorgang 1: plant-1, Nummer 1: freigegeben", "weiter:  packhof-gate release 1"}},
		{[]string{"release", "1", "--dry-run"}, []string{"ZIEL ", "neu ", "Probelauf: nichts wurde geladen"}},
		{[]string{"release", "1"}, []string{"geladen", "SO HOLEN ES DIE RECHNER AB", "weiter:  die Rechner dem Zertifikat"}},
		{[]string{"show", "1"}, []string{"1 Name an depot", "1 Artefakt an depot, dort geprüft", "1 Ziel, dort geprüft", "anna: freigegeben"}},
		{[]string{"doctor"}, []string{"Eigene Regeln ", "Prüfprotokoll ", "in Ordnung", "keiner hängt", "nur für den Eigentümer"}},
		{[]string{"trust", "show"}, []string{"Vertrauensanker Version 2", "Fingerabdruck", "1 von 1"}},
		{[]string{"user", "list"}, []string{"NAME", "ROLLEN"}},
		{[]string{"receipt", "receipt.json"}, []string{"1 Lieferung ist genannt, nach dem Inhalt, der hier ist, ", ": geladen: 1"}},
		{[]string{"version"}, []string{"liest packhof.bundle/"}},
	} {
		for i, arg := range step.run {
			if arg == "DIGEST" {
				step.run[i] = l.review("1")
			}
		}
		o := l.must(append([]string{"--lang", "de"}, step.run...)...)
		for _, want := range step.want {
			if !strings.Contains(o.Stdout, want) {
				t.Errorf("%s does not say %q:\n%s", strings.Join(step.run, " "), want, o.Stdout)
			}
		}
		for _, left := range []string{"next:", "hint:", "serial ", "verdict", " blobs,", "signed by", "DESTINATION", "awaiting"} {
			if strings.Contains(o.Stdout, left) {
				t.Errorf("%s still says %q:\n%s", strings.Join(step.run, " "), left, o.Stdout)
			}
		}
	}
	for _, wrong := range [][]string{{"show"}, {"show", "--nothing"}, {"approve", "1"}, {"shov"}, {"approve", "1", "--as"}} {
		c := l.Command("packhof-gate", wrong...)
		c.Env = append(c.Env, "PACKHOF_LANG=de")
		if o := l.Finish(c); o.Exit != 2 || !strings.Contains(o.Stderr, "Fehler: Die Befehlszeile stimmt nicht.") {
			t.Errorf("%q: exit %d\n%s", wrong, o.Exit, o.Stderr)
		}
	}
	failed := l.run("--lang", "de", "show", "7")
	for _, want := range []string{"packhof-gate: Fehler: Diesen Vorgang gibt es nicht.", "Abhilfe: packhof-gate list", "Code: case/unknown   Exit-Code 2 "} {
		if failed.Exit != 2 || !strings.Contains(failed.Stderr, want) {
			t.Errorf("exit %d, does not say %q:\n%s", failed.Exit, want, failed.Stderr)
		}
	}
}

// TestAnswers: yes and no are understood in each language.
func TestAnswers(t *testing.T) {
	for answer, want := range map[string]bool{"yes": true, "y": true, "ja": true, "J": true, " ja ": true, "no": false, "nein": false, "": false, "yesterday": false} {
		if got := isYes(answer); got != want {
			t.Errorf("%q: %v", answer, got)
		}
	}
	s := &site{app: &cli.App{Now: nil, Stdin: strings.NewReader("yes\n"), Stderr: io.Discard}}
	if yes, asked, err := s.confirmed("?"); yes || asked || err != nil {
		t.Errorf("who is no terminal was asked: %v, %v, %v", yes, asked, err)
	}
}

// TestReleaseSaysWhereItIs, and what comes next; a plan says how much it would
// load.
func TestReleaseSaysWhereItIs(t *testing.T) {
	t.Parallel()
	l := waiting(t)
	l.approve("1")
	plan := l.must("release", "1", "--dry-run").Stdout
	if !strings.Contains(plan, "LOADS") || !strings.Contains(plan, " blobs, ") || strings.Contains(plan, " 0 B") {
		t.Errorf("the plan does not say how much it loads:\n%s", plan)
	}
	served := l.serve()
	released := l.must("release", "1").Stdout
	host := strings.TrimPrefix(served.address, "https://")
	for _, want := range []string{"https://" + host + "/files/notes/1/", "oras pull --ca-file gate.pem " + host + "/notes@sha256:", "next:  have the clients trust data/tls/cert.pem, as gate.pem"} {
		if !strings.Contains(released, want) {
			t.Errorf("does not say %q:\n%s", want, released)
		}
	}
	if kept := l.must("release", "1", "--dry-run").Stdout; !strings.Contains(kept, "keep") || !strings.Contains(kept, " 0 B") {
		t.Errorf("a second release would load again:\n%s", kept)
	}
	second := l.run("serve", "--listen", "127.0.0.1:0")
	if second.Exit != 1 || !strings.Contains(second.Stderr, "gate/busy") || !strings.Contains(second.Stderr, "at:  "+served.address) {
		t.Errorf("a second serve: exit %d\n%s", second.Exit, second.Stderr)
	}
	served.Signal(syscall.SIGTERM)
	if o := served.End(); o.Exit != 0 {
		t.Errorf("serve: exit %d\n%s", o.Exit, o.Stderr)
	}
	if _, err := os.Stat(l.Path("data/gate.sock")); err == nil {
		t.Error("the socket is still there")
	}
}

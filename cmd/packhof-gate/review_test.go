package main

import (
	"strings"
	"testing"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/policy"
)

// speaking is a site that says something in a language.
func speaking(t *testing.T, lang string) *site {
	t.Helper()
	s := &site{app: &cli.App{Now: testkit.Noon}}
	if err := (language{s}).Set(lang); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestVerdictLine: nobody is asked to approve what is denied, and what a later
// serial has overtaken says so before anything else.
func TestVerdictLine(t *testing.T) {
	later := &gate.ReviewLater{Case: 6, Epoch: 1, Serial: 6}
	for name, c := range map[string]struct {
		lang   string
		review gate.Review
		want   string
	}{
		"allowed":             {"en", gate.Review{Verdict: policy.Allow, Needed: 1}, "verdict allow; 1 person has to approve\n"},
		"denied":              {"en", gate.Review{Verdict: policy.Deny, Needed: 1}, "verdict deny\n"},
		"no verdict":          {"en", gate.Review{Verdict: policy.Failed, Needed: 2}, "verdict error\n"},
		"denied, in German":   {"de", gate.Review{Verdict: policy.Deny, Needed: 1}, "Ergebnis: gesperrt\n"},
		"overtaken":           {"en", gate.Review{Verdict: policy.Allow, Later: later}, "verdict allow; nobody has to approve\n! overtaken by serial 6, which is loaded already as case 6\n  approving moves no name that a later serial has set\n"},
		"overtaken in German": {"de", gate.Review{Verdict: policy.Allow, Later: later}, "Ergebnis: zulässig; niemand muss freigeben\n! überholt von Nummer 6, die schon geladen ist, als Vorgang 6\n  eine Freigabe ändert keinen Namen, den eine spätere Nummer gesetzt hat\n"},
	} {
		var b strings.Builder
		page := reviewPage{Review: c.review}
		page.printVerdict(&b, speaking(t, c.lang))
		if b.String() != c.want {
			t.Errorf("%s:\n%swanted\n%s", name, b.String(), c.want)
		}
	}
}

// TestChangeOfAnOvertakenCase is none to something newer.
func TestChangeOfAnOvertakenCase(t *testing.T) {
	a := gate.ReviewArtifact{Change: "updated", FromVersion: "2026-14"}
	page := reviewPage{}
	if got := page.change(speaking(t, "en"), &a); got != "updated from 2026-14" {
		t.Errorf("%q", got)
	}
	page.Later = &gate.ReviewLater{}
	if got := page.change(speaking(t, "de"), &a); got != "älter als 2026-14" {
		t.Errorf("%q", got)
	}
}

// TestWhatACaseWaitsFor: numbers of volumes where they are known, bytes where
// they are not, and what to do where nothing is lacking.
func TestWhatACaseWaitsFor(t *testing.T) {
	waits := func(progress int64, lacks *gate.Lacking) *gate.Case {
		return &gate.Case{Summary: gate.Summary{ID: 4, State: gate.Received, Size: 2048, Waiting: true}, Progress: progress, Lacks: lacks}
	}
	const want, receive = "packhof-gate receive MEDIUM  goes on with it;  packhof-gate want 4 FILE  lists what is lacking", "packhof-gate receive BUNDLE  goes on with it"
	for _, c := range []struct {
		of              *gate.Case
		english, german string
		next            string
	}{
		{waits(1024, nil), "it waits for other volumes: 1.0 KiB of 2.0 KiB are lacking", "es fehlen weitere Datenträgerteile: 1,0 KiB von 2,0 KiB", want},
		{waits(1024, &gate.Lacking{Volumes: []int{2}, Of: 2}), "it waits for volume 2 of 2; 1.0 KiB of 2.0 KiB are lacking", "es fehlt Teil 2 von 2: 1,0 KiB von 2,0 KiB", want},
		{waits(1024, &gate.Lacking{Volumes: []int{1, 3}, Of: 3}), "it waits for volumes 1, 3 of 3; 1.0 KiB of 2.0 KiB are lacking", "es fehlen die Teile 1, 3 von 3: 1,0 KiB von 2,0 KiB", want},
		{waits(2048, nil), "all of it is here, and it has not gone on: any volume of it makes it do so", "alles davon ist hier, und er ist nicht weitergegangen: irgendein Teil davon bringt ihn weiter", receive},
	} {
		en, de := speaking(t, "en"), speaking(t, "de")
		if got := en.awaited(c.of); got != c.english {
			t.Errorf("%q instead of %q", got, c.english)
		}
		if got := de.awaited(c.of); got != c.german {
			t.Errorf("%q instead of %q", got, c.german)
		}
		if got := en.nextShown(c.of); got != c.next {
			t.Errorf("next: %q instead of %q", got, c.next)
		}
	}
}

// TestListSaysWhatIsOvertaken, in the words of each language.
func TestListSaysWhatIsOvertaken(t *testing.T) {
	row := gate.Summary{State: gate.Awaiting, Later: &gate.ReviewLater{Epoch: 1, Serial: 6}}
	if got := speaking(t, "en").stateOf(&row); got != "awaiting approval, overtaken by serial 6" {
		t.Errorf("%q", got)
	}
	if got := speaking(t, "de").stateOf(&row); got != "wartet, überholt von Nummer 6" {
		t.Errorf("%q", got)
	}
}

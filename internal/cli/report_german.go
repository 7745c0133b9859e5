package cli

import (
	"fmt"
	"strings"
)

// report prints an error in the language of the program. Whoever reads JSON
// reads codes, so that is the same in each.
func (a *App) report(err error) {
	if !a.German || a.Format == "json" {
		Report(a.Stderr, a.Name, err, a.Format == "json")
		return
	}
	r := reportOf(err)
	german, known := German(r.Code)
	if !known {
		german.Meaning = r.Error
	}
	atPrompt := isAtPrompt(err)
	if atPrompt {
		german = GermanEntry{Meaning: "abgebrochen"}
	}
	fmt.Fprintf(a.Stderr, "%s: Fehler: %s\n", a.Name, german.Meaning)
	for _, line := range GermanEvidence(r.Evidence) {
		fmt.Fprintf(a.Stderr, "  %s\n", line)
	}
	if known && !atPrompt {
		fmt.Fprintf(a.Stderr, "Wortlaut: %s\n", r.Error)
	}
	remedy, translated := GermanRemedy(r.Code, r.Hint)
	switch {
	case atPrompt:
	case translated:
		fmt.Fprintf(a.Stderr, "Abhilfe: %s\n", remedy)
	case strings.HasPrefix(r.Hint, "packhof"): // a command is the same in each language
		fmt.Fprintf(a.Stderr, "Abhilfe: %s\n", r.Hint)
	case r.Hint != "":
		fmt.Fprintf(a.Stderr, "Abhilfe (englisch): %s\n", r.Hint)
	}
	fmt.Fprintf(a.Stderr, "Code: %s   Exit-Code %d   (%s help errors %s)\n", r.Code, r.Exit, a.Name, r.Code)
}

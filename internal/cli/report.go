package cli

import (
	"encoding/json/v2"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/packhof/packhof/internal/problem"
)

// Report prints an error as every command does: what and which object, the
// evidence, one remedy, the stable code. With asJSON the same as one object.
func Report(w io.Writer, program string, err error, asJSON bool) {
	r := reportOf(err)
	if asJSON {
		line, encodeErr := json.Marshal(r)
		if encodeErr == nil {
			fmt.Fprintf(w, "%s\n", line)
			return
		}
	}
	fmt.Fprintf(w, "%s: error: %s\n", program, r.Error)
	for _, line := range r.Evidence {
		fmt.Fprintf(w, "  %s\n", line)
	}
	if r.Hint != "" {
		fmt.Fprintf(w, "hint: %s\n", r.Hint)
	}
	fmt.Fprintf(w, "code: %s   exit %d   (%s help errors %s)\n", r.Code, r.Exit, program, r.Code)
}

// report is the error document of "-o json".
type report struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Error      string   `json:"error"`
	Evidence   []string `json:"evidence"`
	Hint       string   `json:"hint"`
	Code       string   `json:"code"`
	Exit       int      `json:"exit"`
}

// maxLine is how many characters of an error, or of a line of its evidence, are
// told: what is wrong may be as long as what it is about.
const maxLine = 4000

func reportOf(err error) report {
	r := report{APIVersion: APIVersion, Kind: "Error", Code: CodeOf(err), Exit: ExitOf(err), Error: Shorten(clean(err.Error()), maxLine), Evidence: []string{}}
	if r.Code == "interrupted" {
		r.Error = "interrupted"
	}
	for _, line := range problem.EvidenceOf(err) {
		r.Evidence = append(r.Evidence, Shorten(clean(line), maxLine))
	}
	r.Hint = clean(problem.RemedyOf(err))
	if entry, ok := Lookup(r.Code); ok && r.Hint == "" && !isAtPrompt(err) {
		r.Hint = entry.Remedy
	}
	return r
}

// APIVersion heads every document that a command prints as JSON.
const APIVersion = "packhof/v1"

// clean makes one line of text safe for a terminal: what an artifact or a
// server says may hold escape sequences and bidi marks.
func clean(s string) string {
	return printable(strings.ReplaceAll(strings.TrimSpace(s), "\n", "; "))
}

// printable replaces what could act on a terminal. A line feed, which a name may
// have, is written as in Go.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return '?'
	}, strings.ReplaceAll(strings.ToValidUTF8(s, "?"), "\n", `\n`))
}

// Clean is clean for whoever prints text that an artifact controls.
func Clean(s string) string { return clean(s) }

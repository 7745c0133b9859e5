package main

import (
	"io"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
)

// What a bundle says besides its artifacts. All of it is text of the sender.

func (s *site) printDocuments(w io.Writer, documents []gate.ReviewDocument) {
	var rows [][]string
	for _, d := range documents {
		critical := ""
		if d.Critical {
			critical = s.say("critical")
		}
		rows = append(rows, []string{d.Type, d.Version, d.Digest.Short(), s.words.Size(d.Size), s.word("document", d.State), critical})
	}
	s.printRows(w, s.heads("DOCUMENT", "VERSION", "DIGEST", "SIZE", "STATE", ""), rows)
}

func (s *site) printAnswers(w io.Writer, answers []bundle.Answer) {
	var rows [][]string
	for _, a := range answers {
		rows = append(rows, []string{a.Request, s.word("answer", a.Outcome), a.Text})
	}
	s.printRows(w, s.heads("REQUEST", "OUTCOME", "ANSWER"), rows)
}

func (s *site) printWithdrawals(w io.Writer, withdrawals []gate.ReviewWithdrawal) {
	var rows [][]string
	for _, x := range withdrawals {
		replacement, released := s.say("nothing"), s.say("nowhere")
		if x.Replacement != nil {
			replacement = x.Replacement.Short()
		}
		if len(x.Released) > 0 {
			released = strings.Join(x.Released, ", ")
		}
		rows = append(rows, []string{x.Digest.Short(), replacement, released, x.Reason})
	}
	s.printRows(w, s.heads("WITHDRAWN", "REPLACED BY", "RELEASED HERE AS", "REASON"), rows)
}

func (s *site) printRows(w io.Writer, head []string, rows [][]string) {
	if len(rows) > 0 {
		cli.Table(w, append([][]string{{}, head}, rows...))
	}
}

// printClaimed is the same before anything was judged.
func (s *site) printClaimed(w io.Writer, c *bundle.Claims) {
	var documents []gate.ReviewDocument
	for _, d := range c.Documents {
		documents = append(documents, gate.ReviewDocument{Type: d.Type, Version: d.Version, Digest: d.Blob, Critical: d.Critical, State: gate.DocumentClaimed})
	}
	var withdrawals []gate.ReviewWithdrawal
	for _, x := range c.Withdraws {
		withdrawals = append(withdrawals, gate.ReviewWithdrawal{Digest: x.Digest, Reason: x.Reason, Replacement: x.Replacement})
	}
	s.printDocuments(w, documents)
	s.printAnswers(w, c.Answers)
	s.printWithdrawals(w, withdrawals)
}

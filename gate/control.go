package gate

import (
	"context"
	"fmt"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
)

// What becomes of a document of a control bundle.
const (
	DocumentInForce = "in force"    // trust: it came in the head, which was judged by its own signatures
	DocumentKept    = "not applied" // stored with the case, and not applied by this version
	DocumentClaimed = "claimed"     // as a bundle says that nobody has judged
)

// ReviewDocument is a document of a control bundle, with what becomes of it.
type ReviewDocument struct {
	Type     string        `json:"type"`
	Version  string        `json:"version"`
	Digest   bundle.Digest `json:"digest"`
	Size     int64         `json:"size"`
	Critical bool          `json:"critical"`
	State    string        `json:"state"` // in force or not applied
}

// documentState is what this version makes of a document. Trust documents are
// those of the head: a manifest that is valid names no other.
func documentState(d bundle.Document) string {
	if d.Type == bundle.DocumentTrust || d.Type == bundle.DocumentRevocations {
		return DocumentInForce
	}
	return DocumentKept
}

// checkDocuments refuses a bundle with a document that must be applied and that
// this version does not know how to apply.
func checkDocuments(m *bundle.Manifest) error {
	for _, d := range m.Documents {
		if d.Critical && documentState(d) != DocumentInForce {
			return problem.New("bundle/critical-document", "the bundle needs the document %s, version %s, applied, which this version of the gate cannot do", d.Type, d.Version).
				With("document:  "+d.Blob.String(), fmt.Sprintf("applied:   %s, %s", bundle.DocumentTrust, bundle.DocumentRevocations)).
				Hint("trust documents that it brought are in force; for the rest use a later version of packhof-gate")
		}
	}
	return nil
}

func reviewDocuments(m *bundle.Manifest) []ReviewDocument {
	var list []ReviewDocument
	for _, d := range m.Documents {
		blob, _ := m.Blob(d.Blob) // a valid manifest names it
		list = append(list, ReviewDocument{Type: d.Type, Version: d.Version, Digest: d.Blob, Size: blob.Size, Critical: d.Critical, State: documentState(d)})
	}
	return list
}

// ReviewWithdrawal is a digest that a bundle withdraws, and what was released
// here under it.
type ReviewWithdrawal struct {
	Digest      bundle.Digest  `json:"digest"`
	Reason      string         `json:"reason"` // untrusted text
	Replacement *bundle.Digest `json:"replacement"`
	Released    []string       `json:"released"` // destination and name; by this channel alone
}

func withdrawnSubject(channel string) subject { return subject("withdrawn " + channel) }

// withdraw notes what an accepted bundle withdraws. It marks and removes
// nothing; what was said first of a digest stays.
func (t *tx) withdraw(ctx context.Context, id CaseID, m *bundle.Manifest) error {
	if len(m.Withdraws) == 0 {
		return nil
	}
	if err := t.change(ctx, withdrawnSubject(m.Channel)); err != nil {
		return err
	}
	for _, w := range m.Withdraws {
		replacement := ""
		if w.Replacement != nil {
			replacement = w.Replacement.String()
		}
		if _, err := t.ExecContext(ctx, `INSERT INTO withdrawn (channel, digest, reason, replacement, case_id, since) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			m.Channel, w.Digest.String(), w.Reason, replacement, id, seconds(t.now)); err != nil {
			return err
		}
	}
	return nil
}

// reviewWithdrawals tells of what a bundle withdraws which names of its channel
// stand for it.
func reviewWithdrawals(ctx context.Context, q queryer, m *bundle.Manifest) ([]ReviewWithdrawal, error) {
	var list []ReviewWithdrawal
	for _, w := range m.Withdraws {
		released, err := rowsOf(ctx, q, func(s scanner) (string, error) {
			var destination string
			var n Name
			err := s.Scan(&destination, &n.Repository, &n.Tag)
			return destination + ": " + n.String(), err
		}, `SELECT n.destination, n.repository, n.tag FROM name n JOIN cases c ON c.id = n.case_id
			WHERE n.digest = ? AND c.channel = ? ORDER BY n.destination, n.repository, n.tag`, w.Digest.String(), m.Channel)
		if err != nil {
			return nil, err
		}
		list = append(list, ReviewWithdrawal{Digest: w.Digest, Reason: w.Reason, Replacement: w.Replacement, Released: append([]string{}, released...)})
	}
	return list, nil
}

// withdrawnReason is why a channel withdrew a digest; "" where it did not.
func withdrawnReason(ctx context.Context, q queryer, channel string, d bundle.Digest) (string, error) {
	reasons, err := rowsOf(ctx, q, func(s scanner) (reason string, err error) { return reason, s.Scan(&reason) },
		`SELECT reason FROM withdrawn WHERE channel = ? AND digest = ?`, channel, d.String())
	if err != nil || len(reasons) == 0 {
		return "", err
	}
	return reasons[0], nil
}

// withdrawnNames counts, by case, the names that stand for something that the
// case's channel has withdrawn.
func withdrawnNames(ctx context.Context, q queryer) (map[CaseID]int, error) {
	counts := map[CaseID]int{}
	_, err := rowsOf(ctx, q, func(s scanner) (id CaseID, err error) {
		var n int
		err = s.Scan(&id, &n)
		counts[id] = n
		return id, err
	}, `SELECT n.case_id, count(*) FROM name n JOIN cases c ON c.id = n.case_id
		JOIN withdrawn w ON w.channel = c.channel AND w.digest = n.digest GROUP BY n.case_id`)
	return counts, err
}

package bundle

import (
	"encoding/json/jsontext"
	"maps"
	"regexp"
	"slices"
	"strconv"
)

// Limits of what a manifest says besides its content.
const (
	maxNotices        = 1000 // answers, withdrawn digests, and documents, of each
	maxExtensions     = 64
	maxExtensionValue = 64 << 10 // bytes of canonical JSON
)

// Outcome is what became of a request.
type Outcome string

// What became of a request: it comes with this bundle, it comes later, or it
// does not come.
const (
	OutcomeDelivered Outcome = "delivered"
	OutcomeLater     Outcome = "later"
	OutcomeDeclined  Outcome = "declined"
)

// Answer answers a request that a gate has sent out.
type Answer struct {
	Request string  `json:"request"` // as the gate named it
	Outcome Outcome `json:"outcome"`
	Text    string  `json:"text,omitempty"` // untrusted text
}

// Withdrawal says that something which was sent before must not be used any
// more. It removes nothing by itself.
type Withdrawal struct {
	Digest      Digest  `json:"digest"` // root of an artifact, or a blob
	Reason      string  `json:"reason"` // untrusted text
	Replacement *Digest `json:"replacement,omitempty"`
}

// validateNotices checks answers and withdrawals.
func (m *Manifest) validateNotices() error {
	if len(m.Answers) > maxNotices || len(m.Withdraws) > maxNotices || len(m.Documents) > maxNotices {
		return invalid("%d answers, %d withdrawn digests and %d documents; at most %d of each", len(m.Answers), len(m.Withdraws), len(m.Documents), maxNotices)
	}
	for i, a := range m.Answers {
		if err := CheckAnswer(a); err != nil {
			return invalid("answers: %w", err)
		}
		if slices.ContainsFunc(m.Answers[:i], func(b Answer) bool { return b.Request == a.Request }) {
			return invalid("the request %.60q is answered twice", a.Request)
		}
	}
	for i, w := range m.Withdraws {
		if err := CheckWithdrawal(w); err != nil {
			return invalid("withdraws: %w", err)
		}
		if i > 0 && m.Withdraws[i-1].Digest.Compare(w.Digest) >= 0 {
			return invalid("what is withdrawn is not sorted, or %s is there twice", w.Digest)
		}
		for _, a := range m.Artifacts {
			if a.Root.Digest == w.Digest {
				return invalid("it withdraws the artifact %.200q, which it brings", a.Name)
			}
		}
	}
	return nil
}

// CheckAnswer says what is wrong with an answer; nil if nothing is.
func CheckAnswer(a Answer) error {
	if err := CheckWord(a.Request); err != nil {
		return err
	}
	if !slices.Contains([]Outcome{OutcomeDelivered, OutcomeLater, OutcomeDeclined}, a.Outcome) {
		return invalidWord("the outcome %.60q is none of delivered, later and declined", string(a.Outcome))
	}
	if a.Text == "" {
		return nil
	}
	return CheckWord(a.Text)
}

// CheckWithdrawal says what is wrong with a withdrawal; nil if nothing is.
func CheckWithdrawal(w Withdrawal) error {
	switch {
	case w.Digest.IsZero():
		return invalidWord("the digest %q withdraws nothing", w.Digest.String())
	case w.Replacement != nil && *w.Replacement == w.Digest:
		return invalidWord("%q would replace itself", w.Digest.String())
	}
	return CheckWord(w.Reason)
}

// Document types that this program knows; it applies those of trust, since the
// head brings them.
const (
	DocumentTrust         = "trust"
	DocumentRevocations   = "revocations"
	DocumentPolicy        = "policy"
	DocumentVulnerability = "vulnerability-data"
	DocumentDrivers       = "driver-table"
	DocumentAnswers       = "answers"
)

// DocumentTypes lists every type of document that the format names.
func DocumentTypes() []string {
	return []string{DocumentTrust, DocumentRevocations, DocumentPolicy, DocumentVulnerability, DocumentDrivers, DocumentAnswers}
}

var documentTypeForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,62}[a-z0-9])?$`)

// ValidDocumentType reports whether s can be the type of a document.
func ValidDocumentType(s string) bool { return documentTypeForm.MatchString(s) }

func (m *Manifest) validateDocuments() error {
	for i, d := range m.Documents {
		if _, ok := m.Blob(d.Blob); !ok || !ValidDocumentType(d.Type) || CheckWord(d.Version) != nil {
			return invalid("document %.60q, version %.60q, is not in the bundle", d.Type, d.Version)
		}
		for kind, named := range map[string]Versioned{DocumentTrust: m.TrustRoot, DocumentRevocations: m.Revocations} {
			if d.Type == kind && (d.Blob != named.Digest || d.Version != strconv.FormatInt(named.Version, 10)) {
				return invalid("the document %s, version %.60q, is not the one that the manifest names", d.Type, d.Version)
			}
		}
		if slices.ContainsFunc(m.Documents[:i], func(b Document) bool { return b.Type == d.Type && b.Version == d.Version }) {
			return invalid("the document %.60q, version %.60q, is there twice", d.Type, d.Version)
		}
	}
	return nil
}

var extensionForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,98}[a-z0-9])?$`)

// validateExtensions refuses unknown critical extensions. Of any other only
// name and size are looked at.
func (m *Manifest) validateExtensions() error {
	if len(m.Extensions) > maxExtensions {
		return invalid("%d extensions, more than %d", len(m.Extensions), maxExtensions)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Extensions)) {
		ext := m.Extensions[name]
		if ext.Critical {
			return unknownExtension(name)
		}
		if !extensionForm.MatchString(name) || len(ext.Value) > maxExtensionValue || ext.Value.Kind() == jsontext.KindInvalid {
			return invalid("extension %.100q: the name is 1 to 100 of a-z, 0-9, dots and hyphens, and the value JSON of at most %d bytes", name, maxExtensionValue)
		}
	}
	return nil
}

// Unknown lists the extensions that are ignored, sorted.
func (m *Manifest) Unknown() []string { return slices.Sorted(maps.Keys(m.Extensions)) }

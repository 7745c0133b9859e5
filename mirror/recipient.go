package mirror

import (
	"fmt"
	"slices"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/agefile"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/signing"
)

// Recipients finds whom volumes are encrypted to: gates of an audience, by
// what the trust root says of them, and recipients as they are (age1…). The
// result is sorted, each once, so that the same words give the same volumes.
func Recipients(to, audience []string, root *signing.Root) ([]agefile.Recipient, error) {
	var texts []string
	for _, name := range to {
		text := name
		if bundle.ValidGateID(name) {
			var err error
			if text, err = recipientOf(name, audience, root); err != nil {
				return nil, err
			}
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	texts = slices.Compact(texts)
	if len(texts) > agefile.MaxRecipients {
		return nil, problem.New("encrypt/recipient", "there are %d recipients, more than %d", len(texts), agefile.MaxRecipients)
	}
	var list []agefile.Recipient
	for _, text := range texts {
		r, err := agefile.ParseRecipient(text)
		if err != nil {
			return nil, notRecipient(text, err)
		}
		list = append(list, r)
	}
	return list, nil
}

// notRecipient refuses text. What may be a private key it does not repeat.
func notRecipient(text string, err error) error {
	if strings.Contains(strings.ToUpper(text), "SECRET") {
		return problem.New("encrypt/recipient", "what is to be encrypted to is a private key").Hint("give its public half, which begins with age1, and keep the private one where nobody sees it")
	}
	return problem.New("encrypt/recipient", "volumes cannot be encrypted to %.80q: %w", text, err).
		Hint("name a gate of the trust root, as in  packhof trust show, or a recipient that begins with age1")
}

func recipientOf(id string, audience []string, root *signing.Root) (string, error) {
	if !slices.Contains(audience, id) {
		return "", problem.New("encrypt/other-gate", "the bundle is not meant for %s, which would refuse it", id).
			With(fmt.Sprintf("meant for:  %s", strings.Join(audience, ", ")))
	}
	if root == nil {
		return "", problem.New("encrypt/no-recipient", "nothing here says what to encrypt to for %s", id).Hint("name the recipient itself, which begins with age1, or the folder with the trust root")
	}
	gate, ok := root.Gate(id)
	if !ok || gate.Recipient == "" {
		return "", problem.New("encrypt/no-recipient", "the trust root has no recipient of %s to encrypt to", id).
			Hint("bring its new enrol.json here, then  packhof trust add-gate enrol.json; the gate makes one when its next version is started")
	}
	return gate.Recipient, nil
}

// warnOfLocked tells when volumes are encrypted and a gate of the audience
// cannot open them.
func (e *Exporter) warnOfLocked(l *Lock) {
	if len(e.Recipients) == 0 {
		return
	}
	for _, id := range l.Audience {
		gate, _ := e.Trust.Trust.Root().Gate(id)
		if !slices.ContainsFunc(e.Recipients, func(r agefile.Recipient) bool { return r.String() == gate.Recipient }) {
			e.warn("the bundle is meant for %s too, which cannot open these volumes: they are not encrypted to it", id)
		}
	}
}

// textsOf writes recipients down.
func textsOf(recipients []agefile.Recipient) []string {
	var texts []string
	for _, r := range recipients {
		texts = append(texts, r.String())
	}
	return texts
}

package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// DocumentSpec is a document that a control bundle carries. The trust documents
// are taken from the trust folder; every other one is a file.
type DocumentSpec struct {
	Type     string `json:"type" jsonschema_description:"trust, revocations, policy, vulnerability-data, driver-table or answers"`
	Version  string `json:"version,omitempty" jsonschema_description:"of a file; trust documents have their own"`
	File     string `json:"file,omitempty" jsonschema_description:"a file on this machine; not for trust and revocations"`
	Critical bool   `json:"critical,omitempty" jsonschema_description:"a gate that cannot apply it must refuse the bundle"`
}

// AnswerSpec answers a request of a gate.
type AnswerSpec struct {
	Request string         `json:"request" jsonschema_description:"the request, as the gate named it"`
	Outcome bundle.Outcome `json:"outcome" jsonschema:"enum=delivered,enum=later,enum=declined"`
	Text    string         `json:"text,omitempty" jsonschema_description:"a line to the people who asked"`
}

// WithdrawSpec withdraws something that was sent before.
type WithdrawSpec struct {
	Digest      string `json:"digest" jsonschema:"pattern=^sha256:[0-9a-f]{64}$" jsonschema_description:"root of the artifact, as packhof inspect shows it"`
	Reason      string `json:"reason" jsonschema_description:"a line that says why"`
	Replacement string `json:"replacement,omitempty" jsonschema:"pattern=^sha256:[0-9a-f]{64}$" jsonschema_description:"root of what takes its place"`
}

// PinnedDocument is a document whose bytes are settled.
type PinnedDocument struct {
	Type     string     `json:"type"`
	Version  string     `json:"version"`
	From     string     `json:"from,omitempty"` // path of the file; none for trust documents
	Blob     cas.Digest `json:"blob"`
	Size     int64      `json:"size"`
	Critical bool       `json:"critical,omitempty"`
}

func (s *Spec) validateNotices(wrong *problem.Fields) {
	for i, d := range s.Documents {
		d.validate(fmt.Sprintf("documents[%d]", i), wrong)
	}
	for i, a := range s.answers() {
		if err := bundle.CheckAnswer(a); err != nil {
			wrong.Add(fmt.Sprintf("answers[%d]", i), err.Error(), "write request, outcome (delivered, later or declined) and a line of text")
		}
		if slices.ContainsFunc(s.Answers[:i], func(b AnswerSpec) bool { return b.Request == a.Request }) {
			wrong.Add(fmt.Sprintf("answers[%d]", i), fmt.Sprintf("%q is answered already", a.Request), "leave one out")
		}
	}
	if _, err := s.withdraws(); err != nil {
		wrong.Join(err)
	}
}

func (d *DocumentSpec) validate(path string, wrong *problem.Fields) {
	if !slices.Contains(bundle.DocumentTypes(), d.Type) {
		wrong.Add(path+".type", fmt.Sprintf("%q is no type of document", d.Type), "write trust, revocations, policy, vulnerability-data, driver-table or answers")
		return
	}
	switch {
	case d.isTrust() && (d.File != "" || d.Version != ""):
		wrong.Add(path, "the newest "+d.Type+" of the trust folder is taken", "leave file and version out")
	case !d.isTrust() && d.File == "":
		wrong.Add(path, "it has no file", "add  file: …")
	case !d.isTrust() && bundle.CheckWord(d.Version) != nil:
		wrong.Add(path, "it has no version of 1 to 1024 printing bytes", "add  version: …")
	}
}

func (d *DocumentSpec) isTrust() bool {
	return d.Type == bundle.DocumentTrust || d.Type == bundle.DocumentRevocations
}

// answers are the answers as a manifest has them; nil where there are none.
func (s *Spec) answers() []bundle.Answer {
	var list []bundle.Answer
	for _, a := range s.Answers {
		list = append(list, bundle.Answer{Request: a.Request, Outcome: a.Outcome, Text: a.Text})
	}
	return list
}

// withdraws are the withdrawals as a manifest has them, sorted; nil where there
// are none.
func (s *Spec) withdraws() ([]bundle.Withdrawal, error) {
	var list []bundle.Withdrawal
	for i, w := range s.Withdraws {
		path := fmt.Sprintf("withdraws[%d]", i)
		parsed, err := w.parse()
		if err == nil {
			err = bundle.CheckWithdrawal(parsed)
		}
		if err != nil {
			return nil, problem.Field(path, err.Error(), "write digest (sha256: and 64 hex digits), reason, and if there is one replacement")
		}
		if slices.ContainsFunc(list, func(b bundle.Withdrawal) bool { return b.Digest == parsed.Digest }) {
			return nil, problem.Field(path, fmt.Sprintf("%s is withdrawn already", parsed.Digest), "leave one out")
		}
		list = append(list, parsed)
	}
	slices.SortFunc(list, func(a, b bundle.Withdrawal) int { return a.Digest.Compare(b.Digest) })
	return list, nil
}

func (w *WithdrawSpec) parse() (bundle.Withdrawal, error) {
	digest, err := cas.ParseDigest(w.Digest)
	if err != nil || w.Replacement == "" {
		return bundle.Withdrawal{Digest: digest, Reason: w.Reason}, err
	}
	replacement, err := cas.ParseDigest(w.Replacement)
	return bundle.Withdrawal{Digest: digest, Reason: w.Reason, Replacement: &replacement}, err
}

// withdrawsText lets two lists be compared.
func withdrawsText(list []bundle.Withdrawal) []string {
	texts := []string{}
	for _, w := range list {
		texts = append(texts, fmt.Sprintf("%s (%s) by %s", w.Digest.Short(), w.Reason, orNone(w.Replacement)))
	}
	return texts
}

// pinDocuments settles the bytes of each document, and keeps them in the store.
func (p *Planner) pinDocuments(ctx context.Context, spec *Spec) ([]PinnedDocument, error) {
	if len(spec.Documents) == 0 {
		return nil, problem.Field("documents", "there are none for a control bundle", "add one, such as  - type: trust")
	}
	var pins []PinnedDocument
	for i, d := range spec.Documents {
		pin := PinnedDocument{Type: d.Type, Version: d.Version, From: d.File, Critical: d.Critical}
		var err error
		if d.isTrust() {
			err = pin.takeTrust(ctx, p.Trust, p.Store)
		} else {
			pin.Blob, pin.Size, err = ingestFile(ctx, p.Store, within(p.Dir, d.File))
		}
		if err != nil {
			return nil, fmt.Errorf("documents[%d]: %w", i, err)
		}
		if slices.ContainsFunc(pins, func(b PinnedDocument) bool { return b.Type == pin.Type && b.Version == pin.Version }) {
			return nil, problem.Field(fmt.Sprintf("documents[%d]", i), fmt.Sprintf("%s, version %s, is there already", pin.Type, pin.Version), "leave one out")
		}
		pins = append(pins, pin)
	}
	return pins, nil
}

// takeTrust pins the newest trust document of its type.
func (d *PinnedDocument) takeTrust(ctx context.Context, trust *TrustFolder, store *cas.Store) error {
	doc := newest(trust.Roots)
	if d.Type == bundle.DocumentRevocations {
		doc = newest(trust.Revocations)
	}
	var err error
	d.Version, d.Size = strconv.FormatInt(doc.Version, 10), int64(len(doc.Bytes))
	d.Blob, err = store.PutBytes(ctx, doc.Bytes)
	return err
}

// ingestFile takes a file of this machine into the store.
func ingestFile(ctx context.Context, store *cas.Store, path string) (d cas.Digest, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return d, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return d, 0, err
	}
	if !info.Mode().IsRegular() {
		return d, 0, problem.New("config/unreadable", "%s is not a plain file", path)
	}
	in, err := store.Ingest()
	if err != nil {
		return d, 0, err
	}
	if size, err = io.Copy(in, f); err != nil {
		return d, 0, errors.Join(err, in.Abort())
	}
	d = in.Sum()
	return d, size, in.Commit(ctx, d, size, path)
}

func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// fetchDocuments brings back documents that the store has lost.
func (e *Exporter) fetchDocuments(ctx context.Context, l *Lock) error {
	for _, d := range l.Documents {
		there, err := e.Store.Has(d.Blob, d.Size)
		if err != nil {
			return err
		}
		if !there {
			if err := e.fetchDocument(ctx, d); err != nil {
				return fmt.Errorf("the document %s, version %s: %w", d.Type, d.Version, err)
			}
		}
	}
	return nil
}

func (e *Exporter) fetchDocument(ctx context.Context, d PinnedDocument) error {
	for _, docs := range [][]bundle.TrustDocument{e.Trust.Roots, e.Trust.Revocations} {
		for _, doc := range docs {
			if cas.DigestOf(doc.Bytes) == d.Blob {
				_, err := e.Store.PutBytes(ctx, doc.Bytes)
				return err
			}
		}
	}
	if d.From == "" {
		return problem.New("lock/trust-changed", "the trust folder has it no more").Hint("packhof plan --control")
	}
	got, _, err := ingestFile(ctx, e.Store, within(e.Dir, d.From))
	if err == nil && got != d.Blob {
		err = problem.New("source/moved", "%s has changed since it was planned", d.From).
			With("want:  "+d.Blob.String(), "got:   "+got.String()).Hint("packhof plan --control")
	}
	return err
}

// documents adds the documents of a control bundle.
func (a *assembly) documents(pins []PinnedDocument) ([]bundle.Document, error) {
	var list []bundle.Document
	for _, d := range pins {
		if err := a.add(d.Blob, d.Size, bundle.RoleContent); err != nil {
			return nil, err
		}
		list = append(list, bundle.Document{Type: d.Type, Version: d.Version, Blob: d.Blob, Critical: d.Critical})
	}
	return list, nil
}

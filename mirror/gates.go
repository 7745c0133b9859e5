package mirror

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// Gates is what gates have told of themselves: their enrolments, and of each its
// newest receipt. It is the folder gates beside the trust documents, meant for
// version control as they are.
//
// A gate of which nothing is kept counts as the oldest there can be: it holds
// nothing, and reads the bare format.
type Gates struct {
	dir   string
	trust *TrustFolder
	at    time.Time
	known map[string]*gateWords
}

// gateWords is what is kept of one gate.
type gateWords struct {
	enrolment *bundle.Enrolment
	receipt   *bundle.Receipt
}

const (
	gatesFolder    = "gates"
	enrolmentFile  = ".enrol.json"
	receiptFile    = ".receipt.json"
	maxEnrolment   = 64 << 10
	maxReceiptFile = 16 << 20 // also of want lists
)

// ReadGates reads what is kept in the trust folder about the gates of its root.
// A receipt that is not genuine by now is an error: somebody edited it, or the
// gate's key is revoked, and then nothing may be built on it.
func ReadGates(trustDir string, trust *TrustFolder, at time.Time) (*Gates, error) {
	g := &Gates{dir: filepath.Join(trustDir, gatesFolder), trust: trust, at: at, known: map[string]*gateWords{}}
	for _, gate := range trust.Trust.Root().Gates() {
		words, err := g.read(gate.ID)
		if err != nil {
			return nil, err
		}
		g.known[gate.ID] = words
	}
	return g, nil
}

func (g *Gates) read(id string) (*gateWords, error) {
	w := &gateWords{}
	b, path, err := g.file(id, enrolmentFile, maxEnrolment)
	if err == nil && b != nil {
		w.enrolment, err = bundle.ParseEnrolment(b)
	}
	if err == nil && w.enrolment != nil && w.enrolment.Gate != id {
		err = notOf(id, w.enrolment.Gate)
	}
	if err != nil {
		return nil, unusable(path, err)
	}
	b, path, err = g.file(id, receiptFile, maxReceiptFile)
	if err == nil && b != nil {
		w.receipt, err = bundle.OpenReceipt(b, g.trust.Trust, g.at)
	}
	if err == nil && w.receipt != nil && w.receipt.Gate != id {
		err = notOf(id, w.receipt.Gate)
	}
	if err != nil {
		return nil, unusable(path, err)
	}
	return w, nil
}

func notOf(id, other string) error { return fmt.Errorf("it is of %s, not of %s", other, id) }

func unusable(path string, err error) error {
	return problem.New("receipt/unusable", "what is kept of a gate cannot be used: %s: %w", path, err).
		Hint("bring it back from version control, or remove it and have the gate issue a new receipt")
}

// file reads a file about a gate; nil where there is none.
func (g *Gates) file(id, suffix string, limit int64) (b []byte, path string, err error) {
	path = filepath.Join(g.dir, id+suffix)
	b, err = readSmall(path, limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, path, nil
	}
	return b, path, err
}

// KeepEnrolment keeps the enrolment of a gate.
func KeepEnrolment(trustDir, gate string, raw []byte) error {
	dir := filepath.Join(trustDir, gatesFolder)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return cas.WriteBytes(filepath.Join(dir, gate+enrolmentFile), 0o644, raw)
}

// Keep keeps a receipt, which it verifies first. One that is older than the one
// that is kept is the error receipt/older; the same one again is fine.
func (g *Gates) Keep(raw []byte) (*bundle.Receipt, error) {
	r, err := bundle.OpenReceipt(raw, g.trust.Trust, g.at)
	if err != nil {
		return nil, err
	}
	words := g.known[r.Gate] // whose role the root gives, it knows
	if kept := words.receipt; kept != nil && r.Created.Before(kept.Created.Time) {
		return r, problem.New("receipt/older", "there is a newer receipt of %s", r.Gate).
			With("kept:  "+kept.Created.String(), "got:   "+r.Created.String()).Hint("have the gate issue a new one: packhof-gate receipt")
	}
	if err := os.MkdirAll(g.dir, 0o755); err != nil {
		return nil, err
	}
	words.receipt = r
	return r, cas.WriteBytes(filepath.Join(g.dir, r.Gate+receiptFile), 0o644, raw)
}

// Read makes sure that every gate of an audience reads what is named: a bundle
// format, and the parts of it that not every program knows, such as
// bundle.ReadsControl. What counts is the newest word of each gate.
func (g *Gates) Read(audience []string, needs ...string) error {
	for _, id := range audience {
		reads, program := g.reads(id)
		if lacking := bundle.Unread(reads, needs); len(lacking) > 0 {
			return oldGate(id, lacking, reads, program)
		}
	}
	return nil
}

func oldGate(id string, lacking, reads []string, program string) error {
	return problem.New("receipt/old-gate", "%s does not read what would be written: %s", id, strings.Join(lacking, ", ")).
		With("it reads:  "+strings.Join(reads, ", "), "it runs:   "+program).
		Hint("update that gate, and tell of it:  packhof receipt add RECEIPT")
}

func (g *Gates) reads(id string) (reads []string, program string) {
	words := g.known[id]
	switch {
	case words == nil || words.receipt == nil && words.enrolment == nil:
		return []string{bundle.FormatV1}, "unknown: nothing is kept of it"
	case words.receipt == nil || words.enrolment != nil && words.receipt.Created.Before(words.enrolment.Created.Time):
		return words.enrolment.Reads, words.enrolment.Program
	}
	return words.receipt.Reads, words.receipt.Program
}

// Kept is what is known of a gate, for people.
type Kept struct {
	Gate    string          `json:"gate"`
	Program string          `json:"program"`
	Reads   []string        `json:"reads"`
	Receipt *bundle.Instant `json:"receipt,omitempty"` // when the newest one was made
	Serial  int64           `json:"serial"`            // newest of the channel that it took in; 0 for none
}

// List tells of every gate of the root what is known, in the order of the root.
func (g *Gates) List(channel string) []Kept {
	list := []Kept{}
	for _, gate := range g.trust.Trust.Root().Gates() {
		k := Kept{Gate: gate.ID}
		k.Reads, k.Program = g.reads(gate.ID)
		if r := g.known[gate.ID].receipt; r != nil {
			k.Receipt = &r.Created
			for _, c := range r.Channels {
				if c.Channel == channel {
					k.Serial = c.Serial
				}
			}
		}
		list = append(list, k)
	}
	return list
}

// Epoch is the epoch of a channel by the trust root; 0 where there is no such
// channel.
func (g *Gates) Epoch(channel string) int64 {
	c, _ := g.trust.Trust.Root().Channel(channel)
	return int64(c.Epoch)
}

// accepted lists the gates whose receipts say that they took a serial in.
func (g *Gates) accepted(channel string, e LedgerEntry) []string {
	return g.stating(channel, e, func(bundle.Holding) bool { return true })
}

// holding lists the gates whose receipts say that all of a serial is there.
func (g *Gates) holding(channel string, e LedgerEntry) []string {
	return g.stating(channel, e, func(h bundle.Holding) bool { return h == bundle.HoldsAll })
}

func (g *Gates) stating(channel string, e LedgerEntry, fits func(bundle.Holding) bool) []string {
	gates := []string{}
	for id, words := range g.known {
		if words.receipt == nil {
			continue
		}
		for _, c := range words.receipt.Channels {
			listed := c.Channel == channel && slices.ContainsFunc(c.Bundles, func(b bundle.ReceiptBundle) bool {
				return b.Epoch == e.Epoch && b.Serial == e.Serial && b.Manifest == e.Manifest && fits(b.State)
			})
			if listed {
				gates = append(gates, id)
			}
		}
	}
	slices.Sort(gates)
	return gates
}

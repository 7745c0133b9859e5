package mirror

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"slices"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/agefile"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// What the store keeps of how a bundle went out, so that a single volume of it
// can be written again.
const (
	// noteSizes is, by manifest, how large the volumes were that all of it last
	// went out in.
	noteSizes = "sizes"

	// noteRecipients is, by manifest, whom these were encrypted to, so that what
	// went out encrypted is not sent in the clear the next time by mistake.
	noteRecipients = "recipients"

	// noteSets is, by manifest, every set that went out, the last one at the end.
	noteSets = "sets"

	// notePieces is, by the id of a set that brings a part, what it brings.
	notePieces = "pieces"
)

// Shipped is how a serial went out.
type Shipped struct {
	Set        cas.Digest // id; zero for whatever set comes of it
	Sizes      []int64    // of volumes, as Exporter.VolumeSizes
	Recipients []agefile.Recipient
	Pieces     []bundle.Piece // that the set brings; nil for all content
}

// shippedSet is a line of noteSets.
type shippedSet struct {
	Set        cas.Digest `json:"set"`
	Volumes    int        `json:"volumes"`
	Complete   bool       `json:"complete"` // it brings all content
	Sizes      []int64    `json:"sizes"`
	Recipients []string   `json:"recipients"`
}

// String says what a set is.
func (s shippedSet) String() string {
	text := s.Set.Short() + ", 1 volume"
	if s.Volumes != 1 {
		text = fmt.Sprintf("%s, %d volumes", s.Set.Short(), s.Volumes)
	}
	if !s.Complete {
		text += ", a part of the content"
	}
	if len(s.Recipients) > 0 {
		text += ", encrypted"
	}
	return text
}

// remember keeps what is needed to send this serial again when packhof.lock has
// gone on to the next one. A set that brings a part is remembered by its id,
// and is the last time only where all of it never went out.
func (e *Exporter) remember(ctx context.Context, l *Lock, set *bundle.SetPlan) error {
	lock, err := l.Encode()
	if err != nil {
		return err
	}
	if _, err := e.Store.PutBytes(ctx, lock); err != nil {
		return err
	}
	var sets []shippedSet
	if err := readNote(e.Store, noteSets, set.Manifest(), &sets); err != nil {
		return err
	}
	now := shippedSet{set.ID(), set.Count(), set.IsComplete(), e.VolumeSizes, textsOf(e.Recipients)}
	sets = append(slices.DeleteFunc(sets, func(s shippedSet) bool { return s.Set == now.Set }), now)
	if !now.Complete {
		if err := writeNote(e.Store, notePieces, now.Set, e.pieces); err != nil {
			return err
		}
	}
	if now.Complete || !slices.ContainsFunc(sets, func(s shippedSet) bool { return s.Complete }) {
		if err := writeNote(e.Store, noteSizes, set.Manifest(), now.Sizes); err != nil {
			return err
		}
		if err := writeNote(e.Store, noteRecipients, set.Manifest(), now.Recipients); err != nil {
			return err
		}
	}
	return writeNote(e.Store, noteSets, set.Manifest(), sets)
}

// lastShipped is how all of a bundle last went out.
func lastShipped(store *cas.Store, manifest cas.Digest) (last Shipped, err error) {
	if err := readNote(store, noteSizes, manifest, &last.Sizes); err != nil {
		return last, err
	}
	var recipients []string
	if err := readNote(store, noteRecipients, manifest, &recipients); err != nil {
		return last, err
	}
	last.Recipients, err = Recipients(recipients, nil, nil)
	return last, err
}

// FindSet looks for a set that went out, whatever its serial, by the beginning
// of its id as an export prints it, and gives the lock of its serial.
func FindSet(store *cas.Store, ledger *Ledger, id string) (*Lock, Shipped, error) {
	var found []shippedSet
	var place LedgerEntry
	for _, entry := range ledger.entries {
		if !entry.isSealing() {
			continue
		}
		var sets []shippedSet
		if err := readNote(store, noteSets, entry.Manifest, &sets); err != nil {
			return nil, Shipped{}, err
		}
		for _, s := range sets {
			if id != "" && strings.HasPrefix(s.Set.Hex(), strings.TrimPrefix(id, "sha256:")) {
				found, place = append(found, s), entry
			}
		}
	}
	if len(found) != 1 {
		return nil, Shipped{}, noOneSet(id, found)
	}
	l, _, err := SealedLock(store, ledger, place.Epoch, place.Serial)
	if err != nil {
		return nil, Shipped{}, err
	}
	s := found[0]
	shipped := Shipped{Set: s.Set, Sizes: s.Sizes}
	if shipped.Recipients, err = Recipients(s.Recipients, nil, nil); err != nil || s.Complete {
		return l, shipped, err
	}
	err = readNote(store, notePieces, s.Set, &shipped.Pieces)
	if err == nil && shipped.Pieces == nil {
		err = noOneSet(id, nil) // its note is lost, and all of the content would be another set
	}
	return l, shipped, err
}

// noOneSet says that an id is that of no set, or of several.
func noOneSet(id string, found []shippedSet) error {
	if len(found) == 0 {
		return problem.New("volume/no-such-set", "no set that begins with %.80q went out from here", id).
			Hint("name the set as packhof export printed it, or leave --set out to send all of a serial")
	}
	p := problem.New("volume/no-such-set", "%d sets begin with %.80q", len(found), id)
	return p.With(setLines(found)...).Hint("name more digits of the one that is meant")
}

func setLines(sets []shippedSet) []string {
	var lines []string
	for _, s := range sets {
		lines = append(lines, "set:  "+s.String())
	}
	return lines
}

// withSets adds to the error that a set has no such volume, which sets of the
// bundle went out, and names the newest that has it.
func (e *Exporter) withSets(err error, manifest cas.Digest) error {
	p, ok := err.(*problem.Problem)
	if !ok {
		return err
	}
	var sets []shippedSet
	if err := readNote(e.Store, noteSets, manifest, &sets); err != nil {
		return err
	}
	p = p.With(setLines(sets)...)
	most := slices.Max(e.Volumes)
	for _, s := range slices.Backward(sets) {
		if s.Volumes >= most && slices.Min(e.Volumes) > 0 {
			return p.Hint("packhof resend --set %s --volume %d", s.Set.Short(), most)
		}
	}
	return p.Hint("name a volume that there is, or the --volume-size that it was written with")
}

// readNote reads a note that is JSON into value, or leaves it where there is none.
func readNote(store *cas.Store, kind string, about cas.Digest, value any) error {
	note, ok, err := store.Note(kind, about)
	if err != nil || !ok {
		return err
	}
	return json.Unmarshal(note, value)
}

func writeNote(store *cas.Store, kind string, about cas.Digest, value any) error {
	note, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return store.SetNote(kind, about, note)
}

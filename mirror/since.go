package mirror

import (
	"fmt"
	"slices"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// only is the content that this set has to bring: all of it (nil), what a want
// list asks for, what receipts do not say is there, or what it brought before.
func (e *Exporter) only(manifest []byte) ([]bundle.Piece, error) {
	if e.Again != nil {
		return e.Again.Pieces, nil
	}
	if e.Want == nil && len(e.Since) == 0 {
		return nil, nil
	}
	m, err := bundle.ParseManifestUnsafe(manifest) // our own
	if err != nil {
		return nil, err
	}
	digest := cas.DigestOf(manifest)
	if e.Want != nil {
		return e.wanted(m, digest)
	}
	only := []bundle.Piece{}
	for _, r := range e.Since {
		lacks, err := e.lackedBy(r, m, digest)
		if err != nil {
			return nil, err
		}
		only = append(only, lacks...)
	}
	e.warnOfOthers(m)
	return only, nil
}

// wanted checks that a want list is about this bundle.
func (e *Exporter) wanted(m *bundle.Manifest, digest cas.Digest) ([]bundle.Piece, error) {
	w := e.Want
	if w.Manifest != digest || w.Channel != m.Channel || w.Epoch != m.Epoch || w.Serial != m.Serial {
		return nil, problem.New("want/other-bundle", "the want list is about serial %d of %s, and not about the one that is exported", w.Serial, w.Channel).
			With("wanted:    "+w.Manifest.String(), "exported:  "+digest.String())
	}
	if !slices.Contains(m.Audience, w.Gate) {
		return nil, problem.New("want/other-gate", "the want list is of %s, which this bundle is not meant for", w.Gate).
			With("meant for:  " + strings.Join(m.Audience, ", "))
	}
	return w.Pieces, nil
}

// lackedBy is what a gate has not of a bundle, as far as its receipt proves
// what it has. What is sent to it once too often does no harm.
func (e *Exporter) lackedBy(r *bundle.Receipt, m *bundle.Manifest, digest cas.Digest) ([]bundle.Piece, error) {
	if !slices.Contains(m.Audience, r.Gate) {
		return nil, problem.New("receipt/other-gate", "the receipt is of %s, which this bundle is not meant for", r.Gate).
			With("meant for:  " + strings.Join(m.Audience, ", ")).Hint("name the receipt of a gate that it is meant for")
	}
	if lacking := bundle.Unread(r.Reads, m.Needs()); len(lacking) > 0 {
		return nil, oldGate(r.Gate, lacking, r.Reads, r.Program)
	}
	switch state, lacks := r.Holds(m, digest); state {
	case bundle.HoldsAll:
		return nil, nil
	case bundle.HoldsPart:
		return bundle.Provable(m, lacks), nil
	}
	held, err := e.heldBy(r)
	if err != nil {
		return nil, err
	}
	var lacks []bundle.Piece
	for _, b := range m.Blobs {
		if !held[b.Digest] {
			lacks = append(lacks, bundle.Piece{Blob: b.Digest, Length: b.Size})
		}
	}
	return lacks, nil
}

// heldBy is every blob of the bundles that a gate holds, less what it says is
// lacking. Only bundles that this project sealed count, since only their
// manifests are here.
func (e *Exporter) heldBy(r *bundle.Receipt) (map[cas.Digest]bool, error) {
	held, lacking := map[cas.Digest]bool{}, map[cas.Digest]bool{}
	for _, c := range r.Channels {
		for _, entry := range c.Bundles {
			if entry.State == bundle.HoldsNone || c.Channel != e.Ledger.channel {
				continue
			}
			sealed, ok := e.Ledger.Find(entry.Epoch, entry.Serial)
			if !ok || sealed.Manifest != entry.Manifest {
				e.warn("the receipt of %s lists serial %d with a manifest that was not sealed here; it is not counted", r.Gate, entry.Serial)
				continue
			}
			b, err := e.Store.ReadAll(entry.Manifest, bundle.MaxManifestSize)
			if isMissing(err) {
				e.warn("the store has lost the manifest of serial %d, so what %s has of it is sent again", entry.Serial, r.Gate)
				continue
			}
			if err != nil {
				return nil, err
			}
			m, err := bundle.ParseManifestUnsafe(b)
			if err != nil {
				return nil, err
			}
			for _, blob := range m.Blobs {
				held[blob.Digest] = true
			}
			for _, p := range entry.Lacks {
				lacking[p.Blob] = true
			}
		}
	}
	for d := range lacking {
		delete(held, d)
	}
	return held, nil
}

// warnOfOthers tells when a bundle is meant for gates whose receipt is not here:
// for them this set may be too little.
func (e *Exporter) warnOfOthers(m *bundle.Manifest) {
	for _, gate := range m.Audience {
		if !slices.ContainsFunc(e.Since, func(r *bundle.Receipt) bool { return r.Gate == gate }) {
			e.warn("the bundle is meant for %s too, of which there is no receipt: this set may bring too little for it", gate)
		}
	}
}

func (e *Exporter) warn(format string, args ...any) {
	if e.Warn != nil {
		e.Warn(fmt.Sprintf(format, args...), nil)
	}
}

package gate

import (
	"context"
	"errors"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
)

// sweepAssemblies forgets pieces of blobs whose other pieces no case waits for
// any more: of bundles that were rejected, or that turned out to be no good.
// It is done before content is brought in, where room may be short, and when
// the gate opens.
//
// While a case that waits cannot be read nothing is forgotten; what is wrong
// with it is said where it is looked at.
func (g *Gate) sweepAssemblies(ctx context.Context) error {
	begun, err := g.store.Assembling()
	if err != nil || len(begun) == 0 {
		return err
	}
	awaited, err := awaitedBlobs(ctx, g.db.read)
	if isRowDamaged(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, d := range begun {
		if !awaited[d] {
			err = errors.Join(err, g.store.DropAssembly(d))
		}
	}
	return err
}

// awaitedBlobs are all blobs of bundles of which content may still come.
func awaitedBlobs(ctx context.Context, q queryer) (map[cas.Digest]bool, error) {
	waiting, err := rowsOf(ctx, q, scanRow, `SELECT `+rowColumns+` FROM cases WHERE state NOT IN (?, ?, ?, ?, ?)`, Loaded, NotGenuine, Blocked, Rejected, Expired)
	if err != nil {
		return nil, err
	}
	awaited := map[cas.Digest]bool{}
	for _, r := range waiting {
		head, err := headOf(ctx, q, r.ID)
		if err != nil {
			return nil, err
		}
		m, err := bundle.ParseManifestUnsafe(head.Manifest) // only to keep what it names
		if err != nil {
			return nil, rowDamaged(r.ID, "its manifest does not parse: %w", err)
		}
		for _, b := range m.Blobs {
			awaited[b.Digest] = true
		}
	}
	return awaited, nil
}

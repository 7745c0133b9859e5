package mirror

import (
	"time"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// SealedAlike is the last serial that was sealed, where a lock would bring a
// gate that has it nothing else; 0 if it would, or if nobody can tell any more.
// A serial that may not be accepted any more counts for nothing.
func SealedAlike(store *cas.Store, ledger *Ledger, lock *Lock, at time.Time) (int64, error) {
	last, ok := ledger.LastStanding()
	if !ok {
		return 0, nil
	}
	sealed, _, err := SealedLock(store, ledger, last.Epoch, last.Serial)
	if problem.CodeOf(err) == "serial/lock-lost" {
		return 0, nil
	}
	if err != nil || !at.Before(sealed.Expires.Time) {
		return 0, err
	}
	sealed.Serial, sealed.Previous, sealed.Created, sealed.Expires = lock.Serial, lock.Previous, lock.Created, lock.Expires
	before, err := sealed.Digest()
	if err != nil {
		return 0, err
	}
	if now, err := lock.Digest(); err != nil || now != before {
		return 0, err
	}
	m, err := sealedManifest(store, last.Manifest)
	if isMissing(err) {
		return 0, nil
	}
	if err != nil || len(m.Incomplete) > 0 { // what was left out may be there by now
		return 0, err
	}
	return last.Serial, nil
}

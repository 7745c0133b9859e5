package mirror

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
)

// Abandonment is the line that gave a serial up, if there is one.
func (l *Ledger) Abandonment(epoch, serial int64) (LedgerEntry, bool) {
	return l.newest(func(e LedgerEntry) bool { return !e.isSealing() && e.Epoch == epoch && e.Serial == serial })
}

// CheckStanding refuses a serial that was given up.
func (l *Ledger) CheckStanding(epoch, serial int64) error {
	e, abandoned := l.Abandonment(epoch, serial)
	if !abandoned {
		return nil
	}
	return problem.New("serial/abandoned", "serial %d was given up at %s", serial, e.At).
		With("reason:  " + e.Abandoned).Hint("packhof plan")
}

// Abandon gives a serial up for good: the one that is planned next, or one that
// was sealed. Nothing goes out under it any more, the next plan takes another
// number, and the next bundle does not follow it.
//
// A gate that has taken a sealed serial in would then see two histories, so that
// is refused where a kept receipt shows it, and otherwise for the caller to be
// sure of: undelivered says that no gate has it or will get it.
func (l *Ledger) Abandon(epoch, serial int64, reason string, undelivered bool, gates *Gates, at time.Time) error {
	if err := l.unchanged(); err != nil {
		return err
	}
	if err := bundle.CheckWord(reason); err != nil {
		return problem.New("usage", "the reason cannot be kept: %w", err).Hint("say in a line why:  --reason \"the medium was lost\"")
	}
	if e, abandoned := l.Abandonment(epoch, serial); abandoned {
		return problem.New("serial/abandoned", "serial %d was given up already, at %s", serial, e.At).With("reason:  " + e.Abandoned)
	}
	sealed, isSealed := l.Find(epoch, serial)
	next, _, err := l.next(epoch)
	switch {
	case isSealed:
		err = mayAbandon(sealed, undelivered, gates, l.channel)
	case err == nil && serial != next:
		err = problem.New("serial/not-planned", "serial %d of epoch %d was never sealed, and it is not the next one", serial, epoch).
			With(fmt.Sprintf("next:  serial %d", next)).Hint("packhof serial list")
	}
	if err != nil {
		return err
	}
	return l.append(LedgerEntry{Epoch: epoch, Serial: serial, Abandoned: reason, At: bundle.At(at)})
}

// mayAbandon tells whether a sealed serial can still be given up.
func mayAbandon(sealed LedgerEntry, undelivered bool, gates *Gates, channel string) error {
	if took := gates.accepted(channel, sealed); len(took) > 0 {
		return problem.New("serial/delivered", "serial %d was taken in at a gate, so it cannot be given up", sealed.Serial).
			With("gates:  " + strings.Join(took, ", ")).Hint("send what is lacking of it: packhof resend --want FILE; or send the next one: packhof plan")
	}
	if !undelivered {
		return problem.New("serial/delivered", "serial %d was sealed, so it may be on its way to a gate", sealed.Serial).
			With("a gate that took it in would see two histories of the channel, and stop").
			Hint("destroy its media, and if no gate has it:  packhof serial abandon %d --undelivered --reason …", sealed.Serial)
	}
	return nil
}

// Serial is one serial of the channel as the ledger, the lock and the kept
// receipts know it.
type Serial struct {
	Epoch    int64           `json:"epoch"`
	Serial   int64           `json:"serial"`
	State    string          `json:"state"` // planned, sealed or abandoned
	Manifest *bundle.Digest  `json:"manifest,omitempty"`
	Created  *bundle.Instant `json:"created,omitempty"` // of the bundle
	Reason   string          `json:"reason,omitempty"`  // why it was given up
	At       *bundle.Instant `json:"at,omitempty"`      // when
	HeldBy   []string        `json:"heldBy"`            // gates whose receipts say that they have all of it
}

// Serials lists the channel, oldest first. lock is what is planned; it may be nil.
func (l *Ledger) Serials(lock *Lock, gates *Gates) []Serial {
	var list []Serial
	for _, e := range l.entries {
		i := slices.IndexFunc(list, func(s Serial) bool { return s.Epoch == e.Epoch && s.Serial == e.Serial })
		if i < 0 {
			i, list = len(list), append(list, Serial{Epoch: e.Epoch, Serial: e.Serial, HeldBy: []string{}})
		}
		s := &list[i]
		if !e.isSealing() {
			s.State, s.Reason, s.At = "abandoned", e.Abandoned, &e.At
			continue
		}
		s.State, s.Manifest, s.HeldBy = "sealed", &e.Manifest, gates.holding(l.channel, e)
		if !e.Created.IsZero() {
			s.Created = &e.Created
		}
	}
	if top, ok := l.top(); lock != nil && lock.Channel == l.channel && (!ok || top.before(LedgerEntry{Epoch: lock.Epoch, Serial: lock.Serial})) {
		list = append(list, Serial{Epoch: lock.Epoch, Serial: lock.Serial, State: "planned", Created: &lock.Created, HeldBy: []string{}})
	}
	return slices.Clip(list)
}

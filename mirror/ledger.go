package mirror

import (
	"bytes"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// FormatLedger is the format of packhof.ledger.
const FormatLedger = "packhof.ledger/v1"

const maxLedger = 64 << 20

// Ledger is packhof.ledger: which manifest each serial of the channel has. It
// only grows, a line a serial, and is meant for version control: who loses it
// could seal a serial twice, so nothing is sealed without it.
type Ledger struct {
	path    string
	channel string
	entries []LedgerEntry
}

type ledgerHead struct {
	Format  string `json:"format"`
	Channel string `json:"channel"`
}

// LedgerEntry is one line: a serial that was sealed, or one that was given up.
type LedgerEntry struct {
	Epoch  int64 `json:"epoch"`
	Serial int64 `json:"serial"`

	// Of a serial that was sealed.
	Manifest cas.Digest     `json:"manifest,omitzero"`
	Lock     cas.Digest     `json:"lock,omitzero"`    // of the bytes of packhof.lock
	Created  bundle.Instant `json:"created,omitzero"` // of the bundle; lines of earlier versions lack it

	// Of a serial that was given up: why and when.
	Abandoned string         `json:"abandoned,omitempty"`
	At        bundle.Instant `json:"at,omitzero"`
}

// isSealing tells a line that binds a manifest from one that gives up a serial.
func (e LedgerEntry) isSealing() bool { return e.Abandoned == "" }

// before tells whether a line belongs to an earlier place in the channel.
func (e LedgerEntry) before(other LedgerEntry) bool {
	return e.Epoch < other.Epoch || e.Epoch == other.Epoch && e.Serial < other.Serial
}

// CreateLedger makes an empty ledger; an existing file is an error.
func CreateLedger(path, channel string) error {
	head, err := json.Marshal(ledgerHead{FormatLedger, channel})
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return problem.New("config/exists", "the ledger %s exists already, and is never made anew", path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return cas.WriteBytes(path, 0o644, append(head, '\n'))
}

// OpenLedger reads the ledger of this channel.
func OpenLedger(path, channel string) (*Ledger, error) {
	b, err := readSmall(path, maxLedger)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, problem.New("ledger/missing", "there is no ledger %s", path).
			With("without it a serial could be sealed twice, with different content").
			Hint("bring it back from version control or a backup; for a channel that has never sent anything, run  packhof init --ledger-only")
	}
	if err != nil {
		return nil, err
	}
	l := &Ledger{path: path, channel: channel}
	return l, l.parse(b)
}

func (l *Ledger) parse(b []byte) error {
	malformed := func(line int, why string, args ...any) error {
		return problem.New("ledger/malformed", "%s, line %d: "+why, append([]any{l.path, line}, args...)...).
			Hint("bring it back from version control or a backup")
	}
	number := 0
	for line := range bytes.Lines(b) {
		number++
		if number == 1 {
			var head ledgerHead
			if err := json.Unmarshal(line, &head, json.RejectUnknownMembers(true)); err != nil {
				return malformed(1, "%w", problem.JSON(err))
			}
			if head.Format == FormatLedger && head.Channel != l.channel {
				return l.foreign(head.Channel, b)
			}
			if head.Format != FormatLedger {
				return malformed(1, "it is a ledger of format %.60q, not of %s", head.Format, FormatLedger)
			}
			continue
		}
		var e LedgerEntry
		if err := json.Unmarshal(line, &e, json.RejectUnknownMembers(true)); err != nil {
			return malformed(number, "%w", problem.JSON(err))
		}
		if why := l.misplaced(e); why != "" {
			return malformed(number, "%s", why)
		}
		l.entries = append(l.entries, e)
	}
	if number == 0 {
		return malformed(1, "it is empty")
	}
	return nil
}

// misplaced says why a line cannot follow those that were read; "" if it can.
func (l *Ledger) misplaced(e LedgerEntry) string {
	bound := !e.Manifest.IsZero() && !e.Lock.IsZero()
	switch {
	case e.Epoch < 1 || e.Serial < 1 || e.Epoch > 1<<31 || e.Serial > 1<<31:
		return "epoch or serial is missing or out of range"
	case e.isSealing() && (!bound || !e.At.IsZero()), !e.isSealing() && (!e.Manifest.IsZero() || !e.Lock.IsZero() || e.At.IsZero()):
		return "it needs either manifest and lock, or why and when the serial was given up"
	}
	if _, sealed := l.Find(e.Epoch, e.Serial); sealed && !e.isSealing() {
		if _, twice := l.Abandonment(e.Epoch, e.Serial); twice {
			return fmt.Sprintf("serial %d is given up twice", e.Serial)
		}
		return ""
	}
	if top, ok := l.top(); ok && !top.before(e) {
		return fmt.Sprintf("serial %d stands after serial %d", e.Serial, top.Serial)
	}
	return ""
}

// foreign says that the ledger belongs to another channel, and what to do
// about it: an empty one can be made anew, one with serials never.
func (l *Ledger) foreign(channel string, b []byte) error {
	p := problem.New("ledger/foreign", "%s is the ledger of the channel %.60q, and packhof.yaml names %s", l.path, channel, l.channel)
	if bytes.Count(b, []byte("\n")) > 1 {
		return p.Hint("put the channel in packhof.yaml back to %.60q, or use another folder for another channel", channel)
	}
	return p.Hint("it has sealed nothing yet: remove it and run  packhof init --ledger-only")
}

// Entries are all lines, oldest first.
func (l *Ledger) Entries() []LedgerEntry { return slices.Clone(l.entries) }

// Last is the newest sealed serial, if there is one, given up or not.
func (l *Ledger) Last() (LedgerEntry, bool) {
	return l.newest(LedgerEntry.isSealing)
}

// LastStanding is the newest sealed serial that was not given up: the one that
// the next bundle follows.
func (l *Ledger) LastStanding() (LedgerEntry, bool) {
	return l.newest(func(e LedgerEntry) bool {
		_, abandoned := l.Abandonment(e.Epoch, e.Serial)
		return e.isSealing() && !abandoned
	})
}

// top is the highest place in the channel that a line speaks of.
func (l *Ledger) top() (top LedgerEntry, ok bool) {
	for _, e := range l.entries {
		if !ok || top.before(e) {
			top, ok = e, true
		}
	}
	return top, ok
}

func (l *Ledger) newest(fits func(LedgerEntry) bool) (LedgerEntry, bool) {
	for _, e := range slices.Backward(l.entries) {
		if fits(e) {
			return e, true
		}
	}
	return LedgerEntry{}, false
}

// next is the place that the next bundle has in the channel. A higher epoch
// begins the serials anew, and still names the manifest before it. A serial
// that was given up is neither used again nor followed.
func (l *Ledger) next(epoch int64) (serial int64, previous *cas.Digest, err error) {
	if last, ok := l.LastStanding(); ok {
		previous = &last.Manifest
	}
	top, ok := l.top()
	switch {
	case !ok || epoch > top.Epoch:
		return 1, previous, nil
	case epoch < top.Epoch:
		return 0, nil, problem.New("ledger/epoch", "the ledger is at epoch %d and the trust root at epoch %d", top.Epoch, epoch).
			Hint("bring the newest trust root back from version control")
	}
	return top.Serial + 1, previous, nil
}

// Find looks a sealed serial up.
func (l *Ledger) Find(epoch, serial int64) (LedgerEntry, bool) {
	return l.newest(func(e LedgerEntry) bool { return e.isSealing() && e.Epoch == epoch && e.Serial == serial })
}

// Seal binds a serial to its manifest, for good. The same binding again is
// fine; another one is the error serial/changed.
//
// The file is read again first: an export takes hours, and version control or
// a colleague may have changed it meanwhile. The caller keeps other processes
// of ours out.
func (l *Ledger) Seal(e LedgerEntry) error {
	if err := l.unchanged(); err != nil {
		return err
	}
	if err := l.CheckStanding(e.Epoch, e.Serial); err != nil {
		return err
	}
	if sealed, ok := l.Find(e.Epoch, e.Serial); ok {
		if sealed.Manifest != e.Manifest {
			return serialChanged(e.Serial, "manifest", sealed.Manifest, e.Manifest)
		}
		return nil
	}
	if top, ok := l.top(); ok && !top.before(e) {
		return problem.New("serial/stale", "serial %d is older than serial %d, which the ledger has already", e.Serial, top.Serial).Hint("packhof plan")
	}
	return l.append(e)
}

// append writes a further line.
func (l *Ledger) append(e LedgerEntry) error {
	entries := append(slices.Clone(l.entries), e)
	if err := l.write(entries); err != nil {
		return err
	}
	l.entries = entries
	return nil
}

// unchanged makes sure that the file still says what was read from it.
func (l *Ledger) unchanged() error {
	now, err := OpenLedger(l.path, l.channel)
	if err != nil {
		return err
	}
	if !slices.Equal(now.entries, l.entries) {
		return problem.New("ledger/changed", "%s was changed while this command ran; nothing was sealed", l.path).
			With("then:  "+l.ends(), "now:   "+now.ends()).
			Hint("run the same command again; if the serial is taken by now, packhof plan")
	}
	return nil
}

// ends says how far the ledger goes.
func (l *Ledger) ends() string {
	top, ok := l.top()
	if !ok {
		return "nothing sealed"
	}
	return fmt.Sprintf("%d lines, up to epoch %d, serial %d", len(l.entries), top.Epoch, top.Serial)
}

func (l *Ledger) write(entries []LedgerEntry) error {
	b, err := json.Marshal(ledgerHead{FormatLedger, l.channel})
	if err != nil {
		return err
	}
	b = append(b, '\n')
	for _, e := range entries {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		b = append(append(b, line...), '\n')
	}
	return cas.WriteBytes(l.path, 0o644, b)
}

func serialChanged(serial int64, what string, sealed, now cas.Digest) *problem.Problem {
	return problem.New("serial/changed", "serial %d is sealed already, with another %s", serial, what).
		With(fmt.Sprintf("sealed:  %s", sealed), fmt.Sprintf("now:     %s", now)).
		Hint("packhof plan")
}

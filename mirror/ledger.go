package mirror

import (
	"bytes"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

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

// LedgerEntry is one sealed serial.
type LedgerEntry struct {
	Epoch    int64      `json:"epoch"`
	Serial   int64      `json:"serial"`
	Manifest cas.Digest `json:"manifest"`
	Lock     cas.Digest `json:"lock"` // of the bytes of packhof.lock
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
		if e.Epoch < 1 || e.Serial < 1 || e.Epoch > 1<<31 || e.Serial > 1<<31 || e.Manifest.IsZero() || e.Lock.IsZero() {
			return malformed(number, "epoch, serial, manifest or lock is missing or out of range")
		}
		if last, ok := l.Last(); ok && (e.Epoch < last.Epoch || e.Epoch == last.Epoch && e.Serial <= last.Serial) {
			return malformed(number, "serial %d stands after serial %d", e.Serial, last.Serial)
		}
		l.entries = append(l.entries, e)
	}
	if number == 0 {
		return malformed(1, "it is empty")
	}
	return nil
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

// Last is the newest sealed serial, if there is one.
func (l *Ledger) Last() (LedgerEntry, bool) {
	if len(l.entries) == 0 {
		return LedgerEntry{}, false
	}
	return l.entries[len(l.entries)-1], true
}

// next is the place that the next bundle has in the channel. A higher epoch
// begins the serials anew, and still names the manifest before it.
func (l *Ledger) next(epoch int64) (serial int64, previous *cas.Digest, err error) {
	last, ok := l.Last()
	switch {
	case !ok:
		return 1, nil, nil
	case epoch < last.Epoch:
		return 0, nil, problem.New("ledger/epoch", "the ledger is at epoch %d and the trust root at epoch %d", last.Epoch, epoch).
			Hint("bring the newest trust root back from version control")
	case epoch > last.Epoch:
		return 1, &last.Manifest, nil
	}
	return last.Serial + 1, &last.Manifest, nil
}

// Find looks a serial up.
func (l *Ledger) Find(epoch, serial int64) (LedgerEntry, bool) {
	for _, e := range l.entries {
		if e.Epoch == epoch && e.Serial == serial {
			return e, true
		}
	}
	return LedgerEntry{}, false
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
	if sealed, ok := l.Find(e.Epoch, e.Serial); ok {
		if sealed.Manifest != e.Manifest {
			return serialChanged(e.Serial, "manifest", sealed.Manifest, e.Manifest)
		}
		return nil
	}
	if last, ok := l.Last(); ok && (e.Epoch < last.Epoch || e.Epoch == last.Epoch && e.Serial <= last.Serial) {
		return problem.New("serial/stale", "serial %d is older than the last sealed serial %d", e.Serial, last.Serial).Hint("packhof plan")
	}
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
	last, ok := l.Last()
	if !ok {
		return "nothing sealed"
	}
	return fmt.Sprintf("sealed up to epoch %d, serial %d", last.Epoch, last.Serial)
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

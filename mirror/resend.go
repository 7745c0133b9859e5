package mirror

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/agefile"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// noteSizes keeps, for a manifest, how large the volumes were that it last went
// out in, so that a single one can be written again.
const noteSizes = "sizes"

// noteRecipients keeps whom they were encrypted to, so that what went out
// encrypted is not sent in the clear the next time by mistake.
const noteRecipients = "recipients"

// Shipped is how a serial last went out.
type Shipped struct {
	Sizes      []int64 // of volumes, as Exporter.VolumeSizes
	Recipients []agefile.Recipient
}

// remember keeps what is needed to send this serial again when packhof.lock has
// gone on to the next one.
func (e *Exporter) remember(ctx context.Context, l *Lock, manifest cas.Digest) error {
	lock, err := l.Encode()
	if err != nil {
		return err
	}
	if _, err := e.Store.PutBytes(ctx, lock); err != nil {
		return err
	}
	sizes, err := json.Marshal(e.VolumeSizes)
	if err != nil {
		return err
	}
	if err := e.Store.SetNote(noteSizes, manifest, sizes); err != nil {
		return err
	}
	recipients, err := json.Marshal(textsOf(e.Recipients))
	if err != nil {
		return err
	}
	return e.Store.SetNote(noteRecipients, manifest, recipients)
}

// SealedLock is the lock of a serial that was sealed, from the store, and how it
// last went out.
func SealedLock(store *cas.Store, ledger *Ledger, epoch, serial int64) (*Lock, Shipped, error) {
	var last Shipped
	if err := ledger.CheckStanding(epoch, serial); err != nil {
		return nil, last, err
	}
	entry, ok := ledger.Find(epoch, serial)
	if !ok {
		return nil, last, problem.New("serial/not-sealed", "serial %d of epoch %d was never sealed", serial, epoch).Hint("packhof export")
	}
	b, err := store.ReadAll(entry.Lock, maxLock)
	if isMissing(err) {
		return nil, last, problem.New("serial/lock-lost", "the store has lost the lock of serial %d", serial).
			Hint("bring its packhof.lock back from version control, and run  packhof export")
	}
	if err != nil {
		return nil, last, err
	}
	l, err := parseLock("the lock of the sealed serial", b)
	if err != nil {
		return nil, last, err
	}
	if err := readNote(store, noteSizes, entry.Manifest, &last.Sizes); err != nil {
		return nil, last, err
	}
	var recipients []string
	if err := readNote(store, noteRecipients, entry.Manifest, &recipients); err != nil {
		return nil, last, err
	}
	last.Recipients, err = Recipients(recipients, nil, nil)
	return l, last, err
}

// readNote reads a note that is JSON into value, or leaves it where there is none.
func readNote(store *cas.Store, kind string, about cas.Digest, value any) error {
	note, ok, err := store.Note(kind, about)
	if err != nil || !ok {
		return err
	}
	return json.Unmarshal(note, value)
}

// LastSealed is the newest serial that was sealed and not given up.
func LastSealed(ledger *Ledger) (LedgerEntry, error) {
	last, ok := ledger.LastStanding()
	if !ok {
		return last, problem.New("serial/not-sealed", "nothing was sealed yet").Hint("packhof export")
	}
	return last, nil
}

// ReadReceipts reads receipts and holds each against the trust that is known
// here.
func ReadReceipts(paths []string, trust *TrustFolder, at time.Time) ([]*bundle.Receipt, error) {
	var receipts []*bundle.Receipt
	for _, path := range paths {
		b, err := ReadReceiptFile(path)
		if err != nil {
			return nil, err
		}
		r, err := bundle.OpenReceipt(b, trust.Trust, at)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		receipts = append(receipts, r)
	}
	return receipts, nil
}

// ReadReceiptFile reads the bytes of a receipt.
func ReadReceiptFile(path string) ([]byte, error) { return readSmall(path, maxReceiptFile) }

// ReadWant reads a want list.
func ReadWant(path string) (*bundle.Want, error) {
	b, err := readSmall(path, maxReceiptFile)
	if err != nil {
		return nil, err
	}
	return bundle.ParseWant(b)
}

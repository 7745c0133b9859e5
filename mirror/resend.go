package mirror

import (
	"fmt"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

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
	last, err = lastShipped(store, entry.Manifest)
	return l, last, err
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

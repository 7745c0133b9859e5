package bundle

import (
	"cmp"
	"context"
	"encoding/json/jsontext"
	"fmt"
	"slices"
	"time"

	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/signing"
)

// FormatReceipt is the format of a receipt.
const FormatReceipt = "packhof.receipt/v1"

const (
	maxReceipt         = 16 << 20
	maxReceiptChannels = 1000
	maxReceiptBundles  = 100_000
	maxReceiptLacks    = 100_000
)

// Receipt is a gate's statement of what it holds, carried back out. It lists
// bundles and not digests: a bundle that is held stands for all its blobs.
type Receipt struct {
	Format   string           `json:"format"`
	Gate     string           `json:"gate"`
	Created  Instant          `json:"created"`
	Program  string           `json:"program"` // name and version
	Reads    []string         `json:"reads"`   // bundle formats and parts of them, as Reads
	Channels []ReceiptChannel `json:"channels"`
}

// ReceiptChannel is what a gate has of one channel.
type ReceiptChannel struct {
	Channel string          `json:"channel"`
	Epoch   int64           `json:"epoch"`  // of the newest accepted bundle
	Serial  int64           `json:"serial"` // of the newest accepted bundle
	Bundles []ReceiptBundle `json:"bundles"`
}

// ReceiptBundle is what a gate has of one bundle that it accepted.
type ReceiptBundle struct {
	Epoch    int64   `json:"epoch"`
	Serial   int64   `json:"serial"`
	Manifest Digest  `json:"manifest"`
	State    Holding `json:"state"`
	Lacks    []Piece `json:"lacks,omitzero"` // for HoldsPart: everything that it has not
}

// Holding says how much of a bundle's content a gate has.
type Holding string

// All of it, all but what is listed, or nothing that could be relied on.
const (
	HoldsAll  Holding = "held"
	HoldsPart Holding = "part"
	HoldsNone Holding = "none"
)

// receiptFile is the receipt with its signature, a Sigstore bundle over the
// canonical form of the receipt.
type receiptFile struct {
	Receipt   jsontext.Value `json:"receipt"`
	Signature jsontext.Value `json:"signature"`
}

// SignReceipt makes the file that is carried out.
func SignReceipt(ctx context.Context, signer signing.Signer, r *Receipt) ([]byte, error) {
	payload, err := encodeCanonical(r)
	if err != nil {
		return nil, err
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	signature, err := signing.Sign(ctx, signer, payload)
	if err != nil {
		return nil, err
	}
	b, err := encodeCanonical(receiptFile{Receipt: payload, Signature: signature})
	if err == nil && len(b) > maxReceipt {
		return nil, problem.New("format/too-large", "the receipt has %d bytes, more than the %d allowed", len(b), maxReceipt)
	}
	return b, err
}

// OpenReceipt verifies a receipt by the role receipt: of the gate that it names,
// and only then gives it.
func OpenReceipt(b []byte, trust *signing.Trust, at time.Time) (*Receipt, error) {
	var file receiptFile
	if err := decodeStrict("the receipt", b, maxReceipt, &file); err != nil {
		return nil, err
	}
	// Which gate's keys to hold it against, only the receipt itself can say.
	var claimed struct {
		Gate string `json:"gate"`
	}
	if err := decodeLoose("the receipt", file.Receipt, &claimed); err != nil {
		return nil, err
	}
	if !ValidGateID(claimed.Gate) {
		return nil, problem.New("format/invalid", "the receipt names the gate %.60q, which is no gate id", claimed.Gate)
	}
	if _, err := trust.Vouch(file.Receipt, [][]byte{file.Signature}, signing.ReceiptRole(claimed.Gate), at); err != nil {
		return nil, fmt.Errorf("the receipt of %s is not genuine: %w", claimed.Gate, err)
	}
	var r Receipt
	if err := decodeStrict("the receipt", file.Receipt, maxReceipt, &r); err != nil {
		return nil, err
	}
	payload, err := encodeCanonical(&r)
	if err != nil {
		return nil, err
	}
	canonical, err := encodeCanonical(receiptFile{Receipt: payload, Signature: file.Signature})
	if err != nil || string(canonical) != string(b) {
		return nil, problem.New("format/invalid", "the receipt is not in canonical form")
	}
	return &r, r.validate()
}

func (r *Receipt) validate() error {
	bad := func(format string, args ...any) error {
		return problem.New("format/invalid", "the receipt "+format, args...)
	}
	switch {
	case r.Format != FormatReceipt:
		return problem.New("format/unknown", "the receipt has format %.60q, this program reads %s", r.Format, FormatReceipt).
			Hint("use a newer version of packhof")
	case !ValidGateID(r.Gate):
		return bad("names the gate %.60q, which is no gate id", r.Gate)
	case r.Program == "" || len(r.Program) > 128 || !printable(r.Program):
		return bad("does not name its program")
	case !validReads(r.Reads):
		return bad("does not say in the right form what the gate reads")
	case len(r.Channels) > maxReceiptChannels:
		return bad("lists %d channels", len(r.Channels))
	}
	bundles, lacks := 0, 0
	for i, c := range r.Channels {
		if i > 0 && r.Channels[i-1].Channel >= c.Channel {
			return bad("does not list its channels in order, each once")
		}
		if err := c.validate(); err != nil {
			return bad("on the channel %.60q %w", c.Channel, err)
		}
		bundles += len(c.Bundles)
		for _, b := range c.Bundles {
			lacks += len(b.Lacks)
		}
	}
	if bundles > maxReceiptBundles || lacks > maxReceiptLacks {
		return bad("lists %d bundles and %d pieces that are lacking, more than allowed", bundles, lacks)
	}
	return nil
}

func (c *ReceiptChannel) validate() error {
	if !ValidChannel(c.Channel) || !inStream(c.Epoch) || !inStream(c.Serial) {
		return fmt.Errorf("has no place in a stream")
	}
	for i, b := range c.Bundles {
		if !inStream(b.Epoch) || !inStream(b.Serial) || b.Epoch > c.Epoch || b.Epoch == c.Epoch && b.Serial > c.Serial {
			return fmt.Errorf("lists serial %d of epoch %d, after the newest", b.Serial, b.Epoch)
		}
		if i > 0 && compareReceiptBundles(c.Bundles[i-1], b) >= 0 {
			return fmt.Errorf("does not list its bundles in order, each once")
		}
		if err := b.validate(); err != nil {
			return err
		}
	}
	return nil
}

func (b *ReceiptBundle) validate() error {
	switch b.State {
	case HoldsAll, HoldsNone:
		if len(b.Lacks) > 0 {
			return fmt.Errorf("lists what is lacking of a bundle in the state %q", b.State)
		}
	case HoldsPart:
		if len(b.Lacks) == 0 {
			return fmt.Errorf("lists nothing that is lacking of a bundle in the state %q", b.State)
		}
	default:
		return fmt.Errorf("has a bundle in the state %.60q", b.State)
	}
	return validatePieces(b.Lacks)
}

func compareReceiptBundles(a, b ReceiptBundle) int {
	return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Serial, b.Serial))
}

// inStream tells whether a number can be an epoch or a serial.
func inStream(n int64) bool { return n >= 1 && n <= 1<<31 }

// validatePieces accepts pieces in order, none empty unless its blob may be,
// none in another.
func validatePieces(pieces []Piece) error {
	for i, p := range pieces {
		if p.Blob.IsZero() || p.Offset < 0 || p.Length < 0 || p.Length > maxBlobSize-p.Offset {
			return fmt.Errorf("has as its piece %d, of the blob %s, %d bytes from byte %d on", i+1, p.Blob, p.Length, p.Offset)
		}
		if i == 0 {
			continue
		}
		last := pieces[i-1]
		if c := last.Blob.Compare(p.Blob); c > 0 || c == 0 && (p.Offset < last.Offset+last.Length || p.Offset == last.Offset) {
			return fmt.Errorf("does not list pieces in order, each once: its piece %d, %d bytes from byte %d on of the blob %s", i+1, p.Length, p.Offset, p.Blob)
		}
	}
	return nil
}

// Holds tells which of a manifest's bytes the gate has, by its own word: nothing
// of a bundle that the receipt does not list.
func (r *Receipt) Holds(m *Manifest, manifest Digest) (Holding, []Piece) {
	i := slices.IndexFunc(r.Channels, func(c ReceiptChannel) bool { return c.Channel == m.Channel })
	if i < 0 {
		return HoldsNone, nil
	}
	for _, b := range r.Channels[i].Bundles {
		if b.Manifest == manifest && b.Epoch == m.Epoch && b.Serial == m.Serial {
			return b.State, b.Lacks
		}
	}
	return HoldsNone, nil
}

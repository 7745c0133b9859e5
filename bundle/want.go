package bundle

import (
	"github.com/packhof/packhof/internal/problem"
)

// FormatWant is the format of a want list.
const FormatWant = "packhof.want/v1"

const (
	maxWant       = 16 << 20
	maxWantPieces = 100_000
)

// Want is a want list: what a gate lacks of a bundle that it has accepted,
// carried back out. It proves nothing and needs no signature: what it can bring
// about is that signed content is sent once more.
type Want struct {
	Format   string  `json:"format"`
	Gate     string  `json:"gate"`
	Created  Instant `json:"created"`
	Channel  string  `json:"channel"`
	Epoch    int64   `json:"epoch"`
	Serial   int64   `json:"serial"`
	Manifest Digest  `json:"manifest"`
	Pieces   []Piece `json:"pieces"` // in order; of large blobs whole chunks
}

// NewWant makes the want list of a bundle. What is lacking of a large blob is
// widened to whole chunks, and the list is cut at its limit: what it leaves out
// is on the next one.
func NewWant(gate string, at Instant, m *Manifest, manifest Digest, lacks []Piece) *Want {
	w := &Want{Format: FormatWant, Gate: gate, Created: at, Channel: m.Channel, Epoch: m.Epoch, Serial: m.Serial, Manifest: manifest, Pieces: []Piece{}}
	for _, p := range lacks {
		blob, ok := m.Blob(p.Blob)
		if !ok || len(w.Pieces) == maxWantPieces {
			continue
		}
		end := p.Offset + p.Length
		p.Offset -= p.Offset % ChunkSize
		if end%ChunkSize != 0 {
			end = min(blob.Size, end-end%ChunkSize+ChunkSize)
		}
		p.Length = end - p.Offset
		if n := len(w.Pieces) - 1; n >= 0 && w.Pieces[n].Blob == p.Blob && p.Offset <= w.Pieces[n].Offset+w.Pieces[n].Length {
			w.Pieces[n].Length = max(w.Pieces[n].Length, end-w.Pieces[n].Offset)
			continue
		}
		w.Pieces = append(w.Pieces, p)
	}
	return w
}

// EncodeWant gives the canonical bytes of a want list.
func EncodeWant(w *Want) ([]byte, error) {
	b, err := encodeCanonical(w)
	if err != nil {
		return nil, err
	}
	_, err = ParseWant(b)
	return b, err
}

// ParseWant parses strictly. Whether the pieces are of the bundle, PlanSet asks.
func ParseWant(b []byte) (*Want, error) {
	var w Want
	if err := decodeStrict("the want list", b, maxWant, &w); err != nil {
		return nil, err
	}
	switch {
	case w.Format != FormatWant:
		return nil, problem.New("format/unknown", "the want list has format %.60q, this program reads %s", w.Format, FormatWant)
	case !ValidGateID(w.Gate):
		return nil, problem.New("format/invalid", "the want list names the gate %.60q, which is no gate id", w.Gate)
	case !ValidChannel(w.Channel) || !inStream(w.Epoch) || !inStream(w.Serial) || w.Manifest.IsZero():
		return nil, problem.New("format/invalid", "the want list is about no bundle")
	case len(w.Pieces) == 0 || len(w.Pieces) > maxWantPieces:
		return nil, problem.New("format/invalid", "the want list has %d pieces, 1 to %d are allowed", len(w.Pieces), maxWantPieces)
	}
	if err := validatePieces(w.Pieces); err != nil {
		return nil, problem.New("format/invalid", "the want list %w", err)
	}
	return &w, nil
}

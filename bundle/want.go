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

// NewWant makes the want list of a bundle. What is lacking is widened to what
// can be proven alone, and the list is cut at its limit: what it leaves out is
// on the next one.
func NewWant(gate string, at Instant, m *Manifest, manifest Digest, lacks []Piece) *Want {
	pieces := Provable(m, lacks)
	return &Want{
		Format: FormatWant, Gate: gate, Created: at, Channel: m.Channel, Epoch: m.Epoch, Serial: m.Serial, Manifest: manifest,
		Pieces: pieces[:min(len(pieces), maxWantPieces)],
	}
}

// Provable widens pieces of a manifest's blobs to what can be proven without the
// rest of their blob: whole chunks where there is a chunk list, the whole blob
// elsewhere. Blobs that the manifest does not name are left out.
func Provable(m *Manifest, pieces []Piece) []Piece {
	wide := []Piece{}
	for _, p := range pieces {
		blob, ok := m.Blob(p.Blob)
		if !ok {
			continue
		}
		if blob.Chunks == nil {
			p = Piece{Blob: p.Blob, Length: blob.Size}
		}
		end := p.Offset + p.Length
		p.Offset -= p.Offset % ChunkSize
		if blob.Chunks != nil && end%ChunkSize != 0 {
			end = min(blob.Size, end-end%ChunkSize+ChunkSize)
		}
		p.Length = end - p.Offset
		if n := len(wide) - 1; n >= 0 && wide[n].Blob == p.Blob && p.Offset <= wide[n].Offset+wide[n].Length {
			wide[n].Length = max(wide[n].Length, end-wide[n].Offset)
			continue
		}
		wide = append(wide, p)
	}
	return wide
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

package bundle

import (
	"fmt"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// FormatVolume is the format of volume.json.
const FormatVolume = "packhof.volume/v1"

const (
	// SegmentSize is how a blob over 4 GiB - 1 is cut: whole chunks, and every
	// piece small enough for FAT32 and for ustar.
	SegmentSize = 63 * ChunkSize
	// maxHeadBlob is the largest metadata blob that stands before the content.
	maxHeadBlob = 64 << 20
)

// VolumeInfo is volume.json: where in its volume set a volume stands. It is
// unsigned, proves nothing, and may name only what the manifest names.
type VolumeInfo struct {
	Format   string    `json:"format"`
	Manifest Digest    `json:"manifest"`
	Set      Digest    `json:"set"` // SHA-256 of the canonical segments
	Number   int       `json:"number"`
	Count    int       `json:"count"`
	Segments []Segment `json:"segments"`
}

// Segment is a piece of a content blob and the entry that holds it.
type Segment struct {
	Volume int    `json:"volume"`
	Blob   Digest `json:"blob"`
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
	Entry  string `json:"entry"`
}

// standsInHead tells metadata, which comes before all content, from the rest.
// A metadata blob too large for that is treated as content.
func standsInHead(b Blob) bool { return b.Role == RoleMetadata && b.Size <= maxHeadBlob }

// completeSegments is the segment plan of a complete set in one volume.
func completeSegments(m *Manifest) []Segment {
	segments := []Segment{}
	for _, b := range m.Blobs {
		if standsInHead(b) {
			continue
		}
		segments = append(segments, cutBlob(b)...)
	}
	return segments
}

func cutBlob(b Blob) []Segment {
	name := dirBlobs + b.Digest.Hex()
	if b.Size <= maxEntrySize {
		return []Segment{{Volume: 1, Blob: b.Digest, Length: b.Size, Entry: name}}
	}
	var pieces []Segment
	for offset := int64(0); offset < b.Size; offset += SegmentSize {
		pieces = append(pieces, Segment{
			Volume: 1, Blob: b.Digest, Offset: offset, Length: min(SegmentSize, b.Size-offset),
			Entry: fmt.Sprintf("%s.s%04d", name, len(pieces)),
		})
	}
	return pieces
}

// completeVolume makes volume.json of a complete set in one volume.
func completeVolume(m *Manifest, digest Digest) (*VolumeInfo, error) {
	segments := completeSegments(m)
	plan, err := encodeCanonical(segments)
	if err != nil {
		return nil, err
	}
	return &VolumeInfo{Format: FormatVolume, Manifest: digest, Set: cas.DigestOf(plan), Number: 1, Count: 1, Segments: segments}, nil
}

// parseVolume parses volume.json and holds it against the manifest: for a
// complete set in one volume there is exactly one right answer.
func parseVolume(b []byte, m *Manifest, digest Digest) (*VolumeInfo, error) {
	var v VolumeInfo
	if err := decodeStrict(nameVolume, b, maxVolumeJSON, &v); err != nil {
		return nil, err
	}
	if v.Format != FormatVolume {
		return nil, problem.New("format/unknown", "volume.json has format %.60q, this program reads %s", v.Format, FormatVolume)
	}
	if v.Manifest != digest {
		return nil, problem.New("volume/foreign", "volume.json belongs to another bundle").
			With("want:  "+digest.String(), "got:   "+v.Manifest.String())
	}
	if v.Number != 1 || v.Count != 1 {
		return nil, problem.New("volume/not-complete", "this is volume %d of %d; this version reads complete sets in one volume", v.Number, v.Count).
			Hint("use a version of packhof that reads volume sets")
	}
	want, err := completeVolume(m, digest)
	if err != nil {
		return nil, err
	}
	canonical, err := encodeCanonical(want)
	if err != nil {
		return nil, err
	}
	if string(canonical) != string(b) {
		return nil, problem.New("format/invalid", "volume.json does not describe the complete set of this manifest")
	}
	return want, nil
}

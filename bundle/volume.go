package bundle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// FormatVolume is the format of volume.json.
const FormatVolume = "packhof.volume/v1"

const (
	// SegmentSize is how a blob over 4 GiB - 1 is cut: whole chunks, and every
	// piece small enough for FAT32 and for ustar.
	SegmentSize = 63 * ChunkSize
	// MaxVolumes is how many volumes a set can have.
	MaxVolumes = 9999
	// maxPieces is how many entries of one set a blob can be cut into.
	maxPieces = 10_000
	// maxHeadBlob is the largest metadata blob that stands before the content.
	maxHeadBlob = 64 << 20
	// maxRepeated is how much metadata is worth having in every volume.
	maxRepeated = 16 << 20
)

// VolumeInfo is volume.json: where in its volume set a volume stands. It is
// unsigned, proves nothing, and may name only what the manifest names.
type VolumeInfo struct {
	Format   string    `json:"format"`
	Manifest Digest    `json:"manifest"`
	Set      Digest    `json:"set"` // SHA-256 of the canonical segments
	Number   int       `json:"number"`
	Count    int       `json:"count"`
	Segments []Segment `json:"segments"` // of the whole set
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

// metadataOf lists the blobs that stand before the content of volume number.
func metadataOf(m *Manifest, number int) []Blob {
	var blobs []Blob
	var total int64
	for _, b := range m.Blobs {
		if standsInHead(b) {
			blobs = append(blobs, b)
			total += b.Size
		}
	}
	if number > 1 && total > maxRepeated {
		return nil
	}
	return blobs
}

// entryName is the name of a blob's entry, or of its piece number n.
func entryName(d Digest) string { return dirBlobs + d.Hex() }

func pieceName(d Digest, n int) string { return fmt.Sprintf("%s.s%04d", entryName(d), n) }

// newVolumeInfo makes volume.json of the first volume of a set.
func newVolumeInfo(manifest Digest, segments []Segment, count int) (*VolumeInfo, error) {
	plan, err := encodeCanonical(segments)
	if err != nil {
		return nil, err
	}
	return &VolumeInfo{Format: FormatVolume, Manifest: manifest, Set: cas.DigestOf(plan), Number: 1, Count: count, Segments: segments}, nil
}

// numbered is the same for another volume of the set.
func (v *VolumeInfo) numbered(number int) *VolumeInfo {
	other := *v
	other.Number = number
	return &other
}

// isComplete tells whether the set brings all content of the manifest.
func (v *VolumeInfo) isComplete(m *Manifest) bool {
	held := map[Digest]int64{}
	for _, s := range v.Segments {
		held[s.Blob] += s.Length
	}
	for _, b := range m.Blobs {
		if _, ships := held[b.Digest]; !standsInHead(b) && (!ships || held[b.Digest] != b.Size) {
			return false
		}
	}
	return true
}

// fileName is the volume's name on a medium.
func (v *VolumeInfo) fileName(m *Manifest, complete bool) string {
	name := BaseName(m)
	if !complete {
		name += "." + v.Set.Hex()[:8]
	}
	if v.Count > 1 {
		name += fmt.Sprintf(".v%04d", v.Number)
	}
	return name + ".tar"
}

// own are the segments of this one volume: those of a set are in the order of
// its volumes.
func (v *VolumeInfo) own() []Segment {
	begin := func(number int) int {
		at, _ := slices.BinarySearchFunc(v.Segments, number, func(s Segment, n int) int { return cmp.Compare(s.Volume, n) })
		return at
	}
	return v.Segments[begin(v.Number):begin(v.Number+1)]
}

// parseVolume parses volume.json and holds it against the manifest: it may say
// only how the manifest's content is cut and spread, and only in one form.
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
	if slices.ContainsFunc(v.Segments, func(s Segment) bool { return s.Blob.IsZero() }) {
		return nil, problem.New("format/invalid", "volume.json is no plan for the content of this manifest: a segment of the blob sha256:00…, which is none")
	}
	want, err := newVolumeInfo(digest, v.Segments, v.Count)
	if err != nil {
		return nil, err
	}
	canonical, err := encodeCanonical(want.numbered(v.Number))
	if err != nil {
		return nil, err
	}
	if string(canonical) != string(b) {
		return nil, problem.New("format/invalid", "volume.json is not in canonical form, or its set is not the digest of its segments")
	}
	if err := v.validate(m); err != nil {
		return nil, problem.New("format/invalid", "volume.json is no plan for the content of this manifest: %w", err)
	}
	return &v, nil
}

func (v *VolumeInfo) validate(m *Manifest) error {
	if v.Count < 1 || v.Count > MaxVolumes || v.Number < 1 || v.Number > v.Count {
		return fmt.Errorf("volume %d of %d", v.Number, v.Count)
	}
	if len(v.Segments) > maxEntries {
		return fmt.Errorf("%d segments, more than %d", len(v.Segments), maxEntries)
	}
	w := segmentWalk{manifest: m, volume: 1}
	for i, s := range v.Segments {
		if err := w.step(s); err != nil {
			return fmt.Errorf("segment %d: %w", i+1, err)
		}
	}
	if w.volume != v.Count {
		return fmt.Errorf("it has segments of %d volumes, and counts %d", w.volume, v.Count)
	}
	return nil
}

// segmentWalk goes through the segments of a set in their one order: by blob
// and offset, spread over volumes that only go up, none of them left out.
type segmentWalk struct {
	manifest *Manifest
	volume   int // of the last segment
	started  bool
	blob     Blob
	end      int64 // of the last segment within blob
	pieces   int   // of blob so far; a whole one counts as well
}

func (w *segmentWalk) step(s Segment) error {
	if s.Volume != w.volume && (s.Volume != w.volume+1) {
		return fmt.Errorf("volume %d after volume %d", s.Volume, w.volume)
	}
	w.volume = s.Volume
	if err := w.enter(s); err != nil {
		return err
	}
	if s.Offset < w.end || s.Length < 0 || s.Length > maxEntrySize || s.Length > w.blob.Size-s.Offset || s.Length == 0 && w.blob.Size > 0 {
		return fmt.Errorf("bytes %d and %d more, of a blob with %d bytes, after byte %d", s.Offset, s.Length, w.blob.Size, w.end)
	}
	if s.Offset%blockSize != 0 || s.Length%blockSize != 0 && s.Offset+s.Length != w.blob.Size {
		return fmt.Errorf("bytes %d and %d more, which do not begin and end at multiples of %d", s.Offset, s.Length, blockSize)
	}
	want := entryName(s.Blob)
	if s.Length != w.blob.Size {
		want = pieceName(s.Blob, w.pieces)
	}
	if s.Entry != want || w.pieces == maxPieces {
		return fmt.Errorf("the entry %.120q, where %q belongs", s.Entry, want)
	}
	w.end = s.Offset + s.Length
	w.pieces++
	return nil
}

// enter goes on with the same blob or begins a later one.
func (w *segmentWalk) enter(s Segment) error {
	if w.started && s.Blob == w.blob.Digest {
		if w.end == w.blob.Size {
			return fmt.Errorf("the blob %s was whole already", s.Blob)
		}
		return nil
	}
	if w.started && s.Blob.Compare(w.blob.Digest) < 0 {
		return fmt.Errorf("the blob %s is out of order", s.Blob)
	}
	b, ok := w.manifest.Blob(s.Blob)
	if !ok || standsInHead(b) {
		return fmt.Errorf("the blob %s is no content of the manifest", s.Blob)
	}
	w.started, w.blob, w.end, w.pieces = true, b, 0, 0
	return nil
}

package bundle

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/packhof/packhof/internal/agefile"
	"github.com/packhof/packhof/internal/problem"
)

// Piece is a run of bytes of a content blob.
type Piece struct {
	Blob   Digest `json:"blob"`
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
}

// SetOptions says how a bundle is shipped.
type SetOptions struct {
	// Limits are the largest sizes of the volumes in bytes, headers and all, in
	// the order of the volumes; the last one holds for every further one. With
	// none there is one volume of any size.
	Limits []int64
	// Only names the content that the set brings; nil is all of it. Metadata
	// always comes along.
	Only []Piece
	// Recipients are whom the volumes are encrypted to; none for volumes in the
	// clear. Limits count what encryption adds.
	Recipients []agefile.Recipient
}

// SetPlan is a volume set that can be written: every name and size is settled.
type SetPlan struct {
	manifest *Manifest
	head     Head
	derived  []headEntry // what follows from the manifest alone
	info     *VolumeInfo
	complete bool      // the set brings all content
	metadata [2][]Blob // of the first volume, and of any other
	around   [2][]byte // volume.json before and behind the volume's number: all else in it is the same
	limits   []int64
	// Of encrypted volumes: whom they are for, and what their names begin with.
	recipients []agefile.Recipient
	stem       string
}

// cutChunks is how much a volume must hold for cuts at chunks to be worth the
// room that they leave: such a volume's share of a large blob can be proven by
// the signed chunk list alone.
const cutChunks = 16 * ChunkSize

// PlanSet plans a volume set of a bundle. Problems: volume/too-small when a
// volume has no room for anything, volume/too-many beyond MaxVolumes.
func PlanSet(h Head, o SetOptions) (*SetPlan, error) {
	m, err := parseManifest(h.Manifest)
	if err != nil {
		return nil, err
	}
	sortHead(&h)
	index, err := buildIndex(m)
	if err != nil {
		return nil, err
	}
	p := &SetPlan{manifest: m, head: h, limits: o.Limits, recipients: o.Recipients, stem: unnamed, derived: []headEntry{{nameLayout, []byte(ociLayout)}, {nameIndex, index}}}
	pieces := o.Only
	if pieces == nil {
		pieces = allContent(m)
	} else if pieces, err = orderPieces(m, pieces); err != nil {
		return nil, err
	}
	// How long volume.json is follows from the cuts, and they from that.
	for reserved := int64(0); ; {
		if p.info, err = p.spread(pieces, reserved); err != nil {
			return nil, err
		}
		longest, err := encodeCanonical(p.info.numbered(p.info.Count))
		if err != nil {
			return nil, err
		}
		if int64(len(longest)) <= reserved || len(o.Limits) == 0 {
			break
		}
		reserved = int64(len(longest))
	}
	encoded, err := encodeCanonical(p.info)
	if err != nil {
		return nil, err
	}
	if _, err = parseVolume(encoded, m, h.Digest()); err != nil {
		return nil, err
	}
	p.complete = p.info.isComplete(m)
	p.metadata = [2][]Blob{metadataOf(m, 1), metadataOf(m, 2)}
	number := []byte(`"number":`)
	before, behind, found := bytes.Cut(encoded, slices.Concat(number, []byte{'1'}))
	if !found {
		return nil, fmt.Errorf("the first volume does not say that it is: %s", encoded)
	}
	p.around = [2][]byte{slices.Concat(before, number), behind}
	return p, nil
}

// PlanComplete plans the complete set of a bundle in one volume.
func PlanComplete(h Head) (*VolumePlan, error) {
	set, err := PlanSet(h, SetOptions{})
	if err != nil {
		return nil, err
	}
	return set.Volume(1)
}

// Count is how many volumes the set has.
func (p *SetPlan) Count() int { return p.info.Count }

// ID is the set's identity: the digest of its segment plan.
func (p *SetPlan) ID() Digest { return p.info.Set }

// IsComplete tells whether the set brings all content.
func (p *SetPlan) IsComplete() bool { return p.complete }

// Manifest is the identity of the bundle.
func (p *SetPlan) Manifest() Digest { return p.head.Digest() }

// ManifestUnsafe is the manifest that is being shipped, for the exporter's own
// report: nobody has vouched for it here. Callers do not change it.
func (p *SetPlan) ManifestUnsafe() *Manifest { return p.manifest }

// allContent is every content blob, whole.
func allContent(m *Manifest) []Piece {
	var pieces []Piece
	for _, b := range m.Blobs {
		if !standsInHead(b) {
			pieces = append(pieces, Piece{Blob: b.Digest, Length: b.Size})
		}
	}
	return pieces
}

// orderPieces sorts what is asked for and joins what touches or overlaps.
// Metadata is left out, since it comes along anyway.
func orderPieces(m *Manifest, asked []Piece) ([]Piece, error) {
	sorted := slices.Clone(asked)
	slices.SortFunc(sorted, func(a, b Piece) int {
		if c := a.Blob.Compare(b.Blob); c != 0 {
			return c
		}
		return int(min(1, max(-1, a.Offset-b.Offset)))
	})
	pieces := []Piece{}
	for _, p := range sorted {
		b, ok := m.Blob(p.Blob)
		switch {
		case !ok || p.Offset < 0 || p.Length < 0 || p.Length > b.Size-p.Offset:
			return nil, problem.New("want/foreign", "of the blob %s, %d bytes from byte %d on are not in this bundle", p.Blob, p.Length, p.Offset)
		case p.Offset%blockSize != 0 || p.Length%blockSize != 0 && p.Offset+p.Length != b.Size || p.Length == 0 && b.Size > 0:
			return nil, problem.New("want/odd-piece", "of the blob %s, %d bytes from byte %d on are no piece of a volume", p.Blob, p.Length, p.Offset).
				With(fmt.Sprintf("want:  a piece that begins and ends at multiples of %d bytes, or where the blob ends", blockSize)).
				Hint("have the gate write the list again:  packhof-gate want CASE FILE")
		case standsInHead(b):
			continue
		}
		if n := len(pieces) - 1; n >= 0 && pieces[n].Blob == p.Blob && p.Offset <= pieces[n].Offset+pieces[n].Length {
			pieces[n].Length = max(pieces[n].Length, p.Offset+p.Length-pieces[n].Offset)
			continue
		}
		pieces = append(pieces, p)
	}
	return pieces, nil
}

// limit is the largest size of volume number in the clear; 0 is none.
func (p *SetPlan) limit(number int) int64 {
	asked := p.fileLimit(number)
	if asked == 0 || !p.isEncrypted() {
		return asked
	}
	return max(1, agefile.Capacity(asked, len(p.recipients)))
}

// fileLimit is the largest size of the file of volume number; 0 is none.
func (p *SetPlan) fileLimit(number int) int64 {
	if len(p.limits) == 0 {
		return 0
	}
	return p.limits[min(number, len(p.limits))-1]
}

// spread cuts the pieces and gives each to a volume, as full as the limits
// allow, with reserved bytes for volume.json.
func (p *SetPlan) spread(pieces []Piece, reserved int64) (*VolumeInfo, error) {
	s := spreader{set: p, reserved: reserved, segments: []Segment{}}
	if err := s.nextVolume(); err != nil {
		return nil, err
	}
	for _, piece := range pieces {
		if err := s.place(piece); err != nil {
			return nil, err
		}
	}
	return newVolumeInfo(p.head.Digest(), s.segments, s.number)
}

type spreader struct {
	set      *SetPlan
	reserved int64
	segments []Segment
	number   int   // of the volume being filled
	limit    int64 // of that volume
	used     int64 // bytes of its entries, without SHA256SUMS and the end
	sums     int64 // bytes of its SHA256SUMS
	content  bool  // it has some
	last     Digest
	pieces   int // of the blob last
}

func (s *spreader) add(name string, size int64) {
	s.used += entrySpan(size)
	s.sums += int64(len(sumLine(Digest{}, name)))
}

// nextVolume begins a volume with everything that stands before its content.
func (s *spreader) nextVolume() error {
	if s.number == MaxVolumes {
		return problem.New("volume/too-many", "the bundle would need more than %d volumes", MaxVolumes).Hint("choose larger volumes with --volume-size")
	}
	s.number++
	s.limit, s.used, s.sums, s.content = s.set.limit(s.number), 0, 0, false
	for _, e := range append(s.set.head.entries(), s.set.derived...) {
		s.add(e.name, int64(len(e.data)))
	}
	s.add(nameVolume, s.reserved)
	for _, b := range metadataOf(s.set.manifest, s.number) {
		s.add(entryName(b.Digest), b.Size)
	}
	if s.limit > 0 && s.length("", 0) > s.limit {
		return s.tooSmall(s.length("", 0))
	}
	return nil
}

// length is how long the volume would be with one more entry of this name.
func (s *spreader) length(name string, size int64) int64 {
	used, sums := s.used, s.sums
	if name != "" {
		used, sums = used+entrySpan(size), sums+int64(len(sumLine(Digest{}, name)))
	}
	return used + entrySpan(sums) + endSize
}

func (s *spreader) tooSmall(need int64) error {
	return problem.New("volume/too-small", "volume %d has no room for anything but what every volume begins with", s.number).
		With(fmt.Sprintf("needed:  more than %d bytes", s.set.onMedium(need)), fmt.Sprintf("limit:   %d bytes", s.set.fileLimit(s.number))).
		Hint("choose larger volumes with --volume-size")
}

// place gives a piece to volumes, cut where it has to be.
func (s *spreader) place(p Piece) error {
	blob, _ := s.set.manifest.Blob(p.Blob)
	if p.Blob != s.last {
		s.last, s.pieces = p.Blob, 0
	}
	name, whole := entryName(p.Blob), p.Length == blob.Size && blob.Size <= maxEntrySize
	if !whole {
		return s.placeCut(p)
	}
	if !s.fits(name, p.Length) && s.cut(p) == 0 {
		if err := s.leave(p); err != nil {
			return err
		}
	}
	switch {
	case s.fits(name, p.Length):
		s.put(Segment{Blob: p.Blob, Length: p.Length, Entry: name})
		return nil
	case p.Length == 0:
		return s.tooSmall(s.length(name, 0))
	}
	return s.placeCut(p)
}

// leave goes on to the next volume, unless this one has nothing that the next
// would not begin with as well.
func (s *spreader) leave(p Piece) error {
	if !s.content && len(metadataOf(s.set.manifest, s.number)) == len(metadataOf(s.set.manifest, s.number+1)) {
		return s.tooSmall(s.length(pieceName(p.Blob, s.pieces), blockSize))
	}
	return s.nextVolume()
}

// placeCut places a piece that cannot be one whole entry.
func (s *spreader) placeCut(p Piece) error {
	for p.Length > 0 {
		length := s.cut(p)
		if length == 0 {
			if err := s.leave(p); err != nil {
				return err
			}
			continue
		}
		if s.pieces == maxPieces {
			return problem.New("volume/too-small", "the blob %s would be cut into more than %d pieces", p.Blob, maxPieces).
				Hint("choose larger volumes with --volume-size")
		}
		s.put(Segment{Blob: p.Blob, Offset: p.Offset, Length: length, Entry: pieceName(p.Blob, s.pieces)})
		p.Offset, p.Length = p.Offset+length, p.Length-length
	}
	return nil
}

func (s *spreader) fits(name string, size int64) bool {
	return s.limit == 0 || s.length(name, size) <= s.limit
}

// cut is how much of a piece goes into what is left of the volume, 0 for
// nothing that is worth an entry.
func (s *spreader) cut(p Piece) int64 {
	most := min(p.Length, SegmentSize)
	name := pieceName(p.Blob, s.pieces)
	if s.fits(name, most) {
		return most
	}
	unit := int64(blockSize)
	if s.limit >= cutChunks {
		unit = ChunkSize
	}
	end := p.Offset + s.limit - s.length(name, 0)
	return max(0, min(most, end/unit*unit-p.Offset))
}

func (s *spreader) put(g Segment) {
	g.Volume = s.number
	s.add(g.Entry, g.Length)
	s.segments = append(s.segments, g)
	s.content = true
	s.pieces++
}

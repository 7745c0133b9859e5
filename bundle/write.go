package bundle

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/packhof/packhof/internal/agefile"
	"github.com/packhof/packhof/internal/cas"
)

// VolumePlan is a volume that can be written: every name and size is settled,
// so that its length is known before the first byte.
type VolumePlan struct {
	manifest *Manifest
	info     *VolumeInfo
	head     []headEntry
	blobs    []plannedEntry
	size     int64 // in the clear
	name     string
	onMedium int64
	// recipients are whom the file is encrypted to; none where it is not.
	recipients []agefile.Recipient
}

// plannedEntry is the entry of a blob, or of a piece of one.
type plannedEntry struct {
	Segment
	blob Blob
}

func (e plannedEntry) whole() bool { return e.Length == e.blob.Size }

// Volume plans one volume of the set, the first being number 1.
func (p *SetPlan) Volume(number int) (*VolumePlan, error) {
	v := &VolumePlan{manifest: p.manifest, info: p.info.numbered(number), blobs: p.entriesOf(number), recipients: p.recipients}
	volumeJSON := slices.Concat(p.around[0], strconv.AppendInt(nil, int64(number), 10), p.around[1])
	v.head = append(append(p.head.entries(), headEntry{nameVolume, volumeJSON}), p.derived...)
	v.size = p.length(number, v.blobs)
	v.onMedium, v.name = p.onMedium(v.size), p.fileName(number, p.complete)
	if limit := p.limit(number); limit > 0 && v.size > limit {
		return nil, fmt.Errorf("volume %d was planned with %d bytes, and at most %d were asked for", number, v.size, limit)
	}
	return v, nil
}

// entriesOf lists the blobs of a volume in their order: metadata, then the
// volume's own segments.
func entriesOf(m *Manifest, info *VolumeInfo) []plannedEntry {
	return entriesBehind(metadataOf(m, info.Number), m, info)
}

func entriesBehind(metadata []Blob, m *Manifest, info *VolumeInfo) []plannedEntry {
	var list []plannedEntry
	for _, b := range metadata {
		list = append(list, plannedEntry{Segment{Volume: info.Number, Blob: b.Digest, Length: b.Size, Entry: entryName(b.Digest)}, b})
	}
	for _, s := range info.own() {
		b, _ := m.Blob(s.Blob)
		list = append(list, plannedEntry{s, b})
	}
	return list
}

// entriesOf is the same for a volume that is planned.
func (p *SetPlan) entriesOf(number int) []plannedEntry {
	return entriesBehind(p.metadata[min(number, 2)-1], p.manifest, p.info.numbered(number))
}

// VolumeSize is the length of the file of volume number in bytes.
func (p *SetPlan) VolumeSize(number int) int64 {
	return p.onMedium(p.length(number, p.entriesOf(number)))
}

// length is how long volume number is in the clear, with these blobs.
func (p *SetPlan) length(number int, blobs []plannedEntry) int64 {
	var small []expected
	for _, e := range append(p.head.entries(), p.derived...) {
		small = append(small, expected{e.name, int64(len(e.data))})
	}
	volumeJSON := len(p.around[0]) + len(strconv.Itoa(number)) + len(p.around[1])
	return lengthOf(append(small, expected{nameVolume, int64(volumeJSON)}), blobs)
}

// lengthOf is how long a volume with these entries is.
func lengthOf(small []expected, blobs []plannedEntry) int64 {
	var total, sums int64
	add := func(name string, size int64) {
		total += entrySpan(size)
		sums += int64(len(sumLine(Digest{}, name)))
	}
	for _, e := range small {
		add(e.name, e.size)
	}
	for _, e := range blobs {
		add(e.Entry, e.Length)
	}
	return total + entrySpan(sums) + endSize
}

// Size is the length of the volume's file in bytes.
func (p *VolumePlan) Size() int64 { return p.onMedium }

// ManifestUnsafe is the manifest that is being shipped, for the exporter's own
// report: nobody has vouched for it here. Callers do not change it.
func (p *VolumePlan) ManifestUnsafe() *Manifest { return p.manifest }

// FileName is the volume's name on a medium. That of an encrypted one is chosen
// when its set is written; before, it has an x for each random digit.
func (p *VolumePlan) FileName() string { return p.name }

func sumLine(d Digest, name string) string { return d.Hex() + "  " + name + "\n" }

// Write writes the volume, in the clear. Every blob is hashed while it is read; wrong
// content ends with a cas.CorruptError. observe, when given, is told of every
// piece of blob data written.
func (p *VolumePlan) Write(ctx context.Context, w io.Writer, content Content, observe func(n int64)) error {
	return (&volumeWriter{plan: p, w: w, content: content, observe: observe}).run(ctx)
}

// mark is a place in a volume at which writing can stop and go on.
type mark struct {
	Position int64             `json:"position"` // bytes of the volume before it
	Entry    int               `json:"entry"`    // blob entries that are whole before it
	Offset   int64             `json:"offset"`   // bytes of the next one that are before it
	Hash     []byte            `json:"hash"`     // saved SHA-256 of those, when it is a piece
	Pieces   map[string]Digest `json:"pieces"`   // SHA-256 of the pieces before it
}

// volumeWriter writes a volume from its mark to the end.
type volumeWriter struct {
	plan    *VolumePlan
	w       io.Writer
	content Content
	observe func(n int64)
	reached func(m *mark) error // told of every mark; may be nil
	at      mark
}

func (v *volumeWriter) run(ctx context.Context) error {
	if v.at.Pieces == nil {
		v.at.Pieces = map[string]Digest{}
	}
	if v.at.Position == 0 {
		for _, e := range v.plan.head {
			if err := v.small(e); err != nil {
				return err
			}
		}
	}
	for v.at.Entry < len(v.plan.blobs) {
		if err := v.blob(ctx, v.plan.blobs[v.at.Entry]); err != nil {
			return err
		}
		v.at.Entry, v.at.Offset, v.at.Hash = v.at.Entry+1, 0, nil
		if err := v.tell(); err != nil {
			return err
		}
	}
	if err := v.small(headEntry{sumsName, v.sums()}); err != nil {
		return err
	}
	if err := v.bytes(make([]byte, endSize)); err != nil {
		return err
	}
	if v.at.Position != v.plan.size {
		return fmt.Errorf("wrote %d bytes of a volume planned with %d", v.at.Position, v.plan.size)
	}
	return nil
}

func (v *volumeWriter) tell() error {
	if v.reached == nil {
		return nil
	}
	return v.reached(&v.at)
}

func (v *volumeWriter) bytes(b []byte) error {
	n, err := v.w.Write(b)
	v.at.Position += int64(n)
	return err
}

// small writes an entry that is in memory.
func (v *volumeWriter) small(e headEntry) error {
	h := header(e.name, int64(len(e.data)))
	return cmp.Or(v.bytes(h[:]), v.bytes(e.data), v.bytes(make([]byte, padding(int64(len(e.data))))))
}

// sums makes SHA256SUMS. The sum of a whole blob is its digest, that of a piece
// was taken while it was written.
func (v *volumeWriter) sums() []byte {
	var b strings.Builder
	for _, e := range v.plan.head {
		b.WriteString(sumLine(cas.DigestOf(e.data), e.name))
	}
	for _, e := range v.plan.blobs {
		sum := e.Blob
		if !e.whole() {
			sum = v.at.Pieces[e.Entry]
		}
		b.WriteString(sumLine(sum, e.Entry))
	}
	return []byte(b.String())
}

// blob writes what the mark leaves of an entry.
func (v *volumeWriter) blob(ctx context.Context, e plannedEntry) (err error) {
	if v.at.Offset == 0 {
		h := header(e.Entry, e.Length)
		if err := v.bytes(h[:]); err != nil {
			return err
		}
	}
	r, err := openRange(v.content, v.plan.manifest, e.blob, e.Offset+v.at.Offset, e.Length-v.at.Offset)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var piece hash.Hash
	if !e.whole() {
		if piece, err = savedHash(v.at.Hash); err != nil {
			return err
		}
	}
	if err := v.stretches(ctx, e, r, piece); err != nil {
		return err
	}
	// The reader judges at io.EOF.
	if _, err := io.Copy(io.Discard, r); err != nil {
		return err
	}
	if piece != nil {
		v.at.Pieces[e.Entry] = Digest(piece.Sum(nil))
	}
	return v.bytes(make([]byte, padding(e.Length)))
}

// stretches writes from chunk to chunk of a blob that has a chunk list, since
// between chunks writing can stop and go on, and any other blob at once.
func (v *volumeWriter) stretches(ctx context.Context, e plannedEntry, r io.Reader, piece hash.Hash) error {
	into := v.w
	if piece != nil {
		into = io.MultiWriter(v.w, piece)
	}
	for v.at.Offset < e.Length {
		stretch := e.Length - v.at.Offset
		if e.blob.Chunks != nil {
			stretch = min(stretch, ChunkSize-(e.Offset+v.at.Offset)%ChunkSize)
		}
		n, err := pump(ctx, into, io.LimitReader(r, stretch), v.observe)
		v.at.Position, v.at.Offset = v.at.Position+n, v.at.Offset+n
		if err != nil {
			return err
		}
		if n < stretch {
			return fmt.Errorf("blob %s: %w", e.Blob, io.ErrUnexpectedEOF)
		}
		if v.at.Offset == e.Length {
			return nil
		}
		if v.at.Hash, err = saveHash(piece); err != nil {
			return err
		}
		if err := v.tell(); err != nil {
			return err
		}
	}
	return nil
}

// saveHash and savedHash keep the state of a SHA-256 over a restart.
func saveHash(h hash.Hash) ([]byte, error) {
	if h == nil {
		return nil, nil
	}
	return h.(encoding.BinaryMarshaler).MarshalBinary()
}

func savedHash(state []byte) (hash.Hash, error) {
	h := sha256.New()
	if len(state) == 0 {
		return h, nil
	}
	return h, h.(encoding.BinaryUnmarshaler).UnmarshalBinary(state)
}

// sumsOf parses SHA256SUMS into digests by name, in the order of entries. What
// is wrong it says with the offset within.
func sumsOf(data []byte, entries []entry) ([]Digest, *DamagedError) {
	var digests []Digest
	rest := data
	for _, e := range entries {
		line, after, found := bytes.Cut(rest, []byte("\n"))
		hexDigits, name, ok := strings.Cut(string(line), "  ")
		d, err := cas.ParseHex(hexDigits)
		if !found || !ok || err != nil || name != e.name {
			return nil, &DamagedError{Offset: int64(len(data) - len(rest)), What: fmt.Sprintf("its line %d is not the sum of %s", len(digests)+1, e.name),
				Want: "64 hex digits, two blanks, " + e.name, Got: fmt.Sprintf("%.200q", line)}
		}
		digests = append(digests, d)
		rest = after
	}
	if len(rest) != 0 {
		return nil, &DamagedError{Offset: int64(len(data) - len(rest)), What: "it has lines for entries that are not there", Want: "its end", Got: fmt.Sprintf("%.200q", rest)}
	}
	return digests, nil
}

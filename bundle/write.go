package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/packhof/packhof/internal/cas"
)

// VolumePlan is a volume that can be written: every name and size is settled,
// so that its length is known before the first byte.
type VolumePlan struct {
	manifest *Manifest
	head     []headEntry
	blobs    []plannedBlob
	size     int64
}

// plannedBlob is a blob and the entries that it becomes.
type plannedBlob struct {
	blob    Blob
	entries []plannedEntry
}

type plannedEntry struct {
	name string
	size int64
}

// PlanComplete plans the complete set of a bundle in one volume.
func PlanComplete(h Head) (*VolumePlan, error) {
	m, err := parseManifest(h.Manifest)
	if err != nil {
		return nil, err
	}
	sortHead(&h)
	volume, err := completeVolume(m, h.Digest())
	if err != nil {
		return nil, err
	}
	volumeJSON, err := encodeCanonical(volume)
	if err != nil {
		return nil, err
	}
	index, err := buildIndex(m)
	if err != nil {
		return nil, err
	}
	p := &VolumePlan{manifest: m, head: append(h.entries(),
		headEntry{nameVolume, volumeJSON}, headEntry{nameLayout, []byte(ociLayout)}, headEntry{nameIndex, index})}
	p.planBlobs()
	p.size = p.length()
	return p, nil
}

func (p *VolumePlan) planBlobs() {
	for _, inHead := range []bool{true, false} {
		for _, b := range p.manifest.Blobs {
			if standsInHead(b) != inHead {
				continue
			}
			planned := plannedBlob{blob: b}
			for _, s := range cutBlob(b) {
				planned.entries = append(planned.entries, plannedEntry{s.Entry, s.Length})
			}
			p.blobs = append(p.blobs, planned)
		}
	}
}

func (p *VolumePlan) length() int64 {
	var total, sums int64
	add := func(name string, size int64) {
		total += entrySpan(size)
		sums += int64(len(sumLine(Digest{}, name)))
	}
	for _, e := range p.head {
		add(e.name, int64(len(e.data)))
	}
	for _, b := range p.blobs {
		for _, e := range b.entries {
			add(e.name, e.size)
		}
	}
	return total + entrySpan(sums) + endSize
}

// Size is the length of the volume in bytes.
func (p *VolumePlan) Size() int64 { return p.size }

// ManifestUnsafe is the manifest that is being shipped, for the exporter's own
// report: nobody has vouched for it here. Callers do not change it.
func (p *VolumePlan) ManifestUnsafe() *Manifest { return p.manifest }

// FileName is the volume's name on a medium.
func (p *VolumePlan) FileName() string { return BaseName(p.manifest) + ".tar" }

func sumLine(d Digest, name string) string { return d.Hex() + "  " + name + "\n" }

// Write writes the volume. Every blob is hashed while it is read; wrong
// content ends with a cas.CorruptError. observe, when given, is told of every
// piece of blob data written.
func (p *VolumePlan) Write(ctx context.Context, w io.Writer, content Content, observe func(n int64)) error {
	out := &volumeWriter{w: w}
	for _, e := range p.head {
		if err := out.bytes(e.name, e.data); err != nil {
			return err
		}
	}
	for _, b := range p.blobs {
		if err := out.blob(ctx, b, content, observe); err != nil {
			return err
		}
	}
	if err := out.bytes(sumsName, []byte(out.sums.String())); err != nil {
		return err
	}
	if _, err := w.Write(make([]byte, endSize)); err != nil {
		return err
	}
	if out.written+endSize != p.size {
		return fmt.Errorf("wrote %d bytes of a volume planned with %d", out.written+endSize, p.size)
	}
	return nil
}

// volumeWriter appends entries and remembers their sums.
type volumeWriter struct {
	w       io.Writer
	sums    strings.Builder
	written int64
}

func (v *volumeWriter) bytes(name string, data []byte) error {
	_, err := v.entry(name, int64(len(data)), func(w io.Writer) (Digest, error) {
		_, err := w.Write(data)
		return cas.DigestOf(data), err
	})
	return err
}

// entry writes header, data and padding; write returns the data's digest.
func (v *volumeWriter) entry(name string, size int64, write func(io.Writer) (Digest, error)) (Digest, error) {
	h := header(name, size)
	if _, err := v.w.Write(h[:]); err != nil {
		return Digest{}, err
	}
	d, err := write(v.w)
	if err != nil {
		return d, err
	}
	if _, err := v.w.Write(make([]byte, padding(size))); err != nil {
		return d, err
	}
	v.sums.WriteString(sumLine(d, name))
	v.written += entrySpan(size)
	return d, nil
}

func (v *volumeWriter) blob(ctx context.Context, b plannedBlob, content Content, observe func(int64)) (err error) {
	r, err := openBlob(content, b.blob.Digest, b.blob.Size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for _, e := range b.entries {
		_, err := v.entry(e.name, e.size, func(w io.Writer) (Digest, error) {
			if len(b.entries) == 1 {
				_, err := pump(ctx, w, r, observe) // to the verifier's end: the digest is the blob's
				return b.blob.Digest, err
			}
			h := sha256.New()
			_, err := pump(ctx, io.MultiWriter(w, h), io.LimitReader(r, e.size), observe)
			return Digest(h.Sum(nil)), err
		})
		if err != nil {
			return err
		}
	}
	// The verifier judges at io.EOF, which a cut blob's last piece may not reach.
	_, err = io.Copy(io.Discard, r)
	return err
}

// sumsOf parses SHA256SUMS into digests by name, in the order of entries.
func sumsOf(data []byte, entries []entry) ([]Digest, error) {
	var digests []Digest
	rest := data
	for _, e := range entries {
		line, after, found := bytes.Cut(rest, []byte("\n"))
		hexDigits, name, ok := strings.Cut(string(line), "  ")
		d, err := cas.ParseHex(hexDigits)
		if !found || !ok || err != nil || name != e.name {
			return nil, fmt.Errorf("its line %d is not the sum of %s", len(digests)+1, e.name)
		}
		digests = append(digests, d)
		rest = after
	}
	if len(rest) != 0 {
		return nil, errors.New("it has lines for entries that are not there")
	}
	return digests, nil
}

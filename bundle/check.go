package bundle

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"strings"

	"github.com/packhof/packhof/internal/cas"
)

// Check reads every byte of the bundle once and proves it: entries against
// SHA256SUMS, blobs against their digests, and the graph of every artifact from
// its root. Chunk lists are checked to be about their blobs; the hashes in them
// are not computed again, since the blob's own digest holds already. observe, when given, is told
// of every piece read.
func (b *Bundle) Check(ctx context.Context, observe func(n int64)) error {
	if b.sealed.volume == nil {
		if err := b.checkBlobs(ctx, observe); err != nil {
			return err
		}
	} else if err := b.sealed.volume.check(ctx, b.manifest, observe); err != nil {
		return err
	}
	if err := checkChunkLists(ctx, b.manifest, b.sealed.content); err != nil {
		return err
	}
	return checkGraph(b.manifest, b.sealed.content)
}

func (b *Bundle) checkBlobs(ctx context.Context, observe func(int64)) error {
	for _, blob := range b.manifest.Blobs {
		r, err := b.Open(ctx, blob.Digest)
		if err != nil {
			return err
		}
		_, err = pump(ctx, io.Discard, r, observe)
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
	return nil
}

// check hashes every entry of a volume, one hash a byte for whole blobs.
func (v *volume) check(ctx context.Context, m *Manifest, observe func(int64)) error {
	listed, sums, err := v.listedSums()
	if err != nil {
		return err
	}
	whole := wholeBlob{volume: v, manifest: m}
	for i, e := range listed {
		got, err := whole.hashEntry(ctx, e, observe)
		if err != nil {
			return err
		}
		if got != sums[i] {
			return v.mismatch(e, sums[i], got)
		}
		if d, err := cas.ParseHex(strings.TrimPrefix(e.name, dirBlobs)); err == nil && strings.HasPrefix(e.name, dirBlobs) && d != got {
			return v.mismatch(e, d, got)
		}
	}
	return nil
}

// listedSums gives all entries but the last, which is SHA256SUMS, and the
// digest that it has for each of them.
func (v *volume) listedSums() ([]entry, []Digest, error) {
	sumsEntry := v.byName[sumsName]
	if sumsEntry.size > maxSums {
		return nil, nil, &DamagedError{Volume: v.name, Entry: sumsName, Offset: sumsEntry.offset, What: "it is too large"}
	}
	data, err := v.read(sumsEntry)
	if err != nil {
		return nil, nil, err
	}
	listed := v.entries[:len(v.entries)-1]
	sums, err := sumsOf(data, listed)
	if err != nil {
		return nil, nil, &DamagedError{Volume: v.name, Entry: sumsName, Offset: sumsEntry.offset, What: err.Error()}
	}
	return listed, sums, nil
}

func (v *volume) mismatch(e entry, want, got Digest) error {
	return &DamagedError{Volume: v.name, Entry: e.name, Offset: e.offset, What: "its bytes are not the right ones", Want: want.String(), Got: got.String()}
}

// wholeBlob hashes entries, and over the pieces of a cut blob the blob too.
type wholeBlob struct {
	volume   *volume
	manifest *Manifest
	hash     hash.Hash
	seen     int64
}

func (w *wholeBlob) hashEntry(ctx context.Context, e entry, observe func(int64)) (Digest, error) {
	h := sha256.New()
	hexDigits, piece, cut := strings.Cut(strings.TrimPrefix(e.name, dirBlobs), ".s")
	if !cut || !strings.HasPrefix(e.name, dirBlobs) {
		_, err := pump(ctx, h, w.volume.section(e), observe)
		return Digest(h.Sum(nil)), err
	}
	if piece == "0000" {
		w.hash, w.seen = sha256.New(), 0
	}
	n, err := pump(ctx, io.MultiWriter(h, w.hash), w.volume.section(e), observe)
	if err != nil {
		return Digest{}, err
	}
	w.seen += n
	return Digest(h.Sum(nil)), w.finish(e, hexDigits)
}

// finish judges the blob after its last piece.
func (w *wholeBlob) finish(e entry, hexDigits string) error {
	d, err := cas.ParseHex(hexDigits)
	if err != nil {
		return err
	}
	blob, _ := w.manifest.Blob(d)
	if w.seen < blob.Size {
		return nil
	}
	if got := Digest(w.hash.Sum(nil)); got != d {
		return w.volume.mismatch(e, d, got)
	}
	return nil
}

// checkChunkLists checks that each list is about its blob.
func checkChunkLists(ctx context.Context, m *Manifest, content Content) error {
	for _, b := range m.Blobs {
		if b.Chunks == nil {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		list, _ := m.Blob(*b.Chunks)
		data, err := readBlob(content, *b.Chunks, list.Size, maxChunkListSize)
		if err != nil {
			return err
		}
		if _, err := ParseChunkList(data, b.Digest, b.Size); err != nil {
			return err
		}
	}
	return nil
}

func digestOf(b []byte) Digest { return cas.DigestOf(b) }

package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

func FuzzVolumeJSON(f *testing.F) {
	blob := cas.DigestOf([]byte("x"))
	m := &Manifest{Blobs: []Blob{{Digest: blob, Size: maxEntrySize + 1, Role: RoleContent}}}
	digest := cas.DigestOf([]byte("manifest"))
	info, err := newVolumeInfo(digest, []Segment{
		{Volume: 1, Blob: blob, Length: SegmentSize, Entry: pieceName(blob, 0)},
		{Volume: 1, Blob: blob, Offset: SegmentSize, Length: maxEntrySize + 1 - SegmentSize, Entry: pieceName(blob, 1)},
	}, 1)
	if err != nil {
		f.Fatal(err)
	}
	good, err := encodeCanonical(info)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"format":"packhof.volume/v1","number":1,"count":2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := parseVolume(b, m, digest)
		if err != nil {
			if problem.CodeOf(err) == "" {
				t.Errorf("refused without a code: %v", err)
			}
			return
		}
		again, err := encodeCanonical(got)
		if err != nil || !bytes.Equal(b, again) {
			t.Errorf("accepted %q, of which there is only one right form: %v", b, err)
		}
		var end int64
		for _, s := range got.Segments {
			if s.Blob != blob || s.Offset < end || s.Offset+s.Length > m.Blobs[0].Size || s.Volume < 1 || s.Volume > got.Count {
				t.Errorf("accepted the segment %+v", s)
			}
			end = s.Offset + s.Length
		}
	})
}

func FuzzChunkList(f *testing.F) {
	blob := cas.DigestOf([]byte("x"))
	good, err := EncodeChunkList(blob, ChunkSize+1, []Digest{blob, blob})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, int64(ChunkSize+1))
	f.Add([]byte(`{"format":"packhof.chunks/v1"}`), int64(0))
	f.Add([]byte(`{}`), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, b []byte, size int64) {
		list, err := ParseChunkList(b, blob, size)
		if err != nil {
			if problem.CodeOf(err) == "" {
				t.Errorf("refused without a code: %v", err)
			}
			return
		}
		again, err := EncodeChunkList(blob, size, list.Chunks)
		if err != nil {
			t.Fatalf("accepted and cannot be written: %v", err)
		}
		if back, err := ParseChunkList(again, blob, size); err != nil || !cmp.Equal(back, list) {
			t.Errorf("written and read again: %+v, %v", back, err)
		}
	})
}

func FuzzEnrolment(f *testing.F) {
	good, err := os.ReadFile("../testdata/enrol.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"format":"packhof.enrolment/v1"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ParseEnrolment(b)
		if err != nil {
			if problem.CodeOf(err) == "" {
				t.Errorf("refused without a code: %v", err)
			}
			return
		}
		again, err := EncodeEnrolment(e)
		if err != nil {
			t.Fatalf("accepted and cannot be written: %v", err)
		}
		if back, err := ParseEnrolment(again); err != nil || !cmp.Equal(back, e) {
			t.Errorf("written and read again: %+v, %v", back, err)
		}
	})
}

func TestChunkListOfAnother(t *testing.T) {
	blob, other := cas.DigestOf([]byte("x")), cas.DigestOf([]byte("y"))
	good, err := EncodeChunkList(blob, ChunkSize+1, []Digest{blob, other})
	if err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]func() error{
		"another blob":  func() error { _, err := ParseChunkList(good, other, ChunkSize+1); return err },
		"another size":  func() error { _, err := ParseChunkList(good, blob, ChunkSize+2); return err },
		"a chunk less":  func() error { _, err := EncodeChunkList(blob, ChunkSize+1, []Digest{blob}); return err },
		"a chunk more":  func() error { _, err := EncodeChunkList(blob, ChunkSize, []Digest{blob, blob}); return err },
		"no chunks":     func() error { _, err := EncodeChunkList(blob, 1, nil); return err },
		"other chunks":  func() error { return parseChunks(strings.Replace(string(good), "67108864", "67108865", 1), blob) },
		"other format":  func() error { return parseChunks(strings.Replace(string(good), "chunks/v1", "chunks/v2", 1), blob) },
		"trailing data": func() error { return parseChunks(string(good)+"{}", blob) },
	} {
		if err := try(); problem.CodeOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func parseChunks(s string, blob Digest) error {
	_, err := ParseChunkList([]byte(s), blob, ChunkSize+1)
	return err
}

func TestMediumErrors(t *testing.T) {
	for want, err := range map[string]error{
		"medium/full":           &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC},
		"medium/file-too-large": syscall.EFBIG,
		"medium/lost":           fromMedium(&os.PathError{Op: "write", Path: "x", Err: syscall.EIO}),
		"":                      syscall.EIO, // of whom, nobody said
	} {
		if got := mediumError(err, realMedium{}, "/media/x.tar", 10); problem.CodeOf(got) != want || !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
	if err := mediumError(fmt.Errorf("wrapped: %w", syscall.EDQUOT), realMedium{}, "x", 10); problem.CodeOf(err) != "medium/full" {
		t.Errorf("a full quota became %v", err)
	}
	r, err := realMedium{}.room(t.TempDir())
	if err != nil || r.free < 1 || r.file < 1<<20 || r.name < 64 {
		t.Fatalf("the room is %+v, %v", r, err)
	}
	if err := r.checkSpace("x", math.MaxInt64); problem.CodeOf(err) != "medium/full" {
		t.Errorf("space for everything: %v", err)
	}
	if err := r.checkSpace("x", 1); err != nil {
		t.Errorf("space for one byte: %v", err)
	}
	if _, err := (realMedium{}).room(t.TempDir() + "/none"); err == nil {
		t.Error("room in a folder that is not there")
	}
}

func TestWhereSegmentsAreCut(t *testing.T) {
	blob := cas.DigestOf([]byte("x"))
	for _, c := range []struct {
		size   int64
		pieces []int64
	}{
		{0, []int64{0}}, {maxEntrySize, []int64{maxEntrySize}}, {maxEntrySize + 1, []int64{SegmentSize, maxEntrySize + 1 - SegmentSize}},
		{2 * SegmentSize, []int64{SegmentSize, SegmentSize}}, {2*SegmentSize + 1, []int64{SegmentSize, SegmentSize, 1}},
	} {
		var got []int64
		at := int64(0)
		m := &Manifest{Blobs: []Blob{{Digest: blob, Size: c.size, Role: RoleContent}}}
		info, err := (&SetPlan{manifest: m}).spread(allContent(m), 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range info.Segments {
			if s.Offset != at || len(c.pieces) > 1 && !strings.HasSuffix(s.Entry, fmt.Sprintf(".s%04d", i)) {
				t.Errorf("%d bytes, piece %d: %+v", c.size, i, s)
			}
			at += s.Length
			got = append(got, s.Length)
		}
		if diff := cmp.Diff(c.pieces, got); diff != "" {
			t.Errorf("%d bytes (-want +got):\n%s", c.size, diff)
		}
	}
}

// TestTooManyVolumes cuts a blob so that a set has all the volumes that it can
// have, and one more.
func TestTooManyVolumes(t *testing.T) {
	blob := cas.DigestOf([]byte("x"))
	for volumes, want := range map[int64]string{MaxVolumes: "", MaxVolumes + 1: "volume/too-many"} {
		m := &Manifest{Blobs: []Blob{{Digest: blob, Size: volumes * blockSize, Role: RoleContent}}}
		set := &SetPlan{manifest: m, limits: []int64{leastWith(t, m)}}
		info, err := set.spread(allContent(m), 0)
		if problem.CodeOf(err) != want || err == nil && int64(info.Count) != volumes {
			t.Errorf("%d volumes: %v", volumes, err)
		}
	}
}

// leastWith is the size of a volume that holds one block of content.
func leastWith(t *testing.T, m *Manifest) int64 {
	t.Helper()
	for limit := int64(blockSize); limit < 1<<20; limit += blockSize {
		one := &Manifest{Blobs: []Blob{{Digest: m.Blobs[0].Digest, Size: 2 * blockSize, Role: RoleContent}}}
		set := &SetPlan{manifest: one, limits: []int64{limit}}
		if info, err := set.spread(allContent(one), 0); err == nil && info.Count == 2 {
			return limit
		}
	}
	t.Fatal("no volume is large enough")
	return 0
}

// TestTooManyFiles: the index of a tree has a size to keep.
func TestTooManyFiles(t *testing.T) {
	for n, want := range map[int]string{1: "", 40_000: "artifact/too-many-files"} {
		tree := &Tree{have: map[Digest]bool{}}
		part := OCIDescriptor{MediaType: TypeOCIManifest, Digest: cas.DigestOf([]byte("part")), Size: 1}
		if err := tree.addIndex(Files, slices.Repeat([]OCIDescriptor{part}, n)); problem.CodeOf(err) != want {
			t.Errorf("%d parts: %v", n, err)
		}
	}
}

// TestJoinedVolumesShareTheirHead: a folder may hold thousands of them, each
// with a manifest of many megabytes.
func TestJoinedVolumesShareTheirHead(t *testing.T) {
	read := func() *Sealed {
		head := Head{Manifest: []byte("manifest"), Roots: []TrustDocument{{Version: 1, Bytes: []byte("root")}}, Revocations: TrustDocument{Version: 1, Bytes: []byte("list")}}
		return &Sealed{head: head, volumes: []*volume{{head: head}}}
	}
	all := read()
	for range 3 {
		joined, err := all.Join(read())
		if err != nil {
			t.Fatal(err)
		}
		all = joined
	}
	for i, v := range all.volumes {
		if &v.head.Manifest[0] != &all.head.Manifest[0] || &v.head.Roots[0].Bytes[0] != &all.head.Roots[0].Bytes[0] || &v.head.Revocations.Bytes[0] != &all.head.Revocations.Bytes[0] {
			t.Errorf("volume %d has a head of its own", i+1)
		}
	}
}

func TestReferrer(t *testing.T) {
	subject := Descriptor{MediaType: TypeOCIManifest, Digest: cas.DigestOf([]byte("subject")), Size: 7}
	manifest, config, err := BuildReferrer("application/vnd.cyclonedx+json", cas.DigestOf([]byte("document")), 8, subject)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := ParseOCI(manifest, TypeOCIManifest)
	if err != nil {
		t.Fatal(err)
	}
	if doc.Subject == nil || doc.Subject.Digest != subject.Digest || doc.ArtifactType != "application/vnd.cyclonedx+json" || doc.Config.Digest != cas.DigestOf(config) {
		t.Errorf("the referrer is %+v", doc)
	}
}

// TestWalkCountsEveryName: two million names of one small file are as much work
// as two million files.
func TestWalkCountsEveryName(t *testing.T) {
	config, file := cas.DigestOf([]byte("{}")), cas.DigestOf([]byte("x"))
	const perManifest = 20_000
	documents := map[Digest][]byte{}
	index := OCI{SchemaVersion: 2, MediaType: TypeOCIIndex}
	for i := range MaxEntries/perManifest + 1 {
		doc := OCI{SchemaVersion: 2, MediaType: TypeOCIManifest, Config: &OCIDescriptor{MediaType: typeEmpty, Digest: config, Size: 2}, Annotations: map[string]string{"part": fmt.Sprint(i)}}
		for range perManifest {
			doc.Layers = append(doc.Layers, OCIDescriptor{MediaType: "application/x", Digest: file, Size: 1})
		}
		b, err := encodeCanonical(&doc)
		if err != nil {
			t.Fatal(err)
		}
		documents[cas.DigestOf(b)] = b
		index.Manifests = append(index.Manifests, OCIDescriptor{MediaType: TypeOCIManifest, Digest: cas.DigestOf(b), Size: int64(len(b))})
	}
	b, err := encodeCanonical(&index)
	if err != nil {
		t.Fatal(err)
	}
	documents[cas.DigestOf(b)] = b
	read := func(d OCIDescriptor) ([]byte, error) { return documents[d.Digest], nil }
	err = Walk(OCIDescriptor{MediaType: TypeOCIIndex, Digest: cas.DigestOf(b), Size: int64(len(b))}, read, func(OCIDescriptor, Role) error { return nil })
	if problem.CodeOf(err) != "oci/too-many-entries" {
		t.Errorf("%d names: %v", MaxEntries+perManifest, err)
	}
}

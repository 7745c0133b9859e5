package mirror

import (
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
)

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestChunkTapIsHashChunks: what the tap notes while a blob comes in, in
// pieces of any size, is what reading the blob again would give.
func TestChunkTapIsHashChunks(t *testing.T) {
	store, err := OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(7, 7))
	for _, size := range []int64{bundle.ChunkSize + 1, 2*bundle.ChunkSize - 1, 2 * bundle.ChunkSize, 2*bundle.ChunkSize + 1, bundle.ChunkSize + random.Int64N(bundle.ChunkSize)} {
		tap := &chunkTap{store: store, hash: sha256.New()}
		piece := make([]byte, 3<<20)
		for left := size; left > 0; {
			n := min(left, 1+random.Int64N(int64(len(piece))))
			if got, err := tap.Write(piece[:n]); got != int(n) || err != nil {
				t.Fatalf("wrote %d of %d, %v", got, n, err)
			}
			left -= n
		}
		d := cas.DigestOf([]byte{byte(size), byte(size >> 8), byte(size >> 24)}) // the tap does not look at it
		if err := tap.Finish(d); err != nil {
			t.Fatal(err)
		}
		got, err := chunkList(t.Context(), store, d, size)
		if err != nil {
			t.Fatal(err)
		}
		want, err := bundle.HashChunks(t.Context(), io.LimitReader(zeroReader{}, size), d, size)
		if err != nil || string(got) != string(want) {
			t.Errorf("%d bytes: the tap says\n%s\nreading says\n%s, %v", size, got, want, err)
		}
	}
}

func TestTapsOnlyLargeBlobs(t *testing.T) {
	store, err := OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	small := strings.Repeat("x", 1000)
	if err := store.Put(t.Context(), strings.NewReader(small), cas.DigestOf([]byte(small)), 1000, "small"); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := store.Note(noteChunks, cas.DigestOf([]byte(small))); ok || err != nil {
		t.Errorf("a small blob has a note on its chunks, %v", err)
	}
	list, err := chunkList(t.Context(), store, cas.DigestOf([]byte(small)), 1000)
	if err != nil || !strings.Contains(string(list), cas.DigestOf([]byte(small)).Hex()) {
		t.Errorf("read without a note: %s, %v", list, err)
	}
	if _, err := chunkList(t.Context(), store, cas.DigestOf([]byte("absent")), 1000); !isMissing(err) {
		t.Errorf("the chunks of a blob that is not there: %v", err)
	}
	if err := store.SetNote(noteChunks, cas.DigestOf([]byte(small)), []byte("garbage\n")); err != nil {
		t.Fatal(err)
	}
	if list, err := chunkList(t.Context(), store, cas.DigestOf([]byte(small)), 1000); err == nil {
		t.Errorf("a garbage note became %s", list)
	}
}

func TestAssemblyRoles(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a := newAssembly(nil)
		metadata := map[cas.Digest]bool{}
		for range rapid.IntRange(1, 20).Draw(r, "adds") {
			d := cas.DigestOf([]byte(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "blob")))
			role := rapid.SampledFrom([]bundle.Role{bundle.RoleMetadata, bundle.RoleContent}).Draw(r, "role")
			metadata[d] = metadata[d] || role == bundle.RoleMetadata
			if err := a.add(d, 1, role); err != nil {
				r.Fatal(err)
			}
		}
		sorted := a.sorted()
		for i, b := range sorted {
			if metadata[b.Digest] != (b.Role == bundle.RoleMetadata) {
				r.Fatalf("%s is %s", b.Digest, b.Role)
			}
			if i > 0 && sorted[i-1].Digest.Compare(b.Digest) >= 0 {
				r.Fatal("not sorted")
			}
		}
		if err := a.add(sorted[0].Digest, 2, bundle.RoleContent); err == nil {
			r.Fatal("one digest with two sizes")
		}
	})
}

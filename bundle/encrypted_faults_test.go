package bundle_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/agefile"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

// sealedTwo is a set of two encrypted volumes, and who can open them.
type sealedTwo struct {
	*testkit.Forged
	set      *bundle.SetPlan
	identity *agefile.Identity
	sizes    []int64 // of the files
}

func newSealedTwo(t *testing.T) *sealedTwo {
	t.Helper()
	f := spreadBundle(t, 3000, 70_000)
	v := &sealedTwo{Forged: f, identity: newIdentity(t)}
	v.set = encryptedSet(t, f, []int64{agefile.Size(base(t, f)+2048, 1), 1 << 30}, v.identity)
	for _, w := range writtenSet(t, f, v.set, t.TempDir()) {
		v.sizes = append(v.sizes, w.Size)
	}
	if len(v.sizes) != 2 {
		t.Fatalf("%d volumes", len(v.sizes))
	}
	return v
}

// checkLeft makes sure that a folder has whole volumes of the set under their
// names, and tells how many, and what else there is.
func (v *sealedTwo) checkLeft(t *testing.T, what, dir string) (whole int, others []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), bundle.EncryptedSuffix) {
			others = append(others, e.Name())
			if b, err := os.ReadFile(filepath.Join(dir, e.Name())); err != nil || strings.Contains(string(b), "packhof.json\x00") {
				t.Errorf("%s: %s is in the clear, or gone: %v", what, e.Name(), err)
			}
			continue
		}
		whole++
		if err := proven(t, v.Forged, filepath.Join(dir, e.Name()), bundle.OpenerWith(v.identity)); err != nil && problem.CodeOf(err) != "volume/not-complete" {
			t.Errorf("%s: %s is there and is not whole: %v", what, e.Name(), err)
		}
	}
	return whole, others
}

// checkAgain writes the set on a sound medium: the folder then has all of it,
// and nothing of the time before but whole volumes.
func (v *sealedTwo) checkAgain(t *testing.T, what, dir string, before int) {
	t.Helper()
	if _, err := v.set.WriteTo(t.Context(), dir, v.Content, bundle.SetWriteOptions{}); err != nil {
		t.Errorf("%s, and again on a sound medium: %v", what, err)
	}
	if whole, others := v.checkLeft(t, what, dir); whole != before+2 || len(others) > 0 {
		t.Errorf("%s: in the end %d volumes and %v", what, whole, others)
	}
	checkEncrypted(t, v.Forged, v.identity, dir)
}

// TestFullDiskWhileEncrypting: a medium that takes so many bytes and no more,
// in the header, between and within pieces, at the end, is left with whole
// volumes alone.
func TestFullDiskWhileEncrypting(t *testing.T) {
	v := newSealedTwo(t)
	head := agefile.Size(0, 1) - 16
	var places []int64
	for _, from := range []int64{0, v.sizes[0]} {
		for _, at := range []int64{0, 1, head - 1, head, head + 1, head + 65_551, head + 65_552, head + 65_553} {
			places = append(places, from+at)
		}
	}
	total := v.sizes[0] + v.sizes[1]
	places = append(places, v.sizes[0]-16, v.sizes[0]-1, total-17, total-16, total-1)
	for i, at := range places {
		dir := t.TempDir()
		medium := &bundle.Faulty{Err: syscall.ENOSPC, At: at}
		_, err := v.set.WriteTo(t.Context(), dir, v.Content, medium.OnSet(bundle.SetWriteOptions{NoReadback: i%2 == 0}))
		what := fmt.Sprintf("full after %d of %d and %d bytes", at, v.sizes[0], v.sizes[1])
		if problem.CodeOf(err) != "medium/full" || !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("%s: %v", what, err)
		}
		whole, others := v.checkLeft(t, what, dir)
		if first := at >= v.sizes[0]; first != (whole == 1) || len(others) > 0 {
			t.Errorf("%s: left %d volumes and %v", what, whole, others)
		}
		if i%3 == 0 {
			v.checkAgain(t, what, dir, whole)
		}
	}
}

// TestMediumFailsWhileEncrypting at the last flush, the name, the folder, the
// reading back: nothing is half named, and the next run removes what was left.
func TestMediumFailsWhileEncrypting(t *testing.T) {
	v := newSealedTwo(t)
	for err, code := range map[error]string{syscall.ENOSPC: "medium/full", syscall.EIO: "medium/lost"} {
		for _, step := range []string{"sync", "close", "rename", "folder", "read"} {
			if step == "read" && err == syscall.ENOSPC {
				continue // no medium says so
			}
			want := map[bool]string{true: "medium/readback", false: code}[step == "read"]
			tried := 0
			for nth := 1; nth <= 4; nth++ {
				dir := t.TempDir()
				medium := &bundle.Faulty{Err: err, Step: step, Nth: nth}
				_, got := v.set.WriteTo(t.Context(), dir, v.Content, medium.OnSet(bundle.SetWriteOptions{}))
				if medium.Calls[step] < nth {
					break
				}
				tried++
				what := fmt.Sprintf("%v at %s number %d", err, step, nth)
				if problem.CodeOf(got) != want || !errors.Is(got, err) {
					t.Errorf("%s: %v", what, got)
				}
				whole, others := v.checkLeft(t, what, dir)
				for _, left := range others {
					if !strings.HasSuffix(left, bundle.EncryptedSuffix+".partial") {
						t.Errorf("%s: left %s", what, left)
					}
				}
				v.checkAgain(t, what, dir, whole)
			}
			if tried == 0 {
				t.Errorf("%s never comes", step)
			}
		}
	}
}

package bundle_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/agefile"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

func newIdentity(t testing.TB) *agefile.Identity {
	t.Helper()
	identity, err := agefile.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return identity
}

// encryptedSet plans a set for the public halves of identities.
func encryptedSet(t testing.TB, f *testkit.Forged, limits []int64, identities ...*agefile.Identity) *bundle.SetPlan {
	t.Helper()
	var recipients []agefile.Recipient
	for _, identity := range identities {
		recipients = append(recipients, identity.Recipient())
	}
	set, err := bundle.PlanSet(f.Head, bundle.SetOptions{Limits: limits, Recipients: recipients})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// writtenSet writes a set and its manifest, and gives what lies in the folder.
func writtenSet(t testing.TB, f *testkit.Forged, set *bundle.SetPlan, dir string) []bundle.Written {
	t.Helper()
	volumes, err := set.WriteTo(t.Context(), dir, f.Content, bundle.SetWriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := set.WriteManifest(dir); err != nil {
		t.Fatal(err)
	}
	return volumes
}

// checkEncrypted finds one whole bundle with an identity.
func checkEncrypted(t *testing.T, f *testkit.Forged, identity *agefile.Identity, paths ...string) *bundle.Sealed {
	t.Helper()
	found, err := bundle.OpenerWith(identity).Find(paths...)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Bundles) != 1 || len(found.Damaged) != 0 || len(found.Locked) != 0 {
		t.Fatalf("%d bundles, damaged %v, locked %v", len(found.Bundles), found.Damaged, found.Locked)
	}
	t.Cleanup(func() {
		if err := found.Bundles[0].Close(); err != nil {
			t.Error(err)
		}
	})
	b, err := found.Bundles[0].Verify(f.Trust, testkit.Noon())
	if err != nil {
		t.Fatal(err)
	}
	if lacks := b.Lacks(); len(lacks) != 0 {
		t.Fatalf("it lacks %v", lacks)
	}
	if err := b.Check(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return found.Bundles[0]
}

// TestEncryptedVolumes writes sets for two recipients, around every boundary,
// and reads them with the second one's identity.
func TestEncryptedVolumes(t *testing.T) {
	f := spreadBundle(t, 0, 1, 511, 5000, 70_000, 200_000)
	smallest := agefile.Size(base(t, f), 2)
	first, second := newIdentity(t), newIdentity(t)
	name := regexp.MustCompile(`^[0-9a-f]{16}(\.v[0-9]{4})?\.age$`)
	for _, limits := range [][]int64{{smallest + 1000}, {smallest + 65_536}, {smallest + 65_552}, {smallest + 70_000, smallest + 9000}, {1 << 20}, nil} {
		dir := t.TempDir()
		set := encryptedSet(t, f, limits, first, second)
		volumes := writtenSet(t, f, set, dir)
		for i, v := range volumes {
			plan, err := set.Volume(i + 1)
			if err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(v.Path)
			if err != nil {
				t.Fatal(err)
			}
			if info.Size() != v.Size || info.Size() != plan.Size() || len(limits) > 0 && info.Size() > limits[min(i, len(limits)-1)] {
				t.Errorf("volume %d has %d bytes, planned %d, told %d, limits %v", i+1, info.Size(), plan.Size(), v.Size, limits)
			}
			if base := filepath.Base(v.Path); !name.MatchString(base) || strings.Contains(base, ".v") != (len(volumes) > 1) {
				t.Errorf("%s is the name of one of %d", base, len(volumes))
			}
		}
		if files := filesOf(t, dir); len(files) != len(volumes) {
			t.Errorf("%d files for %d volumes", len(files), len(volumes))
		}
		checkEncrypted(t, f, second, dir)
	}
	if _, err := bundle.PlanSet(f.Head, bundle.SetOptions{Limits: []int64{100}, Recipients: []agefile.Recipient{first.Recipient()}}); problem.CodeOf(err) != "volume/too-small" {
		t.Errorf("less than a header: %v", err)
	}
}

// TestEncryptedVolumesJoin makes of encrypted volumes the very file that would
// have been written in the clear.
func TestEncryptedVolumesJoin(t *testing.T) {
	f := spreadBundle(t, 5000, 200_000)
	identity, in, out, clear := newIdentity(t), t.TempDir(), t.TempDir(), t.TempDir()
	writtenSet(t, f, encryptedSet(t, f, []int64{100_000}, identity), in)
	sealed := checkEncrypted(t, f, identity, in)
	set, content, err := sealed.Reship(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.WriteTo(t.Context(), out, content, bundle.SetWriteOptions{}); err != nil {
		t.Fatal(err)
	}
	written(t, f, clear, bundle.SetOptions{})
	for name, want := range filesOf(t, clear) {
		if got := filesOf(t, out)[name]; !bytes.Equal(got, want) {
			t.Errorf("%s has %d other bytes", name, len(got))
		}
	}
}

// TestStockAgeOpensAVolume has the program age give the plain tar, to the byte.
func TestStockAgeOpensAVolume(t *testing.T) {
	program := testkit.Tool(t, "age")
	f := spreadBundle(t, 5000, 200_000)
	identity, dir := newIdentity(t), t.TempDir()
	volumes := writtenSet(t, f, encryptedSet(t, f, nil, newIdentity(t), identity), dir)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, identity.File(testkit.Noon()), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), program, "--decrypt", "--identity", key, volumes[0].Path)
	got, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	plan, err := bundle.PlanComplete(f.Head)
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Write(t.Context(), &want, f.Content, nil); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("age gives %d bytes, the plain volume has %d", len(got), want.Len())
	}
}

// encryptedFile is a volume on a disk, and its bytes.
func encryptedFile(t testing.TB, f *testkit.Forged, identities ...*agefile.Identity) (path string, b []byte) {
	t.Helper()
	path = writtenSet(t, f, encryptedSet(t, f, nil, identities...), t.TempDir())[0].Path
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, b
}

// proven opens, verifies and checks one volume.
func proven(t testing.TB, f *testkit.Forged, path string, opener bundle.Opener) (err error) {
	t.Helper()
	sealed, err := opener.OpenFile(path)
	if sealed == nil {
		return err
	}
	defer func() { err = errors.Join(err, sealed.Close()) }()
	b, err := sealed.Verify(f.Trust, testkit.Noon())
	if err != nil {
		return err
	}
	return b.Check(t.Context(), nil)
}

// TestFlippedBytesOfAnEncryptedVolume flips one byte after the other: each of
// the header, and some of the one piece behind it, whose bytes are all alike to
// the cipher. internal/agefile does the same with each byte of a stream.
func TestFlippedBytesOfAnEncryptedVolume(t *testing.T) {
	f := testkit.Forge(t, nil)
	identity := newIdentity(t)
	path, b := encryptedFile(t, f, identity)
	if err := proven(t, f, path, bundle.OpenerWith(identity)); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	counts, flips, header := map[string]int{}, 0, int(agefile.Size(0, 1)-16)
	for i := 0; i < len(b); i++ {
		if i >= header && i%31 > 0 && i < len(b)-20 {
			continue
		}
		flips++
		flip(t, file, b[i]^4, int64(i))
		err := proven(t, f, path, bundle.OpenerWith(identity))
		if err == nil {
			t.Fatalf("byte %d flipped, and nobody noticed", i)
		}
		counts[problem.CodeOf(err)]++
		flip(t, file, b[i], int64(i))
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	damaged, others, none := counts["volume/damaged"], counts["volume/other-recipient"], counts["volume/not-a-bundle"]
	if damaged+others+none != flips || others < 70 || others > 98 || none != len("age-encryption.org/v1\n") {
		t.Errorf("%v of %d flips", counts, flips)
	}
}

func flip(t testing.TB, file *os.File, b byte, at int64) {
	t.Helper()
	if _, err := file.WriteAt([]byte{b}, at); err != nil {
		t.Fatal(err)
	}
}

func TestWrongEncryptedVolumes(t *testing.T) {
	f := spreadBundle(t, 300_000)
	identity, other := newIdentity(t), newIdentity(t)
	path, b := encryptedFile(t, f, identity)
	head := agefile.Size(0, 1) - 16
	flipped := func(at int64) []byte {
		c := slices.Clone(b)
		c[at] ^= 1
		return c
	}
	stream := func(plain []byte) []byte {
		var c bytes.Buffer
		w, err := agefile.Encrypt(&c, identity.Recipient())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(plain); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return c.Bytes()
	}
	own, none := bundle.OpenerWith(identity), bundle.Opener{}
	for name, c := range map[string]struct {
		bytes  []byte
		opener bundle.Opener
		code   string
		says   string
	}{
		"sound":                     {b, own, "", ""},
		"a byte of the first piece": {flipped(head + 5), own, "volume/damaged", "byte 184"},
		"a byte of the third piece": {flipped(head + 2*65_552 + 100), own, "volume/damaged", "byte 131288"},
		"a byte of the last piece":  {flipped(int64(len(b)) - 3), own, "volume/damaged", "its last piece"},
		"a sum of the header":       {flipped(head - 30), own, "volume/damaged", "header"},
		"cut in a piece":            {b[:200_000], own, "volume/damaged", "last piece"},
		"cut between pieces":        {b[:head+2*65_552], own, "volume/damaged", "last piece"},
		"cut in the header":         {b[:100], own, "volume/damaged", "ends within its header"},
		"a byte more":               {append(slices.Clone(b), 0), own, "volume/damaged", "last piece"},
		"twice":                     {append(slices.Clone(b), b...), own, "volume/damaged", "last piece"},
		"a header without end":      {[]byte("age-encryption.org/v1\n" + strings.Repeat("-> X25519 a\nb\n", 100_000)), own, "volume/damaged", "longer than"},
		"too many recipients":       {[]byte("age-encryption.org/v1\n" + strings.Repeat("-> a\nb\n", 2000) + "--- c\n"), own, "volume/damaged", "2000 recipients"},
		"for others":                {b, bundle.OpenerWith(other), "volume/other-recipient", "for others"},
		"no identity":               {b, none, "volume/encrypted", "no identity"},
		"no bundle in it":           {stream([]byte("hello")), own, "volume/not-a-bundle", "is not a bundle"},
		"nothing in it":             {stream(nil), own, "volume/not-a-bundle", "is not a bundle"},
		"encrypted twice":           {stream(b), own, "volume/not-a-bundle", "is not a bundle"},
		"not encrypted at all":      {[]byte("hello"), own, "volume/not-a-bundle", "is not a bundle"},
		"in the clear":              {f.Volume, own, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, c.bytes, 0o644); err != nil {
				t.Fatal(err)
			}
			err := proven(t, f, path, c.opener)
			if c.code == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || problem.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v; want %s, %q", problem.CodeOf(err), err, c.code, c.says)
			}
		})
	}
}

// TestEncryptedFilesOfOthers has a folder with volumes for two gates, and one
// whose header is damaged.
func TestEncryptedFilesOfOthers(t *testing.T) {
	f := spreadBundle(t, 100_000)
	ours, theirs, dir := newIdentity(t), newIdentity(t), t.TempDir()
	writtenSet(t, f, encryptedSet(t, f, []int64{70_000}, ours), dir)
	foreign := writtenSet(t, f, encryptedSet(t, f, []int64{70_000}, theirs), dir)
	_, b := encryptedFile(t, f, ours)
	b[150]++
	if err := os.WriteFile(filepath.Join(dir, "0.age"), b, 0o644); err != nil {
		t.Fatal(err)
	}
	found, err := bundle.OpenerWith(ours).Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Bundles) != 1 || len(found.Bundles[0].Paths()) != len(foreign) || len(found.Locked) != len(foreign) || len(found.Damaged) != 1 || problem.CodeOf(found.Damaged[0]) != "volume/damaged" {
		t.Errorf("%d bundles, locked %v, damaged %v", len(found.Bundles), found.Locked, found.Damaged)
	}
	if err := found.Bundles[0].Close(); err != nil {
		t.Error(err)
	}
	lost := errors.New("the key is lost")
	opener := bundle.Opener{Identities: func() ([]*agefile.Identity, error) { return nil, lost }}
	if _, err := opener.OpenFile(foreign[0].Path); !errors.Is(err, lost) {
		t.Errorf("an identity that cannot be read: %v", err)
	}
}

// TestInterruptedEncryptedVolumes stops a writer in the middle, and finds what
// a killed one left.
func TestInterruptedEncryptedVolumes(t *testing.T) {
	f := spreadBundle(t, 300_000)
	set, dir := encryptedSet(t, f, nil, newIdentity(t)), t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stopped")
	_, err := set.WriteTo(ctx, dir, f.Content, bundle.SetWriteOptions{Begin: func(string, int64) (func(int64), func(error)) {
		return func(int64) { cancel(stop) }, func(error) {}
	}})
	if !errors.Is(err, stop) {
		t.Fatalf("stopped: %v", err)
	}
	assertEmpty(t, dir)
	killed, busy, other := "00112233aabbccdd.v0001.age.partial", "ffffffffffffffff.age.partial", "letter.age.partial"
	for _, name := range []string{killed, busy, other} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	held, err := os.Open(filepath.Join(dir, busy))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := syscall.Flock(int(held.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	volumes := writtenSet(t, f, set, dir)
	files := filesOf(t, dir)
	if files[killed] != nil || files[busy] == nil || files[other] == nil || len(files) != 3 {
		t.Errorf("%d files", len(files))
	}
	again := writtenSet(t, f, set, dir)
	if again[0].Path == volumes[0].Path || again[0].Size != volumes[0].Size {
		t.Errorf("%v after %v", again, volumes)
	}
}

// TestReadBackOfAnEncryptedVolume has the medium give back another byte, in the
// middle of the file, than was written.
func TestReadBackOfAnEncryptedVolume(t *testing.T) {
	f := spreadBundle(t, 300_000)
	dir := t.TempDir()
	spoilt := false
	spoil := func(int64) {
		partials, err := filepath.Glob(filepath.Join(dir, "*.partial"))
		if err != nil || len(partials) != 1 {
			t.Fatalf("%v, %v", partials, err)
		}
		file, err := os.OpenFile(partials[0], os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if info, err := file.Stat(); err == nil && info.Size() > 100_000 && !spoilt {
			flip(t, file, 0xa5, 50_000)
			flip(t, file, 0x5a, 50_001)
			spoilt = true
		}
	}
	_, err := encryptedSet(t, f, nil, newIdentity(t)).WriteTo(t.Context(), dir, f.Content, bundle.SetWriteOptions{
		Begin: func(string, int64) (func(int64), func(error)) { return spoil, func(error) {} },
	})
	if problem.CodeOf(err) != "medium/readback" {
		t.Errorf("%v", err)
	}
	assertEmpty(t, dir)
}

// TestDamageSeenWithoutAnIdentity: a file that cannot be whole is not merely
// locked, whoever looks at it.
func TestDamageSeenWithoutAnIdentity(t *testing.T) {
	f := spreadBundle(t, 70_000)
	dir := t.TempDir()
	path := writtenSet(t, f, encryptedSet(t, f, nil, newIdentity(t)), dir)[0].Path
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		b    []byte
		code string
		cut  bool
	}{
		"whole":            {whole, "volume/encrypted", false},
		"cut in a piece":   {whole[:len(whole)-100], "volume/encrypted", true},
		"cut in a header":  {whole[:60], "volume/damaged", false},
		"header of nobody": {bytes.Replace(whole, []byte("-> X25519 "), []byte("-> X25519\n"), 1), "volume/damaged", false},
	} {
		if err := os.WriteFile(path, c.b, 0o600); err != nil {
			t.Fatal(err)
		}
		for who, o := range map[string]bundle.Opener{"nobody": {}, "another": bundle.OpenerWith(newIdentity(t))} {
			code := c.code
			if who == "another" && code == "volume/encrypted" {
				code = "volume/other-recipient"
			}
			_, err := o.OpenFile(path)
			var p interface{ Evidence() []string }
			says := errors.As(err, &p) && strings.Contains(strings.Join(p.Evidence(), "\n"), "a length that no volume has")
			if problem.CodeOf(err) != code || says != c.cut {
				t.Errorf("%s, opened by %s: %v, want %s", name, who, err, code)
			}
		}
	}
}

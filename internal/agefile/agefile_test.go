package agefile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packhof/packhof/internal/agefile"
	"github.com/packhof/packhof/internal/testkit"
)

func identity(t testing.TB) *agefile.Identity {
	t.Helper()
	made, err := agefile.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// pattern is so much plaintext that no two chunks of it are the same.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>16*7 + i)
	}
	return b
}

func encrypted(t testing.TB, plain []byte, recipients ...agefile.Recipient) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := agefile.Encrypt(&b, recipients...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func opened(b []byte, identities ...*agefile.Identity) ([]byte, error) {
	r, err := agefile.Open(bytes.NewReader(b), int64(len(b)), identities...)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
}

// TestSizesAreExact writes streams around every boundary of chunks, for several
// numbers of recipients.
func TestSizesAreExact(t *testing.T) {
	for _, recipients := range []int{1, 2, 7} {
		var keys []agefile.Recipient
		var last *agefile.Identity
		for range recipients {
			last = identity(t)
			keys = append(keys, last.Recipient())
		}
		for _, n := range []int{0, 1, 511, 65535, 65536, 65537, 131071, 131072, 131073, 200_000} {
			plain := pattern(n)
			b := encrypted(t, plain, keys...)
			if got, want := int64(len(b)), agefile.Size(int64(n), recipients); got != want {
				t.Errorf("%d bytes for %d: %d bytes, Size says %d", n, recipients, got, want)
			}
			if got, err := opened(b, last); err != nil || !bytes.Equal(got, plain) {
				t.Errorf("%d bytes for %d: %d bytes came back, %v", n, recipients, len(got), err)
			}
		}
	}
}

// TestCapacityIsTheMost tries every limit over the length of two chunks.
func TestCapacityIsTheMost(t *testing.T) {
	for limit := int64(0); limit < 200_000; limit++ {
		n := agefile.Capacity(limit, 2)
		if n >= 0 && agefile.Size(n, 2) > limit {
			t.Fatalf("%d bytes do not fit into %d", n, limit)
		}
		if agefile.Size(n+1, 2) <= limit {
			t.Fatalf("into %d more than %d bytes fit", limit, n)
		}
	}
}

// TestEveryFlippedByte flips each byte of a small stream in turn. None of them
// gives plaintext.
func TestEveryFlippedByte(t *testing.T) {
	key := identity(t)
	b := encrypted(t, pattern(700), key.Recipient(), identity(t).Recipient())
	counts := map[string]int{}
	for i := range b {
		flipped := slices.Clone(b)
		flipped[i] ^= 1
		if !agefile.Begins(bytes.NewReader(flipped)) {
			counts["no stream"]++
			continue
		}
		counts[kindOf(t, fmt.Sprintf("byte %d", i), flipped, key)]++
	}
	// A wrong byte in our own share of the header looks like somebody else's
	// share; everything else is seen as damage.
	if counts["no stream"] != len("age-encryption.org/v1\n") || counts["damaged"] < 700 || counts["for others"] < 70 || counts["for others"] > 98 {
		t.Errorf("%v of %d bytes", counts, len(b))
	}
}

func kindOf(t *testing.T, what string, b []byte, key *agefile.Identity) string {
	t.Helper()
	_, err := opened(b, key)
	var damaged *agefile.DamagedError
	var others *agefile.ForOthersError
	switch {
	case errors.As(err, &damaged):
		if damaged.Offset < 0 || damaged.Offset > int64(len(b)) {
			t.Errorf("%s: %v, of %d bytes", what, err, len(b))
		}
		return "damaged"
	case errors.As(err, &others):
		return "for others"
	}
	t.Errorf("%s: %v", what, err)
	return "other"
}

// TestEveryTruncation cuts a stream of two chunks at every byte of its header
// and around every boundary behind it.
func TestEveryTruncation(t *testing.T) {
	key := identity(t)
	b := encrypted(t, pattern(70_000), key.Recipient())
	cuts := []int{65_536 + 184 + 15, 65_536 + 184 + 16, 65_536 + 184 + 17, len(b) - 17, len(b) - 16, len(b) - 15, len(b) - 1}
	for i := len("age-encryption.org/v1\n"); i < 300; i++ {
		cuts = append(cuts, i)
	}
	for _, n := range cuts {
		if got := kindOf(t, fmt.Sprintf("%d bytes", n), b[:n], key); got != "damaged" {
			t.Errorf("the first %d of %d bytes: %s", n, len(b), got)
		}
	}
	for _, more := range [][]byte{{0}, make([]byte, 16), make([]byte, 70_000)} {
		if got := kindOf(t, "trailing bytes", append(slices.Clone(b), more...), key); got != "damaged" {
			t.Errorf("%d bytes more: %s", len(more), got)
		}
	}
}

func TestWrongHeaders(t *testing.T) {
	key := identity(t)
	b := encrypted(t, pattern(10), key.Recipient())
	stanza := string(b[len("age-encryption.org/v1\n"):][:98])
	rest := string(b[len("age-encryption.org/v1\n")+98:])
	for name, c := range map[string]struct{ stream, want string }{
		"a stanza more":            {"age-encryption.org/v1\n" + stanza + stanza + rest, "damaged"},
		"a thousand stanzas more":  {"age-encryption.org/v1\n" + strings.Repeat(stanza, 1001) + rest, "damaged"},
		"a header without end":     {"age-encryption.org/v1\n" + strings.Repeat("-> X25519 a\n", 200_000), "damaged"},
		"one line without end":     {"age-encryption.org/v1\n-> X25519 " + strings.Repeat("a", 3<<20), "damaged"},
		"no stanza":                {"age-encryption.org/v1\n" + rest, "damaged"},
		"an end and nothing else":  {"age-encryption.org/v1\n---", "damaged"},
		"another kind":             {"age-encryption.org/v1\n" + strings.Replace(stanza, "X25519", "X25518", 1) + rest, "for others"},
		"two arguments":            {"age-encryption.org/v1\n" + strings.Replace(stanza, "X25519 ", "X25519 a ", 1) + rest, "damaged"},
		"the stanza of a stranger": {string(encrypted(t, pattern(10), identity(t).Recipient())), "for others"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := kindOf(t, name, []byte(c.stream), key); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	var others *agefile.ForOthersError
	if _, err := opened(b); !errors.As(err, &others) || others.Recipients != 1 {
		t.Errorf("without an identity: %v", err)
	}
}

// countingReader counts how much is read.
type countingReader struct {
	io.ReaderAt
	n int
}

func (c *countingReader) ReadAt(p []byte, at int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, at)
	c.n += n
	return n, err
}

// TestOnlyWhatIsAskedForIsRead reads the beginning of a stream of 20 MB.
func TestOnlyWhatIsAskedForIsRead(t *testing.T) {
	key := identity(t)
	plain := pattern(20_000_000)
	b := encrypted(t, plain, key.Recipient())
	counting := &countingReader{ReaderAt: bytes.NewReader(b)}
	r, err := agefile.Open(counting, int64(len(b)), key)
	if err != nil {
		t.Fatal(err)
	}
	start := make([]byte, 100_000)
	if _, err := r.ReadAt(start, 0); err != nil || !bytes.Equal(start, plain[:len(start)]) {
		t.Fatalf("another beginning, or %v", err)
	}
	if counting.n > 600_000 {
		t.Errorf("%d bytes were read for 100,000", counting.n)
	}
	if n, err := r.ReadAt(start, r.Size()); n != 0 || err != io.EOF {
		t.Errorf("at the end: %d bytes, %v", n, err)
	}
}

// TestSourceErrorsStay tells a disk that fails from a stream that is wrong.
func TestSourceErrorsStay(t *testing.T) {
	key, broken := identity(t), errors.New("the disk is broken")
	b := encrypted(t, pattern(600_000), key.Recipient())
	failing := failsFrom{bytes.NewReader(b), 200_000, 300_000, broken}
	r, err := agefile.Open(failing, int64(len(b)), key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size())); !errors.Is(err, broken) {
		t.Errorf("within: %v", err)
	}
	if _, err := agefile.Open(failsFrom{bytes.NewReader(b), 0, 1, broken}, int64(len(b)), key); !errors.Is(err, broken) {
		t.Errorf("in the header: %v", err)
	}
	failing.from, failing.to = 590_000, 1<<40
	if _, err := agefile.Open(failing, int64(len(b)), key); !errors.Is(err, broken) {
		t.Errorf("at the end: %v", err)
	}
}

type failsFrom struct {
	io.ReaderAt
	from, to int64
	err      error
}

func (f failsFrom) ReadAt(p []byte, at int64) (int, error) {
	if at < f.to && at+int64(len(p)) > f.from {
		return 0, f.err
	}
	return f.ReaderAt.ReadAt(p, at)
}

func TestKeys(t *testing.T) {
	key := identity(t)
	file := key.File(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
	read, err := agefile.ParseIdentities(file)
	if err != nil || len(read) != 1 || read[0].Recipient().String() != key.Recipient().String() {
		t.Fatalf("%v, %v", read, err)
	}
	secret := strings.Split(string(file), "\n")[2]
	for name, wrong := range map[string]string{
		"nothing": "", "a comment": "# nothing\n", "a recipient": key.Recipient().String(), "half a key": secret[:30],
		"a key with a mistake": secret[:40] + "Q" + secret[41:] + "X", "too many": strings.Repeat(secret+"\n", 17), "too long": strings.Repeat("# comment\n", 7000),
	} {
		_, err := agefile.ParseIdentities([]byte(wrong))
		var wrongKey *agefile.KeyError
		if !errors.As(err, &wrongKey) || wrong != "" && strings.Contains(err.Error(), secret[20:30]) {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := key.Recipient().String()
	if again, err := agefile.ParseRecipient(good); err != nil || again.String() != good {
		t.Errorf("%s, %v", again, err)
	}
	for _, wrong := range []string{"", "age1", good[:61], good + "q", strings.ToUpper(good), " " + good[1:], good[:20] + "b" + good[21:], secret} {
		if _, err := agefile.ParseRecipient(wrong); err == nil || wrong == secret && strings.Contains(err.Error(), secret[20:30]) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if _, err := agefile.Encrypt(io.Discard, agefile.Recipient{}); err == nil {
		t.Error("encrypted to nobody's key")
	}
	if _, err := agefile.Encrypt(io.Discard, slices.Repeat([]agefile.Recipient{key.Recipient()}, agefile.MaxRecipients+1)...); err == nil {
		t.Error("encrypted to more than can be read")
	}
	most := encrypted(t, nil, slices.Repeat([]agefile.Recipient{key.Recipient()}, agefile.MaxRecipients)...)
	if _, err := opened(most, key); err != nil {
		t.Errorf("as many recipients as there may be: %v", err)
	}
}

// TestFailingWriter has the medium be full at the header, and behind it.
func TestFailingWriter(t *testing.T) {
	if _, err := agefile.Encrypt(&fullAfter{0}, identity(t).Recipient()); !errors.Is(err, errFull) {
		t.Errorf("the header: %v", err)
	}
	w, err := agefile.Encrypt(&fullAfter{400}, identity(t).Recipient())
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(pattern(200_000))
	if !errors.Is(err, errFull) || !errors.Is(w.Close(), errFull) {
		t.Errorf("behind it: %v", err)
	}
}

var errFull = errors.New("full")

// fullAfter takes so many bytes.
type fullAfter struct{ left int }

func (f *fullAfter) Write(p []byte) (int, error) {
	if len(p) > f.left {
		return 0, errFull
	}
	f.left -= len(p)
	return len(p), nil
}

// FuzzOpen opens streams that anybody made: it gives plaintext or one of the
// errors that it promises, and what it gives has the size that it says.
func FuzzOpen(f *testing.F) {
	key := identity(f)
	good := encrypted(f, pattern(100), key.Recipient())
	f.Add(good)
	f.Add(good[:200])
	f.Add([]byte("age-encryption.org/v1\n-> X25519 a\nb\n--- c\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := agefile.Open(bytes.NewReader(b), int64(len(b)), key)
		var damaged *agefile.DamagedError
		var others *agefile.ForOthersError
		if err != nil {
			if !errors.As(err, &damaged) && !errors.As(err, &others) {
				t.Fatal(err)
			}
			return
		}
		got, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
		if err != nil && !errors.As(err, &damaged) {
			t.Fatal(err)
		}
		if err == nil && int64(len(got)) != r.Size() {
			t.Fatalf("%d bytes of %d", len(got), r.Size())
		}
	})
}

// TestStockAge has the program age read what we write, and reads what it writes.
func TestStockAge(t *testing.T) {
	program := testkit.Tool(t, "age")
	dir, key, plain := t.TempDir(), identity(t), pattern(150_000)
	files := map[string][]byte{"key": key.File(time.Unix(0, 0)), "ours": encrypted(t, plain, identity(t).Recipient(), key.Recipient()), "plain": plain}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := run(t, dir, program, "--decrypt", "--identity", "key", "ours"); !bytes.Equal(got, plain) {
		t.Errorf("age gives other bytes: %d of %d", len(got), len(plain))
	}
	theirs := run(t, dir, program, "--encrypt", "--recipient", key.Recipient().String(), "plain")
	if got, err := opened(theirs, key); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("of what age made: %d bytes, %v", len(got), err)
	}
}

func run(t *testing.T, dir, program string, args ...string) []byte {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, args...)
	c.Dir, c.Stderr = dir, os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %v: %v", program, args, err)
	}
	return out
}

// TestLook tells without an identity what can be told: how long the plaintext
// is, and that a header or a length is none.
func TestLook(t *testing.T) {
	key := identity(t)
	for _, n := range []int{0, 1, 65535, 65536, 65537, 131072, 200_000} {
		b := encrypted(t, pattern(n), key.Recipient())
		if got, err := agefile.Look(bytes.NewReader(b), int64(len(b))); err != nil || got != int64(n) {
			t.Errorf("%d bytes: %d, %v", n, got, err)
		}
	}
	b := encrypted(t, pattern(65536+100), key.Recipient())
	damaged := 0
	for n := range int64(len(b)) {
		if n > 2000 && n < 65_000 {
			continue // within the first piece
		}
		plain, err := agefile.Look(bytes.NewReader(b[:n]), n)
		var wrong *agefile.DamagedError
		switch {
		case errors.As(err, &wrong):
			damaged++
		case err != nil || plain >= 65536+100:
			t.Fatalf("cut at %d: %d bytes, %v", n, plain, err)
		}
	}
	if head := len(b) - 65536 - 100 - 2*16; damaged != head+16+16 { // within the first seal, and within the next
		t.Errorf("%d cuts are seen as damage, of %d bytes of header", damaged, head)
	}
	b[len("age-encryption.org/v1\n-> ")] = '\n'
	var wrong *agefile.DamagedError
	if _, err := agefile.Look(bytes.NewReader(b), int64(len(b))); !errors.As(err, &wrong) {
		t.Errorf("a header in no form: %v", err)
	}
}

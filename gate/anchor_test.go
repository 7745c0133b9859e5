package gate

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// anchorOf makes an anchor with a key of its own.
func anchorOf(t testing.TB) *anchor {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := note.NewEd25519VerifierKey("gate-test", public)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := note.NewVerifier(text)
	if err != nil {
		t.Fatal(err)
	}
	return &anchor{path: filepath.Join(t.TempDir(), fileAnchor), signer: &logSigner{"gate-test", private}, verifier: verifier}
}

func TestAnAnchorIsNeverLowered(t *testing.T) {
	a := anchorOf(t)
	high, low := tlog.Hash{1}, tlog.Hash{2}
	for _, step := range []struct {
		size int64
		root tlog.Hash
	}{{5, high}, {3, low}, {5, low}, {0, low}} {
		if err := a.raise(step.size, step.root); err != nil {
			t.Fatal(err)
		}
	}
	again := &anchor{path: a.path, signer: a.signer, verifier: a.verifier}
	if err := again.read(); err != nil {
		t.Fatal(err)
	}
	if size, root := again.head(); size != 5 || root != high {
		t.Errorf("%d, %v", size, root)
	}
}

// TestSignedAnchorsOfAnotherForm: the right key signs much, and little of it
// is a checkpoint of this log.
func TestSignedAnchorsOfAnotherForm(t *testing.T) {
	a := anchorOf(t)
	root := base64.StdEncoding.EncodeToString(make([]byte, tlog.HashSize))
	for text, fits := range map[string]bool{
		"gate-test\n7\n" + root + "\n":        true,
		"gate-other\n7\n" + root + "\n":       false,
		"gate-test\n07\n" + root + "\n":       false,
		"gate-test\n-7\n" + root + "\n":       false,
		"gate-test\n0\n" + root + "\n":        false,
		"gate-test\n7\n" + root + "\nmore\n":  false,
		"gate-test\n7\n" + root[4:] + "\n":    false,
		"gate-test\n7\n":                      false,
		"gate-test\n7\n" + root + "\n\next\n": false,
	} {
		signed, err := note.Sign(&note.Note{Text: text}, a.signer)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := parseAnchor(signed, a.verifier); (err == nil) != fits {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzAnchor(f *testing.F) {
	a := anchorOf(f)
	for i := range int64(3) {
		text := fmt.Sprintf("gate-test\n%d\n%s\n", i+1, base64.StdEncoding.EncodeToString(make([]byte, tlog.HashSize)))
		signed, err := note.Sign(&note.Note{Text: text}, a.signer)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(signed)
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		size, _, err := parseAnchor(b, a.verifier)
		if err == nil && (size < 1 || !bytes.HasPrefix(b, []byte("gate-test\n"))) {
			t.Errorf("taken for a checkpoint of %d entries: %q", size, b)
		}
	})
}

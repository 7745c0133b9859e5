package signing_test

import (
	"crypto/sha256"
	"slices"
	"strings"
	"testing"

	"github.com/packhof/packhof/signing"
	"pgregory.net/rapid"
)

func allWords() []string {
	var f signing.Fingerprint
	var all []string
	for i := range 256 {
		f[0] = byte(i)
		all = append(all, f.Words()[0])
	}
	return all
}

func TestWordsAreWhatTheyPromise(t *testing.T) {
	all := allWords()
	if !slices.IsSorted(all) {
		t.Error("not in alphabetical order")
	}
	beginnings := map[string]string{}
	for _, word := range all {
		if len(word) < 3 || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") != "" {
			t.Errorf("%q is no plain word", word)
		}
		beginning := word[:min(4, len(word))]
		if other, there := beginnings[beginning]; there {
			t.Errorf("%q and %q begin alike", word, other)
		}
		beginnings[beginning] = word
	}
	for i, a := range all {
		for _, b := range all[i+1:] {
			if len(a) == len(b) && differences(a, b) < 2 {
				t.Errorf("%q and %q differ in one letter", a, b)
			}
		}
	}
}

func differences(a, b string) int {
	n := 0
	for i := range len(a) {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// The list is part of a protocol between people; this is its checksum.
func TestWordsNeverChange(t *testing.T) {
	got := signing.FingerprintOf([]byte(strings.Join(allWords(), "\n"))).String()
	const want = "d408 8dd2 3023 9dd2 a772 578e 8bf0 2af2 8d49 acc8 9ad0 66e6 80ea 2ad5 c3e6 6242"
	if got != want {
		t.Errorf("the list of words has changed: %s", got)
	}
}

func TestFingerprintForms(t *testing.T) {
	f := signing.FingerprintOf([]byte("root"))
	if f != signing.Fingerprint(sha256.Sum256([]byte("root"))) {
		t.Error("not the SHA-256")
	}
	if groups := strings.Fields(f.String()); len(groups) != 16 || len(groups[0]) != 4 || len(f.Words()) != 32 {
		t.Errorf("%s %v", f, f.Words())
	}
	rapid.Check(t, func(t *rapid.T) {
		f := signing.Fingerprint(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "digest"))
		hexadecimal := strings.ReplaceAll(f.String(), " ", "")
		for _, typed := range []string{
			f.String(), hexadecimal, "sha256:" + hexadecimal, " " + strings.ToUpper(f.String()) + "\n",
			strings.Join(f.Words(), " "), strings.Join(f.Words(), ", "), strings.ToUpper(strings.Join(f.Words(), "-")),
		} {
			if got, err := signing.ParseFingerprint(typed); err != nil || got != f {
				t.Fatalf("%q is read as %s: %v", typed, got, err)
			}
		}
	})
	for _, bad := range []string{
		"", "abcd", strings.Join(f.Words()[1:], " "), strings.Repeat("nonsense ", 32), f.String() + " 00", strings.Repeat(" ", 2000),
	} {
		if _, err := signing.ParseFingerprint(bad); codeOf(err) != signing.CodeFingerprint {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

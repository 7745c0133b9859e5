package bundle_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/agefile"
	"github.com/packhof/packhof/internal/testkit"
)

// keys are the identities that vectors name.
type keys struct{ ours, other *agefile.Identity }

func newKeys(t *testing.T) keys { return keys{newIdentity(t), newIdentity(t)} }

const ageVersion = "age-encryption.org/v1\n"

// seal is a step that wraps the whole file, or changes a byte of the wrapped one.
func (w *work) seal(verb, argument string) (known bool, err error) {
	switch verb {
	case "encrypt":
		w.bytes, err = w.forger.keys.encrypt(w.volume(), strings.Fields(argument))
	case "passphrase":
		w.bytes, err = forPassphrase(w.volume())
	case "recipients":
		w.bytes, err = recipients(w.volume(), argument)
	case "armour":
		w.bytes = armour(w.volume())
	case "flip-byte":
		var n int
		n, err = strconv.Atoi(argument)
		w.bytes = bytes.Clone(w.volume())
		if n < 0 {
			n += len(w.bytes)
		}
		w.bytes[n] ^= 1
	default:
		return false, nil
	}
	return true, err
}

// encrypt writes a stream for those who are named, "ours" and "other".
func (k keys) encrypt(plain []byte, names []string) ([]byte, error) {
	var to []agefile.Recipient
	for _, name := range names {
		identity := map[string]*agefile.Identity{"ours": k.ours, "other": k.other}[name]
		if identity == nil {
			return nil, fmt.Errorf("nobody is called %s", name)
		}
		to = append(to, identity.Recipient())
	}
	var out bytes.Buffer
	w, err := agefile.Encrypt(&out, to...)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(plain)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

// forPassphrase makes the one stanza of a stream one of the kind that age writes
// for a passphrase.
func forPassphrase(stream []byte) ([]byte, error) {
	rest, found := bytes.CutPrefix(stream, []byte(ageVersion))
	at := bytes.Index(rest, []byte("--- "))
	if !found || at < 0 {
		return nil, errors.New("it is not encrypted yet")
	}
	b64 := base64.RawStdEncoding.EncodeToString
	stanza := "-> scrypt " + b64(testkit.Bytes("salt", 16)) + " 18\n" + b64(testkit.Bytes("body", 32)) + "\n"
	return slices.Concat([]byte(ageVersion), []byte(stanza), rest[at:]), nil
}

// recipients repeats the first stanza of a stream so many times.
func recipients(stream []byte, count string) ([]byte, error) {
	n, err := strconv.Atoi(count)
	if err != nil || len(stream) < len(ageVersion)+98 {
		return nil, errors.Join(err, errors.New("it is not encrypted yet"))
	}
	stanza := stream[len(ageVersion):][:98]
	return slices.Concat([]byte(ageVersion), bytes.Repeat(stanza, n), stream[len(ageVersion)+98:]), nil
}

// armour is the text form of a stream, which no volume has.
func armour(stream []byte) []byte {
	var out bytes.Buffer
	out.WriteString("-----BEGIN AGE ENCRYPTED FILE-----\n")
	for line := range slices.Chunk([]byte(base64.StdEncoding.EncodeToString(stream)), 64) {
		out.Write(append(line, '\n'))
	}
	out.WriteString("-----END AGE ENCRYPTED FILE-----\n")
	return out.Bytes()
}

// isEncrypted tells that a vector is about a file on a medium and not about a
// volume alone.
func (v vector) isEncrypted() bool {
	return slices.ContainsFunc(v.steps, func(step string) bool { return strings.HasPrefix(step, "encrypt ") })
}

// checkFile asks the reader about the forged file, and the genuine one that the
// vector names, with the identity that it names.
func (v vector) checkFile(t *testing.T, f *forger) error {
	t.Helper()
	dir, good := t.TempDir(), f.good
	var paths []string
	put := func(name string, b []byte) {
		paths = append(paths, filepath.Join(dir, name))
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("forged.age", f.forge(t, v.steps))
	if name, together := v.head["with"]; together {
		put("genuine.tar", f.start(t, name))
		good = f.two.Forged
	}
	opener := bundle.OpenerWith(f.keys.ours)
	if v.head["identity"] == "none" {
		opener = bundle.Opener{}
	}
	found, err := opener.Find(paths...)
	if err != nil {
		return err
	}
	defer func() {
		for _, s := range found.Bundles {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}()
	if others := slices.Concat(found.Damaged, found.Locked); len(others) > 0 {
		return others[0]
	}
	if len(found.Bundles) != 1 {
		t.Fatalf("%d bundles", len(found.Bundles))
	}
	trust, err := found.Bundles[0].Trust(good.Trust, testkit.Noon())
	if err != nil {
		return err
	}
	b, err := found.Bundles[0].Verify(trust, testkit.Noon())
	if err != nil {
		return err
	}
	if lacks := b.Lacks(); len(lacks) > 0 {
		t.Errorf("it lacks %v", lacks)
	}
	return b.Check(t.Context(), nil)
}

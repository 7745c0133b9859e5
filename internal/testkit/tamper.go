package testkit

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/signing"
)

// FlipInTar replaces text in the one entry of a tar whose name begins so and
// that holds the text; the file keeps its length.
func (l *Lab) FlipInTar(name, entry, old, new string) {
	l.T.Helper()
	l.editTar(name, entry, func(_, body []byte) bool {
		if !bytes.Contains(body, []byte(old)) {
			return false
		}
		copy(body, bytes.Replace(body, []byte(old), []byte(new), 1))
		return true
	})
}

// RenameInTar gives an entry of a tar another name, with the right checksum.
func (l *Lab) RenameInTar(name, entry, to string) {
	l.T.Helper()
	l.editTar(name, entry, func(head, _ []byte) bool {
		clear(head[:100])
		copy(head, to)
		copy(head[148:156], "        ")
		sum := 0
		for _, b := range head {
			sum += int(b)
		}
		copy(head[148:156], fmt.Sprintf("%06o\x00 ", sum))
		return true
	})
}

// editTar lets change work on header and body of entries whose name begins so,
// until it says that it has.
func (l *Lab) editTar(name, entry string, change func(head, body []byte) bool) {
	l.T.Helper()
	whole := []byte(l.Read(name))
	archive := bytes.NewReader(whole)
	entries := tar.NewReader(archive)
	for {
		head, err := entries.Next()
		if errors.Is(err, io.EOF) {
			l.T.Fatalf("%s has no such entry %s", name, entry)
		}
		if err != nil {
			l.T.Fatal(err)
		}
		start := len(whole) - archive.Len()
		if strings.HasPrefix(head.Name, entry) && change(whole[start-512:start], whole[start:start+int(head.Size)]) {
			break
		}
	}
	l.Write(name, string(whole))
}

// ForgeUnder makes a bundle as Forge does, with the trust documents of the
// lab: roots 1 and 2 and revocations 1 in its folder "trust". With a key file
// it is signed by that key; else by a key that the lab's root does not know.
func (l *Lab) ForgeUnder(keyFile, passphrase string, change func(*bundle.Manifest)) *Forged {
	l.T.Helper()
	documents := map[string]bundle.TrustDocument{}
	for name, version := range map[string]int64{"root-1": 1, "root-2": 2, "revocations-1": 1} {
		documents[name] = bundle.TrustDocument{Version: version, Bytes: []byte(l.Read("trust/" + name + ".json"))}
	}
	f := Forge(l.T, func(m *bundle.Manifest) {
		m.TrustRoot = bundle.Versioned{Version: 2, Digest: cas.DigestOf(documents["root-2"].Bytes)}
		m.Revocations = bundle.Versioned{Version: 1, Digest: cas.DigestOf(documents["revocations-1"].Bytes)}
		change(m)
	})
	f.Head.Roots = []bundle.TrustDocument{documents["root-1"], documents["root-2"]}
	f.Head.Revocations = documents["revocations-1"]
	if keyFile != "" {
		f.Head.Signatures = []bundle.Signature{l.sign(keyFile, passphrase, f.Head.Manifest)}
	}
	if err := f.Lay(l.T.Context()); err != nil {
		l.T.Fatal(err)
	}
	return f
}

func (l *Lab) sign(keyFile, passphrase string, manifest []byte) bundle.Signature {
	l.T.Helper()
	key, err := signing.ParsePrivateKey([]byte(l.Read(keyFile)), []byte(passphrase))
	if err != nil {
		l.T.Fatal(err)
	}
	signature, err := signing.Sign(l.T.Context(), key, manifest)
	if err != nil {
		l.T.Fatal(err)
	}
	return bundle.Signature{Key: key.Public().ID().Short(), Bytes: signature}
}

package main

import (
	"bytes"
	"errors"

	"github.com/packhof/packhof/internal/agefile"
	"github.com/packhof/packhof/internal/testkit"
)

// encryptedFailures are encrypted bundles that cannot be opened, or that are
// damaged.
func encryptedFailures() []failure {
	const file, key = "medium/sealed.age", "home/key.txt"
	bad := func(name string, spoil func(b []byte) []byte, exit int, code string, run ...string) failure {
		return failure{name: "verify: encrypted: " + name, given: exportedThen(func(l *lab) {
			identity := l.identity(key)
			l.Write(file, string(spoil(l.encryptedTo(identity.Recipient()))))
			l.identity("home/other.txt")
		}), run: append([]string{"verify", file}, run...), exit: exit, code: code}
	}
	as := func(b []byte) []byte { return b }
	flipped := func(at int) func([]byte) []byte {
		return func(b []byte) []byte { b[(at+len(b))%len(b)] ^= 1; return b }
	}
	return []failure{
		bad("no identity", as, 2, "volume/encrypted"),
		bad("for others", as, 12, "volume/other-recipient", "--identity", "home/other.txt"),
		bad("an identity that is none", as, 2, "encrypt/identity", "--identity", "packhof.yaml"),
		bad("a byte of the sum over the header", flipped(140), 11, "volume/damaged", "--identity", key),
		bad("a byte of its last piece", flipped(-1), 11, "volume/damaged", "--identity", key),
		bad("cut off by one byte", func(b []byte) []byte { return b[:len(b)-1] }, 11, "volume/damaged", "--identity", key),
		bad("longer by one byte", func(b []byte) []byte { return append(b, 0) }, 11, "volume/damaged", "--identity", key),
	}
}

// identity makes a key and writes it to a file.
func (l *lab) identity(file string) *agefile.Identity {
	l.T.Helper()
	identity, err := agefile.NewIdentity()
	if err != nil {
		l.T.Fatal(err)
	}
	l.Write(file, string(identity.File(testkit.Noon())))
	return identity
}

// encryptedTo is the bundle on the medium, encrypted to somebody.
func (l *lab) encryptedTo(to agefile.Recipient) []byte {
	l.T.Helper()
	var out bytes.Buffer
	w, err := agefile.Encrypt(&out, to)
	if err == nil {
		_, err = w.Write([]byte(l.Read(bundleFile)))
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		l.T.Fatal(err)
	}
	return out.Bytes()
}

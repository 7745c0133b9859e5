package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/agefile"
)

// encryptedFailures are encrypted bundles that are damaged, or not for this gate.
func encryptedFailures() []failure {
	const file = "medium/sealed.age"
	bad := func(name string, given func(*lab), exit int, code string) failure {
		return failure{name: "receive: encrypted: " + name, given: given, run: []string{"receive", file}, exit: exit, code: code}
	}
	spoilt := func(spoil func(b []byte) []byte) func(*lab) {
		return func(l *lab) { l.Write(file, string(spoil(l.encrypted(l.recipient())))) }
	}
	flipped := func(at int) func(*lab) {
		return spoilt(func(b []byte) []byte { b[(at+len(b))%len(b)] ^= 1; return b })
	}
	forOthers := func(l *lab) { l.Write(file, string(l.encrypted(strangersRecipient(l.T)))) }
	return []failure{
		bad("for others", forOthers, 12, "volume/other-recipient"),
		{name: "receive: encrypted: a folder for others", given: func(l *lab) { forOthers(l); l.Remove(bundleFile) }, run: []string{"receive", "medium"}, exit: 12, code: "volume/other-recipient"},
		{name: "verify: encrypted: for others", given: forOthers, run: []string{"verify", file}, exit: 12, code: "volume/other-recipient"},
		{name: "inspect: encrypted: for others", given: forOthers, run: []string{"inspect", file}, exit: 12, code: "volume/other-recipient"},
		bad("a byte of the gate's share of the header", flipped(90), 12, "volume/other-recipient"),
		bad("a byte of the sum over the header", flipped(140), 11, "volume/damaged"),
		bad("a byte of its last piece", flipped(-1), 11, "volume/damaged"),
		bad("cut off in its header", spoilt(func(b []byte) []byte { return b[:100] }), 11, "volume/damaged"),
		bad("cut off by one byte", spoilt(func(b []byte) []byte { return b[:len(b)-1] }), 11, "volume/damaged"),
		bad("longer by one byte", spoilt(func(b []byte) []byte { return append(b, 0) }), 11, "volume/damaged"),
		bad("in its text form", with(file, "-----BEGIN AGE ENCRYPTED FILE-----\n"+strings.Repeat("YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSA2YUppRnRBS2hBcWpFNSto\n", 100)+"-----END AGE ENCRYPTED FILE-----\n"), 11, "volume/not-a-bundle"),
	}
}

// encrypted is the bundle on the medium, encrypted to somebody.
func (l *lab) encrypted(to agefile.Recipient) []byte {
	l.T.Helper()
	return encryptTo(l.T, []byte(l.Read(bundleFile)), to)
}

func encryptTo(t testing.TB, plain []byte, to agefile.Recipient) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := agefile.Encrypt(&out, to)
	if err == nil {
		_, err = w.Write(plain)
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// recipient is that of the lab's gate.
func (l *lab) recipient() agefile.Recipient {
	l.T.Helper()
	enrolment, err := bundle.ParseEnrolment([]byte(l.Read("data/enrol.json")))
	if err != nil {
		l.T.Fatal(err)
	}
	r, err := agefile.ParseRecipient(enrolment.Recipient)
	if err != nil {
		l.T.Fatal(err)
	}
	return r
}

func strangersRecipient(t testing.TB) agefile.Recipient {
	t.Helper()
	identity, err := agefile.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return identity.Recipient()
}

package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/signing"
)

const bundleFile = "medium/plant-1-000001.tar"

// exportedThen gives a lab with a bundle on its medium, and lets then spoil it.
func exportedThen(then func(*lab)) func(*lab) {
	return func(l *lab) { l.exported(); then(l) }
}

func bundleFailures() []failure {
	bad := func(name string, then func(*lab), exit int, code string) failure {
		return failure{name: "verify: " + name, given: exportedThen(then), run: []string{"verify", bundleFile}, exit: exit, code: code}
	}
	forged := func(forge func(*lab) *testkit.Forged) func(*lab) {
		return func(l *lab) { l.write(bundleFile, string(forge(l).Volume)) }
	}
	return []failure{
		bad("empty", with(bundleFile, ""), 11, "volume/not-a-bundle"),
		bad("no tar", with(bundleFile, strings.Repeat("hello\n", 1000)), 11, "volume/not-a-bundle"),
		bad("a tar of something else", func(l *lab) {
			l.mustFinish(l.command("tar", "--format=ustar", "-cf", bundleFile, "notes"))
		}, 11, "volume/not-a-bundle"),
		bad("cut off in a blob", func(l *lab) { l.truncate(bundleFile, -7*512) }, 11, "volume/damaged"),
		bad("cut off by one byte", func(l *lab) { l.truncate(bundleFile, -1) }, 11, "volume/damaged"),
		bad("cut off in its head", func(l *lab) { l.truncate(bundleFile, 512+100) }, 11, "volume/not-a-bundle"),
		bad("longer", func(l *lab) { l.write(bundleFile, l.read(bundleFile)+strings.Repeat("\x00", 512)) }, 11, "volume/damaged"),
		bad("a byte of the manifest", func(l *lab) { l.flip(bundleFile, "packhof.json", `"serial":1`, `"serial":7`) }, 10, "signing/not-genuine"),
		bad("a byte of the signature", func(l *lab) {
			l.flip(bundleFile, "signatures/", `"signature":"ME`, `"signature":"MF`)
		}, 10, "signing/not-genuine"),
		bad("a byte of a blob", func(l *lab) { l.flip(bundleFile, "blobs/sha256/", "read me", "reap me") }, 11, "volume/damaged"),
		bad("a byte of index.json", func(l *lab) { l.flip(bundleFile, "index.json", "notes_1", "notes_2") }, 11, "volume/damaged"),
		bad("a byte of volume.json", func(l *lab) { l.flip(bundleFile, "volume.json", `"number":1`, `"number":2`) }, 1, "volume/not-complete"),
		bad("a byte of the checksums", func(l *lab) { l.flip(bundleFile, "SHA256SUMS", "packhof.json", "packhof.jsom") }, 11, "volume/damaged"),
		bad("a byte of a header", func(l *lab) {
			l.write(bundleFile, strings.Replace(l.read(bundleFile), "oci-layout\x00", "oci-layouu\x00", 1))
		}, 11, "volume/damaged"),
		bad("of a stranger", forged(func(l *lab) *testkit.Forged { return testkit.Forge(l.t, nil) }), 10, "signing/not-genuine"),
		bad("of a stranger, in the same channel", forged(func(l *lab) *testkit.Forged {
			return testkit.Forge(l.t, func(m *bundle.Manifest) { m.Channel = "plant-1" })
		}), 10, "signing/not-genuine"),
		bad("of another trust root", func(l *lab) { l.write(bundleFile, l.underAnotherRoot()) }, 10, "signing/root-conflict"),
		bad("of a channel the root does not know", func(l *lab) { l.write(bundleFile, l.ofUnknownChannel()) }, 10, "signing/unknown-role"),
		{name: "verify: no trust root", given: exportedThen(without("trust/root-1.json")), run: []string{"verify", bundleFile}, exit: 1, code: "trust/gap"},
		{name: "diff: one is damaged", given: exportedThen(func(l *lab) {
			l.write("old.tar", l.read(bundleFile))
			l.flip(bundleFile, "packhof.json", `"serial":1`, `"serial":7`)
		}), run: []string{"diff", "old.tar", bundleFile}, exit: 10, code: "signing/not-genuine"},
		{name: "inspect: cut off", given: exportedThen(func(l *lab) { l.truncate(bundleFile, -7*512) }), run: []string{"inspect", bundleFile}, exit: 11, code: "volume/damaged"},
		{name: "inspect: no tar", given: exportedThen(with(bundleFile, "hello")), run: []string{"inspect", bundleFile}, exit: 11, code: "volume/not-a-bundle"},
	}
}

// truncate cuts a file to size, or by so much when size is negative.
func (l *lab) truncate(name string, size int64) {
	l.t.Helper()
	if size < 0 {
		size += int64(len(l.read(name)))
	}
	if err := os.Truncate(l.path(name), size); err != nil {
		l.t.Fatal(err)
	}
}

// flip replaces text in the one entry of a tar whose name begins so and that
// holds the text; the file keeps its length.
func (l *lab) flip(name, entry, old, new string) {
	l.t.Helper()
	whole := []byte(l.read(name))
	archive := bytes.NewReader(whole)
	entries := tar.NewReader(archive)
	for {
		head, err := entries.Next()
		if errors.Is(err, io.EOF) {
			l.t.Fatalf("%s has no entry %s with %q", name, entry, old)
		}
		if err != nil {
			l.t.Fatal(err)
		}
		start := len(whole) - archive.Len()
		body := whole[start : start+int(head.Size)]
		if strings.HasPrefix(head.Name, entry) && bytes.Contains(body, []byte(old)) {
			copy(body, bytes.Replace(body, []byte(old), []byte(new), 1))
			break
		}
	}
	l.write(name, string(whole))
}

// underAnotherRoot gives a bundle signed with the lab's own key under a trust
// root that the lab never saw.
func (l *lab) underAnotherRoot() string {
	l.t.Helper()
	other := l.clone(l.t)
	for _, path := range []string{"trust", "packhof.lock", ".packhof", "medium"} {
		if err := os.RemoveAll(other.path(path)); err != nil {
			l.t.Fatal(err)
		}
	}
	other.mkdir("medium")
	other.write("packhof.ledger", emptyLedger)
	other.startTrust()
	return other.read(other.exported())
}

// ofUnknownChannel gives a bundle of the channel plant-2, signed with the key
// that the lab's root allows for plant-1 only.
func (l *lab) ofUnknownChannel() string {
	l.t.Helper()
	key, err := signing.ParsePrivateKey([]byte(l.read("keys/packhof.key")), []byte(passphrase))
	if err != nil {
		l.t.Fatal(err)
	}
	documents := map[string]bundle.TrustDocument{}
	for name, version := range map[string]int64{"root-1": 1, "root-2": 2, "revocations-1": 1} {
		documents[name] = bundle.TrustDocument{Version: version, Bytes: []byte(l.read("trust/" + name + ".json"))}
	}
	f := testkit.Forge(l.t, func(m *bundle.Manifest) {
		m.Channel = "plant-2"
		m.TrustRoot = bundle.Versioned{Version: 2, Digest: cas.DigestOf(documents["root-2"].Bytes)}
		m.Revocations = bundle.Versioned{Version: 1, Digest: cas.DigestOf(documents["revocations-1"].Bytes)}
	})
	signature, err := signing.Sign(l.t.Context(), key, f.Head.Manifest)
	if err != nil {
		l.t.Fatal(err)
	}
	f.Head.Roots = []bundle.TrustDocument{documents["root-1"], documents["root-2"]}
	f.Head.Revocations = documents["revocations-1"]
	f.Head.Signatures = []bundle.Signature{{Key: key.Public().ID().Short(), Bytes: signature}}
	if err := f.Lay(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
	return string(f.Volume)
}

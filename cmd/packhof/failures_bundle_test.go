package main

import (
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/testkit"
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
		return func(l *lab) { l.Write(bundleFile, string(forge(l).Volume)) }
	}
	return []failure{
		bad("empty", with(bundleFile, ""), 11, "volume/not-a-bundle"),
		bad("no tar", with(bundleFile, strings.Repeat("hello\n", 1000)), 11, "volume/not-a-bundle"),
		bad("a tar of something else", func(l *lab) {
			l.MustFinish(l.Command("tar", "--format=ustar", "-cf", bundleFile, "notes"))
		}, 11, "volume/not-a-bundle"),
		bad("cut off in a blob", func(l *lab) { l.Truncate(bundleFile, -7*512) }, 11, "volume/damaged"),
		bad("cut off by one byte", func(l *lab) { l.Truncate(bundleFile, -1) }, 11, "volume/damaged"),
		bad("cut off in its head", func(l *lab) { l.Truncate(bundleFile, 512+100) }, 11, "volume/not-a-bundle"),
		bad("longer", func(l *lab) { l.Write(bundleFile, l.Read(bundleFile)+strings.Repeat("\x00", 512)) }, 11, "volume/damaged"),
		bad("a byte of the manifest", func(l *lab) { l.FlipInTar(bundleFile, "packhof.json", `"serial":1`, `"serial":7`) }, 11, "volume/damaged"),
		bad("a byte of the signature", func(l *lab) {
			l.FlipInTar(bundleFile, "signatures/", `"signature":"ME`, `"signature":"MF`)
		}, 11, "volume/damaged"),
		bad("a byte of a blob", func(l *lab) { l.FlipInTar(bundleFile, "blobs/sha256/", "read me", "reap me") }, 11, "volume/damaged"),
		bad("a byte of index.json", func(l *lab) { l.FlipInTar(bundleFile, "index.json", "notes_1", "notes_2") }, 11, "volume/damaged"),
		bad("a byte of volume.json", func(l *lab) { l.FlipInTar(bundleFile, "volume.json", `"number":1`, `"number":2`) }, 11, "volume/damaged"),
		bad("a byte of the checksums", func(l *lab) { l.FlipInTar(bundleFile, "SHA256SUMS", "packhof.json", "packhof.jsom") }, 11, "volume/damaged"),
		bad("a byte of a header", func(l *lab) {
			l.Write(bundleFile, strings.Replace(l.Read(bundleFile), "oci-layout\x00", "oci-layouu\x00", 1))
		}, 11, "volume/damaged"),
		{name: "verify: one is damaged, and one is missing", given: halfThen(func(l *lab) {
			l.FlipInTar("medium/plant-1-000001.v0002.tar", "index.json", "notes_1", "notes_2")
		}), run: []string{"verify", "medium"}, exit: 11, code: "volume/damaged"},
		{name: "verify: one is damaged in a blob, and one is missing", given: halfThen(func(l *lab) {
			l.FlipInTar("medium/plant-1-000001.v0002.tar", "blobs/sha256/", "0123456789abcdef", "0123456789abcdeF")
		}), run: []string{"verify", "medium"}, exit: 11, code: "volume/damaged"},
		{name: "verify: one is cut off in its head, and one is missing", given: halfThen(func(l *lab) {
			l.Truncate("medium/plant-1-000001.v0002.tar", 512+100)
		}), run: []string{"verify", "medium"}, exit: 11, code: "volume/not-a-bundle"},
		{name: "join: beside it one that is cut off in its head", given: headless, run: []string{"join", "--to", "notes", "medium"}, exit: 11, code: "volume/not-a-bundle"},
		{name: "split: beside it one that is cut off in its head", given: headless, run: []string{"split", "--volume-size", "1MiB", "--to", "notes", "medium"}, exit: 11, code: "volume/not-a-bundle"},
		{name: "inspect: beside it one that is cut off in its head", given: headless, run: []string{"inspect", "medium"}, exit: 11, code: "volume/not-a-bundle"},
		{name: "join: signatures that differ", given: exportedThen(func(l *lab) {
			l.Write("medium/plant-1-000001.a.sigstore.json", l.falseSignature())
			l.Remove("packhof.yaml")
		}), run: []string{"join", "--to", "notes", "medium"}, exit: 1, code: "volume/signatures-differ"},
		{name: "join: several bundles", given: exportedThen(func(l *lab) {
			l.Write("medium/other.tar", string(testkit.Forge(l.T, nil).Volume))
		}), run: []string{"join", "--to", "notes", "medium"}, exit: 2, code: "volume/several"},
		bad("of a stranger", forged(func(l *lab) *testkit.Forged { return testkit.Forge(l.T, nil) }), 10, "signing/not-genuine"),
		bad("of a stranger, in the same channel", forged(func(l *lab) *testkit.Forged {
			return testkit.Forge(l.T, func(m *bundle.Manifest) { m.Channel = "plant-1" })
		}), 10, "signing/not-genuine"),
		bad("of another trust root", func(l *lab) { l.Write(bundleFile, l.underAnotherRoot()) }, 10, "signing/root-conflict"),
		bad("of a channel the root does not know", func(l *lab) { l.Write(bundleFile, l.ofUnknownChannel()) }, 10, "signing/unknown-role"),
		{name: "verify: no trust root", given: exportedThen(without("trust/root-1.json")), run: []string{"verify", bundleFile}, exit: 1, code: "trust/gap"},
		{name: "diff: one is damaged", given: exportedThen(func(l *lab) {
			l.Write("old.tar", l.Read(bundleFile))
			l.FlipInTar(bundleFile, "packhof.json", `"serial":1`, `"serial":7`)
		}), run: []string{"diff", "old.tar", bundleFile}, exit: 11, code: "volume/damaged"},
		{name: "inspect: cut off", given: exportedThen(func(l *lab) { l.Truncate(bundleFile, -7*512) }), run: []string{"inspect", bundleFile}, exit: 11, code: "volume/damaged"},
		{name: "inspect: a trust root that is not there", given: func(l *lab) { l.exported() }, run: []string{"inspect", "--trust", "nowhere", bundleFile}, exit: 1, code: "trust/missing"},
		{name: "inspect: a trust root that is none", given: exportedThen(with("trust/root-2.json", "{}")), run: []string{"inspect", bundleFile}, exit: 10, code: "signing/bad-root"},
		{name: "inspect: no tar", given: exportedThen(with(bundleFile, "hello")), run: []string{"inspect", bundleFile}, exit: 11, code: "volume/not-a-bundle"},
	}
}

// halfThen gives a lab with a bundle in volumes on its medium of which the last
// one is missing, and lets then spoil it.
func halfThen(then func(*lab)) func(*lab) {
	return func(l *lab) {
		l.Write("notes/numbers.txt", strings.Repeat("0123456789abcdef", 10_000))
		l.mustRun("plan")
		l.mustRun("export", "--no-scan", "--to", "medium", "--volume-size", "64KiB")
		l.Remove("medium/plant-1-000001.v0003.tar")
		then(l)
	}
}

// headless puts a file beside a bundle that ends within its manifest.
func headless(l *lab) {
	l.exported()
	l.Write("medium/second.tar", l.Read(bundleFile)[:512+100])
}

// falseSignature names the lab's key, and is that of nobody.
func (l *lab) falseSignature() string {
	l.T.Helper()
	const begins, value = `{"mediaType":"application/vnd.dev.sigstore`, `"signature":"`
	_, rest, found := strings.Cut(l.Read(bundleFile), begins)
	rest, _, _ = strings.Cut(rest, "\x00")
	before, signature, signs := strings.Cut(rest, value)
	_, after, ends := strings.Cut(signature, `"`)
	other := string(testkit.Forge(l.T, nil).Head.Signatures[0].Bytes)
	_, another, differs := strings.Cut(other, value)
	another, _, _ = strings.Cut(another, `"`)
	if !found || !signs || !ends || !differs {
		l.T.Fatalf("there is no signature in the bundle, or none in %s", other)
	}
	return begins + before + value + another + `"` + after
}

// underAnotherRoot gives a bundle signed with the lab's own key under a trust
// root that the lab never saw.
func (l *lab) underAnotherRoot() string {
	l.T.Helper()
	other := l.clone(l.T)
	for _, path := range []string{"trust", "packhof.lock", ".packhof", "medium"} {
		other.Remove(path)
	}
	other.Mkdir("medium")
	other.Write("packhof.ledger", emptyLedger)
	other.startTrust()
	return other.Read(other.exported())
}

// ofUnknownChannel gives a bundle of the channel plant-2, signed with the key
// that the lab's root allows for plant-1 only.
func (l *lab) ofUnknownChannel() string {
	l.T.Helper()
	return string(l.ForgeUnder("keys/packhof.key", passphrase, func(m *bundle.Manifest) { m.Channel = "plant-2" }).Volume)
}

package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/packhof/packhof/internal/testkit"
)

func keyFailures() []failure {
	bad := func(name string, given func(*lab), exit int, code string) failure {
		return failure{name: "key: " + name, given: given, exit: exit, code: code}
	}
	environment := func(lines ...string) func(*lab) {
		return func(l *lab) { l.Env = append(l.Env, lines...) }
	}
	return []failure{
		bad("missing", without("keys/packhof.key"), 2, "key/missing"),
		bad("wrong passphrase", environment("PACKHOF_PASSPHRASE=wrong"), 1, "signing/wrong-passphrase"),
		bad("passphrase file missing", environment("PACKHOF_PASSPHRASE_FILE=nowhere"), 1, "file/missing"),
		bad("no key", with("keys/packhof.key", "hello\n"), 2, "signing/not-a-key"),
		bad("too large", with("keys/packhof.key", strings.Repeat("x", 1<<20)), 2, "signing/key-too-large"),
		bad("not encrypted", with("keys/packhof.key", unencryptedKey()), 2, "signing/unencrypted-key"),
		bad("the public one", func(l *lab) { l.Write("keys/packhof.key", l.Read("keys/packhof.pub")) }, 2, "signing/not-a-key"),
		bad("not in the trust root", func(l *lab) {
			l.mustRun("key", "generate", "keys/other.key")
			l.replace("packhof.yaml", "artifacts:", "key: keys/other.key\nartifacts:")
		}, 1, "trust/not-a-signer"),
		bad("unreadable", func(l *lab) {
			notRoot(l)
			if err := os.Chmod(l.Path("keys/packhof.key"), 0); err != nil {
				l.T.Fatal(err)
			}
		}, 1, "file/permission"),
	}
}

func unencryptedKey() string {
	der, err := x509.MarshalPKCS8PrivateKey(testkit.Key("in the clear"))
	if err != nil {
		panic(err) // of a key that was just made
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func trustFailures() []failure {
	bad := func(name string, given func(*lab), exit int, code string, run ...string) failure {
		return failure{name: "trust: " + name, given: given, run: run, exit: exit, code: code}
	}
	return []failure{
		bad("no folder", func(l *lab) { l.rename("trust", "elsewhere") }, 1, "trust/missing", "plan"),
		bad("no root", both(without("trust/root-1.json"), without("trust/root-2.json")), 1, "trust/missing", "plan"),
		bad("the first root missing", without("trust/root-1.json"), 1, "trust/gap", "plan"),
		bad("a root missing between", func(l *lab) { l.rename("trust/root-2.json", "trust/root-3.json") }, 1, "trust/gap", "plan"),
		bad("no revocations", without("trust/revocations-1.json"), 1, "trust/missing", "plan"),
		bad("an older root under a newer name", func(l *lab) { l.Write("trust/root-3.json", l.Read("trust/root-2.json")) }, 1, "trust/gap", "plan"),
		bad("root tampered with", edited("trust/root-2.json", "Werk 7", "Werk 8"), 10, "signing/root-signatures", "plan"),
		bad("root that is none", with("trust/root-2.json", "{}"), 10, "signing/bad-root", "plan"),
		bad("first root that is none", with("trust/root-1.json", "{}"), 10, "signing/bad-root", "plan"),
		bad("revocations tampered with", edited("trust/revocations-1.json", `"version":1`, `"version":2`), 10, "signing/revocations-signatures", "plan"),
		bad("revocations that are none", with("trust/revocations-1.json", "{}"), 10, "signing/bad-revocations", "plan"),
		bad("channel it does not know", both(edited("packhof.yaml", "plant-1", "plant-2"), edited("packhof.ledger", "plant-1", "plant-2")), 2, "trust/no-channel", "plan"),
		bad("no gate", without("trust/root-2.json"), 2, "trust/no-gate", "plan"),
		bad("made twice", nil, 2, "trust/exists", "trust", "init", "--owner", "release@example"),
		bad("made twice, before the key is asked for", without("keys/packhof.key"), 2, "trust/exists", "trust", "init"),
		bad("gate enrolled twice", nil, 1, "trust/gate-known", "trust", "add-gate", "enrol.json"),
		bad("gate without a comparison", withoutGate, 10, "trust/fingerprint", "trust", "add-gate", "enrol.json"),
		bad("gate with another fingerprint", withoutGate, 10, "trust/fingerprint", "trust", "add-gate", "enrol.json", "--fingerprint", strings.Repeat("0000 ", 16)),
		bad("gate with half a fingerprint", withoutGate, 2, "signing/bad-fingerprint", "trust", "add-gate", "enrol.json", "--fingerprint", "0000"),
		bad("enrolment missing", nil, 1, "file/missing", "trust", "add-gate", "other.json"),
		bad("enrolment that is none", nil, 11, "format/malformed", "trust", "add-gate", "packhof.yaml"),
		bad("enrolment of another format", edited("enrol.json", "packhof.enrolment/v1", "packhof.enrolment/v9"), 1, "format/unknown", "trust", "add-gate", "enrol.json"),
		bad("enrolment without owner", edited("enrol.json", "Werk 7, Halle B", ""), 11, "format/invalid", "trust", "add-gate", "enrol.json"),
		bad("enrolment too large", with("enrol.json", strings.Repeat(" ", 65<<10)), 11, "format/too-large", "trust", "add-gate", "enrol.json"),
	}
}

// withoutGate takes the trust folder back to where no gate was enrolled.
func withoutGate(l *lab) { l.Remove("trust/root-2.json") }

func lockFailures() []failure {
	bad := func(name string, given func(*lab), exit int, code string, run ...string) failure {
		return failure{name: name, given: given, run: run, exit: exit, code: code}
	}
	sealed := func(then func(*lab)) func(*lab) {
		return func(l *lab) { l.exported(); then(l) }
	}
	return []failure{
		bad("ledger: missing", without("packhof.ledger"), 1, "ledger/missing"),
		bad("ledger: missing, to plan", without("packhof.ledger"), 1, "ledger/missing", "plan"),
		bad("ledger: empty", with("packhof.ledger", ""), 1, "ledger/malformed"),
		bad("ledger: no json", with("packhof.ledger", "hello\n"), 1, "ledger/malformed"),
		bad("ledger: of another channel", edited("packhof.ledger", "plant-1", "plant-2"), 2, "ledger/foreign"),
		bad("ledger: bad line", func(l *lab) { l.Write("packhof.ledger", l.Read("packhof.ledger")+"{\"serial\":1}x\n") }, 1, "ledger/malformed"),
		bad("ledger: out of order", sealed(func(l *lab) {
			head, entry, _ := strings.Cut(l.Read("packhof.ledger"), "\n")
			l.Write("packhof.ledger", head+"\n"+entry+entry)
		}), 1, "ledger/malformed"),
		bad("ledger: of a later epoch", sealed(edited("packhof.ledger", `"epoch":1`, `"epoch":2`)), 1, "ledger/epoch", "plan"),
		bad("lock: missing", without("packhof.lock"), 2, "lock/missing"),
		bad("lock: no json", with("packhof.lock", "hello\n"), 2, "lock/malformed"),
		bad("lock: unknown member", edited("packhof.lock", `"serial"`, `"serials"`), 2, "lock/malformed"),
		bad("lock: of another format", edited("packhof.lock", "packhof.lock/v1", "packhof.lock/v9"), 2, "lock/malformed"),
		bad("lock: malformed, to plan", with("packhof.lock", "hello\n"), 2, "lock/malformed", "plan"),
		bad("lock: of another channel", edited("packhof.lock", "plant-1", "plant-2"), 2, "lock/foreign"),
		bad("lock: unknown source", edited("packhof.lock", `"source": "files"`, `"source": "ftp"`), 2, "lock/malformed"),
		bad("lock: expired", func(l *lab) {
			_, rest, _ := strings.Cut(l.Read("packhof.lock"), `"expires": "`)
			expires, _, _ := strings.Cut(rest, `"`)
			l.replace("packhof.lock", expires, "2026-01-01T00:00:00Z")
		}, 1, "lock/expired"),
		bad("lock: packhof.yaml was edited since", edited("packhof.yaml", "channel: plant-1\n", "channel: plant-1\nnote: what is new\nvalidFor: 10d\naudience: [gate-aaaabbbbccccdddd]\nhosts: {registry.example: {plainHTTP: true}}\n"), 1, "lock/stale"),
		bad("lock: packhof.yaml was edited since the serial was sealed", sealed(edited("packhof.yaml", `version: "1"`, `version: "2"`)), 1, "lock/stale"),
		bad("lock: packhof.yaml was edited since, dry run", edited("packhof.yaml", "dir: notes", "file: notes/README.md"), 1, "lock/stale", append(slices.Clone(exportArgs), "--dry-run")...),
		bad("lock: trust root has changed", func(l *lab) { l.replace("packhof.lock", `"version": 2`, `"version": 3`) }, 1, "lock/trust-changed"),
		bad("serial: other lock", sealed(edited("packhof.lock", `"files": 3,`, `"files": 4,`)), 1, "serial/changed"),
		// Sealed as something else; the store has nothing of it to say so earlier.
		bad("serial: other content", sealed(func(l *lab) {
			_, rest, _ := strings.Cut(l.Read("packhof.ledger"), `"manifest":"`)
			manifest, _, _ := strings.Cut(rest, `"`)
			l.replace("packhof.ledger", manifest, "sha256:"+strings.Repeat("0", 63)+"1")
		}), 1, "serial/changed"),
		bad("serial: the ledger is older than the store", sealed(func(l *lab) { l.Remove("medium"); l.Mkdir("medium"); planOther(l) }), 1, "serial/changed"),
		bad("serial: the ledger is older than the medium", sealed(func(l *lab) { l.Remove(".packhof"); planOther(l) }), 1, "serial/changed"),
		bad("ledger: bad digest", sealed(edited("packhof.ledger", `"manifest":"sha256:`, `"manifest":"sha512:`)), 1, "ledger/malformed"),
		bad("lock: older than the last serial", sealed(edited("packhof.ledger", `"serial":1`, `"serial":5`)), 1, "lock/position"),
	}
}

const emptyLedger = `{"format":"packhof.ledger/v1","channel":"plant-1"}` + "\n"

// planOther loses the ledger, and plans something else for the first serial.
func planOther(l *lab) {
	l.T.Helper()
	l.Write("packhof.ledger", emptyLedger)
	l.replace("packhof.yaml", "artifacts:", "note: something else\nartifacts:")
	l.mustRun("plan")
}

func folderFailures() []failure {
	bad := func(name string, given func(*lab), exit int, code string, run ...string) failure {
		return failure{name: "folder: " + name, given: given, run: run, exit: exit, code: code}
	}
	return []failure{
		bad("missing", edited("packhof.yaml", "dir: notes", "dir: note"), 1, "source/not-found", "plan"),
		bad("a single file missing", edited("packhof.yaml", "dir: notes", "file: notes/readme"), 1, "source/not-found", "plan"),
		bad("empty", func(l *lab) { l.Mkdir("empty"); l.replace("packhof.yaml", "dir: notes", "dir: empty") }, 1, "artifact/empty", "plan"),
		bad("a pipe in it", func(l *lab) {
			if err := syscall.Mkfifo(l.Path("notes/pipe"), 0o644); err != nil {
				l.T.Fatal(err)
			}
		}, 1, "source/not-a-file", "plan"),
		bad("a link out of it", func(l *lab) { l.link("../packhof.yaml", "notes/link") }, 1, "source/unreadable", "plan"),
		bad("a link to nowhere", func(l *lab) { l.link("nowhere", "notes/link") }, 1, "source/unreadable", "plan"),
		bad("a name with a line break", with("notes/two\nlines", ""), 1, "artifact/bad-path", "plan"),
		bad("a name with a backslash", with(`notes/a\b`, ""), 1, "artifact/bad-path", "plan"),
		bad("changed since the plan", with("notes/README.md", "something else\n"), 1, "source/moved"),
		bad("changed, of the same size", with("notes/README.md", "mead re\n"), 1, "source/moved"),
		bad("gone since the plan", without("notes/README.md"), 1, "source/moved"),
		bad("unreadable", func(l *lab) {
			notRoot(l)
			if err := os.Chmod(l.Path("notes/README.md"), 0); err != nil {
				l.T.Fatal(err)
			}
		}, 1, "file/permission", "plan"),
		bad("all of them gone", func(l *lab) { l.rename("notes", "away") }, 1, "source/not-found"),
		bad("two artifacts fail", func(l *lab) {
			l.artifacts("  - {name: a, version: \"1\", dir: nowhere}\n  - {name: b, version: \"1\", file: nothing}\n  - {name: c, version: \"1\", dir: notes}")
		}, 3, "export/incomplete", "plan"),
	}
}

func targetFailures() []failure {
	bad := func(name string, given func(*lab), exit int, code, to string) failure {
		return failure{name: "target: " + name, given: given, run: []string{"export", "--no-scan", "--to", to}, exit: exit, code: code}
	}
	return []failure{
		bad("missing", nil, 2, "usage", "nowhere"),
		bad("a file", nil, 2, "usage", "packhof.yaml"),
	}
}

func (l *lab) rename(from, to string) {
	l.T.Helper()
	if err := os.Rename(l.Path(from), l.Path(to)); err != nil {
		l.T.Fatal(err)
	}
}

func (l *lab) link(to, name string) {
	l.T.Helper()
	if err := os.Symlink(to, l.Path(name)); err != nil {
		l.T.Fatal(err)
	}
}

// host is the entry of packhof.yaml for a server of the kit.
func (l *lab) host(name string, ca []byte, more ...string) string {
	l.T.Helper()
	lines := []string{"hosts:", fmt.Sprintf("  %s:", name)}
	if ca != nil {
		file := filepath.Join("ca", strings.ReplaceAll(name, ":", "-")+".pem")
		l.Write(file, string(ca))
		lines = append(lines, "    ca: "+file)
	}
	for _, line := range more {
		lines = append(lines, "    "+line)
	}
	return strings.Join(lines, "\n")
}

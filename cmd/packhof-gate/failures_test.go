package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
)

// failure is a command that must fail, and how.
type failure struct {
	name  string // also of the section in testdata/failures.txtar
	given func(l *lab)
	run   []string
	exit  int
	code  string
	cases int // how many cases there are afterwards
}

const goldenFailures = "testdata/failures.txtar"

var update = flag.Bool("update", false, "write "+goldenFailures+" instead of comparing with it")

// reviewEnds is where a review on stderr is over, but for its digest.
const reviewEnds = "\nreview       "

// fingerprintOf begins an argument that stands for the fingerprint of a file.
const fingerprintOf = "fingerprint of "

// stage is a lab at some point of its life, in which failures begin.
type stage struct {
	lab      *lab
	failures []failure
}

// TestFailures is every way to fail that a person can meet: the exit code, the
// stable code, every word on stderr (testdata/failures.txtar has them all),
// that nothing was loaded, and that the gate is in order afterwards.
func TestFailures(t *testing.T) {
	golden := testkit.ReadGolden(t, goldenFailures, *update)
	fresh := newLab(t)
	there := fresh.clone(t)
	there.exported()
	judged := there.clone(t)
	judged.must("receive", bundleFile)
	stages := []stage{{fresh, append(configFailures(), commandFailures()...)}, {there, receiveFailures()}, {judged, decideFailures()}}
	var names []string
	t.Run("of", func(t *testing.T) { // ends when all of its parallel tests have ended
		for _, s := range stages {
			for _, f := range s.failures {
				names = append(names, f.name)
				t.Run(f.name, func(t *testing.T) {
					t.Parallel()
					golden.Check(t, f.name, f.check(s.lab.clone(t)))
				})
			}
		}
	})
	golden.Finish(t, "What packhof-gate says on stderr when it fails; see TestFailures.", names)
}

func (f *failure) check(l *lab) (said string) {
	l.T.Helper()
	if f.given != nil {
		f.given(l)
	}
	args := []string{"--quiet"}
	for _, arg := range f.run {
		if name, ok := strings.CutPrefix(arg, fingerprintOf); ok {
			arg = l.fingerprint(name)
		}
		args = append(args, arg)
	}
	o := l.run(args...)
	o.CheckFailure(l.T, f.exit, f.code)
	l.checkUnloaded(f.cases)
	_, after, _ := strings.Cut(o.Stderr, reviewEnds) // what was to be decided on is not the failure
	return l.steady(cmp.Or(after, o.Stderr))
}

// checkUnloaded makes sure that a failure left a gate in order, with so many
// cases, and nothing of them in the depot.
func (l *lab) checkUnloaded(cases int) {
	l.T.Helper()
	if l.vacate != nil {
		l.vacate()
	}
	l.Env = environment()
	for _, wrong := range []string{"data/gate.yaml", "data/policy"} { // or missing
		if err := os.RemoveAll(l.Path(wrong)); err != nil {
			l.T.Fatal(err)
		}
	}
	l.Write("data/gate.yaml", "apiVersion: packhof/v1\nkind: Gate\n")
	l.Mkdir("data/policy")
	all := l.cases()
	if len(all) != cases {
		l.T.Errorf("%d cases, want %d", len(all), cases)
	}
	for _, c := range all {
		if c.State == gate.Approved || c.State == gate.Loading || c.State == gate.PartlyLoaded || c.State == gate.Loaded {
			l.T.Errorf("case %d was let through: %s", c.ID, c.State)
		}
	}
	l.checkStore()
}

// anonymous replaces the folder of the lab.
func (l *lab) anonymous(text string) string { return strings.ReplaceAll(text, l.Dir, "$LAB") }

// steady replaces what differs from run to run.
func (l *lab) steady(text string) string {
	return l.Steady(text, [][2]string{
		{`gate-[a-z2-7]{16}`, "<gate>"},
		{`process:  \d+`, "process:  <pid>"},
		{`\bknown:  \w+(, \w+)+`, "known:  <parameters>"},
		{`os:[\w.-]+`, "os:<user>"},
		{`(?m)^packhof-gate: error: \S+ brought`, "packhof-gate: error: <user> brought"},
		{`at byte [1-9]\d+`, "at byte <n>"},
		{`from byte [1-9]\d+ on`, "from byte <n> on"},
		{`(?m)^  ([a-z]+ ){7}[a-z]+$`, "  <words>"},
		{`(free|need|wanted|have):( +)[\d.]+ \w+`, "$1:$2<size>"},
	}...)
}

// config writes a gate.yaml with these lines.
func withConfig(lines ...string) func(*lab) {
	return func(l *lab) {
		l.Write("data/gate.yaml", "apiVersion: packhof/v1\nkind: Gate\n"+strings.Join(lines, "\n")+"\n")
	}
}

func with(file, text string) func(*lab) { return func(l *lab) { l.Write(file, text) } }

func without(file string) func(*lab) { return func(l *lab) { l.Remove(file) } }

func setenv(line string) func(*lab) { return func(l *lab) { l.Env = append(l.Env, line) } }

// destination is a configuration with one destination of these fields.
func destination(fields ...string) func(*lab) {
	return withConfig(append([]string{"destinations:", "  - name: harbor"}, indented(fields)...)...)
}

func indented(lines []string) []string {
	var all []string
	for _, l := range lines {
		all = append(all, "    "+l)
	}
	return all
}

func configFailures() []failure {
	bad := func(name string, given func(*lab), code string) failure {
		return failure{name: "config: " + name, given: given, run: []string{"list"}, exit: 2, code: code}
	}
	registry := []string{"type: registry", "registry: registry.example/plant", "accepts: [image]"}
	return []failure{
		bad("missing", without("data/gate.yaml"), "config/missing"),
		bad("empty", with("data/gate.yaml", ""), "config/syntax"),
		bad("not yaml", withConfig("listen: [x"), "config/syntax"),
		bad("unknown key", withConfig("lisen: :8443"), "config/unknown-key"),
		bad("unknown key of a destination", destination(append(registry, "tls: false")...), "config/unknown-key"),
		bad("apiVersion", with("data/gate.yaml", "apiVersion: packhof/v9\nkind: Gate\n"), "config/invalid"),
		bad("kind", with("data/gate.yaml", "apiVersion: packhof/v1\nkind: Export\n"), "config/invalid"),
		bad("listen without a port", withConfig("listen: localhost"), "config/invalid"),
		bad("nobody approves what is for review", withConfig("approvals: {review: 0}"), "config/invalid"),
		bad("more people than there are", withConfig("approvals: {allow: 10}"), "config/invalid"),
		bad("no time to judge", withConfig("judge: {timeout: 1ms}"), "config/invalid"),
		bad("span of time", withConfig("judge: {timeout: soon}"), "config/invalid"),
		bad("no memory to judge", withConfig("judge: {memory: 1MiB}"), "config/invalid"),
		bad("size", withConfig("judge: {memory: much}"), "config/invalid"),
		bad("several mistakes", withConfig("listen: localhost", "approvals: {allow: many, review: 0}", "jduge: {}", "destinations:", "  - {name: Harbor 1, type: registry, accepts: [image, wheel], bucket: plant}", "  - {type: ftp}"), "config/invalid"),
		bad("type of a destination", destination("type: ftp", "accepts: [image]"), "config/invalid"),
		bad("destination without a place", destination("type: registry", "accepts: [image]"), "config/invalid"),
		bad("destination that accepts nothing", destination("type: registry", "registry: registry.example", "accepts: []"), "config/invalid"),
		bad("destination that accepts what there is not", destination("type: registry", "registry: registry.example", "accepts: [wheel]"), "config/invalid"),
		bad("destination with the depot's name", withConfig("destinations:", "  - name: depot", "    type: registry", "    registry: registry.example", "    accepts: [image]"), "config/invalid"),
		bad("destination with no name", withConfig("destinations:", "  - name: Harbor 1", "    type: registry", "    registry: registry.example", "    accepts: [image]"), "config/invalid"),
		bad("placeholder", destination(append(registry, "naming: {repository: \"{nmae}\"}")...), "config/invalid"),
		bad("credentials without a password", destination(append(registry, "credentials: {user: robot}")...), "config/invalid"),
		bad("credentials without a user", destination(append(registry, "credentials: {passwordFile: p}")...), "config/invalid"),
		bad("password file missing", destination(append(registry, "credentials: {user: robot, passwordFile: p}")...), "config/invalid"),
		bad("password variable missing", destination(append(registry, "credentials: {user: robot, passwordEnv: NO_SUCH_SECRET}")...), "config/invalid"),
		bad("authority missing", destination(append(registry, "caFile: ca.pem")...), "config/invalid"),
		bad("authority that is none", both(with("data/ca.pem", "hello\n"), destination(append(registry, "caFile: ca.pem")...)), "config/invalid"),
		bad("registry with a password", destination("type: registry", "registry: robot:s3cret@registry.example/plant", "accepts: [image]"), "config/invalid"),
		bad("endpoint with a password", destination("type: s3", "endpoint: https://robot:s3/c@ret@s3.example", "bucket: plant", "accepts: [model]"), "config/invalid"),
		bad("endpoint with a signature", both(with("data/password", "x\n"), destination("type: s3", "endpoint: https://s3.example/?sig=s3cret", "bucket: plant", "accepts: [model]", "credentials: {user: robot, passwordFile: password}")), "config/invalid"),
		bad("octal number", withConfig("approvals: {allow: 010}"), "config/syntax"),
		bad("hexadecimal number", withConfig("approvals: {allow: 0x0}"), "config/syntax"),
		bad("minus nothing", withConfig("approvals: {allow: -0}"), "config/syntax"),
		bad("NUL", withConfig("policy: a\x00b"), "config/syntax"),
		bad("escape sequence", withConfig(`policy: "\e[31m"`), "config/syntax"),
		bad("UTF-16", with("data/gate.yaml", "\xff\xfea\x00"), "config/syntax"),
		bad("nested", withConfig("policy: "+strings.Repeat("- ", 20_000)), "config/syntax"),
		bad("field of another type", destination(append(registry, "bucket: plant")...), "config/invalid"),
		bad("policy: folder missing", without("data/policy"), "config/invalid"),
		bad("policy: named folder missing", withConfig("listen: :8443", "policy: polcy"), "config/invalid"),
		bad("policy: file instead of a folder", both(with("data/rules", "hello\n"), withConfig("policy: rules")), "config/invalid"),
		bad("policy: unknown file", with("data/policy/README.md", "hello\n"), "policy/unknown-file"),
		bad("policy: unknown parameter", with("data/policy/config.json", `{"allowed_source":["x"]}`), "policy/invalid-config"),
		bad("policy: rule that does not compile", with("data/policy/own.rego", "package packhof.rules.own\n\nfindings contains x if { true }\n"), "policy/invalid-rule"),
	}
}

// both does one after the other.
func both(first, second func(*lab)) func(*lab) {
	return func(l *lab) { first(l); second(l) }
}

func commandFailures() []failure {
	wrong := func(name string, given func(*lab), exit int, code string, run ...string) failure {
		return failure{name: "command: " + name, given: given, run: run, exit: exit, code: code}
	}
	return []failure{
		wrong("unknown", nil, 2, "usage", "recieve", bundleFile),
		wrong("argument missing", nil, 2, "usage", "receive"),
		wrong("flag missing", nil, 2, "usage", "approve", "1"),
		wrong("no number", nil, 2, "usage", "show", "one"),
		wrong("no language", nil, 2, "usage", "show", "1", "--lang", "fr"),
		wrong("yes without a review", nil, 2, "usage", "approve", "1", "--as", "anna", "--yes"),
		wrong("unknown schema", nil, 2, "usage", "schema", "export"),
		wrong("unknown log level", nil, 2, "usage", "serve", "--log-level", "loud"),
		wrong("unknown log format", nil, 2, "usage", "serve", "--log-format", "xml"),
		wrong("no port", nil, 2, "usage", "serve", "--listen", "localhost"),
		wrong("no gate", nil, 2, "gate/none", "list", "--data", "notes"),
		wrong("no case", nil, 2, "case/unknown", "show", "1"),
		wrong("init over something", nil, 2, "config/exists", "init", "--owner", "x", "--data", "notes"),
		wrong("init over a gate", nil, 2, "config/exists", "init", "--owner", "x"),
		wrong("init with a short password", setenv("PACKHOF_PASSWORD=short"), 2, "account/password", "init", "--owner", "x", "--data", "other"),
		wrong("init with a bad account", nil, 2, "account/name", "init", "--owner", "x", "--data", "other", "--account", "Anna B"),
		wrong("password file missing", nil, 1, "file/missing", "user", "add", "berta", "--role", "admin", "--password-file", "p"),
		wrong("password command fails", func(l *lab) {
			l.Env = append(l.Env, "PACKHOF_PASSWORD_COMMAND=exit 3")
			l.unsetPassword()
		}, 1, "password/command", "user", "add", "berta", "--role", "admin"),
		wrong("nobody to ask for a password", func(l *lab) { l.unsetPassword() }, 2, "password/none", "user", "add", "berta", "--role", "admin"),
		wrong("account exists", nil, 1, "account/exists", "user", "add", "anna", "--role", "admin"),
		wrong("no such role", nil, 2, "account/roles", "user", "add", "berta", "--role", "boss"),
		wrong("no such account", nil, 2, "account/unknown", "user", "passwd", "berta"),
		wrong("second trust root", nil, 1, "trust/initialised", "trust", "init", "trust/root-2.json", "--fingerprint", fingerprintOf+"trust/root-2.json"),
		wrong("trust root of another fingerprint", nil, 10, "trust/root-fingerprint", "trust", "init", "trust/root-1.json", "--fingerprint", strings.Repeat("0000 ", 16)),
		wrong("trust root that nobody compared", nil, 10, "trust/root-fingerprint", "trust", "init", "trust/root-1.json"),
		wrong("trust root that is none", nil, 10, "signing/bad-root", "trust", "init", "packhof.yaml"),
		wrong("trust root missing", nil, 1, "file/missing", "trust", "init", "root-1.json"),
		wrong("trust update that is none", nil, 10, "signing/bad-root", "trust", "update", "packhof.yaml"),
		wrong("certificate missing", without("data/tls/cert.pem"), 2, "serve/certificate", "serve", "--listen", "127.0.0.1:0"),
		wrong("address that is not ours", nil, 1, "serve/address", "serve", "--listen", "192.0.2.1:8443"),
		wrong("path too long for a socket", func(l *lab) {
			if err := os.Rename(l.Path("data"), l.Path(longName)); err != nil {
				l.T.Fatal(err)
			}
			if err := os.Symlink(longName, l.Path("data")); err != nil {
				l.T.Fatal(err)
			}
		}, 2, "serve/socket", "serve", "--listen", "127.0.0.1:0", "--data", longName),
		wrong("busy", func(l *lab) { l.occupy() }, 1, "gate/busy", "list"),
	}
}

// longName leaves no room for the socket behind it.
var longName = strings.Repeat("d", 105)

// receiving fails in a receive of the bundle on the medium.
func receiving(name string, given func(*lab), exit int, code string, cases int) failure {
	return failure{name: "receive: " + name, given: given, run: []string{"receive", bundleFile}, exit: exit, code: code, cases: cases}
}

func receiveFailures() []failure {
	return slices.Concat(mediumFailures(), encryptedFailures(), trustFailures(), freshnessFailures(), policyFailures())
}

// mediumFailures are bundles that are damaged, or none.
func mediumFailures() []failure {
	bad := receiving
	return []failure{
		bad("nothing there", without(bundleFile), 1, "file/missing", 0),
		{name: "receive: folder without a bundle", run: []string{"receive", "notes"}, exit: 2, code: "receive/no-bundle"},
		{name: "verify: folder with two", given: func(l *lab) { l.Write("medium/other.bin", l.forge(sender, 3, nil)) }, run: []string{"verify", "medium"}, exit: 2, code: "receive/several"},
		{name: "receive: the file beside the bundle", given: with("medium/plant-1-000001.packhof.json", "{}"), run: []string{"receive", "medium/plant-1-000001.packhof.json"}, exit: 2, code: "receive/no-bundle"},
		{name: "receive: a file beside no bundle", given: with("medium/other.json", "{}"), run: []string{"receive", "medium/other.json"}, exit: 2, code: "receive/no-bundle"},
		{name: "verify: folder with many", given: func(l *lab) {
			for i := range 12 {
				l.Write(fmt.Sprintf("medium/other-%02d.bin", i), l.forge(sender, int64(3+i), nil))
			}
		}, run: []string{"verify", "medium"}, exit: 2, code: "receive/several"},
		{name: "receive: folder with several, not all of them in order", given: func(l *lab) {
			l.Write("medium/other.bin", l.forge("stranger", 3, nil))
			l.Write("medium/torn.tar", "packhof.json\x00"+strings.Repeat("hello", 500))
		}, run: []string{"receive", "medium"}, exit: 10, code: "signing/not-genuine", cases: 2},
		{name: "receive: folder with many that are torn", given: func(l *lab) {
			l.Remove(bundleFile)
			for i := range 12 {
				l.Write(fmt.Sprintf("medium/other-%02d.tar", i), "packhof.json\x00"+strings.Repeat("hello", 500))
			}
		}, run: []string{"receive", "medium"}, exit: 11, code: "volume/not-a-bundle"},
		bad("empty", with(bundleFile, ""), 11, "volume/not-a-bundle", 0),
		bad("no tar", with(bundleFile, strings.Repeat("hello\n", 1000)), 11, "volume/not-a-bundle", 0),
		bad("cut off in a blob", func(l *lab) { l.Truncate(bundleFile, -7*512) }, 11, "volume/damaged", 0),
		bad("cut off by one byte", func(l *lab) { l.Truncate(bundleFile, -1) }, 11, "volume/damaged", 0),
		bad("cut off in its head", func(l *lab) { l.Truncate(bundleFile, 512+100) }, 11, "volume/not-a-bundle", 0),
		bad("a byte of a blob", func(l *lab) { l.FlipInTar(bundleFile, "blobs/sha256/", "read me", "reap me") }, 11, "volume/damaged", 1),
		bad("a byte of the manifest", func(l *lab) { l.FlipInTar(bundleFile, "packhof.json", `"serial":1`, `"serial":7`) }, 11, "volume/damaged", 0),
		bad("a byte of the signature", func(l *lab) { l.FlipInTar(bundleFile, "signatures/", `"signature":"ME`, `"signature":"MF`) }, 11, "volume/damaged", 0),
		bad("an entry that leads out", func(l *lab) { l.RenameInTar(bundleFile, "oci-layout", "../outside") }, 11, "volume/damaged", 0),
		bad("an absolute entry", func(l *lab) { l.RenameInTar(bundleFile, "oci-layout", "/etc/shado") }, 11, "volume/damaged", 0),
	}
}

// trustFailures are bundles that are whole, and not for this gate to trust.
func trustFailures() []failure {
	bad := receiving
	return []failure{
		bad("of a stranger", func(l *lab) { l.Write(bundleFile, l.forge(stranger, 1, nil)) }, 10, "signing/not-genuine", 1),
		bad("of a stranger with a trust root", func(l *lab) { l.Write(bundleFile, string(testkit.Forge(l.T, nil).Volume)) }, 10, "signing/root-conflict", 1),
		bad("no trust root yet", func(l *lab) {
			l.Remove("data")
			l.must("init", "--owner", "x")
		}, 1, "trust/not-initialised", 0),
		bad("for another gate", func(l *lab) {
			root := l.Read("trust/root-1.json")
			l.Remove("data")
			l.must("init", "--owner", "x")
			l.Write("root.json", root)
			l.must("trust", "init", "root.json", "--fingerprint", l.fingerprint("root.json"))
		}, 12, "audience/other", 1),
	}
}

// freshnessFailures are genuine bundles that are not the next of their channel.
func freshnessFailures() []failure {
	bad := receiving
	return []failure{
		bad("older", func(l *lab) {
			l.must("receive", bundleFile)
			first := l.manifest()
			l.Write("home/3.tar", l.forge(sender, 3, &first))
			l.must("receive", "home/3.tar")
			l.Write(bundleFile, l.forge(sender, 2, &first))
		}, 12, "freshness/older", 3),
		bad("too far ahead", func(l *lab) { l.Write(bundleFile, l.forge(sender, 20_000, nil)) }, 12, "freshness/too-far", 1),
		bad("another history", func(l *lab) {
			l.must("receive", bundleFile)
			other := cas.DigestOf([]byte("another first bundle"))
			l.Write(bundleFile, l.forge(sender, 2, &other))
		}, 12, "freshness/equivocation", 2),
		bad("another content under a known serial", func(l *lab) {
			l.must("receive", bundleFile)
			l.Write(bundleFile, l.twin("notes/README.md", "read me twice\n"))
		}, 12, "freshness/equivocation", 2),
	}
}

// policyFailures are those of the policy, and of looking without receiving.
func policyFailures() []failure {
	bad := receiving
	return []failure{
		bad("denied by the policy", func(l *lab) {
			l.Write("data/policy/config.json", `{"allowed_sources":["registry.example"]}`)
		}, 12, "policy/denied", 1),
		bad("a policy that cannot decide", func(l *lab) {
			l.Write("data/policy/own_number.rego", numberRule)
			l.Write("data/policy/own_number_test.rego", numberTests)
		}, 1, "policy/error", 1),
		bad("a policy that nothing proves", with("data/policy/own_number.rego", numberRule), 1, "policy/untested", 0),
		{name: "verify: a byte of a blob", given: func(l *lab) { l.FlipInTar(bundleFile, "blobs/sha256/", "read me", "reap me") }, run: []string{"verify", bundleFile}, exit: 11, code: "volume/damaged"},
		{name: "verify: of a stranger", given: func(l *lab) { l.Write(bundleFile, l.forge(stranger, 1, nil)) }, run: []string{"verify", bundleFile}, exit: 10, code: "signing/not-genuine"},
		{name: "inspect: no tar", given: with(bundleFile, "hello"), run: []string{"inspect", bundleFile}, exit: 11, code: "volume/not-a-bundle"},
		{name: "inspect: cut off in a blob", given: func(l *lab) { l.Truncate(bundleFile, -7*512) }, run: []string{"inspect", bundleFile}, exit: 11, code: "volume/damaged"},
	}
}

// numberRule fails on every channel whose name is no number.
const (
	numberRule = `# METADATA
# title: The channel is a small number
# custom:
#   kinds: [bundle]
#   title_de: "Der Kanal ist eine kleine Zahl"
#   message: "{number}"
#   message_de: "{number}"
#   remedy: "name it otherwise"
#   remedy_de: "Anders nennen"
package packhof.rules.own_number

checked contains ""

findings contains {"artifact": "", "level": "review", "params": {"number": n}} if {
	n := to_number(input.bundle.channel)
	n > 7
}
`
	numberTests = `package packhof.rules.own_number_test

import data.packhof.rules.fixtures_test
import data.packhof.rules.own_number

of(channel) := object.union(fixtures_test.clean, {"bundle": {"channel": channel}})

test_passes_small if {
	count(own_number.findings) == 0 with input as of("7")
}

test_fires_large if {
	count(own_number.findings) == 1 with input as of("8")
}
`
)

func decideFailures() []failure {
	decide := func(name string, given func(*lab), exit int, code string, run ...string) failure {
		return failure{name: "decide: " + name, given: given, run: run, exit: exit, code: code, cases: 1}
	}
	approve := []string{"approve", "1", "--as", "anna", "--yes", "--review", "sha256:0"}
	return []failure{
		decide("wrong password", setenv("PACKHOF_PASSWORD=not this one"), 4, "login/failed", append(approve, "--reason", "x")...),
		decide("no such account", nil, 4, "login/failed", "approve", "1", "--as", "berta", "--yes", "--review", "sha256:0", "--reason", "x"),
		decide("another review", nil, 1, "case/review-changed", append(approve, "--reason", "x")...),
		decide("a reason that nobody sees", nil, 2, "case/reason", append(approve, "--reason", "\u200b\u2060\u3164")...),
		decide("a reason below many marks", nil, 2, "case/reason", append(approve, "--reason", "x"+strings.Repeat("\u0301", 500))...),
		decide("a reason that acts on a terminal", nil, 2, "case/reason", append(approve, "--reason", "x\x1b]0;t\x07")...),
		decide("nobody at the terminal", nil, 1, "case/not-confirmed", "approve", "1", "--as", "anna", "--reason", "x"),
		decide("no reason, and nobody to ask", setenv("PACKHOF_PASSWORD=not this one"), 2, "case/reason", "approve", "1", "--as", "anna"),
		decide("no reason to reject, and nobody to ask", setenv("PACKHOF_PASSWORD=not this one"), 2, "case/reason", "reject", "1", "--as", "anna"),
		decide("what was read is not what is shown", nil, 1, "case/review-changed", "approve", "1", "--as", "anna", "--review", "sha256:0", "--reason", "x"),
		decide("account that may not", func(l *lab) { l.must("user", "add", "olaf", "--role", "operator") }, 4, "login/forbidden", "approve", "1", "--as", "olaf", "--yes", "--review", "sha256:0", "--reason", "x"),
		decide("on what they brought in themselves", func(l *lab) { l.must("user", "add", userName(uint32(os.Getuid())), "--role", "officer") },
			4, "case/own", "approve", "1", "--as", userName(uint32(os.Getuid())), "--yes", "--review", "sha256:0", "--reason", "x"),
		decide("no case", nil, 2, "case/unknown", "approve", "7", "--as", "anna", "--yes", "--review", "sha256:0"),
		decide("release before approval", nil, 13, "case/waiting", "release", "1"),
		{name: "decide: release after rejection", given: func(l *lab) {
			l.must("reject", "1", "--as", "anna", "--yes", "--review", l.review("1"), "--reason", "not needed")
		}, run: []string{"release", "1"}, exit: 14, code: "case/rejected", cases: 1},
		{name: "decide: approve after rejection", given: func(l *lab) {
			l.must("reject", "1", "--as", "anna", "--yes", "--review", l.review("1"), "--reason", "not needed")
		}, run: append(approve, "--reason", "x"), exit: 1, code: "case/not-waiting", cases: 1},
		{name: "decide: reject what is at its end, with no reason yet", given: func(l *lab) {
			l.must("reject", "1", "--as", "anna", "--yes", "--review", l.review("1"), "--reason", "not needed")
		}, run: []string{"reject", "1", "--as", "anna"}, exit: 1, code: "case/not-waiting", cases: 1},
	}
}

// unsetPassword takes the password out of the environment.
func (l *lab) unsetPassword() {
	l.Env = slices.DeleteFunc(l.Env, func(line string) bool { return strings.HasPrefix(line, "PACKHOF_PASSWORD=") })
}

// Who a forged bundle is from.
const (
	sender   = "sender"   // the lab's own key
	stranger = "stranger" // a key that the lab's root does not know
)

// forge makes a bundle for the lab's gate, with the lab's trust documents.
func (l *lab) forge(from string, serial int64, previous *bundle.Digest) string {
	l.T.Helper()
	now, key := time.Now(), ""
	if from == sender {
		key = "keys/packhof.key"
	}
	return string(l.ForgeUnder(key, passphrase, func(m *bundle.Manifest) {
		m.Channel, m.Serial, m.Previous, m.Audience = "plant-1", serial, previous, []string{l.gateID()}
		m.Created, m.Expires = bundle.At(now), bundle.At(now.Add(24*time.Hour))
	}).Volume)
}

// gateID is the id of the lab's gate.
func (l *lab) gateID() string {
	l.T.Helper()
	enrolment, err := bundle.ParseEnrolment([]byte(l.Read("data/enrol.json")))
	if err != nil {
		l.T.Fatal(err)
	}
	return enrolment.Gate
}

// manifest is the digest of the manifest on the medium.
func (l *lab) manifest() bundle.Digest {
	l.T.Helper()
	return cas.DigestOf([]byte(l.Read("medium/plant-1-000001.packhof.json")))
}

// twin is a bundle of serial 1 with one file changed, from the same sender: as
// if the ledger had been lost.
func (l *lab) twin(file, text string) string {
	l.T.Helper()
	other := l.clone(l.T)
	for _, path := range []string{"data", "medium", ".packhof", "packhof.ledger", "packhof.lock"} {
		other.Remove(path)
	}
	other.Mkdir("medium")
	other.mustPackhof("init", "--ledger-only")
	other.Write(file, text)
	other.exported()
	return other.Read(bundleFile)
}

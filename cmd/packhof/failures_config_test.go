package main

import (
	"os"
	"strings"
)

// withConfig replaces packhof.yaml.
func withConfig(text string) func(*lab) {
	return func(l *lab) { l.Write("packhof.yaml", text) }
}

// edited changes text in a file of the lab.
func edited(file, old, new string) func(*lab) {
	return func(l *lab) { l.replace(file, old, new) }
}

// without takes a file away.
func without(file string) func(*lab) {
	return func(l *lab) { l.Remove(file) }
}

// with writes a file.
func with(file, text string) func(*lab) {
	return func(l *lab) { l.Write(file, text) }
}

// both does one after the other.
func both(first, second func(*lab)) func(*lab) {
	return func(l *lab) { first(l); second(l) }
}

// artifact makes packhof.yaml carry just this one.
func artifact(lines ...string) func(*lab) {
	return func(l *lab) { l.artifacts("  - " + strings.Join(lines, "\n    ")) }
}

func configFailures() []failure {
	bad := func(name string, given func(*lab), code string) failure {
		return failure{name: "config: " + name, given: given, run: planArgs, exit: 2, code: code}
	}
	return []failure{
		bad("missing", without("packhof.yaml"), "config/missing"),
		bad("a folder", both(without("packhof.yaml"), func(l *lab) { l.Mkdir("packhof.yaml") }), "config/unreadable"),
		bad("too large", withConfig("# "+strings.Repeat("x", 1<<20)), "config/unreadable"),
		bad("empty", withConfig(""), "config/syntax"),
		bad("not yaml", withConfig("channel: [plant-1\n"), "config/syntax"),
		bad("tab indented", withConfig("scan:\n\ttimeout: 1m\n"), "config/syntax"),
		bad("a list", withConfig("- channel\n"), "config/invalid"),
		bad("two documents", edited("packhof.yaml", "channel:", "---\nchannel:"), "config/syntax"),
		bad("an anchor", edited("packhof.yaml", "channel: plant-1", "channel: &c plant-1\nnote: *c"), "config/syntax"),
		bad("duplicate key", edited("packhof.yaml", "channel: plant-1", "channel: plant-1\nchannel: plant-2"), "config/syntax"),
		bad("unknown key", edited("packhof.yaml", "channel:", "chanel:"), "config/unknown-key"),
		bad("unknown key of an artifact", edited("packhof.yaml", "    dir:", "    directory:"), "config/unknown-key"),
		bad("unknown key of a host", edited("packhof.yaml", "artifacts:", "hosts:\n  registry.example:5000:\n    plainhttps: true\nartifacts:"), "config/unknown-key"),
		bad("number for text", edited("packhof.yaml", `version: "1"`, "version: 1"), "config/invalid"),
		bad("text for truth", edited("packhof.yaml", "artifacts:", "hosts:\n  registry.example:\n    plainHTTP: \"yes\"\nartifacts:"), "config/invalid"),
		bad("text for a list", edited("packhof.yaml", "artifacts:", "audience: everyone\nartifacts:"), "config/invalid"),
		bad("span of time", edited("packhof.yaml", "artifacts:", "validFor: a month\nartifacts:"), "config/invalid"),
		bad("span of time too long", edited("packhof.yaml", "artifacts:", "validFor: 401d\nartifacts:"), "config/invalid"),
		bad("size", edited("packhof.yaml", "artifacts:", "scan:\n  memory: much\nartifacts:"), "config/invalid"),
		bad("apiVersion", edited("packhof.yaml", "packhof/v1", "packhof/v9"), "config/invalid"),
		bad("kind", edited("packhof.yaml", "kind: Export", "kind: Import"), "config/invalid"),
		bad("channel", edited("packhof.yaml", "channel: plant-1", "channel: Plant 1"), "config/invalid"),
		bad("gate id", edited("packhof.yaml", "artifacts:", "audience: [gate-1]\nartifacts:"), "config/invalid"),
		bad("gate that is not enrolled", edited("packhof.yaml", "artifacts:", "audience: [gate-2222222222222222]\nartifacts:"), "config/invalid"),
		bad("host with a scheme", edited("packhof.yaml", "artifacts:", "hosts:\n  https://registry.example: {}\nartifacts:"), "config/invalid"),
		bad("no artifacts", edited("packhof.yaml", notes[strings.Index(notes, "artifacts:"):], "artifacts: []\n"), "config/invalid"),
		bad("nothing to come from", edited("packhof.yaml", "    dir: notes\n", ""), "config/invalid"),
		bad("two places to come from", edited("packhof.yaml", "dir: notes", "dir: notes\n    file: notes/README.md"), "config/invalid"),
		bad("no name", artifact(`version: "1"`, "dir: notes"), "config/invalid"),
		bad("no version", artifact("name: notes", "dir: notes"), "config/invalid"),
		bad("unknown kind", artifact("kind: chart", "name: notes", `version: "1"`, "dir: notes"), "config/invalid"),
		bad("an image that is a model", artifact("kind: model", "image: registry.example/a:1"), "config/invalid"),
		bad("platforms of files", artifact("name: notes", `version: "1"`, "dir: notes", "platforms: [linux/amd64]"), "config/invalid"),
		bad("url without sha256", artifact("name: a", `version: "1"`, "url: https://files.example/a"), "config/invalid"),
		bad("sha256 without url", artifact("name: a", `version: "1"`, "dir: notes", "sha256: "+strings.Repeat("a", 64)), "config/invalid"),
		bad("sha256 too short", artifact("name: a", `version: "1"`, "url: https://files.example/a", "sha256: abc"), "config/invalid"),
		bad("url with a password", artifact("name: a", `version: "1"`, "url: https://user:secret@files.example/a", "sha256: "+strings.Repeat("a", 64)), "config/invalid"),
		bad("url of ftp", artifact("name: a", `version: "1"`, "url: ftp://files.example/a", "sha256: "+strings.Repeat("a", 64)), "config/invalid"),
		bad("several mistakes", edited("packhof.yaml", "artifacts:", "validFor: 1m\naudience: [gate-1, 7]\nnoet: x\nartifacts:\n  - {image: registry.example/a:1, platform: linux/amd64}\n  - {name: b, url: http://files.example/b?c}"), "config/invalid"),
		bad("several unknown keys", edited("packhof.yaml", "channel:", "chanel:\ncanel:"), "config/unknown-key"),
		bad("more mistakes than anybody reads", withConfig(notes+strings.Repeat("  - {}\n", 50)), "config/invalid"),
		bad("one artifact twice", edited("packhof.yaml", "artifacts:\n", "artifacts:\n  - name: notes\n    version: \"1\"\n    dir: notes\n"), "config/invalid"),
		bad("image name", artifact("image: registry.example/UPPER:1"), "reference/malformed"),
		bad("platform name", artifact("image: registry.example/a:1", "platforms: [amd64]"), "source/platform-malformed"),
		bad("ca missing", edited("packhof.yaml", "artifacts:", "hosts:\n  registry.example:5000:\n    ca: ca.pem\nartifacts:"), "config/invalid"),
		bad("ca is no certificate", both(with("ca.pem", "hello\n"), edited("packhof.yaml", "artifacts:", "hosts:\n  registry.example:5000:\n    ca: ca.pem\nartifacts:")), "registry/config"),
	}
}

func commandFailures() []failure {
	wrong := func(name string, given func(*lab), exit int, code string, run ...string) failure {
		return failure{name: "command: " + name, given: given, run: run, exit: exit, code: code}
	}
	setenv := func(line string) func(*lab) { return func(l *lab) { l.Env = append(l.Env, line) } }
	return []failure{
		wrong("unknown", nil, 2, "usage", "exprot"),
		wrong("unknown below another", nil, 2, "usage", "trust", "int"),
		wrong("unknown flag", nil, 2, "usage", "plan", "--dryrun"),
		wrong("argument missing", nil, 2, "usage", "verify"),
		wrong("argument too many", nil, 2, "usage", "plan", "now"),
		wrong("both arguments missing", nil, 2, "usage", "diff"),
		wrong("one of two arguments missing", nil, 2, "usage", "diff", "old.tar"),
		wrong("argument too many of one", nil, 2, "usage", "key", "show", "old.pub", "new.pub"),
		wrong("key of two files", nil, 2, "usage", "key", "generate", "a.key", "b.key"),
		wrong("flag missing", func(l *lab) { l.Remove("trust") }, 2, "usage", "trust", "init"),
		wrong("unknown format", nil, 2, "usage", "version", "-o", "xml"),
		wrong("unknown schema", nil, 2, "usage", "schema", "import"),
		wrong("help about nothing", nil, 2, "usage", "help", "nothing"),
		wrong("help about an unknown error", nil, 2, "usage", "help", "errors", "no/such"),
		wrong("flag in the environment", setenv("PACKHOF_DRY_RUN=perhaps"), 2, "usage", "plan"),
		wrong("init over a project", nil, 2, "config/exists", "init"),
		wrong("init over a ledger", without("packhof.yaml"), 2, "config/exists", "init"),
		wrong("init with a bad channel", nil, 2, "usage", "init", "--channel", "Plant 1"),
		wrong("key over a key", nil, 2, "config/exists", "key", "generate"),
		wrong("key show of no key", nil, 2, "signing/not-a-key", "key", "show", "packhof.yaml"),
		wrong("key show of nothing", nil, 1, "file/missing", "key", "show", "other.pub"),
		wrong("inspect nothing", nil, 1, "file/missing", "inspect", "plant-1-000009.tar"),
		wrong("verify nothing", nil, 1, "file/missing", "verify", "plant-1-000009.tar"),
		wrong("diff of nothing", nil, 1, "file/missing", "diff", "plant-1-000008.tar", "plant-1-000009.tar"),
		wrong("inspect a folder", nil, 2, "volume/none", "inspect", "notes"),
		wrong("inspect a device", nil, 2, "volume/not-a-file", "inspect", "/dev/null"),
	}
}

// notRoot skips what the administrator of a machine is allowed anyway.
func notRoot(l *lab) {
	if os.Geteuid() == 0 {
		l.T.Skip("root may read everything")
	}
}

package testkit

import (
	"encoding/json/v2"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/packhof/packhof/internal/cas"
)

// Script is what commands need of a *testscript.TestScript. The kit names no
// more of it, so that the tests that run no scripts are not built with the
// engine.
type Script interface {
	Check(err error)
	Fatalf(format string, args ...any)
	ReadFile(name string) string
	Setenv(key, value string)
}

// ScriptCommands makes commands of scripts from functions that give an error:
// of a command with "!" before it, an error is what has to come. It adds those
// that all scripts have, json and sha256.
func ScriptCommands[S Script](own map[string]func(S, []string) error) map[string]func(ts S, neg bool, args []string) {
	commands := map[string]func(S, []string) error{"json": checkJSON[S], "sha256": setSHA256[S]}
	maps.Copy(commands, own)
	all := map[string]func(S, bool, []string){}
	for name, run := range commands {
		all[name] = func(ts S, neg bool, args []string) {
			err := run(ts, args)
			if neg && err == nil {
				ts.Fatalf("%s %s: succeeded", name, strings.Join(args, " "))
			}
			if !neg {
				ts.Check(err)
			}
		}
	}
	return all
}

// setSHA256: sha256 VARIABLE FILE
func setSHA256[S Script](ts S, args []string) error {
	ts.Setenv(args[0], cas.DigestOf([]byte(ts.ReadFile(args[1]))).Hex())
	return nil
}

// checkJSON: json FILE KIND [MEMBER=VALUE…] checks a document that a command
// printed. A member is a path such as artifacts.0.name; of a list, its length
// is the member count.
func checkJSON[S Script](ts S, args []string) error {
	return CheckDocument([]byte(ts.ReadFile(args[0])), args[1], args[2:])
}

// CheckDocument checks a document in JSON as the command json of a script does.
func CheckDocument(text []byte, kind string, members []string) error {
	var document any
	if err := json.Unmarshal(text, &document); err != nil {
		return err
	}
	for _, member := range append([]string{"apiVersion=packhof/v1", "kind=" + kind}, members...) {
		path, want, _ := strings.Cut(member, "=")
		if got := memberOf(document, strings.Split(path, ".")); got != want {
			return fmt.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	return nil
}

// memberOf gives a member as text; a missing one as "none".
func memberOf(document any, path []string) string {
	if len(path) == 0 {
		return fmt.Sprint(document)
	}
	switch d := document.(type) {
	case map[string]any:
		if member, ok := d[path[0]]; ok {
			return memberOf(member, path[1:])
		}
	case []any:
		if path[0] == "count" {
			return strconv.Itoa(len(d))
		}
		if i, err := strconv.Atoi(path[0]); err == nil && i < len(d) {
			return memberOf(d[i], path[1:])
		}
	}
	return "none"
}

package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/signing"
)

// TestScripts runs testdata/script: what a user gets, one behaviour a file. A
// script begins in a project up to the enrolled gate; its own packhof.yaml
// takes the place of the project's. Besides the commands of testscript there
// are those of scriptCommands.
func TestScripts(t *testing.T) {
	project := newLab(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true, Cmds: scriptCommands(),
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, "PACKHOF_PASSPHRASE="+passphrase, "DOCKER_CONFIG="+filepath.Join(env.WorkDir, "docker"),
				"FINGERPRINT="+signing.FingerprintOf([]byte(project.Read("enrol.json"))).String())
			env.Values[servers{}] = map[string]any{}
			return copyMissing(env.WorkDir, project.Dir)
		},
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
	})
}

// copyMissing copies what the script does not bring itself.
func copyMissing(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		if _, err := os.Lstat(target); err == nil {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, b, 0o600)
	})
}

// servers is the key of the servers that a script has started, by name.
type servers struct{}

func scriptCommands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return testkit.ScriptCommands(map[string]func(ts *testscript.TestScript, args []string) error{
		"registry": startRegistry, "https": startHTTPS, "stop": stop, "push": push, "login": login, "asked": asked,
		"model": writeModel, "pickle": writePickle, "dataset": writeDataset, "expand": expand,
		"same": same, "yaml": checkYAML, "snapshot": takeSnapshot, "unchanged": compareSnapshot,
		"want": writeWant, "newer": updateGate,
	})
}

// updateGate: newer ENROL.JSON makes an enrolment state that the gate reads all
// that this version writes.
func updateGate(ts *testscript.TestScript, args []string) error {
	e, err := bundle.ParseEnrolment([]byte(ts.ReadFile(args[0])))
	if err != nil {
		return err
	}
	e.Reads = bundle.Reads()
	raw, err := bundle.EncodeEnrolment(e)
	if err != nil {
		return err
	}
	return os.WriteFile(ts.MkAbs(args[0]), raw, 0o644)
}

// writeWant: want FILE MANIFEST CONTENT writes the want list of the lab's gate
// for the content of a file in serial 1 of a bundle, known by its manifest.
func writeWant(ts *testscript.TestScript, args []string) error {
	content := ts.ReadFile(args[2])
	b, err := bundle.EncodeWant(&bundle.Want{
		Format: bundle.FormatWant, Gate: testkit.GateID, Created: bundle.At(testkit.Noon()), Channel: "line-3", Epoch: 1, Serial: 1,
		Manifest: cas.DigestOf([]byte(ts.ReadFile(args[1]))), Pieces: []bundle.Piece{{Blob: cas.DigestOf([]byte(content)), Length: int64(len(content))}},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(ts.MkAbs(args[0]), b, 0o600)
}

func started(ts *testscript.TestScript) map[string]any { return ts.Value(servers{}).(map[string]any) }

// serving makes a server known to the script: its address as $NAME, its
// authority as NAME.pem.
func serving(ts *testscript.TestScript, name string, server interface {
	Host() string
	CAPEM() []byte
	Close() error
}) error {
	started(ts)[name] = server
	ts.Setenv(name, server.Host())
	ts.Defer(func() { ts.Check(server.Close()) })
	if server.CAPEM() == nil {
		return nil
	}
	return os.WriteFile(ts.MkAbs(name+".pem"), server.CAPEM(), 0o644)
}

// startRegistry: registry NAME [tls] [user:password]
func startRegistry(ts *testscript.TestScript, args []string) error {
	var options []testkit.Option
	for _, option := range args[1:] {
		if user, password, ok := strings.Cut(option, ":"); ok {
			options = append(options, testkit.WithBasicAuth(user, password))
		} else {
			options = append(options, testkit.WithTLS())
		}
	}
	r, err := testkit.StartRegistry(options...)
	if err != nil {
		return err
	}
	return serving(ts, args[0], r)
}

// startHTTPS: https NAME FOLDER
func startHTTPS(ts *testscript.TestScript, args []string) error {
	s, err := testkit.StartFileServer(os.DirFS(ts.MkAbs(args[1])))
	if err != nil {
		return err
	}
	return serving(ts, args[0], s)
}

// stop: stop SERVER
func stop(ts *testscript.TestScript, args []string) error {
	return started(ts)[args[0]].(interface{ Close() error }).Close()
}

// push: push REGISTRY REPOSITORY:TAG SEED [ARCHITECTURE…]; the digest becomes
// $DIGEST. With architectures it is an index of images.
func push(ts *testscript.TestScript, args []string) error {
	r := started(ts)[args[0]].(*testkit.Registry)
	spec := testkit.ImageSpec{Seed: args[2], PayloadSize: 200_000}
	if archs := args[3:]; len(archs) > 0 {
		index, err := testkit.MultiArch(spec, archs...)
		if err != nil {
			return err
		}
		digest, err := r.PushIndex(context.Background(), args[1], index)
		ts.Setenv("DIGEST", digest.String())
		return err
	}
	image, err := testkit.Image(spec)
	if err != nil {
		return err
	}
	digest, err := r.PushImage(context.Background(), args[1], image)
	ts.Setenv("DIGEST", digest.String())
	return err
}

// login: login HOST USER PASSWORD, as "docker login" does it.
func login(ts *testscript.TestScript, args []string) error {
	return writeDockerConfig(ts.Getenv("DOCKER_CONFIG"), args[0], args[1], args[2])
}

// asked: asked SERVER PART COUNT checks in the server's own record how many
// GETs there were whose path has PART in it, and begins the record anew.
func asked(ts *testscript.TestScript, args []string) error {
	server := started(ts)[args[0]].(interface {
		Requests() []testkit.Request
		ForgetRequests()
	})
	var paths []string
	for _, r := range server.Requests() {
		if r.Method == "GET" && strings.Contains(r.Path, args[1]) {
			paths = append(paths, r.Path)
		}
	}
	server.ForgetRequests()
	if strconv.Itoa(len(paths)) != args[2] {
		return fmt.Errorf("%d requests, want %s:\n%s", len(paths), args[2], strings.Join(paths, "\n"))
	}
	return nil
}

// writeModel: model FOLDER SEED
func writeModel(ts *testscript.TestScript, args []string) error {
	model, err := testkit.Model(args[1])
	if err != nil {
		return err
	}
	return os.CopyFS(ts.MkAbs(args[0]), model)
}

// writePickle: pickle FILE writes what pickle.dumps(["weights"], 2) gives.
func writePickle(ts *testscript.TestScript, args []string) error {
	return os.WriteFile(ts.MkAbs(args[0]), []byte("\x80\x02]q\x00X\x07\x00\x00\x00weightsq\x01a."), 0o644)
}

// writeDataset: dataset FOLDER SEED ROWS
func writeDataset(ts *testscript.TestScript, args []string) error {
	rows, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	return os.CopyFS(ts.MkAbs(args[0]), testkit.Dataset(args[1], rows))
}

// expand: expand FILE… puts the values of variables into files.
func expand(ts *testscript.TestScript, args []string) error {
	for _, name := range args {
		text := os.Expand(ts.ReadFile(name), ts.Getenv)
		if err := os.WriteFile(ts.MkAbs(name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// same: same FILE FILE compares bytes.
func same(ts *testscript.TestScript, args []string) error {
	if ts.ReadFile(args[0]) != ts.ReadFile(args[1]) {
		return fmt.Errorf("%s and %s differ", args[0], args[1])
	}
	return nil
}

// checkYAML: yaml FILE KIND [MEMBER=VALUE…]
func checkYAML(ts *testscript.TestScript, args []string) error {
	asJSON, err := yaml.YAMLToJSON([]byte(ts.ReadFile(args[0])))
	if err != nil {
		return err
	}
	return testkit.CheckDocument(asJSON, args[1], args[2:])
}

// takeSnapshot: snapshot
func takeSnapshot(ts *testscript.TestScript, _ []string) error {
	state, err := treeState(ts.Getenv("WORK"), func(string) error { return nil })
	started(ts)["snapshot"] = state
	return err
}

// compareSnapshot: unchanged, that is, since snapshot, the store left aside.
func compareSnapshot(ts *testscript.TestScript, _ []string) error {
	state, err := treeState(ts.Getenv("WORK"), func(string) error { return nil })
	if diff := cmp.Diff(started(ts)["snapshot"], any(state)); diff != "" {
		return fmt.Errorf("files have changed (-before +after):\n%s", diff)
	}
	return err
}

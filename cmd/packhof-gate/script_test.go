package main

import (
	"encoding/json/v2"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/signing"
)

// TestScripts runs testdata/script: what people get who follow the way of a
// bundle, one behaviour a file. A script begins on the first day, with a
// project of packhof and no gate. Besides the commands of testscript there are
// those of scriptCommands.
func TestScripts(t *testing.T) {
	project := emptyLab(t)
	testdata, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true, Cmds: scriptCommands(),
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, "PACKHOF_PASSPHRASE="+passphrase, "PACKHOF_PASSWORD="+password, "PACKHOF_DATA=data", "DOCKER_CONFIG="+filepath.Join(env.WorkDir, "docker"), "TESTDATA="+testdata)
			return os.CopyFS(env.WorkDir, os.DirFS(project.Dir)) // the scripts bring nothing that it has
		},
		Condition: func(cond string) (bool, error) {
			name, ok := strings.CutPrefix(cond, "tool:")
			if !ok {
				return false, fmt.Errorf("unknown condition %q", cond)
			}
			_, err := exec.LookPath(name)
			if err != nil && os.Getenv("PACKHOF_REQUIRE_TOOLS") == "1" {
				return false, err
			}
			return err == nil, nil
		},
	})
}

func scriptCommands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return testkit.ScriptCommands(map[string]func(ts *testscript.TestScript, args []string) error{
		"fingerprint": setFingerprint, "review": setReview, "serve": startServe, "download": download,
		"manifest": setManifest, "small": writeSmall,
	})
}

// setFingerprint: fingerprint FILE makes $FINGERPRINT that of the file.
func setFingerprint(ts *testscript.TestScript, args []string) error {
	ts.Setenv("FINGERPRINT", signing.FingerprintOf([]byte(ts.ReadFile(args[0]))).String())
	return nil
}

// writeSmall: small DIR N writes so many small files into folders below DIR.
func writeSmall(ts *testscript.TestScript, args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	return smallFiles(ts.MkAbs(args[0]), n)
}

func smallFiles(dir string, n int) error {
	for i := range n {
		folder := filepath.Join(dir, fmt.Sprintf("part-%03d", i/1000))
		if i%1000 == 0 {
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%06d.txt", i)), fmt.Appendf(nil, "line %d\n", i), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// setManifest: manifest VARIABLE FILE FIELD finds text such as "sha256:…" that
// stands behind a word in a file.
func setManifest(ts *testscript.TestScript, args []string) error {
	found := regexp.MustCompile(regexp.QuoteMeta(args[2]) + `[" :]+(sha256:[0-9a-f]{64})`).FindStringSubmatch(ts.ReadFile(args[1]))
	if found == nil {
		return fmt.Errorf("%s has no %s", args[1], args[2])
	}
	ts.Setenv(args[0], found[1])
	return nil
}

// setReview: review CASE makes $REVIEW the digest of what is to be decided on.
func setReview(ts *testscript.TestScript, args []string) error {
	if err := ts.Exec("packhof-gate", "show", args[0], "-o", "json"); err != nil {
		return err
	}
	var shown showDocument
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &shown); err != nil {
		return err
	}
	ts.Setenv("REVIEW", shown.Review.Digest)
	return nil
}

// startServe: serve starts a serve and makes $GATE its address. It ends with
// the script, and has to end well.
func startServe(ts *testscript.TestScript, _ []string) error {
	c := exec.Command("packhof-gate", "serve", "--listen", "127.0.0.1:0")
	c.Dir, c.Env = ts.Getenv("WORK"), []string{"PATH=" + os.Getenv("PATH"), "PACKHOF_DATA=data", "TMPDIR=" + os.TempDir()}
	r, err := serve(c)
	if err != nil {
		return err
	}
	ts.Setenv("GATE", strings.TrimPrefix(r.address, "https://"))
	ts.Defer(func() {
		ts.Check(r.Cmd.Process.Signal(syscall.SIGTERM))
		if err := r.Cmd.Wait(); err != nil {
			ts.Fatalf("serve: %v\n%s", err, r.Stderr.String())
		}
	})
	return nil
}

// download: download PATH FILE fetches from $GATE as a plant client, who takes
// the gate's certificate as authority.
func download(ts *testscript.TestScript, args []string) error {
	client, err := trusting(ts.ReadFile("data/tls/cert.pem"))
	if err != nil {
		return err
	}
	response, err := client.Get("https://" + ts.Getenv("GATE") + args[0])
	if err != nil {
		return err
	}
	defer func() { ts.Check(response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", args[0], response.Status)
	}
	b, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(ts.MkAbs(args[1]), b, 0o644)
}

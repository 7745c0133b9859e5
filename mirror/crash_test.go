package mirror_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/mirror"
	"github.com/packhof/packhof/signing"
)

// Environment of a test binary that plays another program.
const (
	envExport = "MIRROR_TEST_EXPORT"   // folder of the project to export
	envDieAt  = "MIRROR_TEST_DIE_AT"   // event at which it kills itself; 0 for never
	envScan   = "MIRROR_TEST_SCANNER"  // how the scanner behaves
	envWait   = "MIRROR_TEST_ANNOUNCE" // say on stdout when the work begins
)

func TestMain(m *testing.M) {
	if how, ok := os.LookupEnv(envScan); ok {
		os.Exit(playScanner(how))
	}
	os.Exit(m.Run())
}

// fuse kills the process at an event, as kill -9 would.
type fuse struct{ left int }

func (f *fuse) burn() {
	if f.left--; f.left == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until it arrives
	}
}

func (f *fuse) Start(string, int64) mirror.Item { f.burn(); return f }
func (f *fuse) Advance(int64)                   { f.burn() }
func (f *fuse) Done(error)                      { f.burn() }

type fusedSigner struct {
	signing.Signer
	fuse *fuse
}

func (s fusedSigner) SignDigest(ctx context.Context, digest [32]byte) ([]byte, error) {
	s.fuse.burn()
	b, err := s.Signer.SignDigest(ctx, digest)
	s.fuse.burn()
	return b, err
}

// TestExportInAChild is no test of its own: it is what the crash tests run and
// kill.
func TestExportInAChild(t *testing.T) {
	dir, ok := os.LookupEnv(envExport)
	if !ok {
		t.Skip("only as a child of the crash tests")
	}
	at, err := strconv.Atoi(os.Getenv(envDieAt))
	if err != nil {
		t.Fatal(err)
	}
	y := openYard(t, dir)
	f := &fuse{left: at}
	y.shelf.step = f.burn
	l, err := mirror.ReadLock(filepath.Join(dir, "packhof.lock"))
	if err != nil {
		t.Fatal(err)
	}
	e := y.exporter(t)
	e.Progress, e.Signer = f, fusedSigner{y.signer, f}
	if os.Getenv(envWait) != "" {
		fmt.Println("begin")
	}
	if _, err := e.Export(t.Context(), l, filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	if at > 0 {
		fmt.Println("survived")
	}
}

func newCrashYard(t *testing.T) *yard {
	t.Helper()
	y := newYard(t)
	if err := y.plan(t).Write(filepath.Join(y.dir, "packhof.lock")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(y.dir, "out"), 0o755); err != nil {
		t.Fatal(err)
	}
	return y
}

func child(t *testing.T, y *yard, dieAt int) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, "-test.run=^TestExportInAChild$", "-test.count=1")
	c.Env = append(os.Environ(), envExport+"="+y.dir, envDieAt+"="+strconv.Itoa(dieAt))
	return c
}

// checkAfterCrash makes sure that nothing is half there, and that the next run
// ends with the right bytes.
func checkAfterCrash(t *testing.T, what string, y *yard, want []byte) {
	t.Helper()
	again := openYard(t, y.dir)
	if err := again.store.Sweep(); err != nil { // as the program does when it opens a store
		t.Fatal(err)
	}
	testkit.CheckStore(t, again.store)
	sealed, ok := again.ledger(t).Last()
	if ok {
		if _, err := again.store.ReadAll(sealed.Manifest, 1<<20); err != nil {
			t.Errorf("%s: the ledger names a manifest that is not in the store: %v", what, err)
		}
	}
	final := filepath.Join(y.dir, "out", "plant-7-000001.tar")
	if b, err := os.ReadFile(final); err == nil {
		if !bytes.Equal(b, want) {
			t.Errorf("%s: a wrong volume stands under its final name", what)
		}
		if !ok {
			t.Errorf("%s: there is a volume of a serial that is not sealed", what)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if out, err := child(t, y, 0).CombinedOutput(); err != nil {
		t.Fatalf("%s: the next run: %v\n%s", what, err, out)
	}
	b, err := os.ReadFile(final)
	if err != nil || !bytes.Equal(b, want) {
		t.Errorf("%s: the next run wrote other bytes, %v", what, err)
	}
	left, err := filepath.Glob(filepath.Join(y.dir, "out", "*"+cas.PartialSuffix))
	if err != nil || len(left) > 0 {
		t.Errorf("%s: left on the medium: %v, %v", what, left, err)
	}
	if after, _ := again.ledger(t).Last(); ok && after != sealed {
		t.Errorf("%s: the ledger changed its mind", what)
	}
}

// wholeRun gives the bytes of an export that nobody disturbs.
func wholeRun(t *testing.T) []byte {
	t.Helper()
	y := newCrashYard(t)
	if out, err := child(t, y, 0).CombinedOutput(); err != nil {
		t.Fatalf("undisturbed: %v\n%s", err, out)
	}
	b, err := os.ReadFile(filepath.Join(y.dir, "out", "plant-7-000001.tar"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestKilledAtEveryEvent(t *testing.T) {
	want := wholeRun(t)
	for at := 1; ; at++ {
		y := newCrashYard(t)
		out, err := child(t, y, at).CombinedOutput()
		if err == nil && strings.Contains(string(out), "survived") {
			if at < 20 {
				t.Errorf("an export has only %d events", at-1)
			}
			return
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("event %d: %v\n%s", at, err, out)
		}
		checkAfterCrash(t, fmt.Sprintf("killed at event %d", at), y, want)
	}
}

func TestKilledAnywhere(t *testing.T) {
	want := wholeRun(t)
	seed := uint64(testkit.Noon().Unix())
	random := rand.New(rand.NewPCG(seed, 1))
	const rounds = 12
	for range rounds {
		y := newCrashYard(t)
		c := child(t, y, 0)
		c.Env = append(c.Env, envWait+"=1")
		stdout, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := stdout.Read(make([]byte, 1)); err != nil { // it begins
			t.Fatal(err)
		}
		after := time.Duration(random.IntN(15000)) * time.Microsecond
		timer := time.AfterFunc(after, func() { _ = c.Process.Kill() })
		_ = c.Wait() // killed, or done before that: both are fine
		timer.Stop()
		checkAfterCrash(t, fmt.Sprintf("killed after %s", after), y, want)
	}
}

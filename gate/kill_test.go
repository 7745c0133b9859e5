package gate_test

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/testkit"
)

// killed is what a child of these tests is told: where to work, and at which
// of the points it passes it is to be killed.
type killed struct {
	Dir    string
	Volume string
	Now    time.Time
	At     int // 0: nowhere
}

const killedVariable = "PACKHOF_GATE_TEST_KILLED"

// TestMain is also the program of the children.
func TestMain(m *testing.M) {
	if text := os.Getenv(killedVariable); text != "" {
		if err := beKilled(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// beKilled goes the whole way of a bundle, from the medium to the depot, and
// prints each point it passes.
func beKilled(text string) error {
	var k killed
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		return err
	}
	passed := 0
	t := &childTB{}
	l := &lab{t: t, dir: k.Dir, clock: testkit.NewClock(k.Now), sink: newShelf(), needs: gate.Approvals{Allow: 1, Review: 1}}
	l.fault = func(point string) error {
		passed++
		fmt.Println(point)
		if passed == k.At {
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return nil
	}
	g, err := gate.Open(context.Background(), l.options())
	if err != nil {
		return err
	}
	return errors.Join(wholeWay(g, k.Volume), g.Close())
}

// wholeWay does what is left to do until the bundle is loaded.
func wholeWay(g *gate.Gate, volume string) error {
	ctx := context.Background()
	if err := g.Resume(ctx); err != nil {
		return err
	}
	c, err := g.Receive(ctx, operator, volume, nil)
	if err != nil {
		return err
	}
	if c.State == gate.Awaiting {
		anna, err := g.Authenticate(ctx, "anna", []byte(password))
		if err != nil {
			return err
		}
		page, err := g.Review(ctx, anna, c.ID)
		if err != nil {
			return err
		}
		if c, err = g.Decide(ctx, anna, c.ID, gate.Approve, page.Digest, "known"); err != nil {
			return err
		}
	}
	if c, err = g.Release(ctx, operator, c.ID, nil); err != nil {
		return err
	}
	if c.State != gate.Loaded {
		return fmt.Errorf("in the end it is %s", c.State)
	}
	return nil
}

// childTB is what the lab needs of a test where there is none.
type childTB struct{ testing.TB }

func (childTB) Helper()                  {}
func (childTB) Context() context.Context { return context.Background() }
func (childTB) Fatal(args ...any)        { panic(fmt.Sprint(args...)) }

func runChild(t *testing.T, k killed) (points []string, err error) {
	t.Helper()
	text, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), killedVariable+"="+string(text))
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil && said.Len() > 0 {
		err = fmt.Errorf("%w: %s", err, said.String())
	}
	return strings.Fields(string(out)), err
}

// TestKilledAtEveryStep kills the gate at each point of the way of a bundle,
// by SIGKILL, and starts it again: what was a step is done, what was none is
// not, and the way goes on to its end. Nothing is ever shown that was not
// released.
func TestKilledAtEveryStep(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process for every step")
	}
	prepare := func(t *testing.T) (*lab, *testkit.Forged, string) {
		l := newLab(t)
		f := l.forge(nil)
		l.trust(f)
		if err := l.gate.Close(); err != nil {
			t.Fatal(err)
		}
		return l, f, l.medium(f.Volume)
	}
	l, _, path := prepare(t)
	points, err := runChild(t, killed{Dir: l.dir, Volume: path, Now: l.clock.Now()})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"admit:after", "copy:before", "verified:after", "inspected:after", "decided:after", "decide:after", "load-begin:after", "put:after", "publish:before", "published:after", "read-back:after", "loaded:after"} {
		if !strings.Contains(strings.Join(points, " "), want) {
			t.Errorf("the way does not pass %s: %v", want, points)
		}
	}
	for i, point := range points {
		t.Run(strconv.Itoa(i+1)+" "+point, func(t *testing.T) {
			t.Parallel()
			l, f, path := prepare(t)
			_, err := runChild(t, killed{Dir: l.dir, Volume: path, Now: l.clock.Now(), At: i + 1})
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("the child was not killed: %v", err)
			}
			l.open()
			checkAfterKill(t, l, f, points[:i+1])
			if err := wholeWay(l.gate, path); err != nil {
				t.Fatalf("the way does not go on: %v", err)
			}
			checkHistory(t, l)
		})
	}
}

// checkAfterKill makes sure that the depot shows the bundle exactly when the
// step that publishes it had been committed.
func checkAfterKill(t *testing.T, l *lab, f *testkit.Forged, passed []string) {
	t.Helper()
	released := strings.Contains(strings.Join(passed, " "), "published:after")
	_, err := l.gate.Depot().Tag(t.Context(), "notes", "1.0")
	if released != (err == nil) {
		t.Errorf("after %s: the depot says %v", passed[len(passed)-1], err)
	}
	for _, b := range f.Manifest.Blobs {
		if _, err := l.gate.Depot().Open(t.Context(), b.Digest); !released && codeOf(err) != "depot/not-found" {
			t.Errorf("after %s: blob %s can be had: %v", passed[len(passed)-1], b.Digest, err)
		}
	}
}

// checkHistory makes sure that each step that happens once is told once, and
// that the audit log is whole.
func checkHistory(t *testing.T, l *lab) {
	t.Helper()
	c, err := l.gate.Case(t.Context(), operator, 1)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, e := range c.History {
		count[e.Type]++
	}
	for _, once := range []string{"case.received", "case.verified", "case.inspected", "case.judged", "case.approved", "case.loaded"} {
		if count[once] != 1 {
			t.Errorf("%s is told %d times", once, count[once])
		}
	}
	checks, err := l.gate.Doctor(t.Context(), operator)
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range checks {
		if check.Name == "audit log" && check.Result != gate.CheckOK {
			t.Errorf("%+v", check)
		}
	}
}

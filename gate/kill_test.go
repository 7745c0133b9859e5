package gate_test

import (
	"context"
	"database/sql"
	"encoding/json/v2"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

// killed is what a child of these tests is told: which way to go, where, and
// at which of the points it passes it is to be killed.
type killed struct {
	Way   string
	Dir   string
	Media string
	Now   time.Time
	At    int // 0: nowhere
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

// passed is a point that a child has come to, and what the audit log told
// there, by type.
type passed struct {
	Point string
	Told  []string
}

// beKilled goes a way. Undisturbed, it prints each point it passes.
func beKilled(text string) error {
	var k killed
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		return err
	}
	l := k.lab(childTB{})
	count := 0
	l.fault = func(point string) error {
		switch count++; k.At {
		case 0:
			return printPoint(k.Dir, point)
		case count:
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return nil
	}
	g, err := gate.Open(context.Background(), l.options())
	if err != nil {
		return err
	}
	return errors.Join(walk(k, g), g.Close())
}

func printPoint(dir, point string) error {
	told, err := toldBy(dir)
	if err != nil {
		return err
	}
	line, err := json.Marshal(passed{point, told})
	if err == nil {
		_, err = fmt.Println(string(line))
	}
	return err
}

// walk goes what is left of a way.
func walk(k killed, g *gate.Gate) error {
	ctx := context.Background()
	if err := g.Resume(ctx); err != nil {
		return err
	}
	w := walker{ctx: ctx, g: g, media: k.Media}
	if err := w.initTrust(); err != nil {
		return err
	}
	return ways()[k.Way].walk(w)
}

// lab is the gate of a child, or of the one who goes on after its death: with
// one more destination, where the way has one.
func (k killed) lab(t testing.TB) *lab {
	l := &lab{t: t, dir: k.Dir, media: k.Media, clock: testkit.NewClock(k.Now), sink: newShelf(), program: "packhof-gate test", needs: gate.Approvals{Allow: 1, Review: 1}}
	if ways()[k.Way].failsOnce {
		sink := failsOnce{newShelf(), filepath.Join(k.Dir, "failed-once")}
		l.more = []gate.Destination{{Name: "second", Accepts: allKinds(), Naming: gate.DefaultNaming(), Sink: sink}}
	}
	return l
}

// toldBy lists the types of all that the audit log of a data directory tells,
// whoever has the directory open.
func toldBy(dir string) (told []string, err error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "gate.db")+"?mode=ro&_pragma=busy_timeout(10000)")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.Query(`SELECT CAST(bytes AS TEXT) ->> 'type' FROM leaf ORDER BY n`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			return nil, err
		}
		told = append(told, one)
	}
	return told, rows.Err()
}

// childTB is what the lab needs of a test where there is none.
type childTB struct{ testing.TB }

func (childTB) Helper()                  {}
func (childTB) Context() context.Context { return context.Background() }
func (childTB) Fatal(args ...any)        { panic(fmt.Sprint(args...)) }

func runChild(t *testing.T, k killed) (points []passed, err error) {
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
	for line := range strings.Lines(string(out)) {
		var p passed
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatal(err)
		}
		points = append(points, p)
	}
	return points, err
}

// prepared is a new gate and the media for it, of which every child has a copy.
type prepared struct {
	dir, media string
	now        time.Time
	forged     *testkit.Forged
}

func prepare(t *testing.T) prepared {
	t.Helper()
	l := newLab(t)
	if err := l.gate.Close(); err != nil {
		t.Fatal(err)
	}
	f := l.forge(nil)
	damaged := strings.Replace(string(f.Volume), string(testkit.Bytes("README.md", 700)[:100]), strings.Repeat("x", 100), 1)
	for name, content := range map[string][]byte{
		mediumWhole: f.Volume, mediumDamaged: []byte(damaged),
		trustRoot: f.Root.Bytes, trustList: f.Revoked.Bytes, trustNext: revoke(t, f, "plant-9"),
	} {
		if err := os.WriteFile(filepath.Join(l.media, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return prepared{dir: l.dir, media: l.media, now: l.clock.Now(), forged: f}
}

func (p prepared) copyFor(t *testing.T, way string) killed {
	t.Helper()
	k := killed{Way: way, Dir: filepath.Join(t.TempDir(), "gate"), Media: p.media, Now: p.now}
	if err := os.CopyFS(k.Dir, os.DirFS(p.dir)); err != nil {
		t.Fatal(err)
	}
	return k
}

// TestKilledAtEveryStep kills the gate at each point of each way, by SIGKILL,
// and starts it again: what was a step is done and told, what was none is not,
// and the way goes on to the same end. Nothing is ever shown that was not
// released.
func TestKilledAtEveryStep(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process for every step")
	}
	p := prepare(t)
	for name, w := range ways() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			points, err := runChild(t, p.copyFor(t, name))
			if err != nil {
				t.Fatal(err)
			}
			begin, end := w.checkPoints(t, points)
			for i := begin; i <= end; i++ {
				if raced && (name != "good" || i%4 != begin%4) {
					continue
				}
				t.Run(strconv.Itoa(i+1)+" "+points[i].Point, func(t *testing.T) {
					t.Parallel()
					killAndGoOn(t, p, name, points, i)
				})
			}
		})
	}
}

// checkPoints makes sure that an undisturbed way is the one that is meant, and
// tells the points between which it is another one than the good one.
func (w way) checkPoints(t *testing.T, points []passed) (begin, end int) {
	t.Helper()
	var names []string
	for _, p := range points {
		names = append(names, p.Point)
	}
	for _, want := range append(w.passes, w.from, w.until) {
		if !slices.Contains(names, want) {
			t.Errorf("the way does not pass %s: %v", want, names)
		}
	}
	told := counted(points[len(points)-1].Told)
	for what, want := range w.tells {
		if told[what] != want {
			t.Errorf("%s is told %d times, want %d", what, told[what], want)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	slices.Reverse(names)
	return slices.IndexFunc(points, func(p passed) bool { return p.Point == w.from }), len(names) - 1 - slices.Index(names, w.until)
}

func killAndGoOn(t *testing.T, p prepared, name string, points []passed, i int) {
	k := p.copyFor(t, name)
	at := k
	at.At = i + 1
	_, err := runChild(t, at)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the child was not killed: %v", err)
	}
	told, err := toldBy(k.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(points[i].Told, told); d != "" {
		t.Errorf("the audit log after the death (-before it +now)\n%s", d)
	}
	l := k.lab(t)
	l.open()
	checkAfterKill(t, l, p.forged, points[:i+1])
	if err := walk(k, l.gate); err != nil {
		t.Fatalf("the way does not go on: %v", err)
	}
	if told, err = toldBy(k.Dir); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(once(points[len(points)-1].Told), once(told)); d != "" {
		t.Errorf("what is told in the end (-undisturbed +killed)\n%s", d)
	}
	checkLog(t, l)
	ways()[name].check(t, l)
}

func counted(told []string) map[string]int {
	count := map[string]int{}
	for _, what := range told {
		count[what]++
	}
	return count
}

// once counts what happens as often as people make it happen, however often
// the gate was killed. Work at a destination is done again, and told again,
// when nobody knows how far it went; a failed load that nobody could tell of
// was none. Who was thrown out logs in again.
func once(told []string) map[string]int {
	count := counted(told)
	for _, again := range []string{"load.intent", "load.put", "load.published", "load.verified", "load.failed", "account.login", "account.logout"} {
		delete(count, again)
	}
	return count
}

// checkAfterKill makes sure that the depot shows the bundle exactly when the
// step that publishes it had been committed.
func checkAfterKill(t *testing.T, l *lab, f *testkit.Forged, points []passed) {
	t.Helper()
	last := points[len(points)-1].Point
	released := slices.ContainsFunc(points, func(p passed) bool { return p.Point == "published:after" })
	_, err := l.gate.Depot().Tag(t.Context(), "notes", "1.0")
	if released != (err == nil) {
		t.Errorf("after %s: the depot says %v", last, err)
	}
	for _, b := range f.Manifest.Blobs {
		if _, err := l.gate.Depot().Open(t.Context(), b.Digest); !released && problem.CodeOf(err) != "depot/not-found" {
			t.Errorf("after %s: blob %s can be had: %v", last, b.Digest, err)
		}
	}
}

// checkLog makes sure that the audit log is whole.
func checkLog(t *testing.T, l *lab) {
	t.Helper()
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

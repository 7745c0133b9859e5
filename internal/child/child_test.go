//go:build linux

package child_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/packhof/packhof/internal/child"
)

// roleVar makes the test binary play a child program instead of testing.
const roleVar = "CHILD_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		os.Exit(play(role))
	}
	os.Exit(m.Run())
}

// play is a real program with real faults. Every role reads its input first,
// as our own programs do.
func play(role string) int {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 9
	}
	switch role {
	case "hash":
		fmt.Printf("%x", sha256.Sum256(input))
	case "show":
		show()
	case "flood":
		for {
			if _, err := os.Stdout.Write(make([]byte, 64<<10)); err != nil {
				return 8
			}
		}
	case "chatter":
		for i := range 100_000 {
			fmt.Fprintf(os.Stderr, "line %d\x1b[31m\n", i)
		}
		return 7
	case "hog":
		hog()
	case "nap":
		return nap()
	case "killed":
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		forever()
	case "pause":
		if err := writePid("pause", os.Getpid()); err != nil {
			return 9
		}
		forever()
	case "keep":
		return keep(string(input))
	case "dial":
		conn, err := net.Dial("tcp", string(input))
		if err != nil {
			fmt.Print("unreachable")
			return 0
		}
		_ = conn.Close()
		fmt.Print("reached")
	case "bigfile":
		return fill(1)
	case "manyfiles":
		return fill(10_000)
	}
	return 0
}

func show() {
	dir, _ := os.Getwd()
	fmt.Println("dir", dir, "home", os.Getenv("HOME"), "tmp", os.TempDir())
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		fmt.Println("env", name)
	}
	for _, r := range []int{unix.RLIMIT_DATA, unix.RLIMIT_CORE, unix.RLIMIT_NOFILE, unix.RLIMIT_FSIZE} {
		var l unix.Rlimit
		_ = unix.Getrlimit(r, &l)
		fmt.Println("limit", r, l.Max)
	}
	fmt.Println("group", syscall.Getpgrp() == os.Getpid())
}

func hog() {
	var kept [][]byte
	for {
		block := make([]byte, 8<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		kept = append(kept, block)
		if len(kept) > 1<<20 {
			return
		}
	}
}

// nap starts a grandchild that holds the far end of our output pipe and never
// ends by itself, says its number, and never ends either.
func nap() int {
	grandchild := exec.Command(os.Args[0])
	grandchild.Env = []string{roleVar + "=pause"}
	grandchild.Stdout, grandchild.Stderr = os.Stdout, os.Stderr
	if err := grandchild.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 9
	}
	if err := writePid("grandchild", grandchild.Process.Pid); err != nil {
		return 9
	}
	forever()
	return 0
}

// keep is a parent that starts a pausing child in dir and waits for it.
func keep(dir string) int {
	_, err := child.Run(context.Background(), child.Spec{
		Path:      os.Args[0],
		Dir:       dir,
		Env:       []string{roleVar + "=pause"},
		MaxOutput: 1,
		MaxData:   512 << 20,
		Timeout:   time.Hour,
	})
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// forever waits without letting the runtime see a deadlock.
func forever() {
	for {
		_ = unix.Pause()
	}
}

// writePid appears whole or not at all.
func writePid(name string, pid int) error {
	if err := os.WriteFile(name+".new", []byte(strconv.Itoa(pid)), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

func readPid(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func fill(files int) int {
	block := make([]byte, 1<<20)
	for i := range files {
		f, err := os.Create(fmt.Sprintf("fill%d", i))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 6
		}
		for range 8 {
			if _, err := f.Write(block); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 6
			}
		}
		if err := f.Close(); err != nil {
			return 6
		}
	}
	return 0
}

func spec(t *testing.T, role string) child.Spec {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return child.Spec{
		Path:      self,
		Dir:       t.TempDir(),
		Env:       []string{roleVar + "=" + role},
		MaxOutput: 1 << 20,
		MaxData:   512 << 20,
		Timeout:   time.Minute,
	}
}

func failure(t *testing.T, s child.Spec) *child.Error {
	t.Helper()
	result, err := child.Run(t.Context(), s)
	e, ok := errors.AsType[*child.Error](err)
	if !ok {
		t.Fatalf("want *child.Error, got %v", err)
	}
	if result.Stdout != nil {
		t.Errorf("a failed child has output: %q", result.Stdout)
	}
	return e
}

func TestRunHandsOverInputAndOutput(t *testing.T) {
	s := spec(t, "hash")
	s.Stdin = bytes.Repeat([]byte("packhof "), 1<<20) // larger than any pipe
	clock := time.Unix(0, 0)
	s.Clock = func() time.Time { clock = clock.Add(time.Second); return clock }
	result, err := child.Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%x", sha256.Sum256(s.Stdin))
	if diff := cmp.Diff(want, string(result.Stdout)); diff != "" {
		t.Error(diff)
	}
	if result.Duration != time.Second || result.PeakMemory <= 0 {
		t.Errorf("duration %s, peak %d", result.Duration, result.PeakMemory)
	}
}

func TestChildSeesOnlyWhatItIsGiven(t *testing.T) {
	t.Setenv("SECRET_OF_THE_PARENT", "x")
	s := spec(t, "show")
	s.MaxFile = 1 << 30
	s.Env = append(s.Env, "HOME=/elsewhere", "LANG=C")
	result, err := child.Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("dir %[1]s home %[1]s tmp %[1]s\n", s.Dir)
	for _, name := range []string{roleVar, "LANG", "HOME", "TMPDIR", "GOMEMLIMIT"} {
		want += "env " + name + "\n"
	}
	want += fmt.Sprintf("limit %d %d\nlimit %d 0\nlimit %d 1024\nlimit %d %d\ngroup true\n",
		unix.RLIMIT_DATA, 512<<20*child.Shadow, unix.RLIMIT_CORE, unix.RLIMIT_NOFILE, unix.RLIMIT_FSIZE, 1<<30)
	if diff := cmp.Diff(sorted(want), sorted(string(result.Stdout))); diff != "" {
		t.Error(diff)
	}
}

func sorted(text string) map[string]bool {
	lines := map[string]bool{}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "env PWD") { // os/exec adds it for Dir
			lines[line] = true
		}
	}
	return lines
}

func TestFailuresAreToldApart(t *testing.T) {
	notAProgram := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(notAProgram, []byte("\x00\x01 garbage"), 0o700); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		role   string
		change func(*child.Spec)
		want   child.Error
	}{
		{"output flood", "flood", nil, child.Error{Reason: child.Output, Limit: "1048576 bytes"}},
		{"exit code", "chatter", nil, child.Error{Reason: child.Crashed, ExitCode: 7}},
		{"signal", "killed", nil, child.Error{Reason: child.Crashed, ExitCode: -1, Signal: "terminated"}},
		{"memory hog", "hog", func(s *child.Spec) { s.MaxData = 300 << 20 }, child.Error{Reason: child.Memory, Limit: "314572800 bytes"}},
		{"timeout", "nap", func(s *child.Spec) { s.Timeout = 500 * time.Millisecond }, child.Error{Reason: child.Timeout, Limit: "500ms"}},
		{"one big file", "bigfile", func(s *child.Spec) { s.MaxFile = 4 << 20 }, child.Error{Reason: child.Crashed, ExitCode: 6}},
		{"many files", "manyfiles", func(s *child.Spec) { s.MaxDisk = 32 << 20 }, child.Error{Reason: child.Disk, Limit: "33554432 bytes"}},
		{"missing program", "", func(s *child.Spec) { s.Path += "-not-there" }, child.Error{Reason: child.Absent}},
		{"garbage for a program", "", func(s *child.Spec) { s.Path = notAProgram }, child.Error{Reason: child.Unstartable}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := spec(t, tt.role)
			if tt.change != nil {
				tt.change(&s)
			}
			got := failure(t, s)
			seen := child.Error{Reason: got.Reason, Limit: got.Limit, ExitCode: got.ExitCode, Signal: got.Signal}
			if diff := cmp.Diff(tt.want, seen); diff != "" {
				t.Errorf("%v\n%s\n%s", got, diff, got.Stderr)
			}
			if got.Code() != string(tt.want.Reason) || !strings.HasPrefix(got.Error(), filepath.Base(s.Path)) {
				t.Errorf("code %q, text %q", got.Code(), got)
			}
		})
	}
}

func TestStderrKeepsBothEndsAndEvidenceIsPrintable(t *testing.T) {
	e := failure(t, spec(t, "chatter"))
	if len(e.Stderr) > 33<<10 || !bytes.HasPrefix(e.Stderr, []byte("line 0\x1b")) {
		t.Errorf("%d bytes, beginning %.20q", len(e.Stderr), e.Stderr)
	}
	evidence := e.Evidence()
	if len(evidence) != 10 || evidence[9] != "line 99999[31m" {
		t.Errorf("evidence %q", evidence)
	}
}

// The grandchild shares the output pipe, so Run could not return at all if it lived.
func TestGrandchildDiesWithTheGroup(t *testing.T) {
	s := spec(t, "nap")
	s.Timeout = 1500 * time.Millisecond
	if e := failure(t, s); e.Reason != child.Timeout {
		t.Fatal(e)
	}
	pid := readPid(t, filepath.Join(s.Dir, "grandchild"))
	eventually(t, "the grandchild dies", func() bool { return !alive(pid) })
}

func TestChildDiesWithTheCallersProcess(t *testing.T) {
	dir := t.TempDir()
	keeper := exec.CommandContext(t.Context(), os.Args[0])
	keeper.Env = []string{roleVar + "=keep"}
	keeper.Stdin = strings.NewReader(dir)
	if err := keeper.Start(); err != nil {
		t.Fatal(err)
	}
	started := filepath.Join(dir, "pause")
	eventually(t, "the child starts", func() bool { _, err := os.Stat(started); return err == nil })
	pid := readPid(t, started)
	if !alive(pid) {
		t.Fatalf("child %d is not running", pid)
	}
	if err := keeper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = keeper.Wait() // killed, as wanted
	eventually(t, "the child dies", func() bool { return !alive(pid) })
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// alive counts a zombie as dead: nobody but init can reap an orphan.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z") && !strings.HasPrefix(after, "X")
}

func TestCancellationIsTheCallersCause(t *testing.T) {
	s := spec(t, "nap")
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	time.AfterFunc(300*time.Millisecond, func() { cancel(enough) })
	_, err := child.Run(ctx, s)
	e, ok := errors.AsType[*child.Error](err)
	if !ok || e.Reason != child.Cancelled || !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
	if _, err := child.Run(ctx, s); !errors.Is(err, enough) {
		t.Errorf("a cancelled context started a child: %v", err)
	}
}

func TestNoNetworkCannotReachLoopback(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s := spec(t, "dial")
	s.Stdin = []byte(listener.Addr().String())

	open, err := child.Run(t.Context(), s)
	if err != nil || string(open.Stdout) != "reached" || open.NetworkIsolated {
		t.Fatalf("without isolation: %q, %v, %v", open.Stdout, open.NetworkIsolated, err)
	}
	s.NoNetwork = true
	shut, err := child.Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	want := map[bool]string{true: "unreachable", false: "reached"}[shut.NetworkIsolated]
	if string(shut.Stdout) != want {
		t.Errorf("isolated %v, but %s", shut.NetworkIsolated, shut.Stdout)
	}
	if !shut.NetworkIsolated {
		t.Log("this kernel allows no user namespaces here; isolation was not tested")
	}
}

func TestUnboundedSpecsAreRefused(t *testing.T) {
	tests := map[string]func(*child.Spec){
		"relative program": func(s *child.Spec) { s.Path = "true" },
		"relative dir":     func(s *child.Spec) { s.Dir = "." },
		"no dir":           func(s *child.Spec) { s.Dir += "/none" },
		"dir is a file":    func(s *child.Spec) { s.Dir = s.Path },
		"no output limit":  func(s *child.Spec) { s.MaxOutput = 0 },
		"no memory limit":  func(s *child.Spec) { s.MaxData = 0 },
		"no time limit":    func(s *child.Spec) { s.Timeout = 0 },
		"negative disk":    func(s *child.Spec) { s.MaxDisk = -1 },
		"broken env":       func(s *child.Spec) { s.Env = []string{"NOVALUE"} },
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			s := spec(t, "hash")
			spoil(&s)
			_, err := child.Run(t.Context(), s)
			if err == nil {
				t.Fatal("ran")
			}
			if e, ok := errors.AsType[*child.Error](err); ok {
				t.Errorf("a senseless spec is the caller's fault, got %v", e)
			}
		})
	}
}

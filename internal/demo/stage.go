package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/packhof/packhof/internal/testkit"
)

// demo is the stage: a folder, the upstream, and the programs.
type demo struct {
	ctx      context.Context
	dir      string // absolute after prepare
	bin      string // folder of our programs
	tools    string // folder of cosign and oras; may be empty
	verbose  bool   // show what every command prints, not only a line a step
	begun    time.Time
	stepped  time.Time
	step     int
	points   []string        // what is shown of the step even in short
	script   strings.Builder // all of it, for transcript.txt
	upstream *testkit.Registry
	address  string    // of the gate
	server   *exec.Cmd // the gate, while it serves
}

// run plays the scenes in order.
func (d *demo) run() error {
	if err := d.prepare(); err != nil {
		return err
	}
	for _, scene := range []func() error{d.makeGate, d.outward, d.inward} {
		if err := scene(); err != nil {
			return err
		}
	}
	d.finish("ok")
	transcript := filepath.Join(d.dir, "transcript.txt")
	d.farewell()
	fmt.Printf("\nDone in %.0f s. Look around in %s; what every command said: %s\n", time.Since(d.begun).Seconds(), d.dir, transcript)
	return os.WriteFile(transcript, []byte(d.script.String()), 0o644)
}

func (d *demo) close() {
	if d.server != nil {
		_ = d.server.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		_ = d.server.Wait()
	}
	if d.upstream != nil {
		_ = d.upstream.Close() // the process ends anyway
	}
}

func (d *demo) prepare() error {
	d.say("a clean folder, and this machine's own programs")
	var err error
	if d.dir, err = filepath.Abs(d.dir); err != nil {
		return err
	}
	if d.bin, err = filepath.Abs("build/bin"); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(d.bin, "packhof")); err != nil {
		return fmt.Errorf("the programs are not built; run  make demo: %w", err)
	}
	d.tools = os.Getenv("PACKHOF_TOOLS")
	return errors.Join(os.RemoveAll(d.dir), os.MkdirAll(d.dir, 0o755))
}

// say begins a step: one line, which the next step or the end completes.
func (d *demo) say(format string, args ...any) {
	d.finish("ok")
	d.step++
	line := fmt.Sprintf("%2d  %s", d.step, fmt.Sprintf(format, args...))
	d.stepped = time.Now()
	fmt.Fprintf(&d.script, "\n%s\n", line)
	if d.verbose {
		fmt.Printf("\n%s\n", line)
		return
	}
	fmt.Printf("%-86s", line)
}

// finish ends the line of the step before.
func (d *demo) finish(result string) {
	if d.step > 0 && !d.verbose {
		fmt.Printf("  %s  %.1f s\n", result, time.Since(d.stepped).Seconds())
		for _, point := range d.points {
			fmt.Printf("      %s\n", point)
		}
	}
	d.points = nil
}

// point keeps lines of what a command answered for those who see nothing else:
// the first most of them from the one that holds begin on.
func (d *demo) point(answer, begin string, most int) {
	from := strings.Index(answer, begin)
	if from < 0 {
		return
	}
	for line := range strings.Lines(answer[from:]) {
		if most--; most < 0 {
			return
		}
		d.points = append(d.points, strings.TrimRight(line, "\n"))
	}
}

// tell adds to the transcript, and to the screen when all of it is wanted.
func (d *demo) tell(text string) {
	fmt.Fprintln(&d.script, text)
	if d.verbose {
		fmt.Println(text)
	}
}

// show runs a command in a folder, tells it as one would type it and what it
// answers, and gives its stdout.
func (d *demo) show(folder, line string) (string, error) {
	d.tell("    $ " + line)
	out, both, err := d.shell(folder, line)
	for text := range strings.Lines(both) {
		d.tell("      " + strings.TrimRight(text, "\n"))
	}
	if err != nil && !d.verbose {
		fmt.Printf("\n    $ %s\n%s", line, both)
	}
	return out, err
}

// quietly is show for what is beside the point; it speaks up when it fails.
func (d *demo) quietly(folder, line string) (string, error) {
	out, both, err := d.shell(folder, line)
	if err != nil {
		fmt.Printf("\n    $ %s\n%s", line, both)
	}
	return out, err
}

func (d *demo) shell(folder, line string) (stdout, both string, err error) {
	c := exec.CommandContext(d.ctx, "/bin/sh", "-c", line)
	c.Dir = filepath.Join(d.dir, folder)
	c.Env = d.environment()
	var out, all transcript
	c.Stdout, c.Stderr = io.MultiWriter(&out, &all), &all
	if err := c.Run(); err != nil {
		return out.text(), all.text(), fmt.Errorf("%s: %w", line, err)
	}
	return out.text(), all.text(), nil
}

// environment is what every program of the demo sees.
func (d *demo) environment() []string {
	return append(os.Environ(),
		"PATH="+strings.Join([]string{d.bin, d.tools, os.Getenv("PATH")}, string(os.PathListSeparator)),
		"PACKHOF_PASSPHRASE=demo", "TMPDIR="+d.dir, "PACKHOF_DATA="+filepath.Join(d.dir, "plant", "gate"))
}

// transcript takes what several streams write, in the order in which it comes.
type transcript struct {
	mu sync.Mutex
	b  strings.Builder
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

func (t *transcript) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/packhof/packhof/internal/testkit"
)

type bench struct {
	ctx      context.Context
	dir      string
	write    string
	rounds   int
	only     string // the one of the three subjects to measure; "" for all
	packhof  string
	registry *testkit.Registry
	results  []result
}

// result is a line of the table.
type result struct {
	what   string
	ours   string
	theirs string
	value  float64
	format string // of value, such as "%.2f"
	bound  string // what must hold
	holds  bool
}

func (b *bench) run() (err error) {
	if b.dir, err = filepath.Abs(b.dir); err != nil {
		return err
	}
	if b.packhof, err = filepath.Abs("build/bin/packhof"); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(b.dir), os.MkdirAll(b.dir, 0o755)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	subjects := []struct {
		name  string
		parts []func() error
	}{
		{"images", []func() error{b.upstream, b.export, b.verify, b.inward}},
		{"volumes", []func() error{b.parcel}},
		{"packs", []func() error{b.packs}},
	}
	for _, s := range subjects {
		if b.only != "" && b.only != s.name {
			continue
		}
		for _, part := range s.parts {
			if err := part(); err != nil {
				return err
			}
		}
	}
	if b.results == nil {
		return fmt.Errorf("there is nothing called %q to measure: images, volumes, packs", b.only)
	}
	fmt.Println()
	fmt.Print(b.table())
	if b.write != "" {
		if err := b.replaceTable(); err != nil {
			return err
		}
	}
	for _, r := range b.results {
		if !r.holds {
			err = errors.Join(err, fmt.Errorf("%s: "+r.format+", and %s must hold", r.what, r.value, r.bound))
		}
	}
	return err
}

// run is one process: how long it took and how much memory it had at most.
type run struct {
	took time.Duration
	peak int64 // bytes
}

func (b *bench) command(dir, program string, args ...string) (run, error) {
	c := exec.CommandContext(b.ctx, program, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "PACKHOF_PASSPHRASE=bench", "TMPDIR="+b.dir)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	begun := time.Now()
	if err := c.Run(); err != nil {
		return run{}, fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, out.String())
	}
	usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return run{}, errors.New("this system does not tell the memory of a process")
	}
	return run{took: time.Since(begun), peak: usage.Maxrss << 10}, nil
}

// settle waits until the disk has nothing left to do, so that one measurement
// does not pay for another.
func settle() { syscall.Sync() }

func median(list []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

func (b *bench) table() string {
	var t strings.Builder
	t.WriteString("| what | Packhof | measured against | figure | must hold | |\n|---|---|---|---|---|---|\n")
	for _, r := range b.results {
		verdict := "yes"
		if !r.holds {
			verdict = "**no**"
		}
		fmt.Fprintf(&t, "| %s | %s | %s | "+r.format+" | %s | %s |\n", r.what, r.ours, r.theirs, r.value, r.bound, verdict)
	}
	return t.String()
}

const (
	tableBegin = "<!-- table: written by make bench -->\n"
	tableEnd   = "<!-- end of table -->\n"
)

func (b *bench) replaceTable() error {
	page, err := os.ReadFile(b.write)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(page), tableBegin)
	_, after, ended := strings.Cut(rest, tableEnd)
	if !found || !ended {
		return fmt.Errorf("%s has no place for the table", b.write)
	}
	return os.WriteFile(b.write, []byte(before+tableBegin+b.table()+tableEnd+after), 0o644)
}

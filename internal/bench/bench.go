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

// pair is the same thing done by Packhof and by what it is measured against.
type pair struct {
	ours, theirs time.Duration // medians
	peak         int64         // bytes, of Packhof
}

// inTurn does both, one after the other, so often.
func (b *bench) inTurn(rounds int, theirs, ours func() (run, error)) (p pair, err error) {
	var left, right []time.Duration
	for round := range rounds {
		r, err := theirs()
		if err != nil {
			return p, err
		}
		right = append(right, r.took)
		if r, err = ours(); err != nil {
			return p, err
		}
		left, p.peak = append(left, r.took), max(p.peak, r.peak)
		fmt.Printf("round %d of %d: Packhof %.2f s, the other %.2f s\n", round+1, rounds, r.took.Seconds(), right[round].Seconds())
	}
	p.ours, p.theirs = median(left), median(right)
	return p, nil
}

// speed is how many times as fast as the other Packhof is.
func (p pair) speed() float64 { return p.theirs.Seconds() / p.ours.Seconds() }

// memory is the line of the table for the memory of something.
func (p pair) memory(what string) result {
	return result{
		what: what, ours: fmt.Sprintf("%d MiB", p.peak>>20), theirs: "–",
		value: float64(p.peak >> 20), format: "%.0f MiB", bound: "≤ 256 MiB", holds: p.peak <= 256<<20,
	}
}

// faster is the line for something that must have at least this share of the
// speed of the other; theirs says what that is.
func (p pair) faster(what, theirs string, least float64) result {
	return result{
		what: what, ours: fmt.Sprintf("%.2f s", p.ours.Seconds()), theirs: fmt.Sprintf("%s, %.2f s", theirs, p.theirs.Seconds()),
		value: p.speed(), format: "%.2f", bound: fmt.Sprintf("≥ %.1f", least), holds: p.speed() >= least,
	}
}

// sooner is the line for something that must take at most this share of the
// time of the other.
func (p pair) sooner(what, theirs string, most float64) result {
	value := 1 / p.speed()
	return result{
		what: what, ours: fmt.Sprintf("%.2f s", p.ours.Seconds()), theirs: fmt.Sprintf("%s, %.2f s", theirs, p.theirs.Seconds()),
		value: value, format: "%.2f", bound: fmt.Sprintf("≤ %.1f", most), holds: value <= most,
	}
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

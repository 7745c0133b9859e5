package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/problem"
)

// reception takes in what lies at the named places: a bundle, from as many media
// as it takes, or several, the oldest serial first.
type reception struct {
	site      *site
	command   *cobra.Command
	api       *client
	names     []string
	wait      bool
	receivers []*receiver // one a bundle, in the order in which they are taken in
	damaged   []error     // files of which nobody can say what they belong to
	locked    []error     // encrypted files beside the bundles, for others, or so they look
	passed    []string    // files beside the bundles that are called as volumes are, and are none
}

func (r *reception) run() error {
	if err := r.begin(); err != nil {
		return err
	}
	for {
		pending := r.pass()
		if err := r.command.Context().Err(); err != nil {
			return context.Cause(r.command.Context())
		}
		if !r.wait || len(pending) == 0 {
			return r.failure()
		}
		if err := r.await(pending); err != nil {
			return err
		}
	}
}

// begin finds the bundles, waiting for the first medium if asked to. Those that
// lie on later media only are not meant.
func (r *reception) begin() error {
	for {
		on, err := r.site.bundlesAt(r.names)
		if err == nil && len(on.bundles) == 0 {
			err = noBundle(r.names, on)
		}
		if err == nil {
			r.damaged = on.damaged
			for _, b := range on.bundles {
				r.receivers = append(r.receivers, &receiver{
					reception: r, bundle: b.manifest, name: r.site.nameOf(b),
					done: map[string]bool{}, wrong: map[string]bool{},
				})
			}
			return nil
		}
		if !r.wait || !isPassing(err) {
			return err
		}
		if err := r.await(nil); err != nil {
			return err
		}
	}
}

// nameOf is what a bundle says that it is; the name of a file where it says
// nothing that can be read.
func (s *site) nameOf(b bundleAt) string {
	if b.channel == "" {
		return b.name
	}
	return s.say("{channel}, serial {serial}", "channel", b.channel, "serial", fmt.Sprint(b.serial))
}

// pass has every bundle that is not whole take what is there of it, and gives
// those that still lack something.
func (r *reception) pass() (pending []*receiver) {
	for _, one := range r.receivers {
		if one.hasEnded() {
			continue
		}
		switch one.failure = one.pass(); {
		case !one.hasEnded():
			pending = append(pending, one)
		case one.failure != nil && r.wait && len(r.receivers) > 1: // the others may take long
			r.site.warn([]error{fmt.Errorf("%s: %w", one.name, one.failure)})
		}
	}
	return pending
}

// mediumEvery is how often a place is looked at while a medium is waited for.
const mediumEvery = time.Second

// await waits until there is something new at the named places: for these
// bundles, or for any bundle where there is none yet.
func (r *reception) await(pending []*receiver) error {
	if len(pending) == 0 {
		fmt.Fprintln(r.site.app.Stderr, r.awaited())
	}
	for _, one := range pending {
		fmt.Fprintln(r.site.app.Stderr, one.awaited())
	}
	ticker := time.NewTicker(mediumEvery)
	defer ticker.Stop()
	places := watch{names: passOver(r.names)}
	for looks := 1; ; looks++ {
		select {
		case <-r.command.Context().Done():
			return context.Cause(r.command.Context())
		case <-ticker.C:
		}
		if looks%askEvery == 0 {
			if ended, err := r.ask(pending); err != nil || ended {
				return err
			}
		}
		if !places.changed() {
			continue
		}
		on, err := r.site.bundlesAt(r.names)
		if err != nil && !isPassing(err) || err == nil && len(pending) == 0 && len(on.bundles) > 0 {
			return err
		}
		if err != nil && !isNothing(err) || slices.ContainsFunc(on.damaged, isUnreadable) {
			places.again() // it may be a medium that is read with difficulty
		}
		for _, one := range pending {
			if there, err := one.hasMore(on, err); err != nil || there {
				return err
			}
		}
	}
}

// askEvery is after how many looks at a place the gate is asked how the cases
// stand: another receive may bring what they lack, and a serve may end.
const askEvery = 3

// ask tells whether a case that is waited for needs nothing more.
func (r *reception) ask(pending []*receiver) (ended bool, err error) {
	ctx := r.command.Context()
	if _, err := r.api.call(ctx, http.MethodGet, "version", nil, nil); err != nil {
		if ctx.Err() == nil && problem.CodeOf(err) == "" {
			err = problem.New("serve/ended", "packhof-gate serve, which took in what came, does not answer any more: %w", err).
				Hint("start serve again, or go on without it:  packhof-gate receive")
		}
		return false, err
	}
	for _, one := range pending {
		if one.last == nil {
			continue
		}
		var now gate.Case
		if _, err := r.api.call(ctx, http.MethodGet, fmt.Sprintf("cases/%d", one.last.ID), nil, &now); err != nil {
			return false, err
		}
		switch now.State {
		case gate.Received, gate.Verified, gate.Inspected, gate.Damaged: // it waits, or is worked on
			continue
		case gate.Blocked, gate.CheckFailed, gate.Rejected, gate.Expired:
			if now.Problem != nil {
				one.failure = now.Problem.Err()
			}
		}
		one.last, one.whole, ended = &now, true, true
	}
	return ended, nil
}

func isUnreadable(err error) bool { return cli.CodeOf(err) == "volume/unreadable" }

// failure is what is wrong with what was taken in.
func (r *reception) failure() error {
	if len(r.receivers) == 1 {
		one := r.receivers[0]
		if one.whole {
			r.site.warn(slices.Concat(one.damaged, r.damaged))
		}
		return one.result(r.damaged)
	}
	s := &severalError{site: r.site, of: len(r.receivers)}
	for _, one := range r.receivers {
		s.add(one.name, one.result(nil))
		if one.whole {
			r.site.warn(one.damaged)
		}
	}
	if len(s.failed) == 0 { // what cannot be read is no part of what was taken in
		r.site.warn(r.damaged)
		return nil
	}
	for _, err := range r.damaged {
		s.add("", err)
	}
	return s
}

// warn tells of files that could not be used, and were not needed.
func (s *site) warn(all []error) {
	for i, err := range all {
		if i == problem.MostNamed {
			fmt.Fprintln(s.app.Stderr, s.say("warning: {n} more files like that", "n", len(all)-i))
			return
		}
		fmt.Fprintln(s.app.Stderr, s.say("warning: {what}", "what", cli.Clean(err.Error())))
	}
}

// receivedDocument is what "receive" prints of several bundles.
type receivedDocument struct {
	Cases []*gate.Case `json:"cases"` // in the order in which they were taken in
}

// print shows the cases that there are.
func (r *reception) print() error {
	doc := receivedDocument{}
	for _, one := range r.receivers {
		if one.last != nil {
			doc.Cases = append(doc.Cases, one.last)
		}
	}
	switch {
	case len(doc.Cases) == 0:
		return nil
	case len(r.receivers) == 1:
		return r.site.app.Print("GateReceive", doc.Cases[0], func(w io.Writer) { r.site.caseSummary(w, doc.Cases[0]) })
	}
	return r.site.app.Print("GateReceiveAll", doc, func(w io.Writer) {
		for i, c := range doc.Cases {
			if i > 0 {
				fmt.Fprintln(w)
			}
			r.site.caseSummary(w, c)
		}
	})
}

// severalError says which of several bundles were not taken in whole. Its code
// is that of the worst.
type severalError struct {
	site   *site
	of     int
	failed []failedBundle
}

type failedBundle struct {
	name string // "" for a file that belongs to none
	err  error
}

func (s *severalError) add(name string, err error) {
	if err != nil {
		s.failed = append(s.failed, failedBundle{name, err})
	}
}

func (s *severalError) Error() string {
	return fmt.Sprintf("not all of %d bundles are taken in whole", s.of)
}

// severity orders exit codes, the worst first; those that are not in it are as
// bad as a failure.
func severity(exit int) int {
	switch exit {
	case cli.ExitNotGenuine:
		return 0
	case cli.ExitDamaged:
		return 1
	case cli.ExitDenied, cli.ExitRejected:
		return 2
	case cli.ExitIncomplete, cli.ExitWaiting:
		return 4
	}
	return 3
}

func (s *severalError) worst() error {
	return slices.MinFunc(s.failed, func(a, b failedBundle) int {
		return cmp.Compare(severity(cli.ExitOf(a.err)), severity(cli.ExitOf(b.err)))
	}).err
}

// Code is the stable code of the worst.
func (s *severalError) Code() string { return cli.CodeOf(s.worst()) }

// Evidence says of each what is wrong with it.
func (s *severalError) Evidence() []string {
	var lines []string
	for _, f := range s.failed[:min(len(s.failed), problem.MostNamed)] {
		code := cli.CodeOf(f.err)
		line := cmp.Or(s.site.words.Meaning(code), f.err.Error()) + "  (" + code + ")"
		if f.name != "" {
			line = f.name + ":  " + line
		}
		lines = append(lines, line)
		for _, detail := range problem.EvidenceOf(f.err) {
			lines = append(lines, "  "+detail)
		}
	}
	if more := len(s.failed) - problem.MostNamed; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return lines
}

// Remedy is that of the worst.
func (s *severalError) Remedy() string { return problem.RemedyOf(s.worst()) }

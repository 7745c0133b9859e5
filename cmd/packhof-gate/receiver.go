package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/problem"
)

// receiver takes the volumes of one bundle in, from as many media as it takes.
type receiver struct {
	*reception
	bundle string          // its manifest
	name   string          // for people
	done   map[string]bool // volumes that need no second look, by place and state of the file; false for those that failed

	choice  choice          // among volumes that claim the same place
	damaged []error         // what was wrong with volumes, when nobody waits for others
	wrong   map[string]bool // sets of volumes, each sound, whose pieces put together were wrong
	last    *gate.Case
	lacks   gate.Lacking // what was lacking after the last volume
	whole   bool         // nothing is
	failure error        // what ended it
}

func (r *receiver) hasEnded() bool { return r.whole || r.failure != nil }

// result is what is wrong with the bundle when nothing more is waited for.
// others are files at the same place that may belong to it.
func (r *receiver) result(others []error) error {
	if r.hasEnded() {
		return r.failure
	}
	if bad := append(slices.Clone(r.damaged), others...); len(bad) > 0 {
		return problem.Besides(problem.Some(bad), beside(missing(r.lacks.Volumes, r.lacks.Of), r.passed)...)
	}
	return r.incomplete()
}

// absent says of some volumes of a set that they are not here.
func absent(volumes []int, of int) string {
	if len(volumes) == 1 {
		return fmt.Sprintf("volume %d of %d is missing", volumes[0], of)
	}
	return fmt.Sprintf("volumes %s of %d are missing", bundle.NumbersText(volumes), of)
}

// incomplete says what has to come before the case goes on.
func (r *receiver) incomplete() error {
	if len(r.lacks.Volumes) == 0 {
		return problem.New("receive/lacking", "the set does not bring %d bytes that are lacking", r.lacking()).
			Hint("packhof-gate want %d FILE", r.last.ID)
	}
	p := problem.New("receive/incomplete", "the bundle is not whole yet: %s", absent(r.lacks.Volumes, r.lacks.Of)).
		With(missing(r.lacks.Volumes, r.lacks.Of)...).With(fmt.Sprintf("lacking:          %d bytes", r.lacks.Bytes)).
		Hint("packhof-gate receive  with the medium that has it; what came so far stays")
	var others []string
	for _, err := range r.locked {
		others = append(others, "for others:  "+err.Error())
	}
	return p.With(problem.SomeOf(others)...).With(bundle.PassedOver(r.passed)...)
}

// missing is the evidence of volumes of a set that are not here, if there are
// any.
func missing(volumes []int, of int) []string {
	if len(volumes) == 0 {
		return nil
	}
	return []string{"missing volumes:  " + numbers(volumes), fmt.Sprintf("volumes in all:   %d", of)}
}

// beside adds to the evidence of missing volumes the files that may be those.
func beside(missing, passed []string) []string {
	if len(missing) == 0 {
		return nil
	}
	return append(missing, bundle.PassedOver(passed)...)
}

// numbers writes the numbers of volumes in a way that needs no language.
func numbers(list []int) string { return strings.ReplaceAll(bundle.NumbersText(list), " to ", "–") }

// lacking is how many bytes are, as far as the gate has said.
func (r *receiver) lacking() int64 {
	if r.lacks.Bytes > 0 {
		return r.lacks.Bytes
	}
	return r.last.Size - r.last.Progress
}

// pass takes in what is at the named places and was not yet. A damaged volume
// does not keep those behind it from being taken in.
func (r *receiver) pass() error {
	found, err := r.site.volumesAt(r.names, r.bundle)
	if err != nil {
		if r.wait && isPassing(err) {
			return nil
		}
		return err
	}
	r.locked, r.passed = found.locked, found.passed
	for i := 0; i < len(found.volumes) && !r.whole; i++ {
		mark := found.volumes[i].mark
		_, seen := r.done[mark]
		if _, out := r.choice.aside[mark]; seen || out {
			continue
		}
		again, err := r.take(found.volumes[i], found.volumes)
		if err != nil {
			return err
		}
		if again {
			i = -1
		}
	}
	if r.whole {
		r.strangers()
	}
	return nil
}

// codePiecesWrong says that volumes which are each sound make a wrong blob.
const codePiecesWrong = "volume/pieces-wrong"

// take has the gate receive one volume, of those that are there. again tells that
// it begins anew.
func (r *receiver) take(v volumeAt, there []volumeAt) (again bool, err error) {
	received, err := r.site.work(r.command, r.api, "cases", pathBody{v.path})
	r.done[v.mark] = err == nil
	if received != nil {
		r.last = received
	}
	if chooses, failure := r.chooses(err, there); chooses {
		return true, nil
	} else if err != nil {
		err = failure
	}
	switch {
	case err != nil && !isPassing(err) && !(len(there) > 1 && isOfVolume(err)):
		return false, err
	case err != nil && r.wait && cli.CodeOf(err) == codePiecesWrong:
		return true, r.anew(err)
	case err != nil && r.wait: // a sound copy of it may come, or the rest of it
		r.site.warn([]error{err})
	case err != nil:
		r.damaged = append(r.damaged, err)
	case received.Lacks == nil:
		r.whole = true
	default:
		r.lacks = *received.Lacks
	}
	return false, nil
}

// anew has every volume taken in again: the gate has dropped what they made
// together, and which of them is wrong nobody can say. Volumes that have been
// wrong together before end it.
func (r *receiver) anew(failure error) error {
	together := strings.Join(slices.Sorted(maps.Keys(r.done)), "\n")
	if r.wrong[together] {
		return failure
	}
	r.wrong[together] = true
	r.site.warn([]error{failure})
	fmt.Fprintln(r.site.app.Stderr, r.site.say("all volumes are taken in once more"))
	clear(r.done)
	return nil
}

// isPassing tells what is wrong with one volume, or with the place where media
// are put, and may be otherwise with the next one.
func isPassing(err error) bool {
	if isNothing(err) || errors.Is(err, syscall.EIO) {
		return true
	}
	switch cli.CodeOf(err) {
	case "volume/damaged", "volume/not-a-bundle", codePiecesWrong, "volume/unreadable", "volume/other-recipient", "receive/unreadable", "file/missing":
		return true
	}
	return false
}

// isOfVolume tells what a volume brings about itself: nobody has signed that, so
// that it says nothing about the volumes beside it.
func isOfVolume(err error) bool {
	group, _, _ := strings.Cut(cli.CodeOf(err), "/")
	return group == "volume" || group == "format" || group == "signing"
}

// hasMore tells whether there is something new among what lies at the named
// places, or failure if nothing does.
func (r *receiver) hasMore(on lying, failure error) (bool, error) {
	var found found
	err := failure
	if err == nil {
		found, err = on.volumesOf(r.names, r.bundle)
	}
	if err != nil && !isPassing(err) {
		return false, err
	}
	r.forgetFailed(found.volumes)
	return slices.ContainsFunc(found.volumes, func(v volumeAt) bool {
		_, seen := r.done[v.mark]
		_, out := r.choice.aside[v.mark]
		return !seen && !out
	}), nil
}

// forgetFailed has volumes that could not be taken in looked at again once they
// were gone: their medium may come back in order.
func (r *receiver) forgetFailed(there []volumeAt) {
	for mark, taken := range r.done {
		if !taken && !slices.ContainsFunc(there, func(v volumeAt) bool { return v.mark == mark }) {
			delete(r.done, mark)
		}
	}
}

// awaited says what is being waited for before there is a bundle.
func (r *reception) awaited() string {
	return r.site.say("waiting for a medium at {place}; Ctrl-C stops", "place", strings.Join(r.names, ", "))
}

// awaited says what of the bundle is being waited for.
func (r *receiver) awaited() string {
	place := strings.Join(r.names, ", ")
	switch {
	case r.last == nil:
		return r.reception.awaited()
	case len(r.lacks.Volumes) == 0:
		return r.site.say("waiting for {bytes} bytes that are lacking: put the next medium at {place}; Ctrl-C stops, and what came so far stays",
			"bytes", r.lacking(), "place", place)
	}
	return r.site.say("waiting for volume {numbers} of {of}: put the next medium at {place}; Ctrl-C stops, and what came so far stays",
		"numbers", numbers(r.lacks.Volumes), "of", r.lacks.Of, "place", place)
}

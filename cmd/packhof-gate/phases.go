package main

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"strings"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
)

// phases shows what the gate reports: one item of progress a phase, one after
// the other.
type phases struct {
	site     *site
	progress cli.Progress
	item     cli.Item
	phase    string
	done     int64
}

func (s *site) phases() *phases { return &phases{site: s, progress: s.app.Progress()} }

// show takes one report.
func (p *phases) show(report jsontext.Value) error {
	var r gate.Progress
	if err := json.Unmarshal(report, &r); err != nil {
		return err
	}
	if p.item == nil || r.Phase != p.phase {
		p.finish(nil)
		p.item, p.phase, p.done = p.progress.Start(p.site.phase(r.Phase), r.Total), r.Phase, 0
	}
	p.item.Advance(r.Done - p.done)
	p.done = r.Done
	return nil
}

func (p *phases) finish(err error) {
	if p.item != nil {
		p.item.Done(err)
		p.item = nil
	}
}

// end ends the display, before anything is printed.
func (p *phases) end(err error) {
	p.finish(err)
	p.progress.Close()
}

// phase is what is being done: with a destination behind it, if it is loading.
func (s *site) phase(name string) string {
	if destination, ok := strings.CutPrefix(name, "load "); ok {
		return s.say("load {destination}", "destination", destination)
	}
	switch name {
	case "copy":
		return s.say("copy")
	case "prove":
		return s.say("prove")
	case "inspect":
		return s.say("inspect")
	case "judge":
		return s.say("judge")
	case "verify":
		return s.say("verify")
	}
	return name
}

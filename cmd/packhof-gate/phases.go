package main

import (
	"encoding/json/jsontext"
	"encoding/json/v2"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
)

// phases shows what the gate reports: one item of progress a phase, one after
// the other.
type phases struct {
	progress cli.Progress
	item     cli.Item
	phase    string
	done     int64
}

func (s *site) phases() *phases { return &phases{progress: s.app.Progress()} }

// show takes one report.
func (p *phases) show(report jsontext.Value) error {
	var r gate.Progress
	if err := json.Unmarshal(report, &r); err != nil {
		return err
	}
	if p.item == nil || r.Phase != p.phase {
		p.finish(nil)
		p.item, p.phase, p.done = p.progress.Start(r.Phase, r.Total), r.Phase, 0
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

package web

import (
	"testing"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
)

// TestTheNewestIsTheExample: what people copy first is what was loaded last.
func TestTheNewestIsTheExample(t *testing.T) {
	at := func(day int) time.Time { return time.Date(2026, 11, day, 12, 0, 0, 0, time.UTC) }
	view := depotOf(&depotListing{Repositories: []depotRepository{
		{"image", []gate.DepotTag{{Tag: "1", Kind: bundle.Image, Since: at(1)}, {Tag: "3", Kind: bundle.Image, Since: at(3)}, {Tag: "2", Kind: bundle.Image, Since: at(2)}}},
		{"notes", []gate.DepotTag{{Tag: "1", Kind: bundle.Files, Since: at(1)}, {Tag: "2", Kind: bundle.Files, Since: at(2)}, {Tag: "3", Kind: bundle.Files, Since: at(3), Withdrawn: "it is bad"}}},
	}}, "gate.example")
	if view.Image.Tag != "3" || view.Tree.Tag != "2" {
		t.Errorf("%s, %s", view.Image.Tag, view.Tree.Tag)
	}
}

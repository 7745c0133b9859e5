package web

import (
	"slices"

	"github.com/packhof/packhof/gate"
)

// destinationView is what happens at one destination.
type destinationView struct {
	Name      string
	Location  string
	Created   int // names that are new
	Replaced  int // names that get other content
	Unchanged int // names that have the same content already
	Kept      int // names that a later serial has, and keeps
	Taken     int // names of another channel
}

// obstacle keeps a case from being loaded, whatever people decide.
type obstacle struct {
	Artifact    gate.ReviewArtifact
	Destination string // "" where none accepts the artifact
	Name        string
	Owner       string // the channel that has the name
}

// destinationsOf counts what is written where, in the order of the plan.
func destinationsOf(artifacts []gate.ReviewArtifact) []destinationView {
	var list []destinationView
	for _, a := range artifacts {
		for _, plan := range a.Plan {
			i := slices.IndexFunc(list, func(d destinationView) bool { return d.Name == plan.Destination })
			if i < 0 {
				i = len(list)
				list = append(list, destinationView{Name: plan.Destination, Location: plan.Location})
			}
			list[i].count(plan)
		}
	}
	return list
}

func (d *destinationView) count(plan gate.ReviewPlan) {
	switch {
	case plan.Owner != "":
		d.Taken++
	case plan.Kept:
		d.Kept++
	case plan.Replaces != nil:
		d.Replaced++
	case plan.Same:
		d.Unchanged++
	default:
		d.Created++
	}
}

// writtenTo names the destinations at which a release sets names.
func writtenTo(list []destinationView) []string {
	var names []string
	for _, d := range list {
		if d.Created+d.Replaced+d.Unchanged+d.Taken > 0 {
			names = append(names, d.Name)
		}
	}
	return names
}

func obstaclesOf(artifacts []gate.ReviewArtifact) []obstacle {
	var list []obstacle
	for _, a := range artifacts {
		if len(a.Plan) == 0 {
			list = append(list, obstacle{Artifact: a})
		}
		for _, plan := range a.Plan {
			if plan.Owner != "" {
				list = append(list, obstacle{Artifact: a, Destination: plan.Destination, Name: plan.Name, Owner: plan.Owner})
			}
		}
	}
	return list
}

// Values of ReviewArtifact.Change besides "new".
const (
	changeNone   = "unchanged"
	changeUpdate = "updated"
)

// changedIn lists what people have to look at: what is new, then updates, then
// what is unchanged and still not quiet.
func changedIn(artifacts []gate.ReviewArtifact) []gate.ReviewArtifact {
	var list []gate.ReviewArtifact
	for _, a := range artifacts {
		if !isQuiet(a) {
			list = append(list, a)
		}
	}
	order := []string{changeUpdate, changeNone}
	slices.SortStableFunc(list, func(a, b gate.ReviewArtifact) int {
		return slices.Index(order, a.Change) - slices.Index(order, b.Change)
	})
	return list
}

// isQuiet tells whether there is nothing to say about an unchanged artifact
// but that it is.
func isQuiet(a gate.ReviewArtifact) bool {
	return a.Change == changeNone && !slices.ContainsFunc(a.Plan, func(p gate.ReviewPlan) bool {
		return p.Replaces != nil || p.Owner != "" || p.Kept
	}) && len(a.Plan) > 0
}

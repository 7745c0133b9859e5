package mirror

import (
	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
)

// PlanChange is an artifact of a lock, or one that it no longer has, and what
// became of it since the lock before.
type PlanChange struct {
	What     bundle.ChangeKind `json:"what"`
	Kind     bundle.Kind       `json:"kind"`
	Name     string            `json:"name"`
	Version  string            `json:"version"`
	Digest   cas.Digest        `json:"digest"`
	Previous *cas.Digest       `json:"previous,omitempty"`
	Bytes    int64             `json:"bytes"`
	From     string            `json:"from"`
}

// Sign is the change as one character: + added, ~ updated, - removed, blank
// unchanged.
func (c PlanChange) Sign() string {
	return map[bundle.ChangeKind]string{bundle.Added: "+", bundle.Updated: "~", bundle.Removed: "-"}[c.What]
}

// Compare says for every artifact of after, and for those that only before
// has, what has changed. Name, kind and version belong together; a new version
// of a name counts as updated. before may be nil. The lock of a control bundle
// has no artifacts, so nothing becomes of them.
func Compare(before, after *Lock) []PlanChange {
	if after.kind() == bundle.KindControl {
		return []PlanChange{}
	}
	old := map[string]Pinned{}
	names := map[string]Pinned{}
	still := map[string]bool{}
	for _, p := range after.Artifacts {
		still[pinKey(p)] = true
	}
	if before != nil {
		for _, p := range before.Artifacts {
			old[pinKey(p)] = p
			if !still[pinKey(p)] {
				names[string(p.Kind)+"\x00"+p.Name] = p
			}
		}
	}
	var changes []PlanChange
	kept := map[string]bool{}
	for _, p := range after.Artifacts {
		c := PlanChange{What: bundle.Added, Kind: p.Kind, Name: p.Name, Version: p.Version, Digest: p.Root.Digest, Bytes: p.Bytes, From: p.From}
		previous, same := old[pinKey(p)]
		if !same {
			previous, same = names[string(p.Kind)+"\x00"+p.Name]
			delete(names, string(p.Kind)+"\x00"+p.Name) // it is replaced once
		}
		if same {
			kept[pinKey(previous)] = true
			c.What, c.Previous = bundle.Updated, &previous.Root.Digest
			if previous.Root.Digest == p.Root.Digest && previous.Version == p.Version {
				c.What, c.Previous = bundle.Unchanged, nil
			}
		}
		changes = append(changes, c)
	}
	if before == nil {
		return changes
	}
	for _, p := range before.Artifacts {
		if !kept[pinKey(p)] {
			changes = append(changes, PlanChange{What: bundle.Removed, Kind: p.Kind, Name: p.Name, Version: p.Version, Digest: p.Root.Digest, Bytes: p.Bytes, From: p.From})
		}
	}
	return changes
}

// AnyChange reports whether anything is not as before.
func AnyChange(changes []PlanChange) bool {
	for _, c := range changes {
		if c.What != bundle.Unchanged {
			return true
		}
	}
	return false
}

func pinKey(p Pinned) string { return string(p.Kind) + "\x00" + p.Name + "\x00" + p.Version }

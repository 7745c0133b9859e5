package bundle

import (
	"cmp"
	"slices"
)

// Change is what happened to one artifact between two manifests.
type Change struct {
	What       ChangeKind `json:"what"`
	Kind       Kind       `json:"kind"`
	Name       string     `json:"name"`
	OldVersion string     `json:"oldVersion,omitempty"`
	NewVersion string     `json:"newVersion,omitempty"`
	OldDigest  *Digest    `json:"oldDigest,omitempty"`
	NewDigest  *Digest    `json:"newDigest,omitempty"`
	OldSize    int64      `json:"oldSize,omitempty"`
	NewSize    int64      `json:"newSize,omitempty"`
}

// ChangeKind is a kind of change.
type ChangeKind string

const (
	Added     ChangeKind = "added"
	Updated   ChangeKind = "updated"
	Removed   ChangeKind = "removed"
	Unchanged ChangeKind = "unchanged"
)

// Diff compares two manifests artifact by artifact. Kind and name tell which
// artifacts belong together; where several versions of one are on either
// side, equal versions are paired first.
func Diff(older, newer *Manifest) []Change {
	type key struct {
		kind Kind
		name string
	}
	group := func(m *Manifest) map[key][]Artifact {
		groups := map[key][]Artifact{}
		for _, a := range m.Artifacts {
			k := key{a.Kind, a.Name}
			groups[k] = append(groups[k], a)
		}
		return groups
	}
	before, after := group(older), group(newer)
	var changes []Change
	for k, now := range after {
		changes = append(changes, diffGroup(before[k], now)...)
	}
	for k, gone := range before {
		if _, still := after[k]; !still {
			changes = append(changes, diffGroup(gone, nil)...)
		}
	}
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.OldVersion+a.NewVersion, b.OldVersion+b.NewVersion))
	})
	return changes
}

func diffGroup(before, after []Artifact) []Change {
	var changes []Change
	before = slices.Clone(before)
	var fresh []Artifact
	for _, a := range after {
		i := slices.IndexFunc(before, func(b Artifact) bool { return b.Version == a.Version })
		if i < 0 {
			fresh = append(fresh, a)
			continue
		}
		changes = append(changes, change(&before[i], &a))
		before = slices.Delete(before, i, i+1)
	}
	for i := range max(len(before), len(fresh)) {
		var old, now *Artifact
		if i < len(before) {
			old = &before[i]
		}
		if i < len(fresh) {
			now = &fresh[i]
		}
		changes = append(changes, change(old, now))
	}
	return changes
}

// change copies what it takes: the caller goes on deleting from its slice.
func change(old, now *Artifact) Change {
	c := Change{What: Updated}
	if old != nil {
		c.Kind, c.Name, c.OldVersion, c.OldDigest, c.OldSize = old.Kind, old.Name, old.Version, new(old.Root.Digest), old.Size
	}
	if now != nil {
		c.Kind, c.Name, c.NewVersion, c.NewDigest, c.NewSize = now.Kind, now.Name, now.Version, new(now.Root.Digest), now.Size
	}
	switch {
	case old == nil:
		c.What = Added
	case now == nil:
		c.What = Removed
	case old.Root.Digest == now.Root.Digest && old.Version == now.Version:
		c.What = Unchanged
	}
	return c
}

// NewBytes adds up the blobs that newer names and older does not: what a
// gate that holds older still needs.
func NewBytes(older, newer *Manifest) int64 {
	var n int64
	for _, b := range newer.Blobs {
		if _, ok := older.Blob(b.Digest); !ok {
			n += b.Size
		}
	}
	return n
}

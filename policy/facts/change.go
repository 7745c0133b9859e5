package facts

import (
	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/policy"
)

// identity tells the artifacts of one manifest apart.
type identity struct {
	kind          bundle.Kind
	name, version string
}

// Changes says of each artifact of a manifest, in its order, what it is against
// what the plant holds.
func Changes(held []Held, m *bundle.Manifest) []policy.Change {
	found, _ := compare(held, m)
	changes := make([]policy.Change, len(m.Artifacts))
	for i, a := range m.Artifacts {
		changes[i] = found[identity{a.Kind, a.Name, a.Version}]
	}
	return changes
}

// compare pairs what the plant holds with what the manifest names, as
// bundle.Diff does for two manifests.
func compare(held []Held, m *bundle.Manifest) (map[identity]policy.Change, []policy.Removed) {
	before := &bundle.Manifest{}
	for _, h := range held {
		before.Artifacts = append(before.Artifacts, bundle.Artifact{
			Kind: h.Kind, Name: h.Name, Version: h.Version, Root: bundle.Descriptor{Digest: h.Digest},
		})
	}
	changes, removed := map[identity]policy.Change{}, []policy.Removed{}
	for _, c := range bundle.Diff(before, m) {
		if c.What == bundle.Removed {
			removed = append(removed, policy.Removed{Kind: string(c.Kind), Name: c.Name, Version: c.OldVersion, Digest: c.OldDigest.String()})
			continue
		}
		change := policy.Change{State: "new"}
		if c.What != bundle.Added {
			change = policy.Change{State: string(c.What), FromVersion: c.OldVersion, FromDigest: c.OldDigest.String()}
		}
		changes[identity{c.Kind, c.Name, c.NewVersion}] = change
	}
	return changes, removed
}

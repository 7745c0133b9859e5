package gate

import (
	"context"

	"github.com/packhof/packhof/bundle"
)

// Sink is a destination. It takes nothing but a *Release, which only a gate
// makes. The gate calls Plan before anything is written, Put for every
// artifact, Publish once after every Put, Verify for every artifact after
// that; after a failure or a kill it calls them again from the start, so each
// must be safe to run twice and cheap when its work is done already.
//
// Errors say which object of the destination is meant and have a code of the
// group destination/… (unreachable, refused, collision, mismatch). A Sink
// retries what is worth retrying itself; the gate does not.
type Sink interface {
	// Plan says what Put and Publish would write, over what, and what stands
	// in the way. It writes nothing. With no artifacts to plan it still finds
	// out whether the destination answers and lets us in.
	Plan(ctx context.Context, r *Release) ([]Action, error)
	// Put brings the content of one artifact, referrers included, by digest:
	// blobs, then children, then the subject, then its referrers. No name
	// moves, and nothing that a client sees under a name changes.
	Put(ctx context.Context, r *Release, a bundle.Artifact) (Receipt, error)
	// Publish sets the names, each of which replaces what it says it does.
	Publish(ctx context.Context, r *Release, names []Name) error
	// Verify reads back from the destination that the artifact is there, under
	// its name, with the promised digests.
	Verify(ctx context.Context, r *Release, a bundle.Artifact) error
}

// Effect is what an Action does to a destination.
type Effect string

const (
	EffectCreate  Effect = "create"  // the name is new there
	EffectReplace Effect = "replace" // the name is there and has other content
	EffectKeep    Effect = "keep"    // the same is there already
	EffectBlocked Effect = "blocked" // something stands in the way, Reason says what
)

// Action is one line of a release plan.
type Action struct {
	Name   Name   `json:"name"`
	Effect Effect `json:"effect"`
	Bytes  int64  `json:"bytes"`            // of what is not under the name yet, at most
	Blobs  int    `json:"blobs,omitzero"`   // of these, where the destination knows
	Reason string `json:"reason,omitempty"` // of EffectBlocked
}

// Name is what a destination calls an artifact: for a registry repository and
// tag, for an object store a prefix and its last part.
type Name struct {
	Repository string         `json:"repository"`
	Tag        string         `json:"tag"`
	Kind       bundle.Kind    `json:"kind"`
	Digest     bundle.Digest  `json:"digest"`             // of the artifact's root
	Replaces   *bundle.Digest `json:"replaces,omitempty"` // what the gate last published under this name
}

// String is repository:tag.
func (n Name) String() string { return n.Repository + ":" + n.Tag }

// Receipt says what a Put did; it goes to the audit log.
type Receipt struct {
	Location string `json:"location"` // where it is, for people: a reference or URL without credentials
	Blobs    int    `json:"blobs"`    // blobs and manifests that had to be moved
	Bytes    int64  `json:"bytes"`    // of these
	Kept     int    `json:"kept"`     // that were there already
}

// Destination is a Sink as the configuration names it.
type Destination struct {
	Name     string        // "depot", "harbor", …; unique in a gate
	Location string        // where it is, for people, without credentials; approvals are bound to it
	Accepts  []bundle.Kind // what is loaded there
	Naming   Naming        // how artifacts are called there
	Sink     Sink
}

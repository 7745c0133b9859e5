// Package facts states the facts about a verified bundle in the form that the
// policy judges (policy.Input): what the signed manifest says, what stands in
// the metadata blobs it names (manifests, image configs, SBOMs), what the
// inspection of the content found, and how it differs from what the plant
// holds. What is missing or cannot be read is a fact as well, with a reason.
//
// It never decides anything, never takes a document for more than a claim of
// whoever wrote it, and never puts free text of a sender or of an artifact
// anywhere but under "untrusted". State reads no content; Inspect does.
package facts

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/policy"
	"github.com/packhof/packhof/signing"
)

// Subject is what facts are stated about, and what only the caller knows.
type Subject struct {
	Bundle       *bundle.Bundle
	Root         *signing.Root // the trust root that vouched: it knows the signers' keys
	Time         Time
	Held         []Held                         // of the channel's last release
	Gap          []int64                        // serials that never arrived
	Destinations func(bundle.Artifact) []string // where it would be loaded to; nil: nowhere
	Inspection   Inspector                      // nil: the content has not been looked into yet
	Preview      bool                           // nothing may be approved on it
}

// Time is what the caller knows of the time.
type Time struct {
	Floor time.Time // it is certainly not earlier
	Wall  time.Time // what the clock says
}

// Held is an artifact that the plant holds.
type Held struct {
	Kind          bundle.Kind
	Name, Version string
	Digest        bundle.Digest
}

// State states the facts. It returns an error if it was not given a bundle
// with its trust root, when ctx ends, or as soon as the facts are more than can
// be judged (policy/too-large): it never holds more than policy.MaxInput bytes
// of them. What is wrong with the bundle's documents stands in the facts.
func State(ctx context.Context, s Subject) (*policy.Input, error) {
	if s.Bundle == nil || s.Root == nil {
		return nil, errors.New("state the facts: there is no verified bundle, or no trust root")
	}
	m := s.Bundle.Manifest()
	changes, removed := compare(s.Held, m)
	if m.Kind == bundle.KindControl {
		removed = []policy.Removed{} // it takes the place of nothing
	}
	in := &policy.Input{
		Format: policy.FormatV1, Bundle: stateBundle(s), Time: stateTime(s.Time), Preview: s.Preview,
		Artifacts: []policy.Artifact{}, Removed: removed,
	}
	meter := newMeter(s.Bundle)
	if err := meter.add(in); err != nil {
		return nil, err
	}
	for i := range m.Artifacts {
		a := &artifact{Subject: s, Artifact: &m.Artifacts[i], meter: meter}
		stated, err := a.state(ctx, changes)
		if err != nil {
			return nil, err
		}
		meter.artifacts++
		in.Artifacts = append(in.Artifacts, stated)
	}
	return in, nil
}

func stateTime(t Time) policy.Time {
	floor, wall := t.Floor.UTC().Truncate(time.Second), t.Wall.UTC().Truncate(time.Second)
	return policy.Time{Floor: policy.At(floor), Wall: policy.At(wall), SkewSeconds: int64(wall.Sub(floor) / time.Second)}
}

func stateBundle(s Subject) policy.Bundle {
	m, voucher := s.Bundle.Manifest(), s.Bundle.Voucher()
	b := policy.Bundle{
		Digest: s.Bundle.Digest().String(), Kind: string(m.Kind), Channel: m.Channel, Epoch: m.Epoch, Serial: m.Serial,
		Gap: list(s.Gap), Created: policy.At(m.Created.Time), Expires: policy.At(m.Expires.Time), Audience: list(m.Audience),
		Role: string(voucher.Role()), Threshold: int64(voucher.Threshold()), Signers: []policy.Signer{},
		Blobs: m.Totals.Files, Bytes: m.Totals.Bytes, Omitted: []policy.Omission{},
		Untrusted: policy.BundleUntrusted{Note: m.Note},
	}
	if m.Previous != nil {
		b.Previous = m.Previous.String()
	}
	slices.Sort(b.Gap)
	for _, signer := range voucher.Signers() {
		// A key that this root does not know leaves the times empty, which
		// the input's own check refuses: then it was another root.
		key, _ := s.Root.Key(signer.ID)
		b.Signers = append(b.Signers, policy.Signer{
			KeyID: signer.ID.String(), Owner: signer.Owner, Role: string(voucher.Role()),
			NotBefore: policy.At(key.NotBefore), NotAfter: policy.At(key.NotAfter),
		})
	}
	for _, o := range m.Incomplete {
		b.Omitted = append(b.Omitted, policy.Omission{Name: o.Name, Untrusted: policy.OmissionUntrusted{Reason: o.Reason}})
	}
	return b
}

// list copies a slice so that it is never nil.
func list[T any](s []T) []T { return append([]T{}, s...) }

// labels are sorted by name.
func labels(m map[string]string) []policy.Label {
	all := []policy.Label{}
	for name, value := range m {
		all = append(all, policy.Label{Name: name, Value: value})
	}
	slices.SortFunc(all, func(a, b policy.Label) int { return strings.Compare(a.Name, b.Name) })
	return all
}

package sinktest

import (
	"context"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
)

// Releases gives what a real gate let through of two serials, for tests of one
// Sink that the suite is not about: an image for two platforms and one for
// one, each platform with an SBOM, the latter with an index of reports too, a
// model and some notes, of which the notes are the same in both. The gate is open until the end of the test.
func Releases(t *testing.T) (first, second *gate.Release) {
	t.Helper()
	one, two := forgeSerials(t)
	s := openStage(t, func(testing.TB, func() *gate.Gate) Harness { return Harness{Sink: taker{}} })
	one.address(t, s.gate.ID(), nil)
	two.address(t, s.gate.ID(), one)
	s.trust(t, one)
	for _, b := range []*serial{one, two} {
		id := s.receive(t, b)
		if _, err := s.gate.Release(t.Context(), carrier(), id, nil); err != nil {
			t.Fatalf("release: %v", err)
		}
	}
	return s.releaseOf(t, 1), s.releaseOf(t, 2)
}

// taker takes everything and keeps nothing.
type taker struct{}

// Plan implements gate.Sink.
func (taker) Plan(context.Context, *gate.Release) ([]gate.Action, error) { return nil, nil }

// Put implements gate.Sink.
func (taker) Put(context.Context, *gate.Release, bundle.Artifact) (gate.Receipt, error) {
	return gate.Receipt{Location: "nowhere"}, nil
}

// Publish implements gate.Sink.
func (taker) Publish(context.Context, *gate.Release, []gate.Name) error { return nil }

// Verify implements gate.Sink.
func (taker) Verify(context.Context, *gate.Release, bundle.Artifact) error { return nil }

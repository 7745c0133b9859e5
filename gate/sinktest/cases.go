package sinktest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
)

func (c suite) plans(t *testing.T) {
	h := c.fresh(t)
	c.planned(t, h, c.first, gate.EffectCreate, gate.EffectCreate)
	put(t, h, c.first)
	publish(t, h, c.first)
	c.planned(t, h, c.first, gate.EffectKeep, gate.EffectKeep)
	c.planned(t, h, c.second, gate.EffectReplace, gate.EffectKeep)
	put(t, h, c.second)
	publish(t, h, c.second)
	c.planned(t, h, c.second, gate.EffectKeep, gate.EffectKeep)
}

func (c suite) planned(t *testing.T, h Harness, r *gate.Release, changed, notes gate.Effect) {
	t.Helper()
	before := named(dump(t, h))
	actions, err := h.Sink.Plan(t.Context(), r)
	if err != nil {
		t.Fatalf("plan: %v", err)
	}
	if diff := cmp.Diff(before, named(dump(t, h))); diff != "" {
		t.Errorf("planning changed the destination:\n%s", diff)
	}
	if len(actions) != len(r.Artifacts()) {
		t.Errorf("%d actions for %d artifacts", len(actions), len(r.Artifacts()))
	}
	checkEffects(t, actions, changed, notes)
	for _, a := range actions {
		if (a.Effect == gate.EffectKeep) != (a.Bytes == 0) {
			t.Errorf("%s: %s would move %d bytes", a.Name, a.Effect, a.Bytes)
		}
	}
}

// named is what is where, short enough to be compared.
func named(objects map[string][]byte) map[string]bundle.Digest {
	short := map[string]bundle.Digest{}
	for place, b := range objects {
		short[place] = cas.DigestOf(b)
	}
	return short
}

func dump(t *testing.T, h Harness) map[string][]byte {
	t.Helper()
	if h.Dump == nil {
		return nil
	}
	return h.Dump(t)
}

func (c suite) namesLast(t *testing.T) {
	h := c.fresh(t)
	put(t, h, c.first)
	for _, name := range c.first.Names() {
		if h.Read(t, name) != nil {
			t.Errorf("%s is there before it was published", name)
		}
	}
	publish(t, h, c.first)
	before := map[string]map[string]bundle.Digest{}
	for _, name := range c.first.Names() {
		if before[name.String()] = named(h.Read(t, name)); len(before[name.String()]) == 0 {
			t.Errorf("%s is not there after it was published", name)
		}
	}
	put(t, h, c.second)
	for _, name := range c.first.Names() {
		if diff := cmp.Diff(before[name.String()], named(h.Read(t, name))); diff != "" {
			t.Errorf("putting the next serial changed %s:\n%s", name, diff)
		}
	}
	verify(t, h, c.first)
}

func (c suite) again(t *testing.T) {
	h := c.fresh(t)
	for _, receipt := range put(t, h, c.first) {
		if receipt.Blobs == 0 || receipt.Location == "" {
			t.Errorf("receipt: %+v", receipt)
		}
	}
	for range 2 {
		for _, receipt := range put(t, h, c.first) {
			if receipt.Bytes != 0 || receipt.Blobs != 0 || receipt.Kept == 0 {
				t.Errorf("moved something again: %+v", receipt)
			}
		}
		publish(t, h, c.first)
		verify(t, h, c.first)
	}
}

func (c suite) lost(t *testing.T) {
	h := c.fresh(t)
	if h.Lose == nil {
		t.Skip("nothing can be taken away from this destination")
	}
	put(t, h, c.first)
	publish(t, h, c.first)
	verify(t, h, c.first)
	for _, a := range c.first.Artifacts() {
		h.Lose(t, c.first.Name(a))
		wantCode(t, h.Sink.Verify(t.Context(), c.first, a), "destination/mismatch")
		if _, err := h.Sink.Put(t.Context(), c.first, a); err != nil {
			t.Fatalf("put %s again: %v", a.Name, err)
		}
	}
	publish(t, h, c.first)
	verify(t, h, c.first)
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	coded, ok := errors.AsType[interface {
		error
		Code() string
	}](err)
	if !ok || coded.Code() != code {
		t.Errorf("error %v, want one of code %s", err, code)
	}
}

func (c suite) renamed(t *testing.T) {
	h := c.fresh(t)
	put(t, h, c.first)
	put(t, h, c.second)
	for _, a := range c.first.Artifacts() {
		wantCode(t, h.Sink.Verify(t.Context(), c.first, a), "destination/mismatch")
	}
	publish(t, h, c.first)
	for _, a := range c.second.Artifacts() {
		err := h.Sink.Verify(t.Context(), c.second, a)
		if a.Kind == bundle.Files { // the same in both
			if err != nil {
				t.Errorf("verify %s: %v", a.Name, err)
			}
			continue
		}
		wantCode(t, err, "destination/mismatch")
	}
}

func (c suite) order(t *testing.T) {
	h := c.fresh(t)
	if h.Arrived == nil {
		t.Skip("this destination does not tell what arrived when")
	}
	put(t, h, c.first)
	arrived := h.Arrived(t)
	place := func(d bundle.Digest) int { return slices.Index(arrived, d) }
	for _, a := range c.first.Artifacts() {
		for _, r := range a.Referrers {
			subject, root, referrer := place(r.Subject), place(a.Root.Digest), place(r.Descriptor.Digest)
			if subject < 0 || subject > root || root > referrer {
				t.Errorf("%s: its part arrived as number %d, its root as %d, the referrer as %d", a.Name, subject, root, referrer)
			}
			for _, d := range c.listedBy(t, r.Descriptor) {
				if listed := place(d); listed < 0 || listed > referrer {
					t.Errorf("%s: what a referrer lists arrived as number %d, the referrer as %d", a.Name, listed, referrer)
				}
			}
		}
	}
	publish(t, h, c.first)
	verify(t, h, c.first)
}

// listedBy are the manifests below a referrer that is an index.
func (c suite) listedBy(t *testing.T, referrer bundle.Descriptor) (listed []bundle.Digest) {
	t.Helper()
	root := bundle.OCIDescriptor{MediaType: referrer.MediaType, Digest: referrer.Digest, Size: referrer.Size}
	read := func(d bundle.OCIDescriptor) ([]byte, error) {
		return c.first.ReadAll(d.Digest, bundle.MaxOCIManifestSize)
	}
	visit := func(d bundle.OCIDescriptor, _ bundle.Role) error {
		if bundle.IsManifest(d.MediaType) && d.Digest != root.Digest {
			listed = append(listed, d.Digest)
		}
		return nil
	}
	if err := bundle.Walk(root, read, visit); err != nil {
		t.Fatal(err)
	}
	return listed
}

func (c suite) interrupted(t *testing.T) {
	h := c.fresh(t)
	if h.Interrupt == nil {
		t.Skip("nothing tells when this destination is being written to")
	}
	a := c.large(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h.Interrupt(t, cancel)
	soon(t, func() {
		if _, err := h.Sink.Put(ctx, c.first, a); !errors.Is(err, context.Canceled) {
			t.Errorf("put that is interrupted: %v", err)
		}
	})
	c.nothingHalf(t, h)
	put(t, h, c.first)
	publish(t, h, c.first)
	verify(t, h, c.first)
}

// large is the artifact with the largest blob.
func (c suite) large(t *testing.T) bundle.Artifact {
	t.Helper()
	all := c.first.Artifacts()
	return slices.MaxFunc(all, func(a, b bundle.Artifact) int { return int(a.Size - b.Size) })
}

// soon fails when f takes longer than anybody would wait.
func soon(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
}

// nothingHalf looks for objects that are the beginning of a blob.
func (c suite) nothingHalf(t *testing.T, h Harness) {
	t.Helper()
	for place, object := range dump(t, h) {
		for _, whole := range contents(t, c.first) {
			if len(object) >= 512 && len(object) < len(whole) && bytes.HasPrefix(whole, object) {
				t.Errorf("%s is the first %d of %d bytes of a blob", place, len(object), len(whole))
			}
		}
	}
	for _, name := range c.first.Names() {
		if h.Read(t, name) != nil {
			t.Errorf("%s is there", name)
		}
	}
}

func (c suite) cancelled(t *testing.T) {
	h := c.fresh(t)
	before := named(dump(t, h))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := c.large(t)
	for name, do := range map[string]func() error{
		"plan":   func() error { _, err := h.Sink.Plan(ctx, c.first); return err },
		"put":    func() error { _, err := h.Sink.Put(ctx, c.first, a); return err },
		"verify": func() error { return h.Sink.Verify(ctx, c.first, a) },
	} {
		soon(t, func() {
			if err := do(); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	if !h.OfTheGate {
		if err := h.Sink.Publish(ctx, c.first, c.first.Names()); !errors.Is(err, context.Canceled) {
			t.Errorf("publish: %v", err)
		}
	}
	if diff := cmp.Diff(before, named(dump(t, h))); diff != "" {
		t.Errorf("the destination changed:\n%s", diff)
	}
}

func (c suite) unreachable(t *testing.T) {
	h := c.fresh(t)
	if h.Unreachable == nil {
		t.Skip("this destination can always be reached")
	}
	put(t, h, c.first)
	h.Unreachable(t)
	a := c.first.Artifacts()[0]
	_, planning := h.Sink.Plan(t.Context(), c.first)
	_, looking := h.Sink.Plan(t.Context(), &gate.Release{})
	_, putting := h.Sink.Put(t.Context(), c.second, a)
	for _, err := range []error{planning, looking, putting, h.Sink.Publish(t.Context(), c.first, c.first.Names()), h.Sink.Verify(t.Context(), c.first, a)} {
		wantCode(t, err, "destination/unreachable")
	}
}

package sinktest

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
)

// rotten spoils a blob in the gate's store: putting it must fail with the
// store's own words, and the destination must have nothing of it.
func (c suite) rotten(t *testing.T) {
	for name, spoil := range map[string]func([]byte) []byte{
		"its first byte is another": func(b []byte) []byte { b[0] ^= 1; return b },
		"its last byte is another":  func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"it is cut off":             func(b []byte) []byte { return b[:len(b)/2] },
		"it goes on":                func(b []byte) []byte { return append(b, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			a := c.large(t)
			d := c.largestBlob(t, a)
			whole, err := c.first.ReadAll(d.Digest, d.Size)
			if err != nil {
				t.Fatal(err)
			}
			spoilt := spoil(bytes.Clone(whole))
			c.stage.replace(t, d.Digest, spoilt)
			defer c.stage.replace(t, d.Digest, whole)
			h := c.fresh(t)
			if _, err := h.Sink.Put(t.Context(), c.first, a); !isCorrupt(err) {
				t.Errorf("error %v, want the store's", err)
			}
			for place, object := range dump(t, h) {
				if bytes.Equal(object, spoilt) {
					t.Errorf("the wrong bytes are there as %s", place)
				}
				if bytes.Equal(object, whole) {
					t.Errorf("bytes that nobody could read are there as %s", place)
				}
			}
			if !h.OfTheGate {
				c.nothingNamed(t, h)
			}
		})
	}
}

func (c suite) nothingNamed(t *testing.T, h Harness) {
	t.Helper()
	for _, name := range c.first.Names() {
		if h.Read(t, name) != nil {
			t.Errorf("%s is there", name)
		}
	}
}

func isCorrupt(err error) bool {
	_, ok := errors.AsType[*cas.CorruptError](err)
	return ok
}

// largestBlob is the largest layer of an artifact.
func (c suite) largestBlob(t *testing.T, a bundle.Artifact) (largest bundle.OCIDescriptor) {
	t.Helper()
	read := func(d bundle.OCIDescriptor) ([]byte, error) {
		return c.first.ReadAll(d.Digest, bundle.MaxOCIManifestSize)
	}
	visit := func(d bundle.OCIDescriptor, _ bundle.Role) error {
		if d.Size > largest.Size {
			largest = d
		}
		return nil
	}
	if err := bundle.Walk(bundle.OCIDescriptor{MediaType: a.Root.MediaType, Digest: a.Root.Digest, Size: a.Root.Size}, read, visit); err != nil {
		t.Fatal(err)
	}
	return largest
}

// replace writes other bytes under a blob's name in the gate's store.
func (s *stage) replace(t *testing.T, d bundle.Digest, b []byte) {
	t.Helper()
	store, err := cas.OpenStore(filepath.Join(s.dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(store.Path(d)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(store.Path(d), b, 0o444); err != nil {
		t.Fatal(err)
	}
}

package testkit_test

import (
	"bytes"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/testkit"
)

func TestForgedImagesAreWhole(t *testing.T) {
	f := testkit.Forge(t, nil)
	f.AddImage(t, "registry.example/one", "1", testkit.ImageSpec{Seed: "one", PayloadSize: 1000})
	f.AddImage(t, "registry.example/two", "1", testkit.ImageSpec{Seed: "two", PayloadSize: 1000}, "amd64", "arm64")
	f.Reseal(t)
	sealed, err := bundle.Open(bytes.NewReader(f.Volume), int64(len(f.Volume)), "forged")
	if err != nil {
		t.Fatal(err)
	}
	b, err := sealed.Verify(f.Trust, testkit.Noon())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Check(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{0, 1, 2} { // the file set has none
		if got := len(b.Manifest().Artifacts[i].Referrers); got != want {
			t.Errorf("artifact %d has %d referrers, want %d", i, got, want)
		}
	}
}

package main

import (
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/testkit"
)

// TestListing: the counts of what a receipt lists add up, also where the list of
// cases does not go back as far.
func TestListing(t *testing.T) {
	digest := func(s string) bundle.Digest { return cas.DigestOf([]byte(s)) }
	s := &site{app: &cli.App{Now: testkit.Noon}}
	if err := (language{s}).Set("en"); err != nil {
		t.Fatal(err)
	}
	cases := []gate.Summary{
		{Channel: "plant-1", Manifest: digest("1"), State: gate.NotGenuine}, // a forgery beside it
		{Channel: "plant-1", Manifest: digest("1"), State: gate.Loaded},
		{Channel: "plant-2", Manifest: digest("2"), State: gate.Loaded},
		{Channel: "plant-1", Manifest: digest("3"), State: gate.Rejected},
	}
	for _, c := range []struct {
		manifests []string
		want      string
	}{
		{nil, ""},
		{[]string{"1"}, "1 bundle is listed by what of its content is here, whatever was decided on it: loaded: 1"},
		{[]string{"1", "3"}, "2 bundles are listed by what of their content is here, whatever was decided on them: loaded: 1, rejected: 1"},
		{[]string{"1", "2", "4"}, ": loaded: 1, not counted: 2"},
		{[]string{"4"}, ": not counted: 1"},
	} {
		listed := bundle.ReceiptChannel{Channel: "plant-1"}
		for _, m := range c.manifests {
			listed.Bundles = append(listed.Bundles, bundle.ReceiptBundle{Manifest: digest(m)})
		}
		if got := s.listing([]bundle.ReceiptChannel{listed}, cases); !strings.HasSuffix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%v: %q, want %q", c.manifests, got, c.want)
		}
	}
}

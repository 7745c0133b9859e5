package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// germanGroups are the groups of codes that somebody at a gate can meet.
func atTheGate(code string) bool {
	group, _, _ := strings.Cut(code, "/")
	alone := []string{"content/corrupt", "oci/foreign-layer", "oci/malformed", "oci/too-many-entries", "key/missing"}
	groups := []string{"usage", "failed", "interrupted", "config", "project", "passphrase", "disk", "file", "digest", "format", "volume", "bundle", "trust", "signing",
		"child", "sbom", "audit", "gate", "receive", "serve", "password", "account", "login", "audience", "freshness", "facts", "policy", "case", "depot", "destination", "request", "s3"}
	return slices.Contains(groups, group) || slices.Contains(alone, code)
}

// TestGermanIsComplete: who reads German is never left with less than the
// English text, and no German text is about a code that does not exist.
func TestGermanIsComplete(t *testing.T) {
	for _, e := range Catalog() {
		german, ok := German(e.Code)
		switch {
		case ok != atTheGate(e.Code):
			t.Errorf("%s: German %v, met at a gate %v", e.Code, ok, atTheGate(e.Code))
		case ok && !strings.HasSuffix(german.Meaning, "."):
			t.Errorf("%s: %q is no sentence", e.Code, german.Meaning)
		case ok && e.Remedy == "" && german.Remedy != "":
			t.Errorf("%s: the remedy %q is in German alone", e.Code, german.Remedy)
		}
		if _, translated := GermanRemedy(e.Code, ""); ok && e.Remedy != "" && !translated && !strings.HasPrefix(e.Remedy, "packhof ") && !strings.Contains(e.Remedy, "packhof.yaml") {
			t.Errorf("%s: the remedy %q is in English alone", e.Code, e.Remedy)
		}
	}
	for code := range germanFallbacks() {
		if german, ok := German(code); !ok || german.Remedy != "" {
			t.Errorf("%s has a fallback that nobody can meet", code)
		}
	}
	for _, entries := range [][]GermanEntry{germanGeneral(), germanBundle(), germanTrust(), germanHelpers(), germanGate(), germanCase(), germanPolicy(), germanDestination(), germanRequest(), germanS3()} {
		for _, e := range entries {
			if _, ok := Lookup(e.Code); !ok {
				t.Errorf("%s is German and in no catalogue", e.Code)
			}
		}
	}
}

func TestGermanEvidence(t *testing.T) {
	for _, c := range []struct{ lines, want []string }{
		{[]string{"want:  sha256:ab"}, []string{"erwartet:  sha256:ab"}},
		{[]string{"nobody knows: this", "no label", "got:"}, []string{"nobody knows: this", "no label", "erhalten:"}},
		{
			[]string{"missing volumes:  2, 4", "volumes in all:   4", "lacking:          1527803 bytes", "for others:  x: y"},
			[]string{"fehlende Teile:   2, 4", "Teile insgesamt:  4", "es fehlen:        1527803 Bytes", "für andere:       x: y"},
		},
		{[]string{"unknown:   key ab12", "mismatch:  a@example (ab12) is named, but did not sign these bytes"},
			[]string{"unbekannt:    Schlüssel ab12", "Widerspruch:  a@example (ab12) ist genannt, hat diese Bytes aber nicht unterschrieben"}},
		{[]string{"approvals:  0 of 1", "wait:  1 of 2 keys"}, []string{"Freigaben:  0 von 1", "Wartezeit:  1 of 2 keys"}},
		{[]string{"got:   serial 3", "have:  serial 14"}, []string{"erhalten:   Nummer 3", "vorhanden:  Nummer 14"}},
		{[]string{"want:  version 2, sha256:ab", "got:   none"}, []string{"erwartet:  Version 2, sha256:ab", "erhalten:  keine"}},
	} {
		if diff := cmp.Diff(c.want, GermanEvidence(c.lines)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.lines, diff)
		}
	}
}

package cli

import (
	"slices"
	"strings"
	"testing"
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
		case ok && e.Remedy != "" && german.Remedy == "" && !strings.HasPrefix(e.Remedy, "packhof ") && !strings.Contains(e.Remedy, "packhof.yaml"):
			if !slices.Contains([]string{"request/method", "request/not-found"}, e.Code) {
				t.Errorf("%s: the remedy %q is in English alone", e.Code, e.Remedy)
			}
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
	for line, want := range map[string]string{
		"want:  sha256:ab": "erwartet:  sha256:ab", "nobody knows: this": "nobody knows: this", "no label": "no label", "got:": "erhalten:",
	} {
		if got := GermanEvidence(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

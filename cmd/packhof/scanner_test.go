package main

import (
	"encoding/json/v2"
	"os"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/sbom"
)

// A scanner that is not there, or does not do its work, is a fact in the
// manifest and a warning, and never the end of an export.
func TestScannerFails(t *testing.T) {
	project := newLab(t)
	const says = `if [ "$1" = version ]; then echo '{"version":"1","syft":"1","go":"1"}'; exit 0; fi` + "\n"
	for _, test := range []struct {
		name, script string // of a program in sh; "" means that there is none
		reason       string // in the manifest: the same on every machine
		said         string // by the scanner, and repeated on stderr only
	}{
		{"absent", "", "packhof-scan is not installed", ""},
		{"no program", "\x00\x00not a program", "packhof-scan cannot be started", ""},
		{"knows no version", "echo oops >&2; exit 7", "the scanner ended with exit code 7", "oops"},
		{"crashes", says + "kill -SEGV $$", "the scanner ended by signal", ""},
		{"gives up", says + "echo 'too strange for me' >&2; exit 1", "the scanner ended with exit code 1", "too strange for me"},
		{"hangs", says + "sleep 600", "the scanner ran longer than 1s", ""},
		{"answers garbage", says + "echo hello", "the scanner gave no SBOM of this subject (scan/response)", ""},
		{"answers nothing", says, "the scanner gave no SBOM of this subject (scan/response)", ""},
		{"answers too much", says + "yes", "the scanner wrote more than", ""},
		{"describes something else", says + "cat <<'.'\n" + emptyAnswer(t) + "\n.", "the scanner gave no SBOM of this subject (s", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := project.clone(t)
			timeout := "5m"
			if test.name == "hangs" {
				timeout = "1s"
			}
			l.replace("packhof.yaml", "artifacts:", "scan: {program: bin/packhof-scan, timeout: "+timeout+"}\nartifacts:")
			l.Mkdir("bin")
			if test.script != "" {
				if err := os.WriteFile(l.Path("bin/packhof-scan"), []byte("#!/bin/sh\n"+test.script+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if strings.HasPrefix(test.script, "\x00") {
				l.Write("bin/packhof-scan", test.script)
			}
			l.mustRun("plan")
			o := l.mustRun("export", "--to", "medium")
			entry := l.manifest(bundleFile).Artifacts[0].SBOM[0]
			if entry.Status != bundle.SBOMFailed || !strings.Contains(entry.Reason, test.reason) || entry.Reason == "" {
				t.Errorf("the manifest says %s: %q, want failed: %q", entry.Status, entry.Reason, test.reason)
			}
			if strings.Contains(entry.Reason, l.Dir) || test.said != "" && strings.Contains(entry.Reason, test.said) {
				t.Errorf("the reason is not the same on every machine: %q", entry.Reason)
			}
			if !strings.Contains(o.Stderr, "warning: no SBOM of ") || !strings.Contains(o.Stderr, test.said) {
				t.Errorf("no warning with %q:\n%s", test.said, o.Stderr)
			}
			l.mustRun("verify", bundleFile)
			l.snapshot() // looks after what is left over in the store
		})
	}
}

// emptyAnswer is a well-formed answer with no document worth the name in it.
func emptyAnswer(t *testing.T) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{"format": sbom.ResponseFormat, "document": map[string]any{"bomFormat": "CycloneDX"}})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The real scanner: an SBOM for each platform of an image and for each model,
// the same from a fresh store, and its time carried over to the next lock.
func TestSBOMs(t *testing.T) {
	if testing.Short() {
		t.Skip("runs packhof-scan")
	}
	t.Parallel()
	l := newLab(t)
	r := testkit.NewRegistry(t)
	l.pushIndex(r, "team/app:1.0", small("app"))
	l.wants(r, "team/app:1.0")
	model, err := testkit.Model("model")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(l.Path("model"), model); err != nil {
		t.Fatal(err)
	}
	l.replace("packhof.yaml", "artifacts:\n", "artifacts:\n  - {kind: model, name: weights, version: \"1\", dir: model}\n")
	l.mustRun("plan")
	if o := l.mustRun("export", "--to", "medium"); strings.Contains(o.Stderr, "warning:") {
		t.Errorf("a warning:\n%s", o.Stderr)
	}
	first := l.manifest(bundleFile)
	checkPresent(t, first, 1, 2)
	l.mustRun("verify", bundleFile)

	l.Remove(".packhof")
	l.Mkdir("fresh")
	l.mustRun("export", "--to", "fresh")
	l.sameBytes(bundleFile, "fresh/plant-1-000001.tar")

	l.replace("packhof.yaml", `version: "1", dir: model`, `version: "2", dir: notes`)
	l.mustRun("plan")
	l.mustRun("export", "--to", "medium")
	second := l.manifest("medium/plant-1-000002.tar")
	checkPresent(t, second, 1, 2)
	for i, entry := range second.Artifacts[1].SBOM {
		if *entry.Document != *first.Artifacts[1].SBOM[i].Document {
			t.Errorf("the image has not changed and has got another SBOM")
		}
	}
}

func checkPresent(t *testing.T, m *bundle.Manifest, counts ...int) {
	t.Helper()
	for i, a := range m.Artifacts {
		if len(a.SBOM) != counts[i] {
			t.Errorf("%s has %d SBOM entries, want %d", a.Name, len(a.SBOM), counts[i])
		}
		for _, entry := range a.SBOM {
			if entry.Status != bundle.SBOMPresent {
				t.Errorf("%s: SBOM %s: %s", a.Name, entry.Status, entry.Reason)
			}
		}
	}
}

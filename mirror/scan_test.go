package mirror_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/mirror"
	"github.com/packhof/packhof/sbom"
)

// playScanner is what this test binary does when it is run as packhof-scan.
func playScanner(how string) int {
	if len(os.Args) > 1 && os.Args[1] == "version" {
		if how == "version garbage" {
			fmt.Println("v1.2.3")
		} else {
			fmt.Println(`{"version":"9.9","syft":"1.0"}`)
		}
		return 0
	}
	request, err := sbom.ReadRequest(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	switch how {
	case "garbage":
		fmt.Println("hello")
		return 0
	case "crash":
		fmt.Fprintf(os.Stderr, "panic in \x1b[31m%s\x1b[0m\n", request.Dir)
		return 3
	case "silent":
		return 0
	case "other subject":
		request.Subject.Name = "something else"
	case "other time":
		request.Time = request.Time.Add(time.Second)
	case "looks":
		for _, f := range request.Files {
			if b, err := os.ReadFile(filepath.Join(request.Dir, f.Path)); err != nil || cas.DigestOf(b).Hex() != f.SHA256 {
				fmt.Fprintln(os.Stderr, "wrong file", f.Path, err)
				return 4
			}
		}
	}
	document, err := sbom.Write(request, sbom.Found{Tools: []sbom.Tool{{Name: "test", Version: "1"}}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	b, err := sbom.Response{Format: sbom.ResponseFormat, Document: document, UnknownsTotal: 3, Unknowns: []sbom.Unknown{{Path: "x", Reason: "y"}}}.Encode()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if _, err := os.Stdout.Write(b); err != nil {
		return 1
	}
	return 0
}

// scanner is a packhof-scan that behaves as told.
func scanner(t *testing.T, y *yard, how string) *mirror.ScanProgram {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "packhof-scan")
	script := fmt.Sprintf("#!/bin/sh\n%s='%s' exec '%s' \"$@\"\n", envScan, how, program)
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return &mirror.ScanProgram{Path: path, Timeout: time.Minute, Memory: 4 << 30, Store: y.store}
}

func exportScanned(t *testing.T, y *yard, l *mirror.Lock, s *mirror.ScanProgram) (*bundle.Bundle, []byte) {
	t.Helper()
	e := y.exporter(t)
	e.Scanner = s
	_, volume := exportWith(t, e, l)
	return y.verify(t, volume), volume
}

func TestSBOMs(t *testing.T) {
	y := newYard(t)
	l := y.plan(t)
	b, volume := exportScanned(t, y, l, scanner(t, y, "looks"))
	for _, a := range b.Manifest().Artifacts {
		s := a.SBOM[0]
		if s.Status != bundle.SBOMPresent || s.Tool != "packhof-scan 9.9, syft 1.0" || s.Unknowns != 3 || len(a.Referrers) != 1 {
			t.Errorf("%s: %+v", a.Name, s)
			continue
		}
		document, err := b.ReadAll(*s.Document, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		want := sbom.Expect{Time: l.Created.UTC(), Subject: sbom.Subject{
			Kind: string(a.Kind), Name: a.Name, Version: a.Version, Digest: a.Root.Digest.String(), MediaType: a.Root.MediaType,
		}}
		if _, err := sbom.Check(document, want); err != nil {
			t.Error(err)
		}
		if blob, _ := b.Manifest().Blob(*s.Document); blob.Role != bundle.RoleMetadata {
			t.Errorf("the document is %s", blob.Role)
		}
	}
	// What is kept is not made again: a scanner of that version that would
	// crash is not even asked.
	remove(t, y.store.Path(b.Digest()))
	if _, again := exportScanned(t, y, l, scanner(t, y, "crash")); !bytes.Equal(volume, again) {
		t.Error("with kept documents it differs")
	}
	if left, err := os.ReadDir(filepath.Join(y.store.Dir(), "work")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestKeptSBOMsAreChecked(t *testing.T) {
	y := newYard(t)
	l := y.plan(t)
	b, volume := exportScanned(t, y, l, scanner(t, y, "good"))
	path := y.store.Path(*b.Manifest().Artifacts[0].SBOM[0].Document)
	remove(t, path)
	remove(t, y.store.Path(b.Digest()))
	if _, again := exportScanned(t, y, l, scanner(t, y, "good")); !bytes.Equal(volume, again) {
		t.Error("made again the document differs")
	}
	notes, err := filepath.Glob(filepath.Join(y.store.Dir(), "notes", "sbom-*", "*"))
	if err != nil || len(notes) != 2 {
		t.Fatalf("notes %v, %v", notes, err)
	}
	for _, garbage := range []string{"", "garbage", "sha256:xyz 3", cas.DigestOf([]byte("{}")).String() + " 3"} {
		for _, note := range notes {
			write(t, note, []byte(cas.DigestOf([]byte(garbage)).String()+"\n"+garbage))
		}
		remove(t, y.store.Path(b.Digest()))
		if _, again := exportScanned(t, y, l, scanner(t, y, "good")); !bytes.Equal(volume, again) {
			t.Errorf("with the note %q it differs", garbage)
		}
	}
}

func TestFailedScansAreFacts(t *testing.T) {
	for how, reason := range map[string]string{
		"garbage":         "", // what the parser says
		"silent":          "",
		"crash":           "exit code 3",
		"other subject":   "",
		"other time":      "",
		"version garbage": "scan/response",
	} {
		t.Run(how, func(t *testing.T) {
			y := newYard(t)
			l := y.plan(t)
			b, volume := exportScanned(t, y, l, scanner(t, y, how))
			for _, a := range b.Manifest().Artifacts {
				s := a.SBOM[0]
				if s.Status != bundle.SBOMFailed || s.Document != nil || len(a.Referrers) != 0 || !strings.Contains(s.Reason, reason) {
					t.Errorf("%s: %+v", a.Name, s)
				}
				if strings.Contains(s.Reason, y.dir) || strings.ContainsAny(s.Reason, "\x1b\n") {
					t.Errorf("the reason tells of this machine, or acts on a terminal: %q", s.Reason)
				}
			}
			if _, again := exportScanned(t, y, l, scanner(t, y, how)); !bytes.Equal(volume, again) {
				t.Error("exported again it differs")
			}
		})
	}
}

func TestScannerThatIsNotThere(t *testing.T) {
	y := newYard(t)
	s := scanner(t, y, "good")
	s.Path = filepath.Join(t.TempDir(), "packhof-scan")
	b, _ := exportScanned(t, y, y.plan(t), s)
	for _, a := range b.Manifest().Artifacts {
		if s := a.SBOM[0]; s.Status != bundle.SBOMFailed || !strings.Contains(s.Reason, "not installed") {
			t.Errorf("%s: %+v", a.Name, s)
		}
	}
}

func TestScannerThatTakesTooLong(t *testing.T) {
	y := newYard(t)
	s := scanner(t, y, "good")
	write(t, s.Path, []byte("#!/bin/sh\nif [ \"$1\" = version ]; then echo '{}'; else while :; do :; done; fi\n"))
	s.Timeout = 50 * time.Millisecond
	b, _ := exportScanned(t, y, y.plan(t), s)
	for _, a := range b.Manifest().Artifacts {
		if s := a.SBOM[0]; s.Status != bundle.SBOMFailed || !strings.Contains(s.Reason, "ran longer than") {
			t.Errorf("%s: %+v", a.Name, s)
		}
	}
}

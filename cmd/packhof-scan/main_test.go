package main

import (
	"bytes"
	"encoding/json/v2"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/internal/child"
	"github.com/packhof/packhof/sbom"
	"github.com/packhof/packhof/sbom/scan/scantest"
)

// selfVar makes the test binary be packhof-scan.
const selfVar = "PACKHOF_SCAN_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(selfVar) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func spec(t *testing.T, stdin []byte, args ...string) child.Spec {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return child.Spec{
		Path:      self,
		Args:      args,
		Dir:       t.TempDir(),
		Env:       []string{selfVar + "=1"},
		Stdin:     stdin,
		MaxOutput: sbom.MaxResponse,
		MaxData:   2 << 30,
		MaxFile:   1 << 30,
		MaxDisk:   1 << 30,
		Timeout:   5 * time.Minute,
		NoNetwork: true,
		Clock:     time.Now,
	}
}

func encoded(t *testing.T, request sbom.Request) []byte {
	t.Helper()
	text, err := request.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func scanned(t *testing.T, request sbom.Request) []byte {
	t.Helper()
	result, err := child.Run(t.Context(), spec(t, encoded(t, request)))
	if err != nil {
		t.Fatalf("%v\n%s", err, result.Stderr)
	}
	t.Logf("%s, %d MiB, isolated %v", result.Duration.Round(time.Millisecond), result.PeakMemory>>20, result.NetworkIsolated)
	response, err := sbom.ReadResponse(bytes.NewReader(result.Stdout))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sbom.Check(response.Document, sbom.Expect{Subject: request.Subject, Time: request.Time}); err != nil {
		t.Fatal(err)
	}
	return response.Document
}

func TestScansAnImageInAChild(t *testing.T) {
	root := scantest.Tar(t, scantest.Debian(scantest.GoProgram(t)))
	first := scanned(t, scantest.Image(t, scantest.Gzip(t, root)))
	again := scanned(t, scantest.Image(t, scantest.Gzip(t, root))) // another layout, another work directory
	if diff := cmp.Diff(string(first), string(again)); diff != "" {
		t.Error(diff)
	}
	for _, want := range []string{"crane-control", "libhook2", "pallet", "example.test/tiny", `"packhof-scan"`, `"syft"`} {
		if !bytes.Contains(first, []byte(want)) {
			t.Errorf("%s is not in the document", want)
		}
	}
}

func TestScansATreeInAChild(t *testing.T) {
	doc := scanned(t, scantest.Tree(t, "dataset", scantest.Debian(nil)))
	if !bytes.Contains(doc, []byte(`"bom-ref":"file:etc/os-release"`)) {
		t.Errorf("%s", doc)
	}
}

func TestFailsWithinBounds(t *testing.T) {
	bomb := scantest.Image(t, scantest.Bomb(t, 3<<10))
	limited := bomb
	limited.MaxUnpacked = 256 << 20
	tests := []struct {
		name    string
		stdin   []byte
		args    []string
		change  func(*child.Spec)
		reason  child.Reason
		says    string
		maxTemp int64
	}{
		{"no request", nil, nil, nil, child.Crashed, "packhof-scan: scan/request: ", 0},
		{"garbage", []byte("\x00\x1b[2Jgarbage"), nil, nil, child.Crashed, "packhof-scan: scan/request: ", 0},
		{"unknown argument", nil, []string{"--help"}, nil, child.Crashed, "packhof-scan: scan/request: ", 0},
		{"bomb, unpacked bytes", encoded(t, limited), nil, nil, child.Crashed, "packhof-scan: scan/unpacked: ", 0},
		{"bomb, file size", encoded(t, bomb), nil, func(s *child.Spec) { s.MaxDisk = 0; s.MaxFile = 256 << 20 }, child.Crashed, "packhof-scan: scan/disk: ", 0},
		{"bomb, disk", encoded(t, bomb), nil, func(s *child.Spec) { s.MaxFile = 0; s.MaxDisk = 64 << 20 }, child.Disk, "", 2 << 30},
		{"no memory", encoded(t, limited), nil, func(s *child.Spec) { s.MaxData = 64 << 20 }, child.Memory, "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := spec(t, tt.stdin, tt.args...)
			if tt.change != nil {
				tt.change(&s)
			}
			result, err := child.Run(t.Context(), s)
			e, ok := errors.AsType[*child.Error](err)
			if !ok || e.Reason != tt.reason || result.Stdout != nil {
				t.Fatalf("want %s, got %v, %d bytes of output", tt.reason, err, len(result.Stdout))
			}
			if tt.reason == child.Crashed {
				if lines := e.Evidence(); e.ExitCode != 1 || len(lines) != 1 || !strings.Contains(lines[0], tt.says) {
					t.Errorf("exit code %d, says %q", e.ExitCode, lines)
				}
			}
			if left := held(t, s.Dir); left > tt.maxTemp {
				t.Errorf("%d bytes left behind", left)
			}
			t.Logf("%v; %s, %d MiB", err, result.Duration.Round(time.Millisecond), result.PeakMemory>>20)
		})
	}
}

// held adds up the files under dir.
func held(t *testing.T, dir string) int64 {
	t.Helper()
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestVersion(t *testing.T) {
	result, err := child.Run(t.Context(), spec(t, nil, "version"))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal(result.Stdout, &got); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"version", "syft", "go"} {
		if got[name] == "" {
			t.Errorf("no %s in %s", name, result.Stdout)
		}
	}
	if !strings.HasPrefix(got["syft"], "v1.") || len(got) != 3 {
		t.Errorf("got %v", got)
	}
}

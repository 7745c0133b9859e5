package testkit

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What can be done with objects is tested where the client is; here it is
// that a real server answers, asks for a signature, and goes away.
func TestS3ServerComesAndGoes(t *testing.T) {
	s, err := StartS3(Tool(t, "versitygw"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Client().Get(s.URL() + "/" + S3Bucket)
	if err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusForbidden || !strings.Contains(string(said), "<Code>AccessDenied</Code>") || resp.Header.Get("Server") != "VERSITYGW" {
		t.Errorf("%s by %q: %s", resp.Status, resp.Header.Get("Server"), said)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its directory is still there: %v", err)
	}
}

func TestS3ServerThatDoesNotStart(t *testing.T) {
	for name, program := range map[string]string{
		"absent":       filepath.Join(t.TempDir(), "absent"),
		"ends at once": Tool(t, "true"),
	} {
		t.Run(name, func(t *testing.T) {
			if s, err := StartS3(program); err == nil {
				t.Errorf("it runs; closed: %v", s.Close())
			}
		})
	}
}

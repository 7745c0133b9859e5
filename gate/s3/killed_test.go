package s3_test

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	destination "github.com/packhof/packhof/gate/s3"
	"github.com/packhof/packhof/internal/s3"
	"github.com/packhof/packhof/internal/testkit"
)

// victim carries the settings for a gate that is killed within a release.
const victim = "PACKHOF_TEST_GATE_S3_VICTIM"

func TestMain(m *testing.M) {
	if settings, ok := os.LookupEnv(victim); ok {
		fmt.Fprintln(os.Stderr, releaseUntilKilled(settings))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

type victimSettings struct {
	Dir      string
	Case     gate.CaseID
	Endpoint string
	CA       []byte
}

func releaseUntilKilled(text string) error {
	var v victimSettings
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return err
	}
	client, err := s3.New(s3.Config{
		Endpoint: v.Endpoint, CA: v.CA, Bucket: testkit.S3Bucket, Prefix: "plant/a",
		AccessKey: testkit.S3AccessKey, SecretKey: testkit.S3SecretKey, PartSize: partSize, InFlight: destination.InFlight,
	})
	if err != nil {
		return err
	}
	g, err := open(context.Background(), v.Dir, destination.New(destination.Config{Client: client}))
	if err != nil {
		return err
	}
	_, err = g.Release(context.Background(), operator, v.Case, nil)
	return errors.Join(errors.New("nobody killed this process"), err)
}

// A gate that is killed while it sends an object leaves no half object, and
// the next one goes on and leaves no upload.
func TestKilledWithinAPut(t *testing.T) {
	s, l := newStore(t), newLab(t)
	files := contents{"a": "1", "large.bin": string(testkit.Bytes("killed", 4*partSize)), "z": "2"}
	id := l.approved(func(f *testkit.Forged) { files.add(t, f, bundle.Model, "set") })
	if err := l.gate.Close(); err != nil {
		t.Fatal(err)
	}
	l.killAt(s, id, func(r *http.Request) bool { return r.URL.Query().Get("partNumber") == "3" })

	if have := s.objects().files("set/1.0"); have["large.bin"] != "" {
		t.Error("a part of the object is there")
	}
	left, err := s.client.Unfinished(t.Context(), "")
	if err != nil || len(left) != 1 {
		t.Fatalf("%v, %v: want one upload", left, err)
	}
	l.open(s.sink)
	c, err := l.gate.Release(t.Context(), operator, id, nil)
	if err != nil || c.State != gate.Loaded {
		t.Fatalf("%+v, %v", c, err)
	}
	s.check("set/1.0")
	s.wantNoUploads()
	if have := s.objects().files("set/1.0"); len(have) != len(files) || have["large.bin"] != files["large.bin"] {
		t.Errorf("files: %v", have.keys())
	}
}

// killAt has another process release the case and kills it when its request
// that matches is under way.
func (l *lab) killAt(s *store, id gate.CaseID, match testkit.Match) {
	l.t.Helper()
	reached := make(chan struct{}, 8)
	s.server.SetFault(func(next http.Handler) http.Handler {
		hang := testkit.Hang(match)(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if match(r) {
				reached <- struct{}{}
			}
			hang.ServeHTTP(w, r)
		})
	})
	settings, err := json.Marshal(victimSettings{Dir: l.dir, Case: id, Endpoint: s.server.URL(), CA: s.server.CAPEM()})
	if err != nil {
		l.t.Fatal(err)
	}
	cmd := exec.CommandContext(l.t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), victim+"="+string(settings))
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-reached:
	case err := <-ended:
		l.t.Fatalf("it ended too early: %v\n%s", err, said.String())
	}
	if err := cmd.Process.Kill(); err != nil {
		l.t.Fatal(err)
	}
	<-ended
	s.server.SetFault(nil)
}

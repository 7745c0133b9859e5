package s3_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	destination "github.com/packhof/packhof/gate/s3"
	"github.com/packhof/packhof/internal/s3"
	"github.com/packhof/packhof/internal/testkit"
)

func TestMain(m *testing.M) {
	if err := testkit.Victim(releaseUntilKilled); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// victimSettings are those of a gate that is killed within a release.
type victimSettings struct {
	Dir      string
	Case     gate.CaseID
	Endpoint string
	CA       []byte
}

func releaseUntilKilled(v victimSettings) error {
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
	return err
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
	testkit.KillAt(l.t, s.server, match, victimSettings{Dir: l.dir, Case: id, Endpoint: s.server.URL(), CA: s.server.CAPEM()})
}

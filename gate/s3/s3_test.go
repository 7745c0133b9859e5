package s3_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
)

func first() contents {
	return contents{
		"README.md": "one", "data/values.csv": "a,b\n1,2\n", "data/gone.csv": "only in the first",
		"with spaces & ümlauts (1).txt": "odd", "twin-a": "same", "twin-b": "same", "empty": "",
		"large.bin": string(testkit.Bytes("large", partSize+7)),
	}
}

func second() contents {
	c := first()
	delete(c, "data/gone.csv")
	c["README.md"] = "two"
	c["data/new.csv"] = "only in the second"
	c["large.bin"] = string(testkit.Bytes("other", partSize+9))
	return c
}

// check runs sha256sum -c where a client has the files.
func (s *store) check(dir string) {
	s.t.Helper()
	command := exec.CommandContext(s.t.Context(), testkit.Tool(s.t, "sha256sum"), "--strict", "--quiet", "-c", "SHA256SUMS")
	command.Dir = s.path(dir)
	if said, err := command.CombinedOutput(); err != nil {
		s.t.Errorf("sha256sum: %v\n%s", err, said)
	}
}

func TestFilesHaveTheirNames(t *testing.T) {
	s, r := newStore(t), newLab(t).dataset(first())
	if action := s.plan(r); action.Effect != gate.EffectCreate || action.Name.String() != "set:1.0" || action.Bytes < partSize {
		t.Errorf("plan: %+v", action)
	}
	if left := s.objects(); len(left) > 0 {
		t.Errorf("planning wrote %v", left.keys())
	}
	receipt := s.put(r)
	have := s.objects()
	if _, named := have["set/1.0/SHA256SUMS"]; named {
		t.Error("the name is there before it was published")
	}
	s.publish(r)
	if err := s.verify(r); err != nil {
		t.Error(err)
	}
	s.check("set/1.0")
	s.wantNoUploads()
	have = s.objects()
	if diff := cmp.Diff(first(), have.files("set/1.0")); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if receipt.Blobs != len(have)-1 || receipt.Kept != 0 || receipt.Bytes < partSize || !strings.HasPrefix(receipt.Location, "s3://"+testkit.S3Bucket+"/plant/a/set/1.0/ at ") {
		t.Errorf("receipt of %d objects: %+v", len(have), receipt)
	}
	a := r.Artifacts()[0]
	document := parse[struct {
		Kind    string            `json:"kind"`
		Name    string            `json:"name"`
		Version string            `json:"version"`
		Root    bundle.Descriptor `json:"root"`
	}](t, have["set/1.0/.packhof/artifact.json"])
	if document.Kind != "dataset" || document.Name != "set" || document.Version != "1.0" || document.Root != a.Root {
		t.Errorf("document: %+v", document)
	}
	if manifest := have["set/1.0/.packhof/blobs/sha256/"+a.Root.Digest.Hex()]; cas.DigestOf([]byte(manifest)) != a.Root.Digest {
		t.Error("the manifest is not there by its digest")
	}
	info, err := s.client.Head(t.Context(), "set/1.0/SHA256SUMS")
	if err != nil || info.Metadata["packhof-root"] != a.Root.Digest.String() || info.Metadata["packhof-serial"] != "1/1" || info.Metadata["packhof-channel"] != "plant-7" {
		t.Errorf("list: %+v, %v", info, err)
	}
}

func TestSecondTimeMovesNothing(t *testing.T) {
	s, r := newStore(t), newLab(t).dataset(first())
	s.load(r)
	before := s.objects()
	s.server.ForgetRequests()
	if action := s.plan(r); action.Effect != gate.EffectKeep || action.Bytes != 0 {
		t.Errorf("plan: %+v", action)
	}
	if receipt := s.put(r); receipt.Blobs != 0 || receipt.Bytes != 0 || receipt.Kept != len(before)-1 {
		t.Errorf("receipt: %+v", receipt)
	}
	s.publish(r)
	for _, request := range s.server.Requests() {
		if request.Method != http.MethodGet && request.Method != http.MethodHead {
			t.Errorf("%s %s", request.Method, request.Path)
		}
	}
	if diff := cmp.Diff(before, s.objects()); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestReplacing(t *testing.T) {
	s, l := newStore(t), newLab(t)
	one, two := l.dataset(first()), l.dataset(second())
	s.load(one)
	if action := s.plan(two); action.Effect != gate.EffectReplace || action.Bytes <= partSize || action.Name.Replaces == nil {
		t.Errorf("plan: %+v", action)
	}
	s.put(two)
	s.check("set/1.0")
	files := s.objects().files("set/1.0")
	for path, text := range first() {
		if files[path] != text {
			t.Errorf("before Publish, %s is another file", path)
		}
	}
	if receipt := s.put(two); receipt.Bytes != 0 {
		t.Errorf("the second Put moved: %+v", receipt)
	}
	s.publish(two)
	if err := s.verify(two); err != nil {
		t.Error(err)
	}
	s.check("set/1.0")
	wantOnly(t, s, two, second())
	wantCode(t, s.verify(one), "destination/mismatch")

	t.Run("and back", func(t *testing.T) {
		s.load(one)
		wantOnly(t, s, one, first())
	})
}

// wantOnly makes sure that the server has what belongs to one release, and
// nothing besides.
func wantOnly(t *testing.T, s *store, r *gate.Release, files contents) {
	t.Helper()
	have := s.objects()
	if diff := cmp.Diff(files, have.files("set/1.0")); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	other := s.empty(t)
	other.load(r)
	if diff := cmp.Diff(other.objects().keys(), have.keys()); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	s.wantNoUploads()
}

// Whatever request Publish ends at, beginning again leads to the same end.
func TestPublishEndsAnywhere(t *testing.T) {
	l := newLab(t)
	one, two := l.dataset(contents{"a": "1", "b": "1", "c": "1", "same": "x"}), l.dataset(contents{"a": "2", "b": "2", "d": "2", "same": "x"})
	failed := 0
	server := testkit.NewS3(t)
	for number := 0; ; number++ {
		s := storeAt(t, server, fmt.Sprint("plant/", number))
		s.load(one)
		s.put(two)
		let := testkit.FirstN(number, isWrite)
		s.server.SetFault(testkit.Refuse(func(r *http.Request) bool { return isWrite(r) && !let(r) }, http.StatusForbidden, ""))
		err := s.sink.Publish(t.Context(), two, two.Names())
		s.server.SetFault(nil)
		if err == nil {
			break
		}
		failed++
		wantCode(t, err, "destination/refused")
		if number%2 == 0 {
			s.load(two)
			wantOnly(t, s, two, contents{"a": "2", "b": "2", "d": "2", "same": "x"})
		} else { // it was given up, and the old content is loaded again
			s.load(one)
			wantOnly(t, s, one, contents{"a": "1", "b": "1", "c": "1", "same": "x"})
		}
	}
	if failed < 8 {
		t.Errorf("only %d places to end at", failed)
	}
}

func isWrite(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

func TestImageIsALayout(t *testing.T) {
	s := newStore(t)
	r := newLab(t).release(func(f *testkit.Forged) {
		f.AddImage(t, "team/tool", "1.2", testkit.ImageSpec{Seed: "tool", PayloadSize: 20_000}, "amd64", "arm64")
	})
	s.load(r)
	dir := s.path("team/tool/1.2")
	s.check("team/tool/1.2")
	command := exec.CommandContext(t.Context(), testkit.Tool(t, "skopeo"), "inspect", "--raw", "oci:"+dir+":1.2")
	raw, err := command.Output()
	if err != nil || cas.DigestOf(raw) != r.Artifacts()[0].Root.Digest {
		t.Errorf("skopeo: %v, %s", err, raw)
	}
	for _, referrer := range r.Artifacts()[0].Referrers {
		b, err := os.ReadFile(filepath.Join(dir, "blobs/sha256", referrer.Descriptor.Digest.Hex()))
		if err != nil || cas.DigestOf(b) != referrer.Descriptor.Digest {
			t.Errorf("the referrer %s: %v", referrer.Descriptor.Digest, err)
		}
	}
}

// A file that upstream called SHA256SUMS gives way to our list, and is there
// by its digest.
func TestUpstreamHasAList(t *testing.T) {
	s := newStore(t)
	s.load(newLab(t).dataset(contents{"SHA256SUMS": "upstream's own", "sub/SHA256SUMS": "another", "a": "1"}))
	s.check("set/1.0")
	have := s.objects()
	if have["set/1.0/"+blobKey([]byte("upstream's own"))] != "upstream's own" || have["set/1.0/sub/SHA256SUMS"] != "another" {
		t.Errorf("objects: %v", have.keys())
	}
}

func TestWhatVerifyFinds(t *testing.T) {
	s, r := newStore(t), newLab(t).dataset(contents{"small": "small", "large": string(testkit.Bytes("l", 17*mib))})
	for name, c := range map[string]struct {
		key   string
		spoil func(t *testing.T, s *store, path string)
	}{
		"a file is gone":           {"small", remove},
		"a large file is gone":     {"large", remove},
		"the list is gone":         {"SHA256SUMS", remove},
		"the document is gone":     {".packhof/artifact.json", remove},
		"a file has other bytes":   {"small", rewrite("smull")},
		"a file has another size":  {"small", rewrite("smaller")},
		"a large file was cut":     {"large", rewrite("l")},
		"the list has other bytes": {"SHA256SUMS", rewrite("x")},
		"another object instead": {"large", func(t *testing.T, s *store, _ string) {
			s.overwrite("set/1.0/large", testkit.Bytes("m", 17*mib))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s.load(r)
			c.spoil(t, s, s.path("set/1.0/"+c.key))
			err := s.verify(r)
			wantCode(t, err, "destination/mismatch")
			if !strings.Contains(err.Error(), "set/1.0/"+c.key) {
				t.Errorf("%v does not say that it is %s", err, c.key)
			}
			// What the remedy says: delete it, then release the case again.
			if err := s.client.Delete(t.Context(), "set/1.0/"+c.key); err != nil {
				t.Fatal(err)
			}
		})
	}
	s.load(r)
}

func remove(t *testing.T, _ *store, path string) {
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func rewrite(text string) func(*testing.T, *store, string) {
	return func(t *testing.T, _ *store, path string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatIsGoneIsLoadedAgain(t *testing.T) {
	s, r := newStore(t), newLab(t).dataset(first())
	s.load(r)
	remove(t, s, s.path("set/1.0/README.md"))
	s.overwrite("set/1.0/twin-a", []byte("other"))
	if receipt := s.put(r); receipt.Blobs != 2 || receipt.Bytes != 7 {
		t.Errorf("receipt: %+v", receipt)
	}
	if err := s.verify(r); err != nil {
		t.Error(err)
	}
}

// Wrong bytes in the gate's store never become an object.
func TestRottenContent(t *testing.T) {
	for name, size := range map[string]int{"in one request": 1000, "in parts": partSize + 1} {
		t.Run(name, func(t *testing.T) {
			s, l := newStore(t), newLab(t)
			content := testkit.Bytes("rotten", size)
			r := l.dataset(contents{"rotten": string(content), "sound": "s"})
			l.rot(cas.DigestOf(content))
			_, err := s.sink.Put(t.Context(), r, r.Artifacts()[0])
			wantCode(t, err, "content/corrupt")
			if _, there := s.objects()["set/1.0/rotten"]; there {
				t.Error("the object is there")
			}
			s.wantNoUploads()
		})
	}
}

// rot changes the last byte of a blob of the gate's store.
func (l *lab) rot(d bundle.Digest) {
	l.t.Helper()
	found := false
	err := filepath.WalkDir(filepath.Join(l.dir, "store"), func(path string, e os.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != d.Hex() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found = true
		b[len(b)-1] ^= 1
		return errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, b, 0o600))
	})
	if err != nil || !found {
		l.t.Fatalf("rot: %v", err)
	}
}

func TestCancelled(t *testing.T) {
	s, r := newStore(t), newLab(t).dataset(contents{"large": string(testkit.Bytes("c", 3*partSize))})
	ctx, cancel := context.WithCancel(t.Context())
	s.server.SetFault(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if q.URL.Query().Get("partNumber") == "2" {
				cancel()
			}
			next.ServeHTTP(w, q)
		})
	})
	_, err := s.sink.Put(ctx, r, r.Artifacts()[0])
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	s.wantNoUploads()
	if _, there := s.objects()["set/1.0/large"]; there {
		t.Error("the object is there")
	}
	if err := s.sink.Publish(ctx, r, r.Names()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

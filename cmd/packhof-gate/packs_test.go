package main

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/testkit"
)

// packedTree is a lab whose first bundle has 600 small files in packs, a large
// one, and one whose path no pack can have. It waits for approval, with two
// registries and a bucket as destinations, of which one registry takes no packs.
func packedTree(t *testing.T) (l *lab, taking, other *testkit.Registry, bucket *testkit.S3) {
	t.Helper()
	l = newLab(t)
	if err := smallFiles(l.Path("notes/welds"), 600); err != nil {
		t.Fatal(err)
	}
	l.Write("notes/large.bin", string(testkit.Bytes("large", 1<<20)))
	l.Write("notes/"+strings.Repeat("n", 120), "a layer of its own")
	l.exported()
	taking, other, bucket = testkit.NewRegistry(t, testkit.WithTLS()), testkit.NewRegistry(t, testkit.WithTLS()), testkit.NewS3(t)
	l.Write("data/taking.pem", string(taking.CAPEM()))
	l.Write("data/other.pem", string(other.CAPEM()))
	l.Write("data/s3.pem", string(bucket.CAPEM()))
	l.Write("data/s3.password", testkit.S3SecretKey+"\n")
	withConfig("destinations:",
		"  - {name: taking, type: registry, registry: "+taking.Host()+"/plant, accepts: [files], caFile: taking.pem, packs: true}",
		"  - {name: other, type: registry, registry: "+other.Host()+"/plant, accepts: [files], caFile: other.pem}",
		"  - {name: bucket, type: s3, endpoint: https://"+bucket.Host()+", bucket: "+testkit.S3Bucket+", accepts: [files], caFile: s3.pem, credentials: {user: "+testkit.S3AccessKey+", passwordFile: s3.password}}",
	)(l)
	l.must("receive", bundleFile)
	return l, taking, other, bucket
}

// TestPacksAtDestinations: who pulls the artifact with oras, from the registry
// or from the depot, and unpacks its packs, has the tree; so has who reads the
// bucket. Nothing comes to a registry before it is said to take packs.
func TestPacksAtDestinations(t *testing.T) {
	t.Parallel()
	l, taking, other, bucket := packedTree(t)
	want := sumsOf(t, l.Path("notes"))
	if len(want) != 604 {
		t.Fatalf("%d files", len(want))
	}
	l.approve("1")
	l.checkRelease(21, "the small files of this tree lie in packs, which this registry is not configured to take", gate.PartlyLoaded)
	for _, r := range other.Requests() {
		if r.Method == "PUT" || r.Method == "POST" {
			t.Errorf("%s %s", r.Method, r.Path)
		}
	}
	l.Write("data/gate.yaml", strings.Replace(l.Read("data/gate.yaml"), "other.pem}", "other.pem, packs: true}", 1))
	l.checkRelease(0, "", gate.Loaded)

	pulled := func(name, reference, authority string) {
		t.Helper()
		c := l.Command(testkit.Tool(t, "oras"), "pull", "--ca-file", authority, "-o", name, reference)
		l.MustFinish(c)
		packs, err := filepath.Glob(l.Path(name + "/packs/*.tar"))
		if err != nil || len(packs) == 0 {
			t.Fatalf("%s: %d packs, %v", name, len(packs), err)
		}
		for _, pack := range packs {
			l.MustFinish(l.Command(testkit.Tool(t, "tar"), "-xf", pack, "-C", name))
		}
		l.Remove(name + "/packs")
		if diff := cmp.Diff(want, sumsOf(t, l.Path(name))); diff != "" {
			t.Errorf("%s (-want +got):\n%.2000s", name, diff)
		}
	}
	pulled("registry", taking.Host()+"/plant/notes:1", "data/taking.pem")
	pulled("second", other.Host()+"/plant/notes:1", "data/other.pem")
	served := l.serve()
	pulled("depot", strings.TrimPrefix(served.address, "https://")+"/notes:1", "data/tls/cert.pem")

	got := sumsOf(t, filepath.Join(bucket.Files(), "notes/1"))
	for name := range got {
		if name == "SHA256SUMS" || strings.HasPrefix(name, ".packhof/") {
			delete(got, name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bucket (-want +got):\n%.2000s", diff)
	}
}

// sumsOf gives the SHA-256 of every file below a folder, by its path.
func sumsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		sum := sha256.Sum256(b)
		sums[strings.TrimPrefix(path, dir+"/")] = hex.EncodeToString(sum[:])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

package main

import (
	"encoding/json/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/mirror"
)

// tool prepares a program that we did not make.
func (l *lab) tool(name string, args ...string) *exec.Cmd {
	l.T.Helper()
	return l.Command(testkit.Tool(l.T, name), args...)
}

// withContent gives a lab whose bundle has an image for two platforms and a
// model; flags are those of the export.
func withContent(t *testing.T, flags ...string) *lab {
	t.Helper()
	l := newLab(t)
	r := testkit.NewRegistry(t)
	l.pushIndex(r, "team/app:1.0", small("app"))
	l.wants(r, "team/app:1.0", "name: team/app")
	model, err := testkit.Model("model")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(l.Path("model"), model); err != nil {
		t.Fatal(err)
	}
	l.replace("packhof.yaml", "artifacts:\n", "artifacts:\n  - {kind: model, name: weights, version: \"1\", dir: model}\n")
	l.mustRun("plan")
	l.mustRun(append([]string{"export", "--to", "medium"}, flags...)...)
	return l
}

// The lines that packhof prints are all that somebody with cosign alone needs
// to check a signature; and cosign refuses a manifest that was changed.
func TestCosignVerifiesBundle(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	cosign := filepath.Dir(testkit.Tool(t, "cosign"))
	l.Env = append(l.Env, "PATH="+cosign+string(filepath.ListSeparator)+os.Getenv("PATH"))
	l.exported()
	lines := l.mustRun("verify", "--show-cosign", bundleFile).Stdout
	l.Write("check.sh", "set -eu\n"+lines)
	if o := l.MustFinish(l.Command("sh", "check.sh")); !strings.Contains(o.Stderr, "Verified OK") {
		t.Errorf("cosign does not say that it is verified:\n%s", o.Stderr)
	}

	l.FlipInTar(bundleFile, "packhof.json", `"serial":1`, `"serial":7`)
	if o := l.Finish(l.Command("sh", "check.sh")); o.Exit == 0 {
		t.Errorf("cosign accepts a changed manifest:\n%s%s", o.Stdout, o.Stderr)
	}
}

// A key made by either program is read by the other.
func TestKeysOfCosign(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Env = append(l.Env, "COSIGN_PASSWORD="+passphrase)
	l.MustFinish(l.tool("cosign", "public-key", "--key", "keys/packhof.key", "--outfile", "cosign.pub"))
	l.sameBytes("keys/packhof.pub", "cosign.pub")

	l.MustFinish(l.tool("cosign", "generate-key-pair", "--output-key-prefix", "made-by-cosign"))
	l.Remove("trust")
	l.replace("packhof.yaml", "artifacts:", "key: made-by-cosign.key\nartifacts:")
	l.startTrust()
	l.exported()
	l.mustRun("verify", bundleFile)
}

// skopeo reads images straight out of a bundle.
func TestSkopeoReadsBundle(t *testing.T) {
	t.Parallel()
	l := withContent(t, "--no-scan")
	l.Write("policy.json", `{"default":[{"type":"insecureAcceptAnything"}]}`)
	image := l.artifact(bundle.Image)
	source := "oci-archive:" + bundleFile + ":" + l.reference(image)
	if os.Geteuid() != 0 {
		// skopeo makes the folders of an archive and wants to give them to root.
		l.Mkdir("unpacked")
		l.MustFinish(l.tool("tar", "-xf", bundleFile, "-C", "unpacked"))
		source = "oci:unpacked:" + l.reference(image)
	}
	raw := l.MustFinish(l.tool("skopeo", "inspect", "--raw", source)).Stdout
	if got := cas.DigestOf([]byte(raw)); got != image.Root.Digest {
		t.Errorf("skopeo inspects %s, want %s", got, image.Root.Digest)
	}
	for _, s := range image.SBOM {
		// Older versions of skopeo cannot copy a whole index without changing it.
		platform := l.platformOf(s.Subject)
		l.MustFinish(l.tool("skopeo", "--override-arch", platform, "copy", "--policy", "policy.json", "--preserve-digests", source, "oci:copied:"+platform))
		if !strings.Contains(l.Read("copied/index.json"), s.Subject.String()) {
			t.Errorf("for %s skopeo copied another image than %s:\n%s", platform, s.Subject, l.Read("copied/index.json"))
		}
	}
}

// platformOf gives the architecture of one of the images in the lock.
func (l *lab) platformOf(subject bundle.Digest) string {
	l.T.Helper()
	lock, err := mirror.ReadLock(l.Path("packhof.lock"))
	if err != nil {
		l.T.Fatal(err)
	}
	for _, a := range lock.Artifacts {
		for _, s := range a.Subjects {
			if s.Digest == subject {
				return strings.TrimPrefix(s.Platform, "linux/")
			}
		}
	}
	l.T.Fatalf("the lock has no subject %s", subject)
	return ""
}

// oras finds the SBOM of an image, and pulls the files of a model.
func TestOrasReadsBundle(t *testing.T) {
	if testing.Short() {
		t.Skip("runs packhof-scan")
	}
	t.Parallel()
	l := withContent(t)
	model := l.artifact(bundle.Model)
	l.MustFinish(l.tool("oras", "pull", "--oci-layout", bundleFile+":"+l.reference(model), "-o", "pulled"))
	names, err := os.ReadDir(l.Path("model"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		l.sameBytes("model/"+name.Name(), "pulled/"+name.Name())
	}
	l.checkDiscovered(model.SBOM[0], "@"+model.Root.Digest.String())
	image := l.artifact(bundle.Image)
	for _, entry := range image.SBOM {
		l.checkDiscovered(entry, ":"+l.reference(image), "--platform", "linux/"+l.platformOf(entry.Subject))
	}
}

// checkDiscovered asks oras what refers to the subject of an SBOM, which is
// there under that name.
func (l *lab) checkDiscovered(entry bundle.SBOM, name string, more ...string) {
	l.T.Helper()
	o := l.MustFinish(l.tool("oras", append([]string{"discover", "--format", "json", "--oci-layout", bundleFile + name}, more...)...))
	var found struct {
		Referrers []struct {
			Digest       bundle.Digest `json:"digest"`
			ArtifactType string        `json:"artifactType"`
		} `json:"referrers"`
	}
	if err := json.Unmarshal([]byte(o.Stdout), &found); err != nil {
		l.T.Fatalf("%v:\n%s", err, o.Stdout)
	}
	if len(found.Referrers) != 1 || found.Referrers[0].Digest != *entry.Referrer || found.Referrers[0].ArtifactType != "application/vnd.cyclonedx+json" {
		l.T.Errorf("oras finds %+v for %s, want the SBOM %s", found.Referrers, entry.Subject, entry.Referrer)
	}
}

// A bundle can be unpacked and checked with what every system has.
func TestTarAndSha256sumCheckBundle(t *testing.T) {
	t.Parallel()
	l := withContent(t, "--no-scan")
	l.Mkdir("unpacked")
	l.MustFinish(l.tool("tar", "-xf", bundleFile, "-C", "unpacked"))
	check := l.tool("sha256sum", "--strict", "-c", "SHA256SUMS")
	check.Dir = l.Path("unpacked")
	l.MustFinish(check)
	sums := strings.Count(l.Read("unpacked/SHA256SUMS"), "\n")
	listed := strings.Count(l.MustFinish(l.tool("tar", "-tf", bundleFile)).Stdout, "\n")
	if sums != listed-1 {
		t.Errorf("SHA256SUMS has %d lines, and the bundle %d entries besides it", sums, listed-1)
	}
}

// artifact gives the one artifact of a kind.
func (l *lab) artifact(kind bundle.Kind) bundle.Artifact {
	l.T.Helper()
	for _, a := range l.manifest(bundleFile).Artifacts {
		if a.Kind == kind {
			return a
		}
	}
	l.T.Fatalf("the bundle has no %s", kind)
	return bundle.Artifact{}
}

// reference is the name that inspect shows for use with other tools.
func (l *lab) reference(a bundle.Artifact) string {
	l.T.Helper()
	var shown struct {
		Artifacts []bundle.ClaimedArtifact `json:"artifacts"`
	}
	if err := json.Unmarshal([]byte(l.mustRun("-o", "json", "inspect", bundleFile).Stdout), &shown); err != nil {
		l.T.Fatal(err)
	}
	for _, claimed := range shown.Artifacts {
		if claimed.Digest == a.Root.Digest {
			return claimed.Reference
		}
	}
	l.T.Fatalf("inspect shows no artifact %s", a.Root.Digest)
	return ""
}

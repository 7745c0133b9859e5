package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/signing"
)

// failing is a testing.TB that keeps what was wrong to itself.
type failing struct {
	testing.TB
	said []string
}

func (f *failing) Errorf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

func TestLabRunsPrograms(t *testing.T) {
	t.Setenv("PACKHOF_OF_THE_DEVELOPER", "x")
	l := NewLab(t, "GREETING=hello", "GREETING=good day")
	l.Write("a/b.txt", "text")
	o := l.Finish(l.Command("sh", "-c", `cat a/b.txt; echo "$GREETING$PACKHOF_OF_THE_DEVELOPER" >&2; exit 7`))
	if diff := cmp.Diff(Outcome{Exit: 7, Stdout: "text", Stderr: "good day\n"}, o); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r := l.Start("sleep", "600")
	r.Signal(syscall.SIGKILL)
	if o := r.End(); o.Exit != -1 {
		t.Errorf("killed: exit %d", o.Exit)
	}
	c := l.Clone(t)
	c.Remove("a")
	if l.Read("a/b.txt") != "text" {
		t.Error("the clone is not a copy")
	}
}

func TestWhenWriting(t *testing.T) {
	l := NewLab(t)
	l.Mkdir("out")
	r, file := l.WhenWriting("out", func() *Running { return l.Start("sh", "-c", "echo x > out/first; exec sleep 600") })
	r.Signal(syscall.SIGKILL)
	r.End()
	if file != "first" {
		t.Errorf("%q was written first", file)
	}
}

func TestCheckFailure(t *testing.T) {
	for stderr, want := range map[string]int{
		"x: error: gone\ncode: file/missing   exit 1   (x help)\n":        0,
		"x: error: gone\ncode: file/missing   exit 2   (x help)\n":        1,
		"x: error: gone\ncode: file/missing-too   exit 1   (x help)\n":    1,
		"unmarshal into Go x.Y\ncode: file/missing   exit 1   (x help)\n": 1,
	} {
		f := &failing{TB: t}
		Outcome{Exit: 1, Stderr: stderr}.CheckFailure(f, 1, "file/missing")
		if len(f.said) != want {
			t.Errorf("%q: %q", stderr, f.said)
		}
	}
}

func TestSteady(t *testing.T) {
	l := NewLab(t)
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 12)
	text := l.Dir + " 127.0.0.1:4711 2026-11-30T12:00:00Z 2026-11-30 " + a + " " + b + " " + a + " pid 7"
	if got, want := l.Steady(text, [2]string{`pid \d`, "pid <n>"}), "$LAB $HOST <time> <date> <hex 1> <hex 2> <hex 1> pid <n>"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestGolden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "golden.txtar")
	g := ReadGolden(t, path, true)
	g.Check(t, "one", "1\n")
	g.Check(t, "two", "2\n")
	g.Finish(t, "Numbers.", []string{"two", "one"})
	b, err := os.ReadFile(path)
	if want := "Numbers.\n\n-- two --\n2\n-- one --\n1\n"; string(b) != want || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	for name, c := range map[string]struct {
		said  map[string]string
		names []string
		wrong int
	}{
		"the same":                {map[string]string{"one": "1\n", "two": "2\n"}, []string{"one", "two"}, 0},
		"one skipped":             {map[string]string{"one": "1\n"}, []string{"one", "two"}, 0},
		"another text":            {map[string]string{"one": "7\n", "two": "2\n"}, []string{"one", "two"}, 1},
		"a section without test":  {map[string]string{"one": "1\n"}, []string{"one"}, 1},
		"a test without section":  {map[string]string{"one": "1\n", "two": "2\n", "three": "3\n"}, []string{"one", "two", "three"}, 1},
		"nothing that belongs it": {map[string]string{"three": "3\n"}, []string{"three"}, 3},
	} {
		f := &failing{TB: t}
		g := ReadGolden(t, path, false)
		for test, said := range c.said {
			g.Check(f, test, said)
		}
		g.Finish(f, "", c.names)
		if len(f.said) != c.wrong {
			t.Errorf("%s: %q", name, f.said)
		}
	}
	twice := &failing{TB: t}
	g.Check(twice, "one", "1\n")
	if len(twice.said) != 1 {
		t.Errorf("a name twice: %q", twice.said)
	}
	g = ReadGolden(t, path, true)
	g.Check(t, "one", "I\n")
	g.Finish(t, "Numbers.", []string{"one", "two"})
	if b, err := os.ReadFile(path); !strings.HasSuffix(string(b), "-- one --\nI\n-- two --\n2\n") || err != nil {
		t.Errorf("updated with one skipped: %q, %v", b, err)
	}
}

func TestCheckDocument(t *testing.T) {
	text := []byte(`{"apiVersion":"packhof/v1","kind":"List","cases":[{"id":7},{"id":8}]}`)
	if err := CheckDocument(text, "List", []string{"cases.count=2", "cases.1.id=8", "cases.2.id=none", "other=none"}); err != nil {
		t.Error(err)
	}
	for _, member := range []string{"cases.count=3", "cases.0.id=8", "cases.id=7", "other=7"} {
		if CheckDocument(text, "List", []string{member}) == nil {
			t.Errorf("%s is taken", member)
		}
	}
	if CheckDocument(text, "Other", nil) == nil || CheckDocument([]byte("{"), "List", nil) == nil {
		t.Error("another kind, or half a document, is taken")
	}
}

// What is done to a tar is that, and nothing else.
func TestTampering(t *testing.T) {
	l, f := NewLab(t), Forge(t, nil)
	for name, tamper := range map[string]func(){
		"text": func() { l.FlipInTar("b.tar", "packhof.json", `"serial":1`, `"serial":2`) },
		"name": func() { l.RenameInTar("b.tar", "oci-layout", "oci-layouu") },
	} {
		l.Write("b.tar", string(f.Volume))
		tamper()
		changed := l.Read("b.tar")
		listed := l.Finish(l.Command(Tool(t, "tar"), "-tf", "b.tar"))
		if len(changed) != len(f.Volume) || changed == string(f.Volume) || listed.Exit != 0 {
			t.Errorf("%s: %d bytes, want other %d bytes; tar: %+v", name, len(changed), len(f.Volume), listed)
		}
		if got := strings.Contains(listed.Stdout, "oci-layouu\n"); got != (name == "name") {
			t.Errorf("%s: the entries are\n%s", name, listed.Stdout)
		}
	}
	l.Write("b.tar", string(f.Volume))
	l.Truncate("b.tar", -1)
	if got := len(l.Read("b.tar")); got != len(f.Volume)-1 {
		t.Errorf("cut off by one byte it has %d of %d", got, len(f.Volume))
	}
}

func TestCheckBlobs(t *testing.T) {
	l := NewLab(t)
	l.Write("blobs/"+cas.DigestOf([]byte("x")).Hex(), "x")
	CheckBlobs(t, l.Path("blobs"))
	l.Write("blobs/"+cas.DigestOf([]byte("y")).Hex(), "half of y")
	l.Write("blobs/temporary", "")
	f := &failing{TB: t}
	CheckBlobs(f, l.Path("blobs"))
	if len(f.said) != 2 {
		t.Errorf("of two that are wrong: %q", f.said)
	}
}

// A bundle under a lab's own trust documents is made of those.
func TestForgeUnder(t *testing.T) {
	l, f := NewLab(t), Forge(t, nil)
	for name, b := range map[string][]byte{"root-1": f.Root.Bytes, "root-2": []byte("another root"), "revocations-1": f.Revoked.Bytes} {
		l.Write("trust/"+name+".json", string(b))
	}
	private, _, err := signing.GenerateKey([]byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	l.Write("release.key", string(private))
	key, err := signing.ParsePrivateKey(private, []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	for keyFile, signer := range map[string]signing.PublicKey{"": f.Signer.Public(), "release.key": key.Public()} {
		got := l.ForgeUnder(keyFile, "secret", func(m *bundle.Manifest) { m.Serial = 7 })
		if got.Manifest.Serial != 7 || got.Manifest.TrustRoot.Version != 2 || string(got.Head.Roots[1].Bytes) != "another root" {
			t.Errorf("%q: %+v", keyFile, got.Manifest)
		}
		if got.Head.Signatures[0].Key != signer.ID().Short() {
			t.Errorf("%q: signed by %s, want %s", keyFile, got.Head.Signatures[0].Key, signer.ID().Short())
		}
	}
}

package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

// Several bundles on one stick are taken in by their serials, whatever their
// files are called; a damaged one does not keep the others from it.
func TestSeveralBundlesOnAMedium(t *testing.T) {
	t.Parallel()
	l := arrived(t)
	for _, text := range []string{"second\n", "third\n"} {
		l.Write("notes/README.md", text)
		l.exported()
	}
	for from, to := range map[string]string{bundleFile: "medium/z.tar", "medium/plant-1-000003.tar": "medium/a.tar"} {
		if err := os.Rename(l.Path(from), l.Path(to)); err != nil {
			t.Fatal(err)
		}
	}
	whole := l.clone(t)
	o := whole.must("receive", "medium", "-o", "json")
	var doc receivedDocument
	if err := json.Unmarshal([]byte(o.Stdout), &doc, json.RejectUnknownMembers(false)); err != nil || len(doc.Cases) != 3 {
		t.Fatalf("%d cases, %v\n%s", len(doc.Cases), err, o.Stdout)
	}
	for i, c := range doc.Cases {
		if c.Serial != int64(1+i) || c.ID != int64(1+i) || c.State != gate.Awaiting {
			t.Errorf("case %d: serial %d, %s", c.ID, c.Serial, c.State)
		}
	}
	if o := whole.must("receive", "medium"); strings.Count(o.Stdout, "all of this bundle was here already") != 3 {
		t.Errorf("again:\n%s", o.Stdout)
	}

	l.FlipInTar("medium/plant-1-000002.tar", "blobs/sha256/", "second", "sekond")
	for _, lang := range []string{"en", "de"} {
		o = l.run("--lang", lang, "receive", "medium")
		if o.Exit != 11 || !strings.Contains(o.Stderr, "plant-1, ") || !strings.Contains(o.Stderr, "volume/damaged") || !strings.Contains(o.Stderr, "plant-1-000002.tar") {
			t.Errorf("exit %d\n%s", o.Exit, o.Stderr)
		}
	}
	for i, want := range []gate.State{gate.Awaiting, gate.Damaged, gate.Awaiting} {
		if c := l.cases()[2-i]; c.Serial != int64(1+i) || c.State != want {
			t.Errorf("serial %d: %s, want %s", c.Serial, c.State, want)
		}
	}
}

// A volume that says nonsense of itself, or brings a signature that is none,
// costs only itself, wherever it stands among the others.
func TestOneForgedVolumeAmongGoodOnes(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Write("notes/numbers.txt", strings.Repeat("0123456789abcdef", 12_000))
	l.Mkdir("set")
	l.mustPackhof("plan")
	l.mustPackhof("export", "--no-scan", "--to", "set", "--volume-size", "64KiB")
	for name, forge := range map[string]func(l *lab, file string){
		"another format": func(l *lab, file string) { l.FlipInTar(file, "volume.json", "packhof.volume/v1", "packhof.volume/v9") },
		"no signature":   func(l *lab, file string) { l.FlipInTar(file, "signatures/", "messageSignature", "massageSignature") },
	} {
		for _, place := range []string{"set/0.tar", "set/z.tar"} {
			t.Run(name+" "+place, func(t *testing.T) {
				t.Parallel()
				l := l.clone(t)
				l.Write(place, l.Read("set/plant-1-000001.v0002.tar"))
				forge(l, place)
				o := l.run("receive", "set")
				if c := l.cases()[0]; o.Exit != 0 || c.State != gate.Awaiting {
					t.Errorf("exit %d, the case is %s\n%s", o.Exit, c.State, o.Stderr)
				}
			})
		}
	}
}

// TestTheWorst decides about the exit code.
func TestTheWorst(t *testing.T) {
	s := &severalError{site: receiverAt(t, nil, gate.Lacking{}).site, of: 3}
	for _, code := range []string{"receive/incomplete", "volume/damaged", "signing/not-genuine", "policy/denied"} {
		s.add("plant-1, serial 1", problem.New(code, "x").With("file:  y").Hint("do %s", code))
	}
	s.add("", errors.New("torn"))
	if cli.CodeOf(s) != "signing/not-genuine" || s.Remedy() != "do signing/not-genuine" {
		t.Errorf("%s, %s", cli.CodeOf(s), s.Remedy())
	}
	if got := strings.Join(s.Evidence(), "\n"); !strings.Contains(got, "plant-1, serial 1:  x  (volume/damaged)\n  file:  y") || !strings.Contains(got, "torn  (failed)") {
		t.Errorf("%s", got)
	}
}

// forgePiece changes a byte of the last piece of a blob in a volume, and its
// sum so that it fits: what anybody can do who has a genuine volume.
func forgePiece(t *testing.T, volume string) string {
	t.Helper()
	var piece []byte
	for r := tar.NewReader(strings.NewReader(volume)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(h.Name, ".s") && strings.HasPrefix(h.Name, "blobs/") {
			if piece, err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	if piece == nil {
		t.Fatal("the volume has no piece")
	}
	forged := bytes.Clone(piece)
	forged[1] ^= 1
	sum := func(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }
	return strings.NewReplacer(string(piece), string(forged), sum(piece), sum(forged)).Replace(volume)
}

// Volumes that are each sound and make a wrong blob are taken in once more: it
// ends when the same are wrong again, and well when the forged one was replaced.
func TestPiecesThatDoNotFit(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Write("notes/large.bin", string(testkit.Bytes("large", 100<<10)))
	l.mustPackhof("plan")
	l.mustPackhof("export", "--no-scan", "--to", "medium", "--volume-size", "64KiB")
	const first = "medium/plant-1-000001.v0001.tar"
	genuine := l.Read(first)
	l.Write(first, forgePiece(t, genuine))

	ends := l.clone(t)
	o := ends.run("receive", "--wait", "medium")
	if o.Exit != 11 || !strings.Contains(o.Stderr, "code: volume/pieces-wrong") || strings.Count(o.Stderr, "all volumes are taken in once more") != 1 || strings.Contains(o.Stderr, ".v000") {
		t.Errorf("exit %d\n%s", o.Exit, o.Stderr)
	}
	ends.Write(first, genuine)
	ends.must("receive", "medium")

	const second, third = "medium/plant-1-000001.v0002.tar", "medium/plant-1-000001.v0003.tar"
	l.Write("a/1.tar", l.Read(first))
	l.Write("a/2.tar", l.Read(second))
	l.Write("b/3.tar", l.Read(third))
	l.Write("c/1.tar", genuine)
	l.Write("c/2.tar", l.Read(second))
	l.swap("a")
	c := l.Command("packhof-gate", "receive", "--wait", "stick")
	said, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	until := func(text string) {
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Errorf("it did not say %q", text)
	}
	until("waiting for volume 3 of 3")
	l.swap("b")
	until("once more")
	until("waiting for volume 1, 2 of 3")
	l.swap("c")
	for lines.Scan() {
	}
	if err := errors.Join(lines.Err(), c.Wait()); err != nil {
		t.Error(err)
	}
	if got := l.state("1"); got != gate.Awaiting {
		t.Errorf("%s", got)
	}
}

// TestAnotherReceiveEndsTheWait: whoever waits for volumes is done when somebody
// else brought them, and told when there is no serve any more.
func TestAnotherReceiveEndsTheWait(t *testing.T) {
	t.Parallel()
	base := newLab(t)
	base.Write("notes/large.bin", string(testkit.Bytes("large", 100<<10)))
	base.mustPackhof("plan")
	base.mustPackhof("export", "--no-scan", "--to", "medium", "--volume-size", "64KiB")
	base.Write("stick/1.tar", base.Read("medium/plant-1-000001.v0001.tar"))
	for name, c := range map[string]struct {
		then func(l *lab, s *serving)
		exit int
		says string
	}{
		"brought by another": {func(l *lab, _ *serving) { l.must("receive", "medium") }, 0, ""},
		"serve ended":        {func(_ *lab, s *serving) { s.Signal(syscall.SIGTERM); s.End() }, 1, "code: serve/ended"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := base.clone(t)
			s := l.serve()
			command := l.Command("packhof-gate", "receive", "--wait", "stick")
			said, err := command.StderrPipe()
			if err == nil {
				err = command.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			var stderr strings.Builder
			lines, begun := bufio.NewScanner(said), false
			for lines.Scan() {
				stderr.WriteString(lines.Text() + "\n")
				if !begun && strings.Contains(lines.Text(), "waiting for volume") {
					begun = true
					c.then(l, s)
				}
			}
			_ = command.Wait() // its exit code tells
			if got := command.ProcessState.ExitCode(); !begun || got != c.exit || !strings.Contains(stderr.String(), c.says) {
				t.Errorf("exit %d\n%s", got, stderr.String())
			}
		})
	}
}

// swap puts a folder into the place of the one that is called stick.
func (l *lab) swap(folder string) {
	l.T.Helper()
	if err := os.RemoveAll(l.Path("gone")); err != nil {
		l.T.Fatal(err)
	}
	if err := os.Rename(l.Path("stick"), l.Path("gone")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.T.Fatal(err)
	}
	if err := os.Rename(l.Path(folder), l.Path("stick")); err != nil {
		l.T.Fatal(err)
	}
}

// A row that cannot be right hides no other case; it is shown with what is
// wrong, and somebody can reject it.
func TestARowThatCannotBeRight(t *testing.T) {
	t.Parallel()
	l := waiting(t)
	db, err := sql.Open("sqlite", "file:"+l.Path("data/gate.db"))
	if err == nil {
		_, err = db.ExecContext(t.Context(), `UPDATE cases SET manifest = 'zz'`)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	l.Write("notes/README.md", "second\n")
	l.exported()
	l.must("receive", "medium/plant-1-000002.tar")
	o := l.must("list")
	for _, want := range []string{"2     awaiting approval", "1     unreadable", "case 1 cannot be read:  packhof-gate show 1  says why"} {
		if !strings.Contains(o.Stdout, want) {
			t.Errorf("the list does not say %q:\n%s", want, o.Stdout)
		}
	}
	o = l.must("show", "1")
	for _, want := range []string{"case 1: unreadable\n", "(gate/row-damaged)", "hint: packhof-gate doctor", "received"} {
		if !strings.Contains(o.Stdout, want) {
			t.Errorf("the case does not say %q:\n%s", want, o.Stdout)
		}
	}
	if o := l.run("approve", "1", "--as", "anna", "--yes", "--review", "x", "--reason", "y"); o.Exit != 1 || !strings.Contains(o.Stderr, "code: gate/row-damaged") {
		t.Errorf("approve: exit %d\n%s", o.Exit, o.Stderr)
	}
	l.must("reject", "1", "--as", "anna", "--yes", "--review", "", "--reason", "broken")
	if o := l.must("list"); strings.Contains(o.Stdout, "unreadable") || !strings.Contains(o.Stdout, "1     rejected") {
		t.Errorf("after the rejection:\n%s", o.Stdout)
	}
}

// TestForgedVolumeBesideTheGoodOne: pieces with fitting sums are not known as
// forged alone. Where the good volume lies beside the forged one, whatever their
// order, the bundle is taken in and the stranger named; two such pairs as well.
func TestForgedVolumeBesideTheGoodOne(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Write("notes/large.bin", string(testkit.Bytes("large", 100<<10)))
	l.mustPackhof("plan")
	l.mustPackhof("export", "--no-scan", "--to", "medium", "--volume-size", "64KiB")
	const first, second = "medium/plant-1-000001.v0001.tar", "medium/plant-1-000001.v0002.tar"
	for name, forged := range map[string]map[string]string{
		"before it": {"medium/0.tar": first},
		"behind it": {"medium/z.tar": first},
		"two":       {"medium/0.tar": first, "medium/z.tar": second},
		"two ahead": {"medium/0.tar": first, "medium/1.tar": second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := l.clone(t)
			for place, of := range forged {
				l.Write(place, forgePiece(t, l.Read(of)))
			}
			o := l.must("receive", "medium")
			if got := l.state("1"); got != gate.Awaiting {
				t.Errorf("%s\n%s", got, o.Stderr)
			}
			if named := strings.Contains(o.Stderr, "warning: 0.tar was left out: "); named != (forged["medium/0.tar"] != "") {
				t.Errorf("the stranger is named: %v\n%s", named, o.Stderr)
			}
		})
	}
}

// TestStrangersOnAMedium: what cannot be read does not make a bundle any worse
// that is whole without it, for verify and for receive; where volumes are
// missing, both are said. Of thousands a few are named.
func TestStrangersOnAMedium(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Write("notes/large.bin", string(testkit.Bytes("large", 100<<10)))
	l.mustPackhof("plan")
	l.mustPackhof("export", "--no-scan", "--to", "medium", "--volume-size", "64KiB")
	const second, third = "medium/plant-1-000001.v0002.tar", "medium/plant-1-000001.v0003.tar"
	l.Write("medium/torn.tar", l.Read(second)[:512+100])

	half := l.clone(t)
	half.Remove(third)
	for _, command := range []string{"verify", "receive"} {
		o := half.run(command, "medium")
		if o.Exit != 11 || !strings.Contains(o.Stderr, "torn.tar is not a bundle") || !strings.Contains(o.Stderr, "missing volumes:  3\n  volumes in all:   3\n") {
			t.Errorf("%s of a half: exit %d\n%s", command, o.Exit, o.Stderr)
		}
	}
	half.FlipInTar(second, "index.json", "notes_1", "notes_2")
	half.Remove("medium/torn.tar")
	if o := half.run("verify", "medium"); o.Exit != 11 || !strings.Contains(o.Stderr, "v0002.tar is damaged") || !strings.Contains(o.Stderr, "missing volumes:  2, 3\n") {
		t.Errorf("verify of a half that is damaged: exit %d\n%s", o.Exit, o.Stderr)
	}

	for i := range 300 {
		l.Write(fmt.Sprintf("medium/%04d.age", i), "age-encryption.org/v1\ngarbage")
	}
	for _, command := range []string{"verify", "receive"} {
		o := l.must(command, "medium")
		if strings.Count(o.Stderr, ".age is damaged") != problem.MostNamed || !strings.Contains(o.Stderr, "warning: 291 more files like that") {
			t.Errorf("%s of all\n%s", command, o.Stderr)
		}
	}
}

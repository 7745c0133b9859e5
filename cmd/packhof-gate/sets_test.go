package main

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli/clitest"
	"github.com/packhof/packhof/internal/testkit"
)

// mishap is a row of the table of docs/export.md about sets on their way: what
// happens, what the gate makes of it and what helps. It is played with both
// programs.
type mishap struct {
	row  string // its first cell
	play func(w *way)
}

// mishaps are all rows, in the order of the page.
func mishaps() []mishap {
	return []mishap{
		{"a set is lost, and a later serial arrives", lostSet},
		{"a volume of a set is lost", lostVolume},
		{"a serial is skipped because it was given up", skippedSerial},
		{"a set arrives twice", doubledSet},
		{"volumes or serials arrive in another order", otherOrder},
		{"a serial that was given up arrives after all", givenUpAndThere},
		{"the receipt is of another gate", receiptOfAnother},
		{"the receipt is older than the last bundle", olderReceipt},
	}
}

// TestSetsOnTheirWay plays every row of that table. A row names just the error
// codes and exit codes that were met when it was played, and what helps was done.
func TestSetsOnTheirWay(t *testing.T) {
	t.Parallel()
	rows := tableOf(t, "docs/export.md", "### What becomes of sets on their way")
	var played []string
	template := onTheWay(t)
	for _, m := range mishaps() {
		played = append(played, m.row)
		t.Run(m.row, func(t *testing.T) {
			t.Parallel()
			w := &way{lab: template.clone(t), test: t, met: map[string]bool{}}
			m.play(w)
			w.checkRow(rows[m.row])
			w.checkStore()
		})
	}
	if said := slices.Sorted(maps.Keys(rows)); !slices.Equal(said, slices.Sorted(slices.Values(played))) {
		t.Errorf("docs/export.md has the rows\n%s\nand these are played:\n%s", strings.Join(said, "\n"), strings.Join(played, "\n"))
	}
}

// tableOf gives the rows of the table behind a heading, by their first cells.
func tableOf(t *testing.T, page, heading string) map[string]string {
	t.Helper()
	_, text, found := strings.Cut(clitest.ReadPage(t, tree, page).Text, "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %q", page, heading)
	}
	text, _, _ = strings.Cut(text, "\n#")
	rows := map[string]string{}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 2 || len(rows) == 0 && strings.Contains(cells[0], "what happens") || strings.HasPrefix(cells[0], "--") {
			continue
		}
		rows[strings.TrimSpace(cells[0])] = strings.Join(cells[1:], "|")
	}
	return rows
}

// way is a lab of which three serials were exported, each into a folder of its
// own: "one" as volumes, "two" and "three" as a file. Nothing has arrived.
type way struct {
	*lab
	test *testing.T
	met  map[string]bool // error codes, and "exit N"
}

const wayYAML = `apiVersion: packhof/v1
kind: Export
channel: plant-1
audience: [GATE]
artifacts:
  - name: notes
    version: "1"
    dir: notes
  - name: numbers
    version: "1"
    file: numbers.bin
`

func onTheWay(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	l.Write("packhof.yaml", strings.ReplaceAll(wayYAML, "GATE", l.gateID()))
	l.Write("numbers.bin", string(testkit.Bytes("numbers", 130<<10)))
	l.exportedTo("one", "--volume-size", "64KiB")
	for _, name := range []string{"two", "three"} {
		l.Write("notes/README.md", name+"\n")
		l.exportedTo(name)
	}
	if n := len(l.volumesIn("one")); n < 3 {
		t.Fatalf("%d volumes", n)
	}
	return l
}

// exportedTo plans and exports the next serial.
func (l *lab) exportedTo(folder string, more ...string) {
	l.T.Helper()
	l.Mkdir(folder)
	l.mustPackhof("plan")
	l.mustPackhof(append([]string{"export", "--no-scan", "--to", folder}, more...)...)
}

// volumesIn gives the paths of the volumes in a folder of the lab, as the
// programs are told them.
func (l *lab) volumesIn(folder string) (names []string) {
	l.T.Helper()
	found, err := filepath.Glob(l.Path(folder + "/*.tar"))
	if err != nil {
		l.T.Fatal(err)
	}
	for _, path := range found {
		names = append(names, folder+"/"+filepath.Base(path))
	}
	return names
}

// fails runs packhof-gate, or packhof, which must fail like this.
func (w *way) fails(exit int, code, program string, args ...string) outcome {
	w.T.Helper()
	o := w.Finish(w.Command(program, args...))
	o.CheckFailure(w.T, exit, code)
	w.met[code] = true
	w.met[fmt.Sprintf("exit %d", exit)] = true
	return o
}

// checkRow holds what was met against what the row of the page names.
func (w *way) checkRow(row string) {
	w.T.Helper()
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z]+/[a-z-]+)`").FindAllStringSubmatch(row, -1) {
		named[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`exit code ([0-9]+)`).FindAllStringSubmatch(row, -1) {
		if !w.met["exit "+m[1]] {
			w.T.Errorf("the page says exit code %s, and it was not met", m[1])
		}
	}
	for code := range named {
		if !w.met[code] {
			w.T.Errorf("the page says %s, and it was not met", code)
		}
	}
	for code := range w.met {
		if strings.Contains(code, "/") && !named[code] {
			w.T.Errorf("%s was met, and the page does not say so", code)
		}
	}
}

func (w *way) shown(id int64) showDocument {
	w.T.Helper()
	var shown showDocument
	if err := json.Unmarshal([]byte(w.must("show", strconv.FormatInt(id, 10), "-o", "json").Stdout), &shown, json.RejectUnknownMembers(false)); err != nil {
		w.T.Fatal(err)
	}
	return shown
}

// arrives receives what has to make a case whole that people can decide about.
func (w *way) arrives(id int64, names ...string) {
	w.T.Helper()
	w.must(append([]string{"receive"}, names...)...)
	if got := w.shown(id).Case.State; got != gate.Awaiting {
		w.T.Errorf("case %d is %s", id, got)
	}
}

// releases has people decide on a case, and loads it.
func (w *way) releases(id int64) {
	w.T.Helper()
	number := strconv.FormatInt(id, 10)
	w.approve(number)
	w.must("release", number)
}

func lostSet(w *way) {
	w.arrives(1, "two")
	if got := w.shown(1).Review.Missing; !slices.Equal(got, []int64{1}) {
		w.T.Errorf("serials %v are missing", got)
	}
	w.releases(1)
	w.Mkdir("late")
	w.mustPackhof("resend", "--serial", "1", "--to", "late")
	w.arrives(2, "late")
	w.releases(2)
	if got := w.pulled("/files/notes/1/README.md"); got != "two\n" {
		w.T.Errorf("notes:1 is now that of the earlier serial: %q", got)
	}
}

// pulled is what a client of the plant gets.
func (w *way) pulled(path string) string {
	w.T.Helper()
	response, err := w.client().Get(w.serve().address + path)
	if err != nil {
		w.T.Fatal(err)
	}
	b, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil || response.StatusCode != http.StatusOK {
		w.T.Fatalf("%s, %v", response.Status, err)
	}
	return string(b)
}

func lostVolume(w *way) {
	volumes := w.volumesIn("one")
	w.Remove(volumes[1])
	o := w.fails(3, "receive/incomplete", "packhof-gate", "receive", "one")
	if !strings.Contains(o.Stderr, fmt.Sprintf("volume 2 of %d is missing", len(volumes))) {
		w.T.Errorf("it does not name the volume:\n%s", o.Stderr)
	}
	wanting := &way{lab: w.clone(w.test), met: map[string]bool{}}
	w.Mkdir("again")
	w.mustPackhof("resend", "--serial", "1", "--volume", "2", "--to", "again")
	w.arrives(1, "again")
	wanting.must("want", "1", "want.json")
	wanting.Mkdir("again")
	wanting.mustPackhof("resend", "--want", "want.json", "--to", "again")
	wanting.arrives(1, "again")
}

func skippedSerial(w *way) {
	w.arrives(1, "one")
	w.arrives(2, "two")
	w.arrives(3, "three")
	w.mustPackhof("plan")
	w.mustPackhof("serial", "abandon", "4", "--reason", "the number is taken")
	w.Write("notes/README.md", "five\n")
	w.exportedTo("five")
	w.arrives(4, "five")
	review := w.shown(4).Review
	if review.Serial != 5 || len(review.Missing) > 0 || !slices.Equal(review.Abandoned, []int64{4}) {
		w.T.Errorf("serial %d: missing %v, abandoned %v", review.Serial, review.Missing, review.Abandoned)
	}
	w.releases(4)
}

// doubledSet spoils the content of what arrives again, which nobody notices who
// reads only the head of it.
func doubledSet(w *way) {
	w.arrives(1, "one")
	before := w.Read("data/gate.anchor")
	for _, name := range w.volumesIn("one") {
		w.spoilContent(name)
	}
	o := w.must("receive", "one")
	if !strings.Contains(o.Stdout, "all of this bundle was here already") || len(w.cases()) != 1 {
		w.T.Errorf("%d cases\n%s", len(w.cases()), o.Stdout)
	}
	if got := w.Read("data/gate.anchor"); got != before {
		w.T.Errorf("the log went on:\n%s\n%s", before, got)
	}
}

// spoilContent writes over the content of a volume, whose last entry is SHA256SUMS.
func (w *way) spoilContent(name string) {
	w.T.Helper()
	volume := []byte(w.Read(name))
	end := strings.LastIndex(string(volume), "SHA256SUMS\x00")
	copy(volume[end-2048:], make([]byte, 512))
	if string(volume) == w.Read(name) {
		w.T.Fatal("nothing was spoilt")
	}
	if err := os.WriteFile(w.Path(name), volume, 0o644); err != nil {
		w.T.Fatal(err)
	}
}

func otherOrder(w *way) {
	later := &way{lab: w.clone(w.test), met: map[string]bool{}}
	volumes := w.volumesIn("one")
	slices.Reverse(volumes)
	w.arrives(1, volumes...)

	later.arrives(1, "three")
	if got := later.shown(1).Review.Missing; !slices.Equal(got, []int64{1, 2}) {
		later.T.Errorf("serials %v are missing", got)
	}
	later.arrives(2, "one")
	later.arrives(3, "two")
	if got := later.shown(1).Review.Missing; len(got) > 0 {
		later.T.Errorf("serials %v are missing when all have arrived", got)
	}
}

// givenUpAndThere gives a serial up that was sealed, and whose medium is on its
// way all the same.
func givenUpAndThere(w *way) {
	w.mustPackhof("serial", "abandon", "3", "--undelivered", "--reason", "the medium was lost")
	w.Write("notes/README.md", "four\n")
	w.exportedTo("four")
	w.arrives(1, "one")
	w.arrives(2, "two")
	w.arrives(3, "four")
	if got := w.shown(3).Review.Abandoned; !slices.Equal(got, []int64{3}) {
		w.T.Errorf("serials %v were given up", got)
	}
	w.fails(12, "freshness/older", "packhof-gate", "receive", "three")
}

func receiptOfAnother(w *way) {
	w.must("--data", "other", "init", "--owner", "Plant 2")
	w.mustPackhof("trust", "add-gate", "other/enrol.json", "--fingerprint", w.fingerprint("other/enrol.json"))
	w.must("--data", "other", "receipt", "other.json")
	w.exportedTo("four")
	w.Mkdir("since")
	w.fails(2, "receipt/other-gate", "packhof", "export", "--no-scan", "--since", "other.json", "--to", "since")

	var ours, theirs struct {
		Gate string `json:"gate"`
	}
	for name, into := range map[string]*struct {
		Gate string `json:"gate"`
	}{"data/enrol.json": &ours, "other/enrol.json": &theirs} {
		if err := json.Unmarshal([]byte(w.Read(name)), into, json.RejectUnknownMembers(false)); err != nil {
			w.T.Fatal(err)
		}
	}
	w.Write("forged.json", strings.ReplaceAll(w.Read("other.json"), theirs.Gate, ours.Gate))
	w.fails(10, "signing/not-genuine", "packhof", "export", "--no-scan", "--since", "forged.json", "--to", "since")
	w.must("receipt", "right.json")
	w.mustPackhof("export", "--no-scan", "--since", "right.json", "--to", "since")
}

func olderReceipt(w *way) {
	w.arrives(1, "one")
	w.must("receipt", "old.json")
	w.arrives(2, "two")
	w.must("receipt", "new.json")
	w.Mkdir("since")
	w.mustPackhof("export", "--no-scan", "--since", "old.json", "--to", "since")
	w.arrives(3, "since")
	w.mustPackhof("receipt", "add", "new.json")
	w.fails(1, "receipt/older", "packhof", "receipt", "add", "old.json")
}

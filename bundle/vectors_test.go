package bundle_test

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/signing"
)

// TestVectors forges every volume that testdata/vectors describes and asks the
// reader for its verdict.
func TestVectors(t *testing.T) {
	files, err := filepath.Glob("../testdata/vectors/*.txt")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d vectors, %v", len(files), err)
	}
	f := newForger(t)
	seen := map[string]bool{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			v := readVector(t, file)
			seen[v.head["threat"]] = true
			v.judge(t, v.check(t, f))
		})
	}
	for _, threat := range []string{
		"T-01", "T-02", "T-03", "T-04", "T-05", "T-06", "T-07", "T-08", "T-09", "T-10",
		"T-20", "T-21", "T-22", "T-23", "T-24", "T-25", "T-26", "T-30", "T-32",
	} {
		if !seen[threat] {
			t.Errorf("no vector is about %s", threat)
		}
	}
}

// vector is one file of testdata/vectors, as its README says.
type vector struct {
	head  map[string]string
	steps []string
}

func readVector(t *testing.T, file string) vector {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, steps, _ := strings.Cut(string(b), "\n\n")
	v := vector{head: map[string]string{}}
	for line := range strings.Lines(head) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if !ok || !slices.Contains([]string{"threat", "expect", "code", "says", "with", "identity"}, key) {
			t.Fatalf("the line %q of its header", line)
		}
		v.head[key] = value
	}
	for line := range strings.Lines(steps) {
		v.steps = append(v.steps, strings.TrimSuffix(line, "\n"))
	}
	return v
}

// check asks the reader about the forged volume, with the genuine one beside it
// where the vector names one.
func (v vector) check(t *testing.T, f *forger) error {
	t.Helper()
	if v.isEncrypted() {
		return v.checkFile(t, f)
	}
	volume := f.forge(t, v.steps)
	name, together := v.head["with"]
	if !together {
		return check(f.good, volume)
	}
	forged := &medium{name: "forged.tar", data: volume, size: int64(len(volume))}
	genuine := f.start(t, name)
	return f.two.check(t, &medium{name: "genuine.tar", data: genuine, size: int64(len(genuine))}, forged)
}

// judge compares the verdict of the reader with the expected one.
func (v vector) judge(t *testing.T, err error) {
	t.Helper()
	if v.head["expect"] == "ok" || v.head["expect"] == "replay" { // that it is old only a gate knows
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	if err == nil {
		t.Fatal("accepted")
	}
	if code := v.head["code"]; code == "" || problem.CodeOf(err) != code {
		t.Errorf("code %s, want %q: %v", problem.CodeOf(err), code, err)
	}
	if says := v.head["says"]; says != "" && !strings.Contains(err.Error(), says) {
		t.Errorf("it says %q, want %q in it", err, says)
	}
	if got := verdictOf(err); !slices.Contains(got, v.head["expect"]) {
		t.Errorf("the verdict is one of %v, want %s: %v", got, v.head["expect"], err)
	}
}

// verdictOf is in which ways of the vectors' words an error can be read.
func verdictOf(err error) []string {
	var signed *signing.Error
	var untrusted *signing.UntrustedError
	switch code := problem.CodeOf(err); {
	case code == "volume/encrypted", code == "volume/other-recipient":
		return []string{"locked"}
	case errors.As(err, &signed), errors.As(err, &untrusted), strings.HasPrefix(code, "bundle/"):
		return []string{"untrusted"}
	case strings.Contains(err.Error(), "more than the"):
		return []string{"oversize"}
	case strings.Contains(err.Error(), "outside the profile") && strings.Contains(err.Error(), "name"):
		return []string{"traversal"}
	case strings.Contains(err.Error(), "there twice"):
		return []string{"duplicate"}
	case strings.Contains(err.Error(), "two zero blocks"):
		return []string{"trailing", "corrupt"}
	case strings.HasPrefix(code, "format/"):
		return []string{"corrupt", "untrusted"}
	case strings.HasPrefix(code, "volume/"), strings.HasPrefix(code, "content/"), strings.HasPrefix(code, "digest/"), strings.HasPrefix(code, "oci/"), strings.HasPrefix(code, "artifact/"):
		return []string{"corrupt", "trailing"}
	}
	return nil
}

// forger makes hostile volumes of a good one.
type forger struct {
	good  *testkit.Forged
	two   *twoVolumes
	keys  keys
	other map[string]*testkit.Forged // bundles to take entries from
}

// start gives the volume that a vector begins with: "two-1" or "two-2" of a set
// of two, or "serial:N", the bundle of another serial.
func (f *forger) start(t *testing.T, name string) []byte {
	t.Helper()
	if number, ok := strings.CutPrefix(name, "serial:"); ok {
		serial, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return testkit.Forge(t, func(m *bundle.Manifest) {
			m.Serial = serial
			if serial > 1 {
				previous := cas.DigestOf(fmt.Appendf(nil, "serial %d", serial-1))
				m.Previous = &previous
			}
		}).Volume
	}
	i := slices.Index([]string{"two-1", "two-2"}, name)
	if i < 0 {
		t.Fatalf("no bundle is called %s", name)
	}
	return f.two.bytes[f.two.names[i]]
}

func newForger(t *testing.T) *forger {
	t.Helper()
	f := &forger{good: testkit.Forge(t, nil), two: newTwoVolumes(t), keys: newKeys(t), other: map[string]*testkit.Forged{}}
	f.other["other"] = testkit.Forge(t, func(m *bundle.Manifest) { m.Note = "another" })
	stranger, err := testkit.NewSigner("stranger")
	if err != nil {
		t.Fatal(err)
	}
	foreign := testkit.Forge(t, nil)
	foreign.Head.Signatures = []bundle.Signature{signature(t, stranger, foreign.Head.Manifest)}
	root, err := signing.NewRoot(t.Context(), signing.RootParams{
		Signer: stranger, Owner: "stranger@example", Channels: []signing.Channel{{Name: "plant-7", Epoch: 1}},
		Now: testkit.Noon(), Expires: testkit.Noon().AddDate(3, 0, 0), KeyNotAfter: testkit.Noon().AddDate(3, 0, 0),
	})
	if err != nil {
		t.Fatal(err)
	}
	foreign.Head.Roots = []bundle.TrustDocument{{Version: 1, Bytes: root}}
	if err := foreign.Lay(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.other["foreign"] = foreign
	return f
}

func (f *forger) forge(t *testing.T, steps []string) []byte {
	t.Helper()
	w := &work{t: t, forger: f, entries: entriesOf(t, f.good.Volume)}
	for _, step := range steps {
		if err := w.do(step); err != nil {
			t.Fatalf("step %q: %v", step, err)
		}
	}
	return w.volume()
}

// work is a volume on its way: entries, until a step needs bytes.
type work struct {
	t       *testing.T
	forger  *forger
	entries []rawEntry
	noSums  bool
	sums    func(string) string
	bytes   []byte
}

func (w *work) volume() []byte {
	if w.bytes == nil {
		w.bytes = w.laid()
	}
	return w.bytes
}

// laid lays the entries, with sums that fit or that a step has changed.
func (w *work) laid() []byte {
	volume := assemble(w.entries)
	if w.sums == nil && !w.noSums {
		return volume
	}
	entries := entriesOf(w.t, volume)
	last := len(entries) - 1
	at := bytes.LastIndex(volume, append([]byte("SHA256SUMS"), 0))
	var out bytes.Buffer
	out.Write(volume[:at])
	if !w.noSums {
		sums := assemble([]rawEntry{{"x", []byte(w.sums(string(entries[last].data)))}})
		renamed := bytes.Clone(sums[:len(sums)-1024])
		end := bytes.LastIndex(renamed, append([]byte("SHA256SUMS"), 0))
		renamed = renamed[:end]
		copy(renamed, "SHA256SUMS")
		out.Write(fixed(renamed))
	}
	out.Write(make([]byte, 1024))
	return out.Bytes()
}

// find gives the place of an entry by its name or its role.
func (w *work) find(name string) (int, error) {
	prefix := map[string]string{"signature": "signatures/", "root": "trust/root-", "revocations": "trust/revocations-"}[name]
	if n, isBlob := strings.CutPrefix(name, "blob:"); isBlob {
		number, err := strconv.Atoi(n)
		first := slices.IndexFunc(w.entries, func(e rawEntry) bool { return strings.HasPrefix(e.name, "blobs/") })
		return first + number, err
	}
	i := slices.IndexFunc(w.entries, func(e rawEntry) bool { return e.name == name || prefix != "" && strings.HasPrefix(e.name, prefix) })
	if i < 0 {
		return 0, fmt.Errorf("there is no entry %s", name)
	}
	return i, nil
}

func (w *work) do(step string) error {
	verb, rest, _ := strings.Cut(step, " ")
	target, argument, _ := strings.Cut(rest, " ")
	switch verb {
	case "start":
		w.entries = entriesOf(w.t, w.forger.start(w.t, target))
		return nil
	case "accepted": // by the gate that it comes to
		return nil
	case "reroot":
		return w.reroot(target, argument)
	case "replan":
		return w.replan(target, argument)
	case "compress":
		return w.compress()
	case "resign":
		return w.resign()
	case "no-sums":
		w.noSums = true
		return nil
	case "sums":
		w.sums = func(s string) string { return strings.Replace(s, target, argument, 1) }
		return nil
	case "sums-append":
		w.sums = func(s string) string { return s + rest + "\n" }
		return nil
	case "append":
		w.entries = slices.Insert(w.entries, len(w.entries)-1, rawEntry{target, []byte(argument)})
		return nil
	case "cut", "grow", "grow-zeros", "concatenate":
		return w.end(verb, rest)
	}
	if known, err := w.seal(verb, rest); known {
		return err
	}
	i, err := w.find(target)
	if err != nil {
		return err
	}
	if raw, err := w.patch(verb, w.entries[i].name, argument); raw || err != nil {
		return err
	}
	return w.change(verb, i, argument)
}

// change is a step that changes one entry.
func (w *work) change(verb string, i int, argument string) (err error) {
	e := &w.entries[i]
	e.data = bytes.Clone(e.data)
	switch verb {
	case "rename":
		e.name, err = strconv.Unquote(`"` + argument + `"`)
	case "drop":
		w.entries = slices.Delete(w.entries, i, i+1)
	case "duplicate":
		w.entries = slices.Insert(w.entries, i+1, *e)
	case "swap":
		var j int
		j, err = w.find(argument)
		w.entries[i], w.entries[j] = w.entries[j], w.entries[i]
	case "set":
		e.data = []byte(argument)
	case "fill":
		var n int
		n, err = strconv.Atoi(argument)
		e.data = make([]byte, n)
	case "lengthen":
		e.data = append(e.data, 'x')
	case "edit":
		from, to, _ := strings.Cut(argument, " ")
		to = strings.ReplaceAll(to, "_", " ")
		if !bytes.Contains(e.data, []byte(from)) {
			return fmt.Errorf("%s has no %q", e.name, from)
		}
		e.data = bytes.Replace(e.data, []byte(from), []byte(to), 1)
	case "take":
		other := &work{entries: entriesOf(w.t, w.forger.other[argument].Volume)}
		var j int
		j, err = other.find(role(e.name))
		e.name, e.data = other.entries[j].name, other.entries[j].data
	default:
		return errors.New("it is not known")
	}
	return err
}

// role is what an entry of the head is called in a vector.
func role(name string) string {
	switch {
	case strings.HasPrefix(name, "signatures/"):
		return "signature"
	case strings.HasPrefix(name, "trust/root-"):
		return "root"
	case strings.HasPrefix(name, "trust/"):
		return "revocations"
	}
	return name
}

func (w *work) resign() error {
	i, err := w.find("signature")
	if err != nil {
		return err
	}
	manifest, err := w.find("packhof.json")
	if err != nil {
		return err
	}
	w.entries[i].data = signature(w.t, w.forger.good.Signer, w.entries[manifest].data).Bytes
	return nil
}

// replan edits volume.json, and makes the id of its set right again.
func (w *work) replan(from, to string) error {
	i, err := w.find("volume.json")
	if err != nil {
		return err
	}
	if err := w.change("edit", i, from+" "+to); err != nil {
		return err
	}
	b := w.entries[i].data
	segments, set := bytes.Index(b, []byte(`"segments":`)), bytes.LastIndex(b, []byte(`,"set":"sha256:`))
	id := cas.DigestOf(b[segments+len(`"segments":`) : set])
	w.entries[i].data = fmt.Appendf(b[:set:set], `,"set":%q}`, id)
	return nil
}

// reroot edits the manifest of the artifact, and has all that names it follow:
// a bundle that its signer would have made of such an artifact.
func (w *work) reroot(from, to string) error {
	good := w.forger.good
	f := testkit.Forge(w.t, nil)
	artifact := &f.Manifest.Artifacts[0]
	old := good.Content[artifact.Root.Digest]
	edited := bytes.Replace(old, []byte(from), []byte(strings.ReplaceAll(to, "_", " ")), 1)
	if bytes.Equal(old, edited) {
		return fmt.Errorf("the artifact has no %q", from)
	}
	more := int64(len(edited) - len(old))
	digest := f.Content.Add(edited)
	for i := range f.Manifest.Blobs {
		if b := &f.Manifest.Blobs[i]; b.Digest == artifact.Root.Digest {
			b.Digest, b.Size = digest, b.Size+more
		}
	}
	slices.SortFunc(f.Manifest.Blobs, func(a, b bundle.Blob) int { return a.Digest.Compare(b.Digest) })
	artifact.SBOM[0].Subject, artifact.Root.Digest, artifact.Root.Size = digest, digest, artifact.Root.Size+more
	artifact.Size += more
	f.Manifest.Totals.Bytes += more
	manifest, err := bundle.EncodeManifest(f.Manifest)
	if err != nil {
		return err
	}
	if err := f.Seal(w.t.Context(), manifest); err != nil {
		return err
	}
	w.entries = entriesOf(w.t, f.Volume)
	return nil
}

// compress packs the volume as a whole.
func (w *work) compress() error {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write(w.volume())
	if err = errors.Join(err, z.Close()); err != nil {
		return err
	}
	w.bytes = out.Bytes()
	return nil
}

// end is a step at the end of the file.
func (w *work) end(verb, argument string) error {
	b := w.volume()
	switch verb {
	case "concatenate":
		w.bytes = append(bytes.Clone(b), b...)
		return nil
	case "grow":
		more, err := hex.DecodeString(argument)
		w.bytes = append(bytes.Clone(b), more...)
		return err
	}
	n, err := strconv.Atoi(argument)
	if verb == "cut" {
		w.bytes = b[:len(b)-n]
	} else {
		w.bytes = append(bytes.Clone(b), make([]byte, n)...)
	}
	return err
}

// patch is a step on the bytes of one entry, and tells whether it was one.
func (w *work) patch(verb, name, argument string) (bool, error) {
	if !slices.Contains([]string{"patch", "patch-raw", "patch-raw-padding", "flip"}, verb) {
		return false, nil
	}
	b := bytes.Clone(w.volume())
	at := bytes.Index(b, append([]byte(name), 0))
	size, err := strconv.ParseInt(string(b[at+124:at+135]), 8, 64)
	if err != nil {
		return true, err
	}
	first, second, _ := strings.Cut(argument, " ")
	switch verb {
	case "flip":
		n, err := strconv.Atoi(first)
		b[at+block+n] ^= 1
		w.bytes = b
		return true, err
	case "patch-raw-padding":
		raw, err := hex.DecodeString(first)
		copy(b[at+block+int(size):], raw)
		w.bytes = b
		return true, err
	}
	offset, err := strconv.Atoi(first)
	if err != nil {
		return true, err
	}
	raw, err := hex.DecodeString(second)
	copy(b[at+offset:], raw)
	if verb == "patch" {
		fixed(b[at : at+block])
	}
	w.bytes = b
	return true, err
}

// fixed sets the checksum of the header that b begins with.
func fixed(b []byte) []byte {
	copy(b[148:], "        ")
	sum := 0
	for _, c := range b[:block] {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

package mirror_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/mirror"
	"github.com/packhof/packhof/signing"
)

func entry(epoch, serial int64, content string) mirror.LedgerEntry {
	return mirror.LedgerEntry{Epoch: epoch, Serial: serial, Manifest: cas.DigestOf([]byte(content)), Lock: cas.DigestOf([]byte("lock"))}
}

func TestLedgerOnlyGrows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "packhof.ledger")
	if err := mirror.CreateLedger(path, channel); err != nil {
		t.Fatal(err)
	}
	l := open(t, path)
	if _, ok := l.Last(); ok {
		t.Error("an empty ledger has a last serial")
	}
	steps := []struct {
		what  string
		entry mirror.LedgerEntry
		code  string
	}{
		{"the first", entry(1, 1, "one"), ""},
		{"the same again", entry(1, 1, "one"), ""},
		{"with another manifest", entry(1, 1, "other"), "serial/changed"},
		{"one left out", entry(1, 3, "three"), ""},
		{"the one left out", entry(1, 2, "two"), "serial/stale"},
		{"the next epoch", entry(2, 4, "four"), ""},
		{"the epoch before", entry(1, 5, "five"), "serial/stale"},
		{"an old one again", entry(1, 3, "three"), ""},
		{"an old one changed", entry(1, 3, "other"), "serial/changed"},
	}
	for _, s := range steps {
		err := l.Seal(s.entry)
		if problem.CodeOf(err) != s.code || s.code == "" && err != nil {
			t.Errorf("%s: %v, want %q", s.what, err, s.code)
		}
		again := open(t, path)
		if last, _ := l.Last(); s.code == "" {
			if got, _ := again.Last(); got != last {
				t.Errorf("%s: read again the last is %+v, want %+v", s.what, got, last)
			}
		}
	}
	b, err := os.ReadFile(path)
	if err != nil || strings.Count(string(b), "\n") != 4 {
		t.Errorf("the file is\n%s%v", b, err)
	}
	if got, ok := l.Find(1, 3); !ok || got != entry(1, 3, "three") {
		t.Errorf("found %+v", got)
	}
	if _, ok := l.Find(1, 2); ok {
		t.Error("found a serial that was never sealed")
	}
}

func open(t *testing.T, path string) *mirror.Ledger {
	t.Helper()
	l, err := mirror.OpenLedger(path, channel)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLedgerIsNeverMadeAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "packhof.ledger")
	if err := mirror.CreateLedger(path, channel); err != nil {
		t.Fatal(err)
	}
	if err := open(t, path).Seal(entry(1, 1, "one")); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "made again", mirror.CreateLedger(path, channel), "config/exists")
	if _, ok := open(t, path).Last(); !ok {
		t.Error("the ledger lost its serial")
	}
}

func TestLedgerThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "packhof.ledger")
	if err := mirror.CreateLedger(path, channel); err != nil {
		t.Fatal(err)
	}
	l := open(t, path)
	blocked := path + cas.PartialSuffix
	if err := os.Mkdir(blocked, 0o755); err != nil { // nobody can write there, root neither
		t.Fatal(err)
	}
	if err := l.Seal(entry(1, 1, "one")); err == nil {
		t.Fatal("sealed without a file")
	}
	if _, ok := l.Last(); ok {
		t.Error("what could not be written counts as sealed")
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	if err := l.Seal(entry(1, 1, "one")); err != nil {
		t.Error(err)
	}
	if last, ok := open(t, path).Last(); !ok || last != entry(1, 1, "one") {
		t.Errorf("the file has %+v", last)
	}
}

func TestLedgerIsStrict(t *testing.T) {
	path := filepath.Join(t.TempDir(), "packhof.ledger")
	_, err := mirror.OpenLedger(path, channel)
	wantCode(t, "no ledger", err, "ledger/missing")
	digest := cas.DigestOf(nil).String()
	head := `{"format":"packhof.ledger/v1","channel":"plant-7"}` + "\n"
	one := `{"epoch":1,"serial":1,"manifest":"` + digest + `","lock":"` + digest + `"}` + "\n"
	write(t, path, []byte(head+one))
	open(t, path)
	for name, text := range map[string]string{
		"empty":               "",
		"other format":        strings.Replace(head, "v1", "v2", 1),
		"no head":             one,
		"head with more":      strings.Replace(head, "}", `,"x":1}`, 1),
		"blank line":          head + "\n" + one,
		"unknown key":         head + strings.Replace(one, `"epoch"`, `"x":1,"epoch"`, 1),
		"serial twice":        head + one + one,
		"serial falls":        head + strings.Replace(one, `"serial":1`, `"serial":2`, 1) + one,
		"epoch falls":         head + strings.Replace(one, `"epoch":1`, `"epoch":2`, 1) + strings.Replace(one, `"serial":1`, `"serial":2`, 1),
		"serial zero":         head + strings.Replace(one, `"serial":1`, `"serial":0`, 1),
		"no manifest":         head + `{"epoch":1,"serial":1,"lock":"` + digest + `"}` + "\n",
		"cut within a line":   head + one[:len(one)-10],
		"conflict":            head + "<<<<<<< HEAD\n" + one,
		"two entries a line":  head + strings.TrimSpace(one) + one,
		"digest as path":      head + strings.Replace(one, digest, "sha256:../../x", 1),
		"other case of a key": head + strings.Replace(one, `"epoch"`, `"Epoch"`, 1),
	} {
		write(t, path, []byte(text))
		_, err := mirror.OpenLedger(path, channel)
		wantCode(t, name, err, "ledger/malformed")
	}
	for hint, text := range map[string]string{"init --ledger-only": head, "another folder": head + one} {
		write(t, path, []byte(strings.Replace(text, "plant-7", "plant-8", 1)))
		_, err := mirror.OpenLedger(path, channel)
		wantCode(t, "a ledger of another channel", err, "ledger/foreign")
		var p *problem.Problem
		if !errors.As(err, &p) || !strings.Contains(p.Remedy(), hint) {
			t.Errorf("%q: remedy %q", text, p.Remedy())
		}
	}
}

func FuzzOpenLedger(f *testing.F) {
	digest := cas.DigestOf(nil).String()
	f.Add([]byte(`{"format":"packhof.ledger/v1","channel":"plant-7"}` + "\n" + `{"epoch":1,"serial":1,"manifest":"` + digest + `","lock":"` + digest + `"}` + "\n"))
	path := filepath.Join(f.TempDir(), "packhof.ledger")
	f.Fuzz(func(t *testing.T, b []byte) {
		write(t, path, b)
		l, err := mirror.OpenLedger(path, channel)
		if err != nil {
			if problem.CodeOf(err) == "" {
				t.Errorf("refused without a code: %v", err)
			}
			return
		}
		last, ok := l.Last()
		if ok && last.Serial < 1 {
			t.Errorf("the last entry is %+v", last)
		}
	})
}

func TestTrustFolder(t *testing.T) {
	read := func(change func(dir string)) error {
		dir := t.TempDir()
		writeTrust(t, dir)
		change(dir)
		_, err := mirror.ReadTrust(dir, testkit.Noon())
		return err
	}
	remove := func(dir string, names ...string) {
		for _, name := range names {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	edit := func(dir, name, old, new string) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(b), old) {
			t.Fatalf("%s has no %q: %v", name, old, err)
		}
		write(t, filepath.Join(dir, name), []byte(strings.Replace(string(b), old, new, 1)))
	}
	copyTo := func(dir, from, to string) {
		b, err := os.ReadFile(filepath.Join(dir, from))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, to), b)
	}
	for name, c := range map[string]struct {
		change func(dir string)
		code   string
	}{
		"as it should be":       {func(string) {}, ""},
		"other files beside":    {func(dir string) { write(t, filepath.Join(dir, "notes.txt"), nil) }, ""},
		"no folder":             {func(dir string) { _ = os.RemoveAll(dir) }, "trust/missing"},
		"root 1 missing":        {func(dir string) { remove(dir, "root-1.json") }, "trust/gap"},
		"all roots missing":     {func(dir string) { remove(dir, "root-1.json", "root-2.json") }, "trust/missing"},
		"a gap":                 {func(dir string) { copyTo(dir, "root-2.json", "root-4.json") }, "trust/gap"},
		"revocations missing":   {func(dir string) { remove(dir, "revocations-1.json") }, "trust/missing"},
		"a gap of revocations":  {func(dir string) { copyTo(dir, "revocations-1.json", "revocations-3.json") }, "trust/gap"},
		"root 1 tampered with":  {func(dir string) { edit(dir, "root-1.json", "release@example", "mallory@example") }, signing.CodeRootSignatures},
		"root 2 tampered with":  {func(dir string) { edit(dir, "root-2.json", "gate@example", "mallory@exa") }, signing.CodeRootSignatures},
		"root 1 again as 2":     {func(dir string) { copyTo(dir, "root-1.json", "root-2.json") }, "trust/gap"},
		"foreign root 2":        {func(dir string) { foreignRoot(t, dir) }, signing.CodeRootSignatures},
		"root 2 is a folder":    {func(dir string) { remove(dir, "root-2.json"); _ = os.Mkdir(filepath.Join(dir, "root-2.json"), 0o755) }, "config/unreadable"},
		"root 2 is too large":   {func(dir string) { write(t, filepath.Join(dir, "root-2.json"), make([]byte, signing.MaxRoot+1)) }, "config/unreadable"},
		"revocations tampered":  {func(dir string) { edit(dir, "revocations-1.json", `"version":1`, `"version":2`) }, signing.CodeRevocationsSignatures},
		"revocations not ours":  {func(dir string) { foreignRevocations(t, dir) }, signing.CodeRevocationsSignatures},
		"revocations 1 again":   {func(dir string) { copyTo(dir, "revocations-1.json", "revocations-2.json") }, "trust/gap"},
		"revocations malformed": {func(dir string) { write(t, filepath.Join(dir, "revocations-1.json"), []byte("{}")) }, signing.CodeBadRevocations},
	} {
		if err := read(c.change); problem.CodeOf(err) != c.code || c.code == "" && err != nil {
			t.Errorf("%s: %v (%s), want %q", name, err, problem.CodeOf(err), c.code)
		}
	}
}

func stranger(t *testing.T) *testkit.Signer {
	t.Helper()
	s, err := testkit.NewSigner("stranger")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func foreignRoot(t *testing.T, dir string) {
	f := testkit.Forge(t, nil)
	b, err := f.Trust.Root().Next(time.Time{}).Sign(t.Context(), stranger(t))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "root-2.json"), b)
}

func foreignRevocations(t *testing.T, dir string) {
	b, err := signing.NewRevocations(t.Context(), stranger(t), testkit.Noon())
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "revocations-1.json"), b)
}

func TestCheckSigner(t *testing.T) {
	y := newYard(t)
	folder := y.trust(t)
	key := y.signer.Public()
	if err := folder.CheckSigner(bundle.KindContent, channel, key, y.now); err != nil {
		t.Error(err)
	}
	wantCode(t, "a channel that nobody knows", folder.CheckSigner(bundle.KindContent, "plant-8", key, y.now), "trust/no-channel")
	wantCode(t, "a stranger", folder.CheckSigner(bundle.KindContent, channel, stranger(t).Public(), y.now), "trust/not-a-signer")
	wantCode(t, "before its time", folder.CheckSigner(bundle.KindContent, channel, key, y.now.Add(-time.Second)), "trust/key-expired")
	rule, _ := folder.Trust.Root().Role(signing.BundleRole(channel))
	end := rule.Keys[0].NotAfter
	if err := folder.CheckSigner(bundle.KindContent, channel, key, end.Add(-time.Second)); err != nil {
		t.Errorf("in its last second: %v", err)
	}
	// A gate would refuse it then: see signing.Key.ValidAt.
	wantCode(t, "at its end", folder.CheckSigner(bundle.KindContent, channel, key, end), "trust/key-expired")
	draft := folder.Trust.Revocations().Next(y.now)
	if err := draft.RevokeKey(key.ID(), "lost"); err != nil {
		t.Fatal(err)
	}
	second, err := draft.Sign(t.Context(), y.signer)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(y.dir, "trust", "revocations-2.json"), second)
	wantCode(t, "a revoked key", y.trust(t).CheckSigner(bundle.KindContent, channel, key, y.now), "trust/key-revoked")
}

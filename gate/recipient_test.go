package gate_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/agefile"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

func (l *lab) enrolment() *bundle.Enrolment {
	l.t.Helper()
	b, err := l.gate.EnrolmentFile()
	if err != nil {
		l.t.Fatal(err)
	}
	e, err := bundle.ParseEnrolment(b)
	if err != nil {
		l.t.Fatal(err)
	}
	return e
}

func (l *lab) identityFile() string { return filepath.Join(l.dir, "keys", "identity.txt") }

// encryptedFor writes a bundle encrypted, as volumes of at most so many bytes;
// 0 is one of any size.
func encryptedFor(t *testing.T, f *testkit.Forged, limit int64, recipients ...string) []string {
	t.Helper()
	o := bundle.SetOptions{}
	if limit > 0 {
		o.Limits = []int64{limit}
	}
	for _, text := range recipients {
		r, err := agefile.ParseRecipient(text)
		if err != nil {
			t.Fatal(err)
		}
		o.Recipients = append(o.Recipients, r)
	}
	set, err := bundle.PlanSet(f.Head, o)
	if err != nil {
		t.Fatal(err)
	}
	written, err := set.WriteTo(t.Context(), t.TempDir(), f.Content, bundle.SetWriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, w := range written {
		paths = append(paths, w.Path)
	}
	return paths
}

// leaves counts the entries of one type in the audit log.
func (l *lab) leaves(kind string) (n int) {
	l.t.Helper()
	db, err := openFile(filepath.Join(l.dir, "gate.db"))
	if err != nil {
		l.t.Fatal(err)
	}
	err = db.QueryRowContext(l.t.Context(), `SELECT count(*) FROM leaf WHERE CAST(bytes AS TEXT) ->> 'type' = ?`, kind).Scan(&n)
	if err := errors.Join(err, db.Close()); err != nil {
		l.t.Fatal(err)
	}
	return n
}

func otherRecipient(t *testing.T) string {
	t.Helper()
	identity, err := agefile.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return identity.Recipient().String()
}

// TestEncryptedVolumesAreTakenIn: previewed, proven and received as others are.
func TestEncryptedVolumesAreTakenIn(t *testing.T) {
	l := newLab(t)
	f, _ := inVolumes(t, l)
	paths := encryptedFor(t, f, int64(len(f.Volume))-20_000, otherRecipient(t), l.enrolment().Recipient)
	if len(paths) < 3 {
		t.Fatalf("only %d volumes", len(paths))
	}
	p, err := l.gate.Preview(t.Context(), operator, paths[0])
	if err != nil || !p.Genuine || !p.Accepted || p.Decision == nil {
		t.Fatalf("preview: %+v, %v", p, err)
	}
	for _, path := range paths {
		if v, err := l.gate.VerifyFile(t.Context(), operator, path, nil); err != nil || !v.OK {
			t.Fatalf("verify: %+v, %v", v, err)
		}
	}
	for i, path := range paths {
		c, err := l.gate.Receive(t.Context(), operator, path, nil)
		if err != nil || (c.Lacks == nil) != (i == len(paths)-1) {
			t.Fatalf("volume %d of %d: %+v, %v", i+1, len(paths), c, err)
		}
	}
	l.approve(1)
	if c := l.mustRelease(1); c.State != gate.Loaded {
		t.Errorf("released: %s", c.State)
	}
}

// TestEncryptedVolumesThatAreNotTakenIn: for others, damaged, and without the
// gate's key.
func TestEncryptedVolumesThatAreNotTakenIn(t *testing.T) {
	l := newLab(t)
	f, _ := inVolumes(t, l)
	foreign := encryptedFor(t, f, 0, otherRecipient(t))[0]
	if c, err := l.gate.Receive(t.Context(), operator, foreign, nil); problem.CodeOf(err) != "volume/other-recipient" || c != nil {
		t.Errorf("for others: %+v, %v", c, err)
	}
	if _, err := l.gate.Preview(t.Context(), operator, foreign); problem.CodeOf(err) != "volume/other-recipient" {
		t.Errorf("preview of one for others: %v", err)
	}
	ours := encryptedFor(t, f, 0, l.enrolment().Recipient)[0]
	good, err := os.ReadFile(ours)
	if err != nil {
		t.Fatal(err)
	}
	bad := bytes.Clone(good)
	bad[len(bad)-30] ^= 1
	if err := os.WriteFile(ours, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.gate.Receive(t.Context(), operator, ours, nil); problem.CodeOf(err) != "volume/damaged" {
		t.Errorf("damaged: %v", err)
	}
	if err := os.WriteFile(ours, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(l.identityFile(), l.identityFile()+".lost"); err != nil {
		t.Fatal(err)
	}
	l.restart()
	if _, err := l.gate.Receive(t.Context(), operator, ours, nil); problem.CodeOf(err) != "gate/identity" {
		t.Errorf("without the key: %v", err)
	}
	if _, err := os.Stat(l.identityFile()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("another key was made in its place: %v", err)
	}
	other, err := agefile.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string][]byte{"another key": other.File(testkit.Noon()), "no key": []byte("nothing\n")} {
		if err := os.WriteFile(l.identityFile(), file, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := l.gate.Receive(t.Context(), operator, ours, nil); problem.CodeOf(err) != "gate/identity" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Rename(l.identityFile()+".lost", l.identityFile()); err != nil {
		t.Fatal(err)
	}
	if c, err := l.gate.Receive(t.Context(), operator, ours, nil); err != nil || c.State != gate.Awaiting {
		t.Errorf("with the key again: %+v, %v", c, err)
	}
}

// TestAGateFromBeforeGetsAKey: once, with an entry in the audit log, and the
// same one when it was interrupted in between.
func TestAGateFromBeforeGetsAKey(t *testing.T) {
	l := newLab(t)
	if info, err := os.Stat(l.identityFile()); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the key that init made: %v, %v", info, err)
	}
	e := l.enrolment()
	e.Recipient = ""
	b, err := bundle.EncodeEnrolment(e)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.gate.Close(), os.Remove(l.identityFile()), os.WriteFile(filepath.Join(l.dir, "enrol.json"), b, 0o644)); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stopped")
	l.fault = func(point string) error {
		if strings.HasPrefix(point, "recipient") {
			return stop
		}
		return nil
	}
	if _, err := gate.Open(t.Context(), l.options()); !errors.Is(err, stop) {
		t.Fatalf("interrupted: %v", err)
	}
	l.fault = nil
	key, err := os.ReadFile(l.identityFile())
	if err != nil {
		t.Fatal(err)
	}
	l.open()
	made := l.enrolment()
	if !strings.Contains(string(key), made.Recipient) || made.Recipient == "" || made.Gate != e.Gate || l.leaves("gate.recipient") != 1 {
		t.Errorf("enrolment %+v, %d leaves", made, l.leaves("gate.recipient"))
	}
	l.restart()
	if l.enrolment().Recipient != made.Recipient || l.leaves("gate.recipient") != 1 {
		t.Error("another key at the next start")
	}
	f, _ := inVolumes(t, l)
	if c, err := l.gate.Receive(t.Context(), operator, encryptedFor(t, f, 0, made.Recipient)[0], nil); err != nil || c.State != gate.Awaiting {
		t.Errorf("%+v, %v", c, err)
	}
}

package gate

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// anchor is the newest head of the audit log: its size and its root, as a
// signed checkpoint in a file beside the database. A database whose log is
// shorter, or another one, is an older copy or was edited.
//
// The file is written after each transaction. A crash between the two leaves
// it behind the database, never ahead of it. What the database has beyond, its
// own signed head has to cover: whoever can write the rows only adds nothing.
type anchor struct {
	path     string
	signer   note.Signer
	verifier note.Verifier

	mu   sync.Mutex
	size int64
	root tlog.Hash
}

// newAnchor prepares the anchor of a gate; the key is in its data directory.
func newAnchor(dir string, e *bundle.Enrolment) (*anchor, error) {
	key, err := readLogKey(filepath.Join(dir, dirKeys, fileLogKey), e.Log)
	if err != nil {
		return nil, err
	}
	public := key.Public().(ed25519.PublicKey)
	text, err := note.NewEd25519VerifierKey(e.Gate, public)
	if err != nil {
		return nil, err
	}
	verifier, err := note.NewVerifier(text)
	if err != nil {
		return nil, err
	}
	return &anchor{path: filepath.Join(dir, fileAnchor), signer: &logSigner{e.Gate, key}, verifier: verifier}, nil
}

// maxKeyFile is more than any file of a key of ours has, in bytes.
const maxKeyFile = 64 << 10

// readLogKey reads the private key of the audit log, which must be that of the
// enrolment.
func readLogKey(path string, want bundle.GateKey) (ed25519.PrivateKey, error) {
	text, err := cas.ReadPlain(path, maxKeyFile)
	if err != nil {
		return nil, fmt.Errorf("the key of the audit log: %w", err)
	}
	wrong := problem.New("gate/log-key", "%s is not the key of the audit log that enrol.json names", path).
		Hint("bring both back from one backup")
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, wrong
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, wrong
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, wrong
	}
	spki, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil || !bytes.Equal(spki, want.SPKI) {
		return nil, wrong
	}
	return key, nil
}

// logSigner signs checkpoints.
type logSigner struct {
	name string
	key  ed25519.PrivateKey
}

// Name implements note.Signer.
func (s *logSigner) Name() string { return s.name }

// KeyHash implements note.Signer, as its package describes it for Ed25519.
func (s *logSigner) KeyHash() uint32 {
	sum := sha256.Sum256(append([]byte(s.name+"\n\x01"), s.key.Public().(ed25519.PublicKey)...))
	return binary.BigEndian.Uint32(sum[:])
}

// Sign implements note.Signer.
func (s *logSigner) Sign(text []byte) ([]byte, error) { return ed25519.Sign(s.key, text), nil }

// head is the newest head that is written down.
func (a *anchor) head() (size int64, root tlog.Hash) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.size, a.root
}

// checkpoint is the signed text of a head.
func (a *anchor) checkpoint(size int64, root tlog.Hash) ([]byte, error) {
	text := fmt.Sprintf("%s\n%d\n%s\n", a.signer.Name(), size, base64.StdEncoding.EncodeToString(root[:]))
	return note.Sign(&note.Note{Text: text}, a.signer)
}

// raise writes a later head down; an earlier one changes nothing.
func (a *anchor) raise(size int64, root tlog.Hash) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if size <= a.size {
		return nil
	}
	signed, err := a.checkpoint(size, root)
	if err == nil {
		err = cas.WriteBytes(a.path, 0o600, signed)
	}
	if err != nil {
		return fmt.Errorf("the anchor of the audit log: %w", err)
	}
	a.size, a.root = size, root
	return nil
}

// maxAnchor is more than any checkpoint of ours has, in bytes.
const maxAnchor = 4 << 10

// read takes the head from the file.
func (a *anchor) read() (err error) {
	b, err := cas.ReadPlain(a.path, maxAnchor)
	var notPlain *cas.NotPlainError
	switch {
	case errors.Is(err, os.ErrNotExist):
		return problem.New("gate/no-anchor", "the gate has lost the anchor of its audit log").With("missing:  "+a.path).Hint("%s", restoreHint)
	case errors.As(err, &notPlain):
		return problem.New("gate/no-anchor", "the anchor of the audit log cannot be used: %w", err).With(notPlain.Evidence()...).Hint("%s", restoreHint)
	case err != nil:
		return err
	}
	size, root, err := parseAnchor(b, a.verifier)
	if err != nil {
		return problem.New("gate/no-anchor", "the anchor of the audit log cannot be used: %w", err).With("file:  "+a.path).Hint("%s", restoreHint)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.size, a.root = size, root
	return nil
}

// restoreHint says how to go on with an older copy: whoever puts it back says
// so by putting back both.
const restoreHint = "bring the newest gate.db back; if it is lost, delete gate.db-wal and gate.db-shm, bring gate.db and gate.anchor back from one backup, and have every bundle since then received again"

// parseAnchor reads a checkpoint that the verifier's key has signed: a line
// each for the name of the log, its size and its root.
func parseAnchor(b []byte, v note.Verifier) (size int64, root tlog.Hash, err error) {
	if len(b) > maxAnchor {
		return 0, root, fmt.Errorf("it has more than %d bytes", maxAnchor)
	}
	n, err := note.Open(b, note.VerifierList(v))
	if err != nil {
		return 0, root, err
	}
	lines := strings.Split(n.Text, "\n")
	if len(lines) != 4 || lines[0] != v.Name() || lines[3] != "" {
		return 0, root, errors.New("it is no checkpoint of this log")
	}
	if size, err = strconv.ParseInt(lines[1], 10, 64); err != nil || size < 1 || strconv.FormatInt(size, 10) != lines[1] {
		return 0, root, fmt.Errorf("%.40q is no size of a log", lines[1])
	}
	sum, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(sum) != tlog.HashSize {
		return 0, root, fmt.Errorf("%.80q is no root of a log", lines[2])
	}
	copy(root[:], sum)
	return size, root, nil
}

// holds compares the log of a database with the anchor: it must be as long at
// least, and have been the same when it had the anchor's size.
func (v *view) holds(ctx context.Context) error {
	size, root := v.size, v.root
	have, err := logSize(ctx, v)
	if err != nil {
		return err
	}
	if have < size {
		return problem.New("gate/history-rolled-back", "gate.db is older than what this gate has done: its audit log is too short").
			With(fmt.Sprintf("anchor:    %d entries", size), fmt.Sprintf("database:  %d entries", have)).Hint("%s", restoreHint)
	}
	got, err := tlog.TreeHash(size, treeHashes{ctx, v})
	if err != nil {
		return err
	}
	if got != root {
		return problem.New("gate/history-differs", "gate.db tells another history than this gate has had").
			With(fmt.Sprintf("anchor:    %d entries, tree %s", size, root), fmt.Sprintf("database:  %d entries, tree of the first %d %s", have, size, got)).Hint("%s", restoreHint)
	}
	return nil
}

// logSize is the number of entries of the audit log.
func logSize(ctx context.Context, q queryer) (n int64, err error) {
	return n, q.QueryRowContext(ctx, `SELECT coalesce(max(n) + 1, 0) FROM leaf`).Scan(&n)
}

// signedHead is the head that the last step with an entry has signed, as the
// database holds it; size 0 where there is none, as in one from before there
// were any.
func (a *anchor) signedHead(ctx context.Context, q queryer) (size int64, root tlog.Hash, err error) {
	var signed []byte
	err = q.QueryRowContext(ctx, `SELECT checkpoint FROM head_signed`).Scan(&signed)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, root, nil
	}
	if err != nil {
		return 0, root, err
	}
	if size, root, err = parseAnchor(signed, a.verifier); err != nil {
		return 0, root, unsigned("the signed head of the audit log cannot be used: %w", err)
	}
	return size, root, nil
}

func unsigned(what string, args ...any) *problem.Problem {
	return problem.New("gate/history-unsigned", what, args...).Hint("%s", restoreHint)
}

// openHistory holds the database against its anchor and its signed head, and
// brings the anchor up to what a crash has left out. It reads all of the log:
// what each subject's newest standing is, no table is asked.
func (g *Gate) openHistory(ctx context.Context) error {
	if err := g.anchor.read(); err != nil {
		return err
	}
	var log *wholeLog
	var root tlog.Hash
	err := g.snapshot(ctx, func(q *view) (err error) {
		if err := q.holds(ctx); err != nil {
			return err
		}
		if log, err = readLog(ctx, q); err != nil {
			return err
		}
		root, err = q.covers(ctx, g.anchor, log)
		return err
	})
	if err != nil {
		return err
	}
	g.newest.raise(log.seals)
	g.login.remember(log.logins)
	return g.anchor.raise(log.size, root)
}

// covers makes sure that the entries themselves have the root that was signed:
// in the anchor, and in the database for what the anchor does not have yet. It
// gives the root of them all.
func (v *view) covers(ctx context.Context, a *anchor, log *wholeLog) (root tlog.Hash, err error) {
	if got, err := tlog.TreeHash(v.size, log); err != nil || got != v.root {
		return root, errors.Join(errLogBroken, err)
	}
	if root, err = tlog.TreeHash(log.size, log); err != nil || log.size == v.size {
		return root, err
	}
	signed, head, err := a.signedHead(ctx, v)
	if err != nil {
		return root, err
	}
	if signed != log.size || head != root {
		return root, unsigned("gate.db has entries of the audit log that this gate has not signed").
			With(fmt.Sprintf("anchor:    %d entries", v.size), fmt.Sprintf("signed:    %d entries", signed), fmt.Sprintf("database:  %d entries", log.size))
	}
	return root, nil
}

package gate

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json/v2"
	"errors"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
)

// subject names rows that decide something together: a word, and for most
// words what of it. Whoever changes such rows says so in the audit log, with
// the digest of what they are then; whoever uses them compares.
type subject string

// trustSubject is what the gate believes, the time floor included.
const trustSubject subject = "trust"

func caseSubject(id CaseID) subject           { return subject("case " + strconv.FormatInt(id, 10)) }
func accountSubject(name string) subject      { return subject("account " + name) }
func channelSubject(name string) subject      { return subject("channel " + name) }
func namesSubject(destination string) subject { return subject("names " + destination) }
func (s subject) parts() (kind, of string) {
	kind, of, _ = strings.Cut(string(s), " ")
	return kind, of
}

// standing is how the rows of a subject stand.
type standing struct {
	Of   subject       `json:"of"`
	Says string        `json:"says"` // in short, for people
	Rows bundle.Digest `json:"rows"`

	// Before is the leaf that said so last, noSeal if none did. Leaves from before
	// it was written have none.
	Before *int64 `json:"before,omitzero"`
}

// rowsOfSubject says which rows a kind of subject has: what they say in short,
// and all that decides, in a fixed order. Columns are named one by one, since
// later ones are not in the digests of before.
func rowsOfSubject(kind string) (says string, all []string) {
	switch kind {
	case "case":
		return `SELECT state || CASE verdict WHEN '' THEN '' ELSE ', verdict ' || verdict END FROM cases WHERE id = ?`, []string{
			`SELECT id, manifest, state, verdict, channel, epoch, serial, submitter, problem, decision, inspection, inspector, review, review_digest, needed FROM cases WHERE id = ?`,
			`SELECT person FROM receiver WHERE case_id = ? ORDER BY person`,
			`SELECT person, actor, choice, reason, review, at FROM decision WHERE case_id = ? ORDER BY person, review`,
			`SELECT destination, artifact, digest, repository, tag, state FROM load WHERE case_id = ? AND state <> 'put' ORDER BY destination, artifact`,
		}
	case "account":
		return `SELECT roles FROM account WHERE name = ?`, []string{`SELECT name, roles, password FROM account WHERE name = ?`}
	case "trust":
		return `SELECT 'root version ' || root_version || ', revocations version ' || list_version || ', floor ' || strftime('%Y-%m-%dT%H:%M:%SZ', floor, 'unixepoch') FROM belief WHERE ? = ''`,
			[]string{`SELECT root, root_version, revocations, list_version, floor FROM belief WHERE ? = ''`}
	case "channel":
		return `SELECT 'epoch ' || epoch || ', serial ' || serial FROM channel WHERE name = ?`, []string{
			`SELECT name, epoch, serial, manifest FROM channel WHERE name = ?`,
			`SELECT epoch, serial, manifest, previous, excused FROM serial WHERE channel = ? ORDER BY epoch, serial`,
			`SELECT kind, name, version, digest, case_id FROM holding WHERE channel = ? ORDER BY kind, name, version`,
		}
	case "withdrawn":
		return `SELECT count(*) || ' digests' FROM withdrawn WHERE channel = ?`,
			[]string{`SELECT digest, reason, replacement, case_id FROM withdrawn WHERE channel = ? ORDER BY digest`}
	case "names":
		return `SELECT count(*) || ' names' FROM name WHERE destination = ?`,
			[]string{`SELECT repository, tag, kind, digest, media_type, size, replaced, case_id FROM name WHERE destination = ? ORDER BY repository, tag`}
	}
	return "", nil
}

// standingOf reads how the rows of a subject stand, and how many there are.
func standingOf(ctx context.Context, q queryer, s subject) (now standing, rows int, err error) {
	kind, of := s.parts()
	says, all := rowsOfSubject(kind)
	if all == nil {
		return now, 0, fmt.Errorf("nobody knows which rows %q has", s)
	}
	now.Of = s
	if err := q.QueryRowContext(ctx, says, of).Scan(&now.Says); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return now, 0, err
	}
	now.Says = strings.ToValidUTF8(now.Says, "?") // rows that are no text can stand, too
	h := sha256.New()
	for i, query := range all {
		n, err := hashRows(ctx, q, h, query, of)
		if err != nil {
			return now, 0, fmt.Errorf("%s: %w", s, err)
		}
		rows += n
		writePart(h, 'q', []byte{byte(i)})
	}
	now.Rows = bundle.Digest(h.Sum(nil))
	return now, rows, nil
}

// hashRows adds every value of every row, each with its type and length.
func hashRows(ctx context.Context, q queryer, h hash.Hash, query string, args ...any) (n int, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return 0, q.trouble(err)
	}
	defer func() { err = errors.Join(err, q.trouble(rows.Close())) }()
	columns, err := rows.Columns()
	if err != nil {
		return 0, err
	}
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for ; rows.Next(); n++ {
		if err := rows.Scan(into...); err != nil {
			return n, err
		}
		for _, value := range values {
			if err := hashValue(h, value); err != nil {
				return n, err
			}
		}
		writePart(h, 'r', nil)
	}
	return n, q.trouble(rows.Err())
}

func hashValue(h hash.Hash, value any) error {
	switch v := value.(type) {
	case nil:
		writePart(h, 'n', nil)
	case int64:
		writePart(h, 'i', binary.BigEndian.AppendUint64(nil, uint64(v)))
	case string:
		writePart(h, 's', []byte(v))
	case []byte:
		writePart(h, 'b', v)
	default:
		return fmt.Errorf("a value of the type %T", value)
	}
	return nil
}

func writePart(h hash.Hash, kind byte, b []byte) {
	h.Write(binary.BigEndian.AppendUint64([]byte{kind}, uint64(len(b)))) // a hash never fails
	h.Write(b)
}

// change announces that a step is about to change the rows of a subject. They
// must be as the audit log says: nothing is built on rows that somebody edited.
func (t *tx) change(ctx context.Context, s subject) error {
	if slices.Contains(t.changed, s) {
		return nil
	}
	if err := t.gate.sealed(ctx, t, s); err != nil {
		return err
	}
	t.changed = append(t.changed, s)
	return nil
}

// standings reads what was changed since the last leaf of the step, for the
// next one to say.
func (t *tx) standings(ctx context.Context) ([]standing, error) {
	var list []standing
	for _, s := range t.changed {
		now, _, err := standingOf(ctx, t, s)
		if err != nil {
			return nil, err
		}
		before, err := sealOf(ctx, t, s)
		if err != nil {
			return nil, err
		}
		now.Before = &before
		list = append(list, now)
	}
	t.changed = nil
	return list, nil
}

// seal remembers that a leaf says how subjects stand.
func (t *tx) seal(ctx context.Context, n int64, list []standing) error {
	for _, s := range list {
		if _, err := t.ExecContext(ctx, `INSERT INTO seal (subject, leaf) VALUES (?, ?) ON CONFLICT DO UPDATE SET leaf = excluded.leaf`, s.Of, n); err != nil {
			return err
		}
		if t.sealing == nil {
			t.sealing = map[subject]int64{}
		}
		t.sealing[s.Of] = n
	}
	return nil
}

// newestLeaves knows of each subject the newest leaf that says how it stands:
// from the log itself when the gate is opened, and from each step since. The
// table of seals may be ahead of it for a moment, and never behind: whoever puts
// old rows and an old seal back is found by that.
type newestLeaves struct {
	mu sync.Mutex
	of map[subject]int64
}

func (n *newestLeaves) raise(later map[subject]int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil {
		n.of = map[subject]int64{}
	}
	for s, leaf := range later {
		n.of[s] = max(n.of[s], leaf)
	}
}

// leaf is noSeal where none speaks of the subject.
func (n *newestLeaves) leaf(s subject) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if leaf, ok := n.of[s]; ok {
		return leaf
	}
	return noSeal
}

func (n *newestLeaves) all() map[subject]int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.of)
}

// known is what is certain of the log before something is read: the newest leaf
// of a subject, and the anchor's head. A view knows them from before it began.
func (g *Gate) known(q queryer, s subject) (leaf int64) {
	v, ok := q.(*view)
	if !ok {
		return g.newest.leaf(s)
	}
	if leaf, ok := v.newest[s]; ok {
		return leaf
	}
	return noSeal
}

// mostTries bounds how often rows are read again because a step changed them
// meanwhile.
const mostTries = 100

// sealed compares the rows of a subject with what the audit log says of them.
// The leaf that says so is proven to be in the log.
func (g *Gate) sealed(ctx context.Context, q queryer, s subject) error {
	least := g.known(q, s)
	for range mostTries {
		before, err := sealOf(ctx, q, s)
		if err != nil {
			return err
		}
		now, rows, err := standingOf(ctx, q, s)
		if err != nil {
			return err
		}
		after, err := sealOf(ctx, q, s)
		if err != nil {
			return err
		}
		if before < least {
			return contradiction(standing{Of: s, Says: "entry " + strconv.FormatInt(least, 10)}, now)
		}
		if before == after {
			return g.fits(ctx, q, before, now, rows)
		}
	}
	return problem.New("case/busy", "%s changes all the time", s).Hint("try again in a moment")
}

// everythingStands compares the rows of all subjects that the audit log speaks of.
func (g *Gate) everythingStands(ctx context.Context, q queryer) error {
	for s := range g.newest.all() {
		if err := g.sealed(ctx, q, s); err != nil {
			return err
		}
	}
	return nil
}

// noSeal is in the place of the number of a leaf where none speaks of a
// subject.
const noSeal = -1

func sealOf(ctx context.Context, q queryer, s subject) (leaf int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT leaf FROM seal WHERE subject = ?`, s).Scan(&leaf)
	if errors.Is(err, sql.ErrNoRows) {
		return noSeal, nil
	}
	return leaf, err
}

func (g *Gate) fits(ctx context.Context, q queryer, n int64, now standing, rows int) error {
	if n == noSeal {
		if rows == 0 {
			return nil
		}
		return contradiction(standing{Of: now.Of}, now)
	}
	var record []byte
	if err := q.QueryRowContext(ctx, `SELECT bytes FROM leaf WHERE n = ?`, n).Scan(&record); err != nil {
		return errors.Join(errLogBroken, err)
	}
	if err := g.proveLeaf(ctx, q, n, record); err != nil {
		return err
	}
	list, err := standingsOf(record)
	if err != nil {
		return err
	}
	for _, said := range list {
		if said.Of == now.Of && said.Rows == now.Rows {
			return nil
		}
		if said.Of == now.Of {
			return contradiction(said, now)
		}
	}
	return contradiction(standing{Of: now.Of}, now)
}

// standingsOf reads what a leaf says of rows.
func standingsOf(record []byte) ([]standing, error) {
	var l struct {
		Stands []standing `json:"stands"`
	}
	if err := json.Unmarshal(record, &l); err != nil {
		return nil, errors.Join(errLogBroken, err)
	}
	return l.Stands, nil
}

const codeContradiction = "audit/contradiction"

// isContradiction tells rows that somebody edited from those that cannot be
// read.
func isContradiction(err error) bool {
	return problem.CodeOf(err) == codeContradiction
}

func contradiction(said, now standing) error {
	says := func(s standing) string {
		switch {
		case s.Says == "":
			return "nothing"
		case s.Rows == bundle.Digest{}:
			return s.Says
		}
		return fmt.Sprintf("%s (rows %s)", s.Says, s.Rows.Short())
	}
	return problem.New(codeContradiction, "the database says something else about %s than the audit log: somebody edited it", now.Of).
		With("audit log:  "+says(said), "database:   "+says(now)).
		Hint("stop, keep the data directory as it is, and compare it with the last backup")
}

// proveLeaf proves that a record is a leaf of the tree whose head the anchor
// holds; a leaf that is newer, of the one that the database holds signed, which
// must go on from the anchor's.
func (g *Gate) proveLeaf(ctx context.Context, q queryer, n int64, record []byte) error {
	if g.anchor == nil {
		return errLogBroken // the data directory is only looked at, and nothing can be proven
	}
	size, root := g.anchor.head()
	if v, ok := q.(*view); ok {
		size, root = v.size, v.root
	}
	hashes := treeHashes{ctx, q}
	if n >= size {
		if got, err := tlog.TreeHash(size, hashes); err != nil || got != root {
			return errors.Join(errLogBroken, err)
		}
		var err error
		if size, root, err = g.anchor.signedHead(ctx, q); err != nil {
			return err
		}
		if n >= size {
			return errLogBroken
		}
	}
	proof, err := tlog.ProveRecord(size, n, hashes)
	if err != nil {
		return err
	}
	if tlog.CheckRecord(proof, size, root, n, tlog.RecordHash(record)) != nil {
		return errLogBroken
	}
	return nil
}

package mirror

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// FormatLock is the format of packhof.lock.
const FormatLock = "packhof.lock/v1"

const maxLock = 16 << 20

// Lock is packhof.lock: one serial of a channel, with everything settled that
// does not follow from the artifacts themselves. It is meant for review and
// for version control.
type Lock struct {
	Format      string           `json:"format"`
	Kind        string           `json:"kind,omitempty"` // "control", or nothing for content
	Channel     string           `json:"channel"`
	Epoch       int64            `json:"epoch"`
	Serial      int64            `json:"serial"`
	Previous    *cas.Digest      `json:"previous,omitempty"` // manifest of the serial before
	Created     bundle.Instant   `json:"created"`
	Expires     bundle.Instant   `json:"expires"`
	Audience    []string         `json:"audience"`
	TrustRoot   bundle.Versioned `json:"trustRoot"`
	Roots       []int64          `json:"roots"` // versions that travel
	Revocations bundle.Versioned `json:"revocations"`
	Note        string           `json:"note,omitempty"`
	Artifacts   []Pinned         `json:"artifacts"`

	Documents []PinnedDocument    `json:"documents,omitempty"` // of a control bundle
	Answers   []bundle.Answer     `json:"answers,omitempty"`
	Withdraws []bundle.Withdrawal `json:"withdraws,omitempty"`
	Carried   []Subject           `json:"carried,omitempty"` // of the lock before a control bundle, for the one after it

	Wanted Wanted `json:"wanted"`
}

// Encode gives the bytes of the file: indented JSON with a fixed order of
// keys, so that two versions of it compare well line by line.
func (l *Lock) Encode() ([]byte, error) {
	b, err := json.Marshal(l, json.Deterministic(true), jsontext.WithIndent("  "))
	return append(b, '\n'), err
}

// Digest identifies the lock by its bytes.
func (l *Lock) Digest() (cas.Digest, error) {
	b, err := l.Encode()
	return cas.DigestOf(b), err
}

// ReadLock reads and checks packhof.lock.
func ReadLock(path string) (*Lock, error) {
	b, err := readSmall(path, maxLock)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, problem.New("lock/missing", "there is no lock %s", path).Hint("make it with  packhof plan")
	}
	if err != nil {
		return nil, err
	}
	return parseLock(path, b)
}

func parseLock(path string, b []byte) (*Lock, error) {
	var l Lock
	if err := json.Unmarshal(b, &l, json.RejectUnknownMembers(true)); err != nil {
		return nil, problem.New("lock/malformed", "%s is malformed: %w", path, problem.JSON(err)).Hint("make it again with  packhof plan")
	}
	if l.Format != FormatLock || !l.hasContent() || !bundle.ValidChannel(l.Channel) {
		return nil, problem.New("lock/malformed", "%s is no lock of the format %s", path, FormatLock).Hint("make it again with  packhof plan")
	}
	return &l, nil
}

// hasContent tells whether a lock has what its kind has, and nothing else.
func (l *Lock) hasContent() bool {
	if l.kind() == bundle.KindControl {
		return len(l.Documents) > 0 && len(l.Artifacts) == 0
	}
	return l.Kind == "" && len(l.Artifacts) > 0 && len(l.Documents) == 0
}

func (l *Lock) kind() bundle.ManifestKind {
	if l.Kind == string(bundle.KindControl) {
		return bundle.KindControl
	}
	return bundle.KindContent
}

// needs is what the bundle's readers have to read.
func (l *Lock) needs() []string {
	m := bundle.Manifest{Format: bundle.FormatV1, Kind: l.kind(), Answers: l.Answers, Withdraws: l.Withdraws}
	return m.Needs()
}

// Write writes packhof.lock atomically.
func (l *Lock) Write(path string) error {
	b, err := l.Encode()
	if err != nil {
		return err
	}
	return cas.WriteBytes(path, 0o644, b)
}

// readSmall reads a file that must not be larger than limit.
func readSmall(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, problem.New("config/unreadable", "%s is not a file of at most %d bytes", path, limit)
	}
	return os.ReadFile(path)
}

// subjects are those of all artifacts, and those that were carried over.
func (l *Lock) subjects() []Subject {
	list := slices.Clone(l.Carried)
	for _, p := range l.Artifacts {
		list = append(list, p.Subjects...)
	}
	return list
}

// carryTimes gives every subject the time at which its digest first entered a
// lock: the one it has in the lock before, or now.
func carryTimes(pins []Pinned, before *Lock, now bundle.Instant) {
	since := map[cas.Digest]bundle.Instant{}
	if before != nil {
		for _, s := range before.subjects() {
			since[s.Digest] = s.Since
		}
	}
	for i := range pins {
		for j := range pins[i].Subjects {
			s := &pins[i].Subjects[j]
			s.Since = now
			if t, known := since[s.Digest]; known {
				s.Since = t
			}
		}
	}
}

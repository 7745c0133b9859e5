package gate

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/agefile"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// makeIdentity makes the key with which the gate opens encrypted volumes, and
// gives its public half.
func makeIdentity(dir string, at time.Time) (recipient string, err error) {
	identity, err := agefile.NewIdentity()
	if err != nil {
		return "", err
	}
	return identity.Recipient().String(), cas.WriteBytes(filepath.Join(dir, dirKeys, fileAgeKey), 0o600, identity.File(at))
}

// haveRecipient gives a gate that was made before there was encryption a key,
// writes its public half into enrol.json, and says so in the audit log. A gate
// that has lost its key gets no other one: what was encrypted to it would be
// lost without a word.
func (g *Gate) haveRecipient(ctx context.Context, e *bundle.Enrolment) error {
	if e.Recipient != "" {
		return nil
	}
	identity, err := readIdentityFile(g.dir) // of a start that was interrupted
	if errors.Is(err, fs.ErrNotExist) {
		e.Recipient, err = makeIdentity(g.dir, g.clock())
	} else if err == nil {
		e.Recipient = identity.Recipient().String()
	}
	if err != nil {
		return err
	}
	b, err := bundle.EncodeEnrolment(e)
	if err != nil {
		return err
	}
	err = g.step(ctx, "recipient", func(t *tx) error {
		return t.log(ctx, leaf{Actor: "gate", Type: "gate.recipient", Outcome: outcomeOK, Said: said("{recipient}; enrol.json is {digest} now", "recipient", e.Recipient, "digest", cas.DigestOf(b))})
	})
	if err != nil {
		return err
	}
	return cas.WriteBytes(filepath.Join(g.dir, fileEnrolment), 0o644, b)
}

// Opener opens volumes as the gate in dir does: with its key, which is read
// when an encrypted one is met.
func Opener(dir string) bundle.Opener {
	return bundle.Opener{Identities: func() ([]*agefile.Identity, error) {
		identity, err := readIdentity(dir)
		if err != nil || identity == nil {
			return nil, err
		}
		return []*agefile.Identity{identity}, nil
	}}
}

// readIdentity reads the key that enrol.json names; nil where it names none yet.
func readIdentity(dir string) (*agefile.Identity, error) {
	e, err := readEnrolment(dir)
	if err != nil || e.Recipient == "" {
		return nil, err
	}
	path := filepath.Join(dir, dirKeys, fileAgeKey)
	unusable := problem.New("gate/identity", "%s is not the key that opens volumes for this gate", path).Hint("bring the folder keys back from a backup")
	identity, err := readIdentityFile(dir)
	var wrong *agefile.KeyError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, unusable.With("missing:  " + path)
	case errors.As(err, &wrong):
		return nil, unusable.With("found:  " + wrong.Error())
	case err != nil:
		return nil, err
	case identity.Recipient().String() != e.Recipient:
		return nil, unusable.With("want:  "+e.Recipient, "got:   "+identity.Recipient().String())
	}
	return identity, nil
}

func readIdentityFile(dir string) (*agefile.Identity, error) {
	b, err := cas.ReadPlain(filepath.Join(dir, dirKeys, fileAgeKey), agefile.MaxIdentityFile)
	if err != nil {
		return nil, err
	}
	list, err := agefile.ParseIdentities(b)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

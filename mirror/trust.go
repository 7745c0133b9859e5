package mirror

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/signing"
)

// TrustFolder is the folder with every version of the root (root-<n>.json) and
// the revocations (revocations-<n>.json), of which the newest counts.
type TrustFolder struct {
	Trust       *signing.Trust
	Roots       []bundle.TrustDocument // ascending, from version 1
	Revocations []bundle.TrustDocument // ascending, from version 1; the last one counts
}

// ReadTrust reads the folder and follows the root from version 1 to the last.
func ReadTrust(dir string, at time.Time) (*TrustFolder, error) {
	t := &TrustFolder{}
	var err error
	if t.Roots, err = readVersions(dir, "root", signing.MaxRoot); err != nil {
		return nil, err
	}
	if len(t.Roots) == 0 || t.Roots[0].Version != 1 {
		return nil, problem.New("trust/missing", "there is no trust root in %s", dir).Hint("make one with  packhof trust init")
	}
	if t.Revocations, err = readVersions(dir, "revocations", maxRevocations); err != nil {
		return nil, err
	}
	if len(t.Revocations) == 0 {
		return nil, problem.New("trust/missing", "there is no revocation list in %s", dir).Hint("bring revocations-1.json back from version control")
	}
	return t, t.follow(dir, at)
}

const maxRevocations = 4 << 20

func (t *TrustFolder) follow(dir string, at time.Time) error {
	first, err := signing.ParseRoot(t.Roots[0].Bytes)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, "root-1.json"), err)
	}
	rest := make([][]byte, 0, len(t.Roots)-1)
	for _, r := range t.Roots[1:] {
		rest = append(rest, r.Bytes)
	}
	trust, err := signing.NewTrust(first, nil).UpdateRoots(rest)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if t.Trust, err = trust.UpdateRevocations(newest(t.Revocations).Bytes, at); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if err := checkName(dir, "root", t.Newest().Version, t.Trust.Root().Version()); err != nil {
		return err
	}
	return checkName(dir, "revocations", t.Revoked().Version, t.Trust.Revocations().Version())
}

// checkName makes sure that the newest file holds the version that its name
// says: a copy of an older one would otherwise go out under that number.
func checkName(dir, kind string, name int64, inside int) error {
	if name == int64(inside) {
		return nil
	}
	return problem.New("trust/gap", "%s holds version %d", TrustFile(dir, kind, name), inside).
		Hint("bring version %d back from version control, or remove the file", name)
}

// readVersions reads <kind>-1.json, <kind>-2.json … until one is missing.
func readVersions(dir, kind string, limit int64) ([]bundle.TrustDocument, error) {
	var docs []bundle.TrustDocument
	for n := int64(1); ; n++ {
		path := TrustFile(dir, kind, n)
		b, err := readSmall(path, limit)
		if errors.Is(err, fs.ErrNotExist) {
			return docs, checkNoGap(dir, kind, n)
		}
		if err != nil {
			return nil, err
		}
		docs = append(docs, bundle.TrustDocument{Version: n, Bytes: b})
	}
}

// TrustFile is the path of a version of a trust document.
func TrustFile(dir, kind string, version int64) string {
	return filepath.Join(dir, fmt.Sprintf("%s-%d.json", kind, version))
}

// checkNoGap makes sure that no later version lies behind a missing one.
func checkNoGap(dir, kind string, missing int64) error {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range files {
		number, isJSON := strings.CutSuffix(f.Name(), ".json")
		number, isKind := strings.CutPrefix(number, kind+"-")
		if n, err := strconv.ParseInt(number, 10, 32); isJSON && isKind && err == nil && n > missing {
			return problem.New("trust/gap", "%s has %s and lacks %s-%d.json", dir, f.Name(), kind, missing).
				Hint("bring the missing version back from version control")
		}
	}
	return nil
}

// Newest is the newest version of the root with its digest.
func (t *TrustFolder) Newest() bundle.Versioned {
	return versioned(newest(t.Roots))
}

func newest(docs []bundle.TrustDocument) bundle.TrustDocument { return docs[len(docs)-1] }

func versioned(doc bundle.TrustDocument) bundle.Versioned {
	return bundle.Versioned{Version: doc.Version, Digest: cas.DigestOf(doc.Bytes)}
}

// Revoked is the revocation list with its digest.
func (t *TrustFolder) Revoked() bundle.Versioned {
	return versioned(newest(t.Revocations))
}

// CheckSigner makes sure, before any work is done, that this key may sign
// bundles of this kind and channel.
func (t *TrustFolder) CheckSigner(kind bundle.ManifestKind, channel string, key signing.PublicKey, at time.Time) error {
	role := signing.BundleRole(channel)
	if kind == bundle.KindControl {
		role = signing.ControlRole(channel)
	}
	rule, ok := t.Trust.Root().Role(role)
	if !ok {
		return problem.New("trust/no-channel", "the trust root does not know the channel %s", channel).
			Hint("set the channel in packhof.yaml to one of the trust root: packhof trust show")
	}
	allowed := []string{"key:      " + key.ID().String()}
	for _, k := range rule.Keys {
		allowed = append(allowed, "allowed:  "+k.Named().String())
		if k.Public.ID() != key.ID() {
			continue
		}
		if !k.ValidAt(at) {
			return problem.New("trust/key-expired", "the key of %s is valid from %s to %s only", k.Owner, k.NotBefore.Format(time.DateOnly), k.NotAfter.Format(time.DateOnly)).
				With("now:  " + at.UTC().Format(time.RFC3339))
		}
		if reason, revoked := t.Trust.Revocations().Key(key.ID()); revoked {
			return problem.New("trust/key-revoked", "the key of %s is revoked: %s", k.Owner, reason)
		}
		return nil
	}
	return problem.New("trust/not-a-signer", "the key may not sign %s bundles of the channel %s", kind, channel).
		With(allowed...).Hint("set key in packhof.yaml to one of the keys that may: packhof trust show")
}

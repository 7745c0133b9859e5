package gate

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base32"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/signing"
)

// InitParams is what a new gate needs to know.
type InitParams struct {
	Owner    string   // who answers for it, for people to read
	Hosts    []string // names and addresses that the TLS certificate is for
	Account  string   // the first account: officer and admin
	Password []byte
	Program  string
	Now      time.Time
}

// Init makes the data directory of a new gate: keys, TLS certificate, empty
// store and database, the first account, and last enrol.json, without which it
// is none. A folder that holds anything else than an interrupted Init is
// refused.
func Init(ctx context.Context, dir string, p InitParams) (*bundle.Enrolment, error) {
	if err := errors.Join(checkAccountName(p.Account), checkPassword(p.Password)); err != nil {
		return nil, err
	}
	if err := claimDirectory(dir); err != nil {
		return nil, err
	}
	enrolment, err := makeKeys(dir, p)
	if err != nil {
		return nil, err
	}
	if err := makeCertificate(filepath.Join(dir, dirTLS), p.Hosts, p.Now); err != nil {
		return nil, err
	}
	if _, err := cas.OpenStore(filepath.Join(dir, dirStore)); err != nil {
		return nil, err
	}
	if err := firstAccount(ctx, dir, enrolment, p); err != nil {
		return nil, err
	}
	b, err := bundle.EncodeEnrolment(enrolment)
	if err != nil {
		return nil, err
	}
	if err := cas.WriteBytes(filepath.Join(dir, fileEnrolment), 0o644, b); err != nil {
		return nil, err
	}
	return enrolment, os.Remove(filepath.Join(dir, initMarker))
}

// claimDirectory takes an empty folder, or one that an interrupted Init left.
func claimDirectory(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	interrupted, made := len(entries) == 0, false
	for _, e := range entries {
		interrupted = interrupted || e.Name() == initMarker
		made = made || e.Name() == fileEnrolment
	}
	if made || !interrupted {
		return problem.New("config/exists", "%s is in use: it holds %s", dir, entries[0].Name()).
			Hint("name a folder that is empty or does not exist, with --data")
	}
	if err := cas.WriteBytes(filepath.Join(dir, initMarker), 0o600, []byte("a gate is being made here\n")); err != nil {
		return err
	}
	for _, name := range []string{dirKeys, dirTLS, dirStore, fileDatabase, fileDatabase + "-wal", fileDatabase + "-shm", fileAnchor} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return os.Chmod(dir, 0o700)
}

// initMarker is there while a gate is being made, so that an interrupted Init
// can be told from a folder of somebody else's.
const initMarker = "gate.init"

// makeKeys makes the receipt key, the key of the audit log, the identity that
// opens encrypted volumes, and the id.
func makeKeys(dir string, p InitParams) (*bundle.Enrolment, error) {
	receipt, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	_, log, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	keys := filepath.Join(dir, dirKeys)
	if err := os.MkdirAll(keys, 0o700); err != nil {
		return nil, err
	}
	for name, key := range map[string]any{fileReceiptKey: receipt, fileLogKey: log} {
		if err := writeKey(filepath.Join(keys, name), key); err != nil {
			return nil, err
		}
	}
	recipient, err := makeIdentity(dir, p.Now)
	if err != nil {
		return nil, err
	}
	receiptKey, err := publicKey(signing.ECDSA, receipt.Public())
	if err != nil {
		return nil, err
	}
	logKey, err := publicKey(signing.Ed25519, log.Public())
	if err != nil {
		return nil, err
	}
	return &bundle.Enrolment{
		Format: bundle.FormatEnrolment, Gate: newGateID(), Owner: p.Owner, Created: bundle.At(p.Now),
		Receipt: receiptKey, Log: logKey, Reads: bundle.Reads(), Program: p.Program, Recipient: recipient,
	}, nil
}

func publicKey(algorithm signing.Algorithm, public any) (bundle.GateKey, error) {
	spki, err := x509.MarshalPKIXPublicKey(public)
	return bundle.GateKey{Algorithm: algorithm, SPKI: spki}, err
}

// writeKey writes a private key as PKCS #8, for the owner's eyes only.
func writeKey(path string, key any) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return cas.WriteBytes(path, 0o600, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func newGateID() string {
	random := make([]byte, 10)
	rand.Read(random) // never fails, or ends the program
	return "gate-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(random))
}

// firstAccount makes the database with one account and the first leaf, and
// the anchor.
func firstAccount(ctx context.Context, dir string, e *bundle.Enrolment, p InitParams) error {
	anchor, err := newAnchor(dir, e)
	if err != nil {
		return err
	}
	db, err := openDatabase(ctx, filepath.Join(dir, fileDatabase))
	if err != nil {
		return err
	}
	g := &Gate{db: db, anchor: anchor, clock: func() time.Time { return p.Now }}
	err = g.step(ctx, "init", func(t *tx) error {
		roles := []Role{RoleOfficer, RoleAdmin}
		if err := t.putAccount(ctx, p.Account, roles, hashPassword(p.Password)); err != nil {
			return err
		}
		return t.log(ctx, leaf{Actor: "gate", Type: "gate.made", Outcome: outcomeOK, Detail: fmt.Sprintf("the gate was made by %s, with the first account %s", p.Program, p.Account)})
	})
	return errors.Join(err, db.close())
}

package signing_test

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/packhof/packhof/signing"
)

// day is the middle of the window of every key in these tests.
func day() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

func years(n int) time.Time { return day().AddDate(n, 0, 0) }

// memoryKey is a Signer in memory: what a file key is, without scrypt.
type memoryKey struct {
	private *ecdsa.PrivateKey
	public  signing.PublicKey
}

func newSigner(t testing.TB) memoryKey {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := signing.NewPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	return memoryKey{private, public}
}

// newSigners gives n keys, sorted by id as everything is listed.
func newSigners(t testing.TB, n int) []memoryKey {
	t.Helper()
	keys := make([]memoryKey, n)
	for i := range keys {
		keys[i] = newSigner(t)
	}
	slices.SortFunc(keys, func(a, b memoryKey) int { return cmp.Compare(a.id().String(), b.id().String()) })
	return keys
}

func (k memoryKey) Public() signing.PublicKey { return k.public }

func (k memoryKey) SignDigest(_ context.Context, digest [32]byte) ([]byte, error) {
	return k.private.Sign(nil, digest[:], crypto.SHA256)
}

func (k memoryKey) id() signing.KeyID { return k.public.ID() }

func (k memoryKey) owned(owner string) signing.Key {
	return signing.Key{Public: k.public, Owner: owner, NotBefore: years(-1), NotAfter: years(2)}
}

func newEd25519(t testing.TB) signing.PublicKey {
	t.Helper()
	key, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := signing.NewPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return public
}

const channel = "plant-7"

// rootBy is version 1: one person, threshold one.
func rootBy(t testing.TB, signer signing.Signer) *signing.Root {
	t.Helper()
	raw, err := signing.NewRoot(t.Context(), signing.RootParams{
		Signer: signer, Owner: "root@example", Channels: []signing.Channel{{Name: channel}},
		Now: years(-1), Expires: years(1),
	})
	if err != nil {
		t.Fatal(err)
	}
	return parseRoot(t, raw)
}

func parseRoot(t testing.TB, raw []byte) *signing.Root {
	t.Helper()
	root, err := signing.ParseRoot(raw)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// next changes a root, signs the result and takes it as an update.
func next(t testing.TB, root *signing.Root, change func(*signing.RootDraft) error, signers ...signing.Signer) *signing.Root {
	t.Helper()
	updated, err := root.Update(nextBytes(t, root, change, signers...))
	if err != nil {
		t.Fatalf("update: %v", err)
	}
	return updated
}

func nextBytes(t testing.TB, root *signing.Root, change func(*signing.RootDraft) error, signers ...signing.Signer) []byte {
	t.Helper()
	draft := root.Next(time.Time{})
	if change != nil {
		if err := change(draft); err != nil {
			t.Fatalf("change: %v", err)
		}
	}
	raw, err := draft.Sign(t.Context(), signers...)
	if err != nil {
		t.Fatalf("sign: %v", err)
	}
	return raw
}

// trustIn is a trust in which the keys hold bundle:plant-7 with a threshold.
func trustIn(t testing.TB, threshold int, keys ...memoryKey) *signing.Trust {
	t.Helper()
	owner := newSigner(t)
	root := next(t, rootBy(t, owner), func(d *signing.RootDraft) error {
		return d.SetRole(ruleOf(signing.BundleRole(channel), threshold, keys...))
	}, owner)
	return signing.NewTrust(root, nil)
}

func ruleOf(role signing.Role, threshold int, keys ...memoryKey) signing.Rule {
	rule := signing.Rule{Role: role, Threshold: threshold}
	for i, k := range keys {
		rule.Keys = append(rule.Keys, k.owned(string(rune('a'+i))+"@example"))
	}
	return rule
}

func sign(t testing.TB, signer signing.Signer, payload []byte) []byte {
	t.Helper()
	raw, err := signing.Sign(t.Context(), signer, payload)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func signAll(t testing.TB, payload []byte, keys ...memoryKey) [][]byte {
	t.Helper()
	var bundles [][]byte
	for _, k := range keys {
		bundles = append(bundles, sign(t, k, payload))
	}
	return bundles
}

// edit changes a JSON document as a tree and writes it canonically, so that
// only what was changed can be the reason of a refusal.
func edit(t testing.TB, raw []byte, change func(doc map[string]any)) []byte {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	change(doc)
	out, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	value := jsontext.Value(out)
	if err := value.Canonicalize(); err != nil {
		t.Fatal(err)
	}
	return value
}

// at walks into a tree of objects.
func at(doc map[string]any, path ...string) map[string]any {
	for _, name := range path {
		doc = doc[name].(map[string]any)
	}
	return doc
}

func codeOf(err error) string {
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		return coded.Code()
	}
	return ""
}

func wantCode(t testing.TB, err error, code string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want code %s", code)
	}
	if got := codeOf(err); got != code {
		t.Fatalf("code %q, want %q: %v", got, code, err)
	}
}

func idsOf(named []signing.Named) []signing.KeyID {
	var ids []signing.KeyID
	for _, n := range named {
		ids = append(ids, n.ID)
	}
	return ids
}

func asUntrusted(t testing.TB, err error) *signing.UntrustedError {
	t.Helper()
	var refusal *signing.UntrustedError
	if !errors.As(err, &refusal) {
		t.Fatalf("not an UntrustedError: %v", err)
	}
	return refusal
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

func digest(payload []byte) []byte {
	sum := sha256.Sum256(payload)
	return sum[:]
}

package signing_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/packhof/packhof/signing"
)

// What a parser accepts it must be able to say again, and must have judged
// whole: the properties are stated at each target.

func FuzzParsePublicKey(f *testing.F) {
	key := newSigner(f).public
	f.Add(key.PEM())
	f.Add(key.DER())
	f.Add(newEd25519(f).PEM())
	f.Add([]byte("-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		key, err := signing.ParsePublicKey(raw)
		if err != nil {
			mustBeCoded(t, err)
			return
		}
		for _, again := range [][]byte{key.DER(), key.PEM()} {
			if same, err := signing.ParsePublicKey(again); err != nil || same.ID() != key.ID() {
				t.Errorf("read again as %s, was %s: %v", same.ID(), key.ID(), err)
			}
		}
	})
}

func FuzzParsePrivateKey(f *testing.F) {
	// No well-formed seed: each opening costs a tenth of a second of scrypt.
	f.Add(newSigner(f).public.PEM())
	f.Add([]byte("-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\ne30=\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n"))
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if _, err := signing.ParsePrivateKey(raw, []byte("pw")); err != nil {
			mustBeCoded(t, err)
		}
	})
}

func FuzzParseBundle(f *testing.F) {
	key := newSigner(f)
	good := sign(f, key, []byte("payload"))
	f.Add(good)
	f.Add(bytes.ReplaceAll(good, []byte(":"), []byte(": ")))
	f.Add([]byte(`{"mediaType":"` + signing.BundleMediaType + `"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		bundle, err := signing.ParseBundle(raw)
		if err != nil {
			mustBeCoded(t, err)
			return
		}
		// A signature that was never made must not verify, whoever is asked.
		if id, err := bundle.Verify([]byte("another payload"), key.public); err == nil {
			t.Errorf("forged by %s: %s", id, raw)
		}
		if id, err := bundle.Verify([]byte("payload"), key.public); err == nil && id != key.id() {
			t.Errorf("signed by %s, not by %s: %s", id, key.id(), raw)
		}
	})
}

func FuzzParseRoot(f *testing.F) {
	key := newSigner(f)
	one := rootBy(f, key)
	f.Add(one.Bytes())
	f.Add(next(f, one, func(d *signing.RootDraft) error {
		return d.AddGate(signing.Gate{ID: "g", Owner: "g"}, day(), years(1), newSigner(f).public, newEd25519(f))
	}, key).Bytes())
	f.Add([]byte(`{"signatures":[],"signed":{}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		root, err := signing.ParseRoot(raw)
		if err != nil {
			mustBeCoded(t, err)
			return
		}
		for _, role := range root.Roles() {
			if rule, _ := root.Role(role); rule.Threshold < 1 || rule.Threshold > len(rule.Keys) {
				t.Errorf("role %s: %d of %d", role, rule.Threshold, len(rule.Keys))
			}
		}
		// What can be read can be continued.
		if _, err := root.Next(time.Time{}).Sign(t.Context()); err != nil && root.Version() < 1<<40 {
			t.Errorf("%s: %v", raw, err)
		}
	})
}

func FuzzParseRevocations(f *testing.F) {
	key := newSigner(f)
	f.Add(firstRevocations(f, key))
	f.Add(revoke(f, nil, key, func(d *signing.RevocationsDraft) error {
		if err := d.RevokeKey(key.id(), "x"); err != nil {
			return err
		}
		return d.RevokeBundle(channel, 1, 1, "x")
	}))
	f.Add([]byte(`{"signatures":[],"signed":{}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		list, err := signing.ParseRevocations(raw)
		if err != nil {
			mustBeCoded(t, err)
			return
		}
		if err := list.Contains(list); err != nil {
			t.Errorf("a list does not hold itself: %v", err)
		}
		if list.Issued().IsZero() || list.Version() < 1 {
			t.Errorf("version %d issued %s", list.Version(), list.Issued())
		}
	})
}

func FuzzParseFingerprint(f *testing.F) {
	f.Add(signing.FingerprintOf(nil).String())
	f.Add("acid acorn")
	f.Fuzz(func(t *testing.T, typed string) {
		print, err := signing.ParseFingerprint(typed)
		if err != nil {
			mustBeCoded(t, err)
			return
		}
		if again, err := signing.ParseFingerprint(print.String()); err != nil || again != print {
			t.Errorf("%q: %v", typed, err)
		}
	})
}

func mustBeCoded(t *testing.T, err error) {
	t.Helper()
	if codeOf(err) == "" {
		t.Errorf("an error without a code: %v", err)
	}
	if len(err.Error()) > 1000 || bytes.ContainsAny([]byte(err.Error()), "\n\x1b") {
		t.Errorf("an error that is not one line: %q", err.Error())
	}
}

func FuzzParseKeyID(f *testing.F) {
	id := newSigner(f).id()
	f.Add(id.String())
	f.Add(strings.ToUpper(id.String()))
	f.Add(id.Short())
	f.Add("../../etc/passwd")
	f.Fuzz(func(t *testing.T, s string) {
		if id, err := signing.ParseKeyID(s); err == nil && id.String() != s {
			t.Errorf("%q was read as %s", s, id)
		}
	})
}

package signing_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/packhof/packhof/signing"
	"pgregory.net/rapid"
)

func TestVouch(t *testing.T) {
	keys := newSigners(t, 3)
	payload := []byte("manifest")
	trust := trustIn(t, 2, keys...)
	role := signing.BundleRole(channel)
	bundles := signAll(t, payload, keys[0], keys[2])

	signers, err := trust.Genuine(payload, bundles)
	if err != nil || !slices.Equal(idsOf(signers), []signing.KeyID{keys[0].id(), keys[2].id()}) {
		t.Errorf("genuine by %v: %v", signers, err)
	}
	voucher, err := trust.Vouch(payload, bundles, role, day())
	if err != nil {
		t.Fatal(err)
	}
	if voucher.Role() != role || voucher.Threshold() != 2 || !voucher.At().Equal(day()) || voucher.RootVersion() != 2 || voucher.RevocationsVersion() != 0 {
		t.Errorf("voucher %+v", voucher)
	}
	if diff := cmp.Diff([]signing.Named{{Owner: "a@example", ID: keys[0].id()}, {Owner: "c@example", ID: keys[2].id()}}, voucher.Signers()); diff != "" {
		t.Error(diff)
	}
	if !voucher.Covers(payload) || voucher.Covers([]byte("other")) || !strings.HasPrefix(voucher.PayloadDigest(), "sha256:") {
		t.Error("the voucher is about other bytes")
	}
	var none *signing.Voucher
	if none.Covers(nil) || new(signing.Voucher).Covers(nil) {
		t.Error("an empty voucher covers something")
	}
}

func TestUntrustedErrorReadsAsInTheManual(t *testing.T) {
	keys := newSigners(t, 3)
	trust := trustIn(t, 2, keys...)
	stranger := newSigner(t)
	payload := []byte("manifest")
	bundles := append(signAll(t, payload, keys[0], stranger), sign(t, keys[1], []byte("other bytes")), []byte("junk"))
	_, err := trust.Vouch(payload, bundles, signing.BundleRole(channel), day())
	wantCode(t, err, signing.CodeThreshold)
	refusal := asUntrusted(t, err)
	want := []string{
		fmt.Sprintf("valid:    a@example (%s)", keys[0].id().Short()),
		fmt.Sprintf("missing:  one of b@example (%s), c@example (%s)", keys[1].id().Short(), keys[2].id().Short()),
		fmt.Sprintf("mismatch: b@example (%s) is named, but did not sign these bytes", keys[1].id().Short()),
		"unknown:  key " + stranger.id().String(),
	}
	got := refusal.Evidence()
	if len(got) != len(want)+1 || !strings.HasPrefix(got[len(got)-1], "broken:   ") {
		t.Fatalf("evidence %q", got)
	}
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Error(diff)
	}
	if want := "role bundle:plant-7 does not vouch for these bytes: 1 of 2 required signatures is valid"; err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	if refusal.Remedy() == "" || (&signing.UntrustedError{}).Error() == "" {
		t.Error("nothing is said")
	}
}

func TestMissingLines(t *testing.T) {
	named := func(n int) (out []signing.Named) {
		for i := range n {
			out = append(out, signing.Named{Owner: fmt.Sprint(i)})
		}
		return out
	}
	for _, c := range []struct {
		need, have, missing int
		want                string
	}{{1, 0, 1, "missing:  0 ("}, {2, 1, 2, "missing:  one of 0 ("}, {3, 1, 3, "missing:  2 of 0 ("}, {2, 0, 2, "missing:  0 ("}} {
		e := &signing.UntrustedError{Need: c.need, Have: c.have, Missing: named(c.missing)}
		if got := e.Evidence(); len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
			t.Errorf("need %d, have %d of %d: %q", c.need, c.have, c.missing, got)
		}
	}
}

func TestEmptyTrustTrustsNobody(t *testing.T) {
	key := newSigner(t)
	bundles := signAll(t, nil, key)
	for name, trust := range map[string]*signing.Trust{"nil": nil, "zero": {}, "no root": signing.NewTrust(nil, nil)} {
		t.Run(name, func(t *testing.T) {
			_, err := trust.Vouch(nil, bundles, signing.RoleRevoke, day())
			wantCode(t, err, signing.CodeNoTrust)
			_, err = trust.Genuine(nil, bundles)
			wantCode(t, err, signing.CodeNoTrust)
			_, err = trust.UpdateRoots([][]byte{rootBy(t, key).Bytes()})
			wantCode(t, err, signing.CodeNoTrust)
			_, err = trust.UpdateRevocations(firstRevocations(t, key), day())
			wantCode(t, err, signing.CodeNoTrust)
			if trust.Root() != nil || trust.Revocations() != nil {
				t.Error("it holds something")
			}
		})
	}
}

func TestVouchForRoleOfNobody(t *testing.T) {
	key := newSigner(t)
	trust := signing.NewTrust(rootBy(t, key), nil)
	for _, role := range []signing.Role{"", "root", "bundle:", signing.BundleRole("other"), signing.ReceiptRole("g")} {
		_, err := trust.Vouch(nil, signAll(t, nil, key), role, day())
		wantCode(t, err, signing.CodeUnknownRole)
	}
}

func TestTooManySignatures(t *testing.T) {
	trust := signing.NewTrust(rootBy(t, newSigner(t)), nil)
	many := make([][]byte, signing.MaxSignatures+1)
	_, err := trust.Vouch(nil, many, signing.RoleRevoke, day())
	wantCode(t, err, signing.CodeTooManySignatures)
	_, err = trust.Genuine(nil, many)
	wantCode(t, err, signing.CodeTooManySignatures)
}

func TestRevokedKeysDoNotCount(t *testing.T) {
	owner, keys := newSigner(t), newSigners(t, 2)
	root := next(t, rootBy(t, owner), func(d *signing.RootDraft) error {
		return d.SetRole(ruleOf(signing.BundleRole(channel), 2, keys...))
	}, owner)
	trust := signing.NewTrust(root, nil)
	payload := []byte("manifest")
	both := signAll(t, payload, keys...)
	trust, err := trust.UpdateRevocations(revoke(t, nil, owner, func(d *signing.RevocationsDraft) error {
		return d.RevokeKey(keys[0].id(), "laptop stolen")
	}), day())
	if err != nil {
		t.Fatal(err)
	}
	if signers, err := trust.Genuine(payload, both); err != nil || !slices.Equal(idsOf(signers), []signing.KeyID{keys[1].id()}) {
		t.Errorf("genuine by %v: %v", signers, err)
	}
	_, err = trust.Genuine(payload, both[:1])
	wantCode(t, err, signing.CodeRevokedKey)
	_, err = trust.Vouch(payload, both, signing.BundleRole(channel), day())
	wantCode(t, err, signing.CodeRevokedKey)
	refusal := asUntrusted(t, err)
	if len(refusal.Refused) != 1 || !strings.Contains(refusal.Refused[0].Reason, "laptop stolen") || len(refusal.Missing) != 0 {
		t.Errorf("refusal %+v", refusal)
	}
	if !strings.Contains(strings.Join(refusal.Evidence(), "\n"), "refused:  a@example") {
		t.Errorf("evidence %q", refusal.Evidence())
	}
}

func TestUpdateRoots(t *testing.T) {
	key, newer := newSigner(t), newSigner(t)
	one := rootBy(t, key)
	two := next(t, one, nil, key)
	three := next(t, two, func(d *signing.RootDraft) error {
		return d.SetSigners(signing.Rule{Threshold: 1, Keys: []signing.Key{newer.owned("n")}})
	}, key, newer)
	trust := signing.NewTrust(two, nil)
	got, err := trust.UpdateRoots([][]byte{three.Bytes(), two.Bytes(), one.Bytes()})
	if err != nil || got.Root().Version() != 3 || trust.Root().Version() != 2 {
		t.Fatalf("update: %v", err)
	}
	if same, err := got.UpdateRoots([][]byte{one.Bytes(), three.Bytes()}); err != nil || same != got {
		t.Errorf("nothing new gives another trust: %v", err)
	}
	_, err = signing.NewTrust(one, nil).UpdateRoots([][]byte{three.Bytes()})
	wantCode(t, err, signing.CodeRootVersion)
	_, err = trust.UpdateRoots([][]byte{[]byte("{}")})
	wantCode(t, err, signing.CodeBadRoot)
	_, err = trust.UpdateRoots(make([][]byte, signing.MaxRoots+1))
	wantCode(t, err, signing.CodeBadRoot)
}

// keyState is what may be the matter with one key in the reference model.
type keyState struct{ inRole, revoked, early, late, signed, twice, otherBytes bool }

// countsInModel is the reference: a key counts if it has the role, signed
// these bytes, is not revoked and is in its time.
func countsInModel(keys []keyState) (n int) {
	for _, k := range keys {
		if k.inRole && k.signed && !k.otherBytes && !k.revoked && !k.early && !k.late {
			n++
		}
	}
	return n
}

func genuineInModel(keys []keyState) bool {
	return slices.ContainsFunc(keys, func(k keyState) bool { return k.inRole && k.signed && !k.otherBytes && !k.revoked })
}

func TestThresholdsAgreeWithModel(t *testing.T) {
	owner, pool := newSigner(t), newSigners(t, 5)
	base := rootBy(t, owner)
	payload, other := []byte("manifest"), []byte("other")
	good, bad := signAll(t, payload, pool...), signAll(t, other, pool...)
	rapid.Check(t, func(rt *rapid.T) {
		states := make([]keyState, len(pool))
		for i := range states {
			flags := rapid.SliceOfN(rapid.Bool(), 3, 3).Draw(rt, "flags")
			odd := rapid.IntRange(0, 9).Draw(rt, "odd")
			states[i] = keyState{inRole: flags[0] || i == 0, signed: flags[1], twice: flags[2],
				revoked: odd == 1, early: odd == 2, late: odd == 3, otherBytes: odd == 4}
		}
		members := 0
		for _, s := range states {
			if s.inRole {
				members++
			}
		}
		threshold := rapid.IntRange(1, members).Draw(rt, "threshold")
		trust := modelTrust(t, base, owner, pool, states, threshold)
		var bundles [][]byte
		for i, s := range states {
			if !s.signed {
				continue
			}
			raw := good[i]
			if s.otherBytes {
				raw = bad[i]
			}
			bundles = append(bundles, raw)
			if s.twice {
				bundles = append(bundles, raw)
			}
		}
		bundles = rapid.Permutation(bundles).Draw(rt, "order")
		voucher, err := trust.Vouch(payload, bundles, signing.BundleRole(channel), day())
		want := countsInModel(states)
		if (err == nil) != (want >= threshold) {
			rt.Fatalf("%d of %d count in the model, got %v", want, threshold, err)
		}
		if err == nil && len(voucher.Signers()) != want {
			rt.Fatalf("%d signers, %d in the model", len(voucher.Signers()), want)
		}
		if err != nil && asUntrusted(t, err).Have != want {
			rt.Fatalf("have %d, %d in the model", asUntrusted(t, err).Have, want)
		}
		if _, err := trust.Genuine(payload, bundles); (err == nil) != genuineInModel(states) {
			rt.Fatalf("genuine %t in the model, got %v", genuineInModel(states), err)
		}
	})
}

// modelTrust builds the trust that the states describe. The owner's roles are
// taken away, so that no key but the pool's can make anything genuine.
func modelTrust(t *testing.T, base *signing.Root, owner memoryKey, pool []memoryKey, states []keyState, threshold int) *signing.Trust {
	t.Helper()
	root := next(t, base, func(d *signing.RootDraft) error {
		if err := d.RemoveRole(signing.ControlRole(channel)); err != nil {
			return err
		}
		rule := signing.Rule{Role: signing.BundleRole(channel), Threshold: threshold}
		outside := signing.Rule{Role: signing.AttestRole(channel), Threshold: 1, Keys: []signing.Key{owner.owned("root@example")}}
		for i, s := range states {
			key := pool[i].owned("x")
			if s.early {
				key.NotBefore = day().AddDate(0, 0, 1)
			}
			if s.late {
				key.NotAfter = day()
			}
			if s.inRole {
				rule.Keys = append(rule.Keys, key)
			} else {
				outside.Keys = append(outside.Keys, key)
			}
		}
		if err := d.SetRole(rule); err != nil {
			return err
		}
		return d.SetRole(outside)
	}, owner)
	list := parseRevocations(t, revoke(t, nil, owner, func(d *signing.RevocationsDraft) error {
		for i, s := range states {
			if s.revoked {
				if err := d.RevokeKey(pool[i].id(), "revoked"); err != nil {
					return err
				}
			}
		}
		return nil
	}))
	return signing.NewTrust(root, list)
}

func TestRevokedBytesAreNotVouchedFor(t *testing.T) {
	key := newSigner(t)
	payload := []byte("manifest")
	trust := signing.NewTrust(rootBy(t, key), nil)
	digest := "sha256:" + strings.ReplaceAll(signing.FingerprintOf(payload).String(), " ", "")
	trust, err := trust.UpdateRevocations(revoke(t, nil, key, func(d *signing.RevocationsDraft) error {
		return d.RevokeDigest(digest, "one of two manifests with one serial")
	}), day())
	if err != nil {
		t.Fatal(err)
	}
	_, err = trust.Vouch(payload, signAll(t, payload, key), signing.BundleRole(channel), day())
	wantCode(t, err, signing.CodeRevoked)
	if diff := cmp.Diff([]string{"digest: " + digest, "reason: one of two manifests with one serial"}, err.(*signing.Error).Evidence()); diff != "" {
		t.Error(diff)
	}
}

func TestZeroValuesTrustNobody(t *testing.T) {
	key := newSigner(t)
	first := rootBy(t, key).Bytes()
	if _, err := new(signing.Bundle).Verify(nil, key.public); codeOf(err) != signing.CodeNotGenuine {
		t.Errorf("a bundle: %v", err)
	}
	if _, err := new(signing.Root).Update(first); codeOf(err) != signing.CodeNoTrust {
		t.Errorf("a root: %v", err)
	}
	trust := signing.NewTrust(new(signing.Root), new(signing.Revocations))
	if _, err := trust.Vouch(nil, signAll(t, nil, key), signing.RoleRevoke, day()); codeOf(err) != signing.CodeUnknownRole {
		t.Errorf("a trust in an empty root: %v", err)
	}
	if _, err := trust.Genuine(nil, signAll(t, nil, key)); codeOf(err) != signing.CodeNotGenuine {
		t.Errorf("a trust in an empty root: %v", err)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	trust := trustIn(t, 1, newSigner(t))
	_, unencrypted := signing.ParsePrivateKey([]byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), nil)
	_, notKey := signing.ParsePublicKey(nil)
	_, _, noPassphrase := signing.GenerateKey(nil)
	_, algorithm := signing.NewPublicKey(nil)
	_, noTrust := (*signing.Trust)(nil).Genuine(nil, nil)
	_, late := trust.Vouch(nil, nil, signing.BundleRole("other"), day())
	for code, err := range map[string]error{
		signing.CodeUnencryptedKey: unencrypted, signing.CodeNotKey: notKey, signing.CodeNoPassphrase: noPassphrase,
		signing.CodeKeyAlgorithm: algorithm, signing.CodeNoTrust: noTrust, signing.CodeUnknownRole: late,
	} {
		wantCode(t, err, code)
		if err.(*signing.Error).Remedy() == "" {
			t.Errorf("%s: nothing to do", code)
		}
	}
}

func TestErrorsAreShortAndOnOneLine(t *testing.T) {
	_, err := signing.ParsePrivateKey(bytes.Repeat([]byte("x"), signing.MaxKeyFile+1), nil)
	evidence := err.(*signing.Error).Evidence()
	if diff := cmp.Diff([]string{"limit: 65536 bytes", "got:   65537 bytes"}, evidence); diff != "" {
		t.Error(diff)
	}
	_, err = signing.ParseBundle([]byte(`{"mediaType":"` + strings.Repeat("x", 5000) + `"}`))
	if len(err.Error()) > 500 {
		t.Errorf("a message of %d bytes", len(err.Error()))
	}
}

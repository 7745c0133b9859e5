package signing_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/packhof/packhof/signing"
)

const someDigest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func parseRevocations(t testing.TB, raw []byte) *signing.Revocations {
	t.Helper()
	list, err := signing.ParseRevocations(raw)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func firstRevocations(t testing.TB, signer signing.Signer) []byte {
	t.Helper()
	raw, err := signing.NewRevocations(t.Context(), signer, day())
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// revoke is the next version of a list, with changes.
func revoke(t testing.TB, list *signing.Revocations, signer signing.Signer, change func(*signing.RevocationsDraft) error) []byte {
	t.Helper()
	draft := list.Next(day())
	if change != nil {
		if err := change(draft); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := draft.Sign(t.Context(), signer)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestRevocationsGrow(t *testing.T) {
	key, gone := newSigner(t), newSigner(t)
	trust := signing.NewTrust(rootBy(t, key), nil)
	trust, err := trust.UpdateRevocations(firstRevocations(t, key), day())
	if err != nil {
		t.Fatal(err)
	}
	first := trust.Revocations()
	if first.Version() != 1 || !first.Issued().Equal(day()) || len(first.Keys())+len(first.Digests())+len(first.Bundles()) != 0 {
		t.Errorf("first list: version %d issued %s", first.Version(), first.Issued())
	}
	raw := revoke(t, first, key, func(d *signing.RevocationsDraft) error {
		for _, err := range []error{
			d.RevokeKey(gone.id(), "laptop stolen"), d.RevokeKey(gone.id(), "another reason"),
			d.RevokeDigest(someDigest, "backdoor"),
			d.RevokeBundle(channel, 1, 43, "second"), d.RevokeBundle(channel, 1, 42, "equivocation"),
		} {
			if err != nil {
				return err
			}
		}
		return nil
	})
	trust, err = trust.UpdateRevocations(raw, day())
	if err != nil {
		t.Fatal(err)
	}
	list := trust.Revocations()
	if reason, ok := list.Key(gone.id()); !ok || reason != "laptop stolen" {
		t.Errorf("key: %q %t", reason, ok)
	}
	if reason, ok := list.Artifact(someDigest); !ok || reason != "backdoor" {
		t.Errorf("digest: %q %t", reason, ok)
	}
	if reason, ok := list.Bundle(channel, 1, 42); !ok || reason != "equivocation" {
		t.Errorf("bundle: %q %t", reason, ok)
	}
	if _, ok := list.Bundle(channel, 2, 42); ok {
		t.Error("another epoch is revoked, too")
	}
	if _, ok := list.Key(key.id()); ok {
		t.Error("another key is revoked, too")
	}
	want := []signing.RevokedBundle{{Channel: channel, Epoch: 1, Serial: 42, Reason: "equivocation"}, {Channel: channel, Epoch: 1, Serial: 43, Reason: "second"}}
	if diff := cmp.Diff(want, list.Bundles()); diff != "" {
		t.Error(diff)
	}
	if !bytes.Equal(list.Bytes(), raw) || list.Digest() != "sha256:"+strings.ReplaceAll(signing.FingerprintOf(raw).String(), " ", "") {
		t.Error("bytes or digest are not those of the file")
	}
	if err := first.Contains(list); codeOf(err) != signing.CodeRevocationsShrunk || len(err.(*signing.Error).Evidence()) != 4 {
		t.Errorf("an older list holds a newer one: %v", err)
	}
}

func TestRevocationsNilRevokesNothing(t *testing.T) {
	var none *signing.Revocations
	if none.Version() != 0 || !none.Issued().IsZero() || none.Bytes() != nil || none.Digest() != "" ||
		none.Keys() != nil || none.Digests() != nil || none.Bundles() != nil {
		t.Error("a nil list holds something")
	}
	_, key := none.Key(signing.KeyID{})
	_, digest := none.Artifact(someDigest)
	_, bundle := none.Bundle(channel, 1, 1)
	if key || digest || bundle {
		t.Error("a nil list revokes something")
	}
}

func TestParseRevocationsIsStrict(t *testing.T) {
	key := newSigner(t)
	good := revoke(t, nil, key, func(d *signing.RevocationsDraft) error {
		if err := d.RevokeKey(newSigner(t).id(), "x"); err != nil {
			return err
		}
		if err := d.RevokeDigest(someDigest, "x"); err != nil {
			return err
		}
		return d.RevokeBundle(channel, 1, 1, "x")
	})
	parseRevocations(t, good)
	first := func(d map[string]any, list string) map[string]any {
		return at(d, "signed")[list].([]any)[0].(map[string]any)
	}
	for name, raw := range map[string][]byte{
		"empty":        nil,
		"null":         []byte("null"),
		"signed null":  []byte(`{"signatures":[],"signed":null}`),
		"too large":    bytes.Repeat([]byte(" "), signing.MaxRevocations+1),
		"space":        append([]byte(" "), good...),
		"space inside": bytes.Replace(good, []byte(`"signed":{`), []byte(`"signed":{ `), 1),
		"duplicate":    bytes.Replace(good, []byte(`"version":1`), []byte(`"version":1,"version":1`), 1),
		"unknown":      edit(t, good, func(d map[string]any) { d["x"] = 1 }),
		"unknown too":  edit(t, good, func(d map[string]any) { at(d, "signed")["x"] = 1 }),
		"other type":   edit(t, good, func(d map[string]any) { at(d, "signed")["_type"] = "root" }),
		"version 0":    edit(t, good, func(d map[string]any) { at(d, "signed")["version"] = 0 }),
		"bad time":     edit(t, good, func(d map[string]any) { at(d, "signed")["issued"] = "" }),
		"no list":      edit(t, good, func(d map[string]any) { delete(at(d, "signed"), "keys") }),
		"bad key":      edit(t, good, func(d map[string]any) { first(d, "keys")["key"] = "abc" }),
		"no reason":    edit(t, good, func(d map[string]any) { first(d, "keys")["reason"] = "" }),
		"bad digest":   edit(t, good, func(d map[string]any) { first(d, "digests")["digest"] = "sha512:00" }),
		"bad channel":  edit(t, good, func(d map[string]any) { first(d, "bundles")["channel"] = "" }),
		"serial 0":     edit(t, good, func(d map[string]any) { first(d, "bundles")["serial"] = 0 }),
		"entry twice": edit(t, good, func(d map[string]any) {
			s := at(d, "signed")
			s["keys"] = append(s["keys"].([]any), s["keys"].([]any)[0])
		}),
		"signature in caps": edit(t, good, func(d map[string]any) { upper(d, "sig") }),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := signing.ParseRevocations(raw)
			wantCode(t, err, signing.CodeBadRevocations)
		})
	}
}

func TestRevocationsDraftRefusesBadEntries(t *testing.T) {
	var none *signing.Revocations
	for name, change := range map[string]func(*signing.RevocationsDraft) error{
		"no reason":   func(d *signing.RevocationsDraft) error { return d.RevokeKey(signing.KeyID{}, "") },
		"bad digest":  func(d *signing.RevocationsDraft) error { return d.RevokeDigest("sha256:", "x") },
		"bad channel": func(d *signing.RevocationsDraft) error { return d.RevokeBundle("..", 1, 1, "x") },
		"epoch 0":     func(d *signing.RevocationsDraft) error { return d.RevokeBundle(channel, 0, 1, "x") },
	} {
		t.Run(name, func(t *testing.T) { wantCode(t, change(none.Next(day())), signing.CodeRevocationsChange) })
	}
	_, err := none.Next(day().AddDate(10000, 0, 0)).Sign(t.Context(), newSigner(t))
	wantCode(t, err, signing.CodeRevocationsChange)
	_, err = none.Next(day()).Sign(t.Context(), oddSigner{public: newSigner(t).public})
	wantCode(t, err, signing.CodeSigner)
	_, err = signing.CosignRevocations(t.Context(), nil, newSigner(t))
	wantCode(t, err, signing.CodeBadRevocations)
}

func TestRevocationsTakeTwoSigners(t *testing.T) {
	keys := newSigners(t, 2)
	owner := newSigner(t)
	root := next(t, rootBy(t, owner), func(d *signing.RootDraft) error {
		return d.SetRole(ruleOf(signing.RoleRevoke, 2, keys...))
	}, owner)
	trust := signing.NewTrust(root, nil)
	half := firstRevocations(t, keys[0])
	_, err := trust.UpdateRevocations(half, day())
	wantCode(t, err, signing.CodeRevocationsSignatures)
	if refusal := asUntrusted(t, err); refusal.Have != 1 || !slices.Equal(idsOf(refusal.Missing), []signing.KeyID{keys[1].id()}) {
		t.Errorf("refusal %+v", refusal)
	}
	full, err := signing.CosignRevocations(t.Context(), half, keys[1])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trust.UpdateRevocations(full, day()); err != nil {
		t.Error(err)
	}
	if _, err := trust.UpdateRevocations(full, years(10)); codeOf(err) != signing.CodeRevocationsSignatures {
		t.Errorf("signed by keys that are out of their time: %v", err)
	}
}

// A list that is signed by a key which the list before it revoked counts
// nothing; one that revokes its own signer does, once.
func TestRevokedKeyRevokesNothingMore(t *testing.T) {
	key := newSigner(t)
	trust := signing.NewTrust(rootBy(t, key), nil)
	trust, err := trust.UpdateRevocations(revoke(t, nil, key, func(d *signing.RevocationsDraft) error {
		return d.RevokeKey(key.id(), "stolen")
	}), day())
	if err != nil {
		t.Fatal(err)
	}
	_, err = trust.UpdateRevocations(revoke(t, trust.Revocations(), key, nil), day())
	wantCode(t, err, signing.CodeRevocationsSignatures)
}

func TestUpdateRevocationsWithoutRole(t *testing.T) {
	key := newSigner(t)
	root := next(t, rootBy(t, key), func(d *signing.RootDraft) error { return d.RemoveRole(signing.RoleRevoke) }, key)
	_, err := signing.NewTrust(root, nil).UpdateRevocations(firstRevocations(t, key), day())
	wantCode(t, err, signing.CodeUnknownRole)
}

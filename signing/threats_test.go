package signing_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/packhof/packhof/signing"
	"pgregory.net/rapid"
)

// The tests of this file bear the ids of the threat table.

func TestT30StrippedSignatures(t *testing.T) {
	keys := newSigners(t, 2)
	trust := trustIn(t, 2, keys...)
	payload, role := []byte("manifest"), signing.BundleRole(channel)
	bundles := signAll(t, payload, keys...)
	if _, err := trust.Vouch(payload, bundles, role, day()); err != nil {
		t.Fatal(err)
	}
	for i := range bundles {
		_, err := trust.Vouch(payload, slices.Delete(slices.Clone(bundles), i, i+1), role, day())
		wantCode(t, err, signing.CodeThreshold)
		if refusal := asUntrusted(t, err); !slices.Equal(idsOf(refusal.Missing), []signing.KeyID{keys[i].id()}) {
			t.Errorf("missing %v, want %s", refusal.Missing, keys[i].id().Short())
		}
	}
	for name, none := range map[string][][]byte{"nil": nil, "empty list": {}, "empty file": {{}}, "empty DSSE": {edit(t, bundles[0], func(d map[string]any) {
		delete(d, "messageSignature")
		d["dsseEnvelope"] = dsse()
	})}} {
		t.Run(name, func(t *testing.T) {
			_, err := trust.Vouch(payload, none, role, day())
			wantCode(t, err, signing.CodeNotGenuine)
			_, err = trust.Genuine(payload, none)
			wantCode(t, err, signing.CodeNotGenuine)
		})
	}
}

func TestT31EveryByteIsSigned(t *testing.T) {
	key := newSigner(t)
	trust := trustIn(t, 1, key)
	payload := []byte(`{"format":"packhof.bundle/v1","serial":42}`)
	bundles := signAll(t, payload, key)
	changed := [][]byte{append(bytes.Clone(payload), '\n'), append([]byte(" "), payload...), payload[1:], nil,
		bytes.ReplaceAll(payload, []byte(":"), []byte(": "))}
	for i := range payload {
		flipped := bytes.Clone(payload)
		flipped[i] ^= 1
		changed = append(changed, flipped)
	}
	for _, other := range changed {
		_, err := trust.Genuine(other, bundles)
		wantCode(t, err, signing.CodeNotGenuine)
		if refusal := asUntrusted(t, err); !slices.Equal(idsOf(refusal.Mismatched), []signing.KeyID{key.id()}) {
			t.Fatalf("%q: mismatched %v", other, refusal.Mismatched)
		}
	}
}

func TestT31EveryByteOfRootAndRevocationsCounts(t *testing.T) {
	key := newSigner(t)
	root := rootBy(t, key)
	list := firstRevocations(t, key)
	trust := signing.NewTrust(root, nil)
	rapid.Check(t, func(t *rapid.T) {
		bit := byte(1) << rapid.IntRange(0, 7).Draw(t, "bit")
		raw := bytes.Clone(root.Bytes())
		raw[rapid.IntRange(0, len(raw)-1).Draw(t, "root byte")] ^= bit
		if _, err := signing.ParseRoot(raw); err == nil {
			t.Fatalf("accepted: %s", raw)
		}
		raw = bytes.Clone(list)
		raw[rapid.IntRange(0, len(raw)-1).Draw(t, "list byte")] ^= bit
		if _, err := trust.UpdateRevocations(raw, day()); err == nil {
			t.Fatalf("accepted: %s", raw)
		}
	})
}

func TestT32SignatureOfOtherBytes(t *testing.T) {
	keys := newSigners(t, 2)
	trust := trustIn(t, 1, keys[0])
	a, b := []byte("statement about image a"), []byte("statement about image b")
	ofA := sign(t, keys[0], a)
	_, err := trust.Vouch(b, [][]byte{ofA}, signing.BundleRole(channel), day())
	wantCode(t, err, signing.CodeNotGenuine)
	// The digest that a bundle states is not what is judged.
	relabelled := edit(t, ofA, func(d map[string]any) {
		ofB := sign(t, keys[0], b)
		edit(t, ofB, func(e map[string]any) {
			at(d, "messageSignature")["messageDigest"] = at(e, "messageSignature")["messageDigest"]
		})
	})
	for _, payload := range [][]byte{a, b} {
		_, err = trust.Vouch(payload, [][]byte{relabelled}, signing.BundleRole(channel), day())
		wantCode(t, err, signing.CodeNotGenuine)
	}
}

func TestT33HintsChooseNothing(t *testing.T) {
	keys := newSigners(t, 2)
	trust := trustIn(t, 2, keys...)
	payload, role := []byte("manifest"), signing.BundleRole(channel)
	bundles := signAll(t, payload, keys...)
	withHint := func(raw []byte, id signing.KeyID) []byte {
		return edit(t, raw, func(d map[string]any) {
			at(d, "verificationMaterial", "publicKey")["hint"] = base64.StdEncoding.EncodeToString(id[:])
		})
	}
	swapped := [][]byte{withHint(bundles[0], keys[1].id()), withHint(bundles[1], keys[0].id())}
	if voucher, err := trust.Vouch(payload, swapped, role, day()); err != nil || len(voucher.Signers()) != 2 {
		t.Errorf("swapped hints: %v", err)
	}
	// One key under the other's name is still one key.
	_, err := trust.Vouch(payload, [][]byte{bundles[0], withHint(bundles[0], keys[1].id())}, role, day())
	wantCode(t, err, signing.CodeThreshold)
	// A stranger under a name that is trusted is still a stranger.
	forged := withHint(sign(t, newSigner(t), payload), keys[1].id())
	_, err = trust.Vouch(payload, [][]byte{bundles[0], forged}, role, day())
	wantCode(t, err, signing.CodeThreshold)
	if refusal := asUntrusted(t, err); !slices.Equal(idsOf(refusal.Mismatched), []signing.KeyID{keys[1].id()}) {
		t.Errorf("mismatched %v", refusal.Mismatched)
	}
}

func TestT33OneKeyUnderTwoIDs(t *testing.T) {
	key := newSigner(t)
	good := rootBy(t, key).Bytes()
	section := func(d map[string]any) map[string]any { return at(d, "signed", "x-packhof") }
	other := strings.Repeat("0", 64)
	for name, raw := range map[string][]byte{
		"second id": edit(t, good, func(d map[string]any) {
			keys := at(section(d), "keys")
			keys[other] = keys[key.id().String()]
			at(section(d), "roles", "revoke")["keyids"] = []any{other, key.id().String()}
			at(section(d), "roles", "revoke")["threshold"] = 2
		}),
		"id twice": edit(t, good, func(d map[string]any) {
			at(section(d), "roles", "revoke")["keyids"] = []any{key.id().String(), key.id().String()}
			at(section(d), "roles", "revoke")["threshold"] = 2
		}),
		"TUF alias": edit(t, good, func(d map[string]any) {
			// go-tuf reads both key types as the same kind of key.
			for _, k := range at(d, "signed", "keys") {
				alias := map[string]any{}
				for name, v := range k.(map[string]any) {
					alias[name] = v
				}
				alias["keytype"] = "ecdsa-sha2-nistp256"
				at(d, "signed", "keys")[other] = alias
			}
			root := at(d, "signed", "roles", "root")
			root["keyids"] = append(root["keyids"].([]any), other)
			root["threshold"] = 2
		}),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := signing.ParseRoot(raw)
			wantCode(t, err, signing.CodeBadRoot)
		})
	}
	// And one key in two roles, or signing twice, counts once.
	keys := newSigners(t, 2)
	trust := trustIn(t, 2, keys...)
	payload := []byte("manifest")
	one := sign(t, keys[0], payload)
	_, err := trust.Vouch(payload, [][]byte{one, one, one}, signing.BundleRole(channel), day())
	wantCode(t, err, signing.CodeThreshold)
}

func TestT33ThresholdZero(t *testing.T) {
	key := newSigner(t)
	good := rootBy(t, key).Bytes()
	for name, raw := range map[string][]byte{
		"our role": edit(t, good, func(d map[string]any) { at(d, "signed", "x-packhof", "roles", "revoke")["threshold"] = 0 }),
		"negative": edit(t, good, func(d map[string]any) { at(d, "signed", "x-packhof", "roles", "revoke")["threshold"] = -1 }),
		"no keys": edit(t, good, func(d map[string]any) {
			at(d, "signed", "x-packhof", "roles", "revoke")["keyids"] = []any{}
		}),
		"TUF root": edit(t, good, func(d map[string]any) { at(d, "signed", "roles", "root")["threshold"] = 0 }),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := signing.ParseRoot(raw)
			wantCode(t, err, signing.CodeBadRoot)
		})
	}
}

func TestT33KeyOfAnotherRole(t *testing.T) {
	owner, receipt, bundle := newSigner(t), newSigner(t), newSigner(t)
	root := next(t, rootBy(t, owner), func(d *signing.RootDraft) error {
		if err := d.AddGate(signing.Gate{ID: "gate-a", Owner: "gate-a"}, years(-1), years(1), receipt.public); err != nil {
			return err
		}
		return d.SetRole(ruleOf(signing.BundleRole(channel), 1, bundle))
	}, owner)
	trust := signing.NewTrust(root, nil)
	payload := []byte("manifest")
	byReceipt := signAll(t, payload, receipt)
	_, err := trust.Genuine(payload, byReceipt)
	wantCode(t, err, signing.CodeNotGenuine)
	_, err = trust.Vouch(payload, byReceipt, signing.BundleRole(channel), day())
	wantCode(t, err, signing.CodeThreshold)
	if refusal := asUntrusted(t, err); len(refusal.Refused) != 1 || refusal.Refused[0].ID != receipt.id() {
		t.Errorf("refused %v", refusal.Refused)
	}
	byBundle := signAll(t, payload, bundle)
	if _, err := trust.Genuine(payload, byBundle); err != nil {
		t.Error(err)
	}
	for _, role := range []signing.Role{signing.ControlRole(channel), signing.RoleRevoke, signing.ReceiptRole("gate-a")} {
		_, err := trust.Vouch(payload, byBundle, role, day())
		wantCode(t, err, signing.CodeThreshold)
	}
}

func TestT34MalleatedSignatureCountsOnce(t *testing.T) {
	keys := newSigners(t, 2)
	trust := trustIn(t, 2, keys...)
	payload, role := []byte("manifest"), signing.BundleRole(channel)
	original := sign(t, keys[0], payload)
	twin := edit(t, original, func(d map[string]any) {
		message := at(d, "messageSignature")
		message["signature"] = otherS(t, message["signature"].(string))
	})
	if bytes.Equal(original, twin) {
		t.Fatal("nothing was changed")
	}
	if signers, err := trust.Genuine(payload, [][]byte{twin}); err != nil || !slices.Equal(idsOf(signers), []signing.KeyID{keys[0].id()}) {
		t.Errorf("the twin: %v %v", signers, err)
	}
	_, err := trust.Vouch(payload, [][]byte{original, twin}, role, day())
	wantCode(t, err, signing.CodeThreshold)
	voucher, err := trust.Vouch(payload, append(signAll(t, payload, keys[1]), twin, original), role, day())
	if err != nil || len(voucher.Signers()) != 2 {
		t.Errorf("with the other key: %v", err)
	}
}

// otherS is the second valid signature that ECDSA gives for free: (r, n-s).
func otherS(t *testing.T, encoded string) string {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	var sig struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(raw, &sig); err != nil {
		t.Fatal(err)
	}
	sig.S.Sub(elliptic.P256().Params().N, sig.S)
	if raw, err = asn1.Marshal(sig); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(raw)
}

func TestT34MalleatedRootIsTheSameRoot(t *testing.T) {
	key := newSigner(t)
	root := rootBy(t, key)
	twin := edit(t, root.Bytes(), func(d map[string]any) {
		sig := d["signatures"].([]any)[0].(map[string]any)
		raw, err := hex.DecodeString(sig["sig"].(string))
		if err != nil {
			t.Fatal(err)
		}
		other, err := base64.StdEncoding.DecodeString(otherS(t, base64.StdEncoding.EncodeToString(raw)))
		if err != nil {
			t.Fatal(err)
		}
		sig["sig"] = hex.EncodeToString(other)
	})
	trust := signing.NewTrust(root, nil)
	if got, err := trust.UpdateRoots([][]byte{twin}); err != nil || got != trust {
		t.Errorf("a root signed differently is another root: %v", err)
	}
}

func TestT35ProofsThatNobodyChecksAreRefused(t *testing.T) {
	good := sign(t, newSigner(t), []byte("manifest"))
	material := func(d map[string]any) map[string]any { return at(d, "verificationMaterial") }
	for name, raw := range map[string][]byte{
		"log entry": edit(t, good, func(d map[string]any) { material(d)["tlogEntries"] = []any{map[string]any{"logIndex": "1"}} }),
		"log entry with proof": edit(t, good, func(d map[string]any) {
			material(d)["tlogEntries"] = []any{map[string]any{"inclusionProof": map[string]any{"logIndex": "1"}, "logIndex": "1"}}
		}),
		"timestamps": edit(t, good, func(d map[string]any) {
			material(d)["timestampVerificationData"] = map[string]any{"rfc3161Timestamps": []any{map[string]any{"signedTimestamp": "AAAA"}}}
		}),
		"no timestamps": edit(t, good, func(d map[string]any) { material(d)["timestampVerificationData"] = map[string]any{} }),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := signing.ParseBundle(raw)
			wantCode(t, err, signing.CodeBadBundle)
		})
	}
}

func TestT36NoCertificates(t *testing.T) {
	good := sign(t, newSigner(t), []byte("manifest"))
	for _, member := range []string{"certificate", "x509CertificateChain"} {
		raw := edit(t, good, func(d map[string]any) {
			certificate := map[string]any{"rawBytes": "AAAA"}
			delete(at(d, "verificationMaterial"), "publicKey")
			at(d, "verificationMaterial")["certificate"] = certificate
			if member != "certificate" {
				delete(at(d, "verificationMaterial"), "certificate")
				at(d, "verificationMaterial")[member] = map[string]any{"certificates": []any{certificate}}
			}
		})
		_, err := signing.ParseBundle(raw)
		wantCode(t, err, signing.CodeBadBundle)
	}
}

func TestT36KeyWindowsAgainstTheGivenTime(t *testing.T) {
	key := newSigner(t)
	trust := trustIn(t, 1, key) // from a year ago until in two years
	payload, role := []byte("manifest"), signing.BundleRole(channel)
	bundles := signAll(t, payload, key)
	for _, c := range []struct {
		name   string
		offset int // seconds from the edge
		edge   int // years
		valid  bool
	}{
		{"before", -1, -1, false}, {"at its beginning", 0, -1, true}, {"at its last second", -1, 2, true}, {"at its end", 0, 2, false}, {"long after", 0, 20, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := trust.Vouch(payload, bundles, role, years(c.edge).Add(seconds(c.offset)))
			if c.valid {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantCode(t, err, signing.CodeExpiredKey)
		})
	}
	if _, err := trust.Genuine(payload, bundles); err != nil {
		t.Errorf("the first stage asks no clock: %v", err)
	}
}

func TestT37RootsReplayedSkippedForged(t *testing.T) {
	keys := newSigners(t, 2)
	one := rootBy(t, keys[0])
	two := next(t, one, func(d *signing.RootDraft) error {
		return d.SetSigners(signing.Rule{Threshold: 1, Keys: []signing.Key{keys[1].owned("b")}})
	}, keys[0], keys[1])
	three := next(t, two, nil, keys[1])
	toOther := func(d *signing.RootDraft) error {
		return d.SetSigners(signing.Rule{Threshold: 1, Keys: []signing.Key{keys[1].owned("b")}})
	}
	for _, c := range []struct {
		name string
		from *signing.Root
		raw  []byte
		code string
	}{
		{"replay", two, one.Bytes(), signing.CodeRootVersion},
		{"itself", two, two.Bytes(), signing.CodeRootVersion},
		{"skip", one, three.Bytes(), signing.CodeRootVersion},
		{"only the old key", one, nextBytes(t, one, toOther, keys[0]), signing.CodeRootSignatures},
		{"only the new key", one, nextBytes(t, one, toOther, keys[1]), signing.CodeRootSignatures},
		{"nobody", one, nextBytes(t, one, nil), signing.CodeRootSignatures},
		{"a key that is no signer any more", two, nextBytes(t, two, nil, keys[0]), signing.CodeRootSignatures},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.from.Update(c.raw)
			wantCode(t, err, c.code)
			if got != nil {
				t.Error("an error and a root")
			}
		})
	}
	raised := next(t, one, func(d *signing.RootDraft) error { return d.RaiseEpoch(channel) }, keys[0])
	lowered := edit(t, nextBytes(t, raised, nil), func(d map[string]any) { at(d, "signed", "x-packhof", "channels", channel)["epoch"] = 1 })
	lowered, err := signing.CosignRoot(t.Context(), lowered, keys[0])
	if err != nil {
		t.Fatal(err)
	}
	_, err = raised.Update(lowered)
	wantCode(t, err, signing.CodeBadRoot)
	// Two roots of one number: whoever has one of them must hear of it.
	fork := parseRoot(t, nextBytes(t, one, func(d *signing.RootDraft) error { return d.AddChannel(signing.Channel{Name: "evil"}) }, keys[0]))
	_, err = signing.NewTrust(raised, nil).UpdateRoots([][]byte{fork.Bytes()})
	wantCode(t, err, signing.CodeRootConflict)
	if lines := err.(*signing.Error).Evidence(); !slices.Contains(lines, "known: "+raised.Digest()) || !slices.Contains(lines, "got:   "+fork.Digest()) {
		t.Errorf("evidence %q", lines)
	}
}

func TestT37RevocationsReplayedAndShrunk(t *testing.T) {
	key, stranger := newSigner(t), newSigner(t)
	trust := signing.NewTrust(rootBy(t, key), nil)
	first := firstRevocations(t, key)
	second := revoke(t, parseRevocations(t, first), key, func(d *signing.RevocationsDraft) error { return d.RevokeDigest(someDigest, "x") })
	trust, err := trust.UpdateRevocations(second, day())
	if err != nil {
		t.Fatalf("version 2 on the first day: %v", err)
	}
	for name, older := range map[string][]byte{"older": first, "the same": second} {
		if got, err := trust.UpdateRevocations(older, day()); err != nil || got != trust {
			t.Errorf("%s: %v", name, err)
		}
	}
	shrunk := revoke(t, parseRevocations(t, revoke(t, parseRevocations(t, first), key, nil)), key, nil)
	_, err = trust.UpdateRevocations(shrunk, day())
	wantCode(t, err, signing.CodeRevocationsShrunk)
	fork := revoke(t, parseRevocations(t, first), key, func(d *signing.RevocationsDraft) error { return d.RevokeBundle(channel, 1, 1, "x") })
	_, err = trust.UpdateRevocations(fork, day())
	wantCode(t, err, signing.CodeRevocationsShrunk)
	_, err = trust.UpdateRevocations(revoke(t, trust.Revocations(), stranger, nil), day())
	wantCode(t, err, signing.CodeRevocationsSignatures)
	if trust.Revocations().Version() != 2 {
		t.Error("a refused list has changed something")
	}
}

func TestT38OneOfTwo(t *testing.T) {
	keys := newSigners(t, 2)
	trust := trustIn(t, 2, keys...)
	payload := []byte("manifest")
	one := signAll(t, payload, keys[0])
	if _, err := trust.Genuine(payload, one); err != nil {
		t.Error(err)
	}
	_, err := trust.Vouch(payload, one, signing.BundleRole(channel), day())
	wantCode(t, err, signing.CodeThreshold)
}

// The forms of a DER signature that must not be a second spelling of one.
func TestSignatureEncodings(t *testing.T) {
	key := newSigner(t)
	payload := []byte("manifest")
	good := sign(t, key, payload)
	n := elliptic.P256().Params().N
	var sig struct{ R, S *big.Int }
	edit(t, good, func(d map[string]any) {
		raw, err := base64.StdEncoding.DecodeString(at(d, "messageSignature")["signature"].(string))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := asn1.Unmarshal(raw, &sig); err != nil {
			t.Fatal(err)
		}
	})
	der := func(r, s *big.Int) []byte {
		raw, err := asn1.Marshal(struct{ R, S *big.Int }{r, s})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	plain := der(sig.R, sig.S)
	for name, raw := range map[string][]byte{
		"r zero": der(new(big.Int), sig.S), "s zero": der(sig.R, new(big.Int)), "s is n": der(sig.R, n), "r is n": der(n, sig.S),
		"s plus n": der(sig.R, new(big.Int).Add(sig.S, n)), "negative s": der(sig.R, new(big.Int).Neg(sig.S)),
		"trailing byte": append(bytes.Clone(plain), 0), "cut": plain[:len(plain)-1],
		"long length": append([]byte{plain[0], 0x81, plain[1]}, plain[2:]...),
		"raw r and s": append(sig.R.FillBytes(make([]byte, 32)), sig.S.FillBytes(make([]byte, 32))...),
	} {
		bundle, err := signing.ParseBundle(edit(t, good, func(d map[string]any) {
			at(d, "messageSignature")["signature"] = base64.StdEncoding.EncodeToString(raw)
		}))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := bundle.Verify(payload, key.public); codeOf(err) != signing.CodeNotGenuine {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !ecdsa.VerifyASN1(key.public.Key().(*ecdsa.PublicKey), digest(payload), plain) {
		t.Error("the untouched signature does not verify")
	}
}

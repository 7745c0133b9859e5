package signing_test

import (
	"bytes"
	"encoding/json/jsontext"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/packhof/packhof/signing"
	"github.com/theupdateframework/go-tuf/v2/metadata"
	"github.com/theupdateframework/go-tuf/v2/metadata/trustedmetadata"
)

func TestNewRootOfOnePerson(t *testing.T) {
	key := newSigner(t)
	params := signing.RootParams{
		Signer: key, Owner: "Jürgen Groß <root@example>",
		Channels: []signing.Channel{{Name: channel, Prefixes: []string{"nvidia/", "library/"}}},
		Now:      years(-1).Add(123 * time.Millisecond), Expires: years(1),
	}
	raw, err := signing.NewRoot(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	again, err := signing.NewRoot(t.Context(), params)
	if err != nil || !bytes.Equal(raw, again) {
		t.Errorf("the same key and input give other bytes: %v", err)
	}
	root := parseRoot(t, raw)
	if root.Version() != 1 || !root.Expires().Equal(years(1)) || !bytes.Equal(root.Bytes(), raw) {
		t.Errorf("version %d, expires %s", root.Version(), root.Expires())
	}
	if root.Expired(years(1).Add(-time.Second)) || !root.Expired(years(1)) {
		t.Error("a root is expired from its expiry on, not before")
	}
	wantRoles := []signing.Role{"attest:plant-7", "bundle:plant-7", "control:plant-7", "revoke"}
	if diff := cmp.Diff(wantRoles, root.Roles()); diff != "" {
		t.Error(diff)
	}
	for _, role := range wantRoles {
		rule, ok := root.Role(role)
		if !ok || rule.Threshold != 1 || len(rule.Keys) != 1 || rule.Keys[0].Public.ID() != key.id() {
			t.Errorf("role %s: %+v", role, rule)
		}
	}
	known, ok := root.Key(key.id())
	if !ok || known.Owner != params.Owner || !known.NotBefore.Equal(years(-1)) || !known.NotAfter.Equal(years(2)) {
		t.Errorf("key: %+v", known)
	}
	want := signing.Channel{Name: channel, Epoch: 1, Prefixes: []string{"library/", "nvidia/"}}
	got, ok := root.Channel(channel)
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Error(diff)
	}
	if !got.Allows("library/nginx") || got.Allows("librar") || !(signing.Channel{}).Allows("anything") {
		t.Error("prefixes are not judged byte by byte")
	}
	if len(root.Gates()) != 0 || !root.FloorReset().IsZero() || len(root.Keys()) != 1 || len(root.Channels()) != 1 {
		t.Error("a first root has no gates and no floor reset")
	}
	if root.Fingerprint() != signing.FingerprintOf(raw) {
		t.Error("the fingerprint is not that of the file")
	}
}

// The section must survive go-tuf, which keeps what it does not know as
// floating point numbers and signs its own canonical form.
func TestCustomSectionSurvivesGoTUF(t *testing.T) {
	key := newSigner(t)
	const large = 1 << 40
	raw, err := signing.NewRoot(t.Context(), signing.RootParams{
		Signer: key, Owner: `<&> "quoted" back\slash ü 日本`,
		Channels: []signing.Channel{{Name: channel, Epoch: large, Prefixes: []string{"a<b>/"}}},
		Now:      years(-1), Expires: years(1),
	})
	if err != nil {
		t.Fatal(err)
	}
	root := parseRoot(t, raw)
	if got, _ := root.Channel(channel); got.Epoch != large {
		t.Errorf("epoch %d, want %d", got.Epoch, large)
	}
	meta, err := metadata.Root().FromBytes(raw)
	if err != nil {
		t.Fatal(err)
	}
	out, err := meta.ToBytes(false)
	if err != nil {
		t.Fatal(err)
	}
	value := jsontext.Value(out)
	if err := value.Canonicalize(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(raw), string(value)); diff != "" {
		t.Error(diff)
	}
	if _, err := signing.NewRoot(t.Context(), signing.RootParams{
		Signer: key, Owner: "x", Channels: []signing.Channel{{Name: channel, Epoch: large + 1}}, Now: day(), Expires: years(1),
	}); codeOf(err) != signing.CodeRootChange {
		t.Errorf("a number beyond the bound gives %v", err)
	}
}

// go-tuf's own client logic takes our roots, too.
func TestRootsAreTUFRoots(t *testing.T) {
	a, b := newSigner(t), newSigner(t)
	one := rootBy(t, a)
	two := next(t, one, func(d *signing.RootDraft) error {
		return d.SetSigners(signing.Rule{Threshold: 1, Keys: []signing.Key{b.owned("b@example")}})
	}, a, b)
	trusted, err := trustedmetadata.New(one.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trusted.UpdateRoot(two.Bytes()); err != nil {
		t.Error(err)
	}
}

func TestAddGate(t *testing.T) {
	key, receipt, log := newSigner(t), newSigner(t), newEd25519(t)
	root := next(t, rootBy(t, key), func(d *signing.RootDraft) error {
		return d.AddGate(signing.Gate{ID: "gate-a", Owner: "Werk 7"}, years(-1), years(3), receipt.public, log)
	}, key)
	rule, ok := root.Role(signing.ReceiptRole("gate-a"))
	if !ok || rule.Threshold != 1 || len(rule.Keys) != 2 || root.Version() != 2 {
		t.Fatalf("receipt rule %+v of version %d", rule, root.Version())
	}
	if gate, ok := root.Gate("gate-a"); !ok || gate.Owner != "Werk 7" || len(root.Gates()) != 1 {
		t.Errorf("gate %+v", gate)
	}
	for name, change := range map[string]func(*signing.RootDraft) error{
		"twice": func(d *signing.RootDraft) error {
			return d.AddGate(signing.Gate{ID: "gate-a", Owner: "x"}, day(), years(1), receipt.public)
		},
		"no keys": func(d *signing.RootDraft) error { return d.AddGate(signing.Gate{ID: "b", Owner: "x"}, day(), years(1)) },
		"only Ed25519": func(d *signing.RootDraft) error {
			return d.AddGate(signing.Gate{ID: "b", Owner: "x"}, day(), years(1), log)
		},
		"no owner": func(d *signing.RootDraft) error {
			return d.AddGate(signing.Gate{ID: "b"}, day(), years(1), receipt.public)
		},
		"bad name": func(d *signing.RootDraft) error {
			return d.AddGate(signing.Gate{ID: "B/..", Owner: "x"}, day(), years(1), receipt.public)
		},
		"same key twice": func(d *signing.RootDraft) error {
			return d.AddGate(signing.Gate{ID: "b", Owner: "x"}, day(), years(1), receipt.public, receipt.public)
		},
		"no time": func(d *signing.RootDraft) error {
			return d.AddGate(signing.Gate{ID: "b", Owner: "x"}, time.Time{}, years(1), receipt.public)
		},
		"zero key": func(d *signing.RootDraft) error {
			return d.AddGate(signing.Gate{ID: "b", Owner: "x"}, day(), years(1), signing.PublicKey{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			draft := root.Next(time.Time{})
			wantCode(t, change(draft), signing.CodeRootChange)
			raw, err := draft.Sign(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			after, err := root.Update(raw)
			if err != nil || !slices.Equal(after.Roles(), root.Roles()) {
				t.Errorf("the refused change left something behind: %v", err)
			}
		})
	}
}

func TestRootDraftChanges(t *testing.T) {
	key, other := newSigner(t), newSigner(t)
	root := next(t, rootBy(t, key), func(d *signing.RootDraft) error {
		return d.AddGate(signing.Gate{ID: "g", Owner: "g"}, day(), years(1), other.public)
	}, key)
	root = next(t, root, func(d *signing.RootDraft) error {
		for _, err := range []error{
			d.RemoveGate("g"), d.AddChannel(signing.Channel{Name: "lab"}), d.RaiseEpoch(channel), d.ResetFloor(day()),
			d.RemoveRole(signing.AttestRole(channel)),
			d.SetRole(signing.Rule{Role: signing.RoleWitness, Threshold: 1, Keys: []signing.Key{{Public: newEd25519(t), Owner: "w", NotBefore: day(), NotAfter: years(1)}}}),
		} {
			if err != nil {
				return err
			}
		}
		return nil
	}, key)
	if ch, _ := root.Channel(channel); ch.Epoch != 2 || !root.FloorReset().Equal(day()) {
		t.Errorf("epoch %d, floor reset %s", ch.Epoch, root.FloorReset())
	}
	if _, there := root.Key(other.id()); there {
		t.Error("the key of a removed gate is still there")
	}
	want := []signing.Role{"bundle:plant-7", "control:plant-7", "revoke", "witness"}
	if diff := cmp.Diff(want, root.Roles()); diff != "" {
		t.Error(diff)
	}
	if after := next(t, root, nil, key); !after.FloorReset().IsZero() {
		t.Error("a floor reset is carried over to the next version")
	}
	if renewed := parseRoot(t, mustSign(t, root.Next(years(5)), key)); !renewed.Expires().Equal(years(5)) {
		t.Errorf("expires %s", renewed.Expires())
	}
	for name, change := range map[string]func(*signing.RootDraft) error{
		"no gate":       func(d *signing.RootDraft) error { return d.RemoveGate("nope") },
		"no channel":    func(d *signing.RootDraft) error { return d.RaiseEpoch("nope") },
		"no role":       func(d *signing.RootDraft) error { return d.RemoveRole("nope") },
		"channel twice": func(d *signing.RootDraft) error { return d.AddChannel(signing.Channel{Name: "lab"}) },
		"prefix twice": func(d *signing.RootDraft) error {
			return d.AddChannel(signing.Channel{Name: "x", Prefixes: []string{"a", "a"}})
		},
		"hidden text": func(d *signing.RootDraft) error {
			return d.AddChannel(signing.Channel{Name: "x", Prefixes: []string{"a\u202e"}})
		},
		"unknown role":   func(d *signing.RootDraft) error { return d.SetRole(ruleOf("root", 1, other)) },
		"unknown about":  func(d *signing.RootDraft) error { return d.SetRole(ruleOf(signing.PolicyRole("g"), 1, other)) },
		"revoke about":   func(d *signing.RootDraft) error { return d.SetRole(ruleOf("revoke:x", 1, other)) },
		"threshold 0":    func(d *signing.RootDraft) error { return d.SetRole(ruleOf(signing.BundleRole("lab"), 0, other)) },
		"threshold 2":    func(d *signing.RootDraft) error { return d.SetRole(ruleOf(signing.BundleRole("lab"), 2, other)) },
		"signers 0 of 0": func(d *signing.RootDraft) error { return d.SetSigners(signing.Rule{}) },
		"ECDSA witness":  func(d *signing.RootDraft) error { return d.SetRole(ruleOf(signing.RoleWitness, 1, other)) },
		"window reversed": func(d *signing.RootDraft) error {
			return d.SetRole(signing.Rule{Role: signing.RoleRevoke, Threshold: 1, Keys: []signing.Key{{Public: other.public, Owner: "x", NotBefore: years(1), NotAfter: day()}}})
		},
		"year beyond RFC 3339": func(d *signing.RootDraft) error { return d.ResetFloor(time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)) },
	} {
		t.Run(name, func(t *testing.T) { wantCode(t, change(root.Next(time.Time{})), signing.CodeRootChange) })
	}
}

func mustSign(t *testing.T, draft *signing.RootDraft, signers ...signing.Signer) []byte {
	t.Helper()
	raw, err := draft.Sign(t.Context(), signers...)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestNewRootRefusesBadParameters(t *testing.T) {
	key := newSigner(t)
	good := signing.RootParams{Signer: key, Owner: "x", Channels: []signing.Channel{{Name: channel}}, Now: day(), Expires: years(1)}
	for name, spoil := range map[string]func(*signing.RootParams){
		"no signer":         func(p *signing.RootParams) { p.Signer = nil },
		"Ed25519":           func(p *signing.RootParams) { p.Signer = oddSigner{public: newEd25519(t)} },
		"no owner":          func(p *signing.RootParams) { p.Owner = "" },
		"long owner":        func(p *signing.RootParams) { p.Owner = strings.Repeat("x", 501) },
		"owner not UTF-8":   func(p *signing.RootParams) { p.Owner = "a\xff" },
		"owner on lines":    func(p *signing.RootParams) { p.Owner = "a\nvalid: b" },
		"no time":           func(p *signing.RootParams) { p.Now = time.Time{} },
		"no expiry":         func(p *signing.RootParams) { p.Expires = time.Time{}; p.KeyNotAfter = years(1) },
		"bad channel":       func(p *signing.RootParams) { p.Channels = []signing.Channel{{Name: "../x"}} },
		"channel twice":     func(p *signing.RootParams) { p.Channels = append(p.Channels, p.Channels[0]) },
		"key ends too soon": func(p *signing.RootParams) { p.KeyNotAfter = p.Now },
	} {
		t.Run(name, func(t *testing.T) {
			p := good
			p.Channels = slices.Clone(good.Channels)
			spoil(&p)
			_, err := signing.NewRoot(t.Context(), p)
			wantCode(t, err, signing.CodeRootChange)
		})
	}
	p := good
	p.Channels = nil
	if raw, err := signing.NewRoot(t.Context(), p); err != nil || parseRoot(t, raw).Version() != 1 {
		t.Errorf("a root without channels: %v", err)
	}
}

func TestRootSignedOnTwoMachines(t *testing.T) {
	keys := newSigners(t, 3)
	first := rootBy(t, keys[0])
	two := next(t, first, func(d *signing.RootDraft) error {
		return d.SetSigners(ruleOf("", 2, keys...))
	}, keys[0], keys[1])
	partial := nextBytes(t, two, nil, keys[2])
	_, err := two.Update(partial)
	wantCode(t, err, signing.CodeRootSignatures)
	refusal := asUntrusted(t, err)
	if refusal.Have != 1 || refusal.Need != 2 || !slices.Equal(idsOf(refusal.Valid), []signing.KeyID{keys[2].id()}) || len(refusal.Missing) != 2 {
		t.Errorf("refusal: %+v", refusal)
	}
	full, err := signing.CosignRoot(t.Context(), partial, keys[0])
	if err != nil {
		t.Fatal(err)
	}
	again, err := signing.CosignRoot(t.Context(), full, keys[0])
	if err != nil || !bytes.Equal(again, full) {
		t.Errorf("signing twice changes the file: %v", err)
	}
	three, err := two.Update(full)
	if err != nil || three.Version() != 3 {
		t.Fatalf("update: %v", err)
	}
	if _, err := signing.CosignRoot(t.Context(), []byte("{}"), keys[0]); codeOf(err) != signing.CodeBadRoot {
		t.Errorf("cosigning no root: %v", err)
	}
	failing := oddSigner{public: keys[0].public}
	if _, err := two.Next(time.Time{}).Sign(t.Context(), failing); codeOf(err) != signing.CodeSigner {
		t.Errorf("a signer that fails: %v", err)
	}
}

func TestParseRootIsStrict(t *testing.T) {
	key, other := newSigner(t), newSigner(t)
	good := next(t, rootBy(t, key), func(d *signing.RootDraft) error {
		return d.AddGate(signing.Gate{ID: "g", Owner: "g"}, day(), years(1), other.public)
	}, key).Bytes()
	packhof := func(d map[string]any) map[string]any { return at(d, "signed", "x-packhof") }
	keyOf := func(d map[string]any) map[string]any { return at(packhof(d), "keys", key.id().String()) }
	for name, raw := range map[string][]byte{
		"empty":           nil,
		"too large":       bytes.Repeat([]byte(" "), signing.MaxRoot+1),
		"newline":         append(bytes.Clone(good), '\n'),
		"duplicate":       bytes.Replace(good, []byte(`"version":2`), []byte(`"version":2,"version":2`), 1),
		"case":            bytes.Replace(good, []byte(`"version":2`), []byte(`"Version":2`), 1),
		"float":           bytes.Replace(good, []byte(`"version":2`), []byte(`"version":2.0`), 1),
		"exponent":        bytes.Replace(good, []byte(`"version":2`), []byte(`"version":2e0`), 1),
		"deep":            []byte(strings.Repeat(`{"a":`, 50)),
		"unknown, top":    edit(t, good, func(d map[string]any) { d["x"] = 1 }),
		"unknown, signed": edit(t, good, func(d map[string]any) { at(d, "signed")["x"] = 1 }),
		"unknown, ours":   edit(t, good, func(d map[string]any) { packhof(d)["x"] = 1 }),
		"unknown, key":    edit(t, good, func(d map[string]any) { keyOf(d)["x"] = 1 }),
		"no section":      edit(t, good, func(d map[string]any) { delete(at(d, "signed"), "x-packhof") }),
		"no signatures":   edit(t, good, func(d map[string]any) { delete(d, "signatures") }),
		"null list":       edit(t, good, func(d map[string]any) { d["signatures"] = nil }),
		"null gates":      edit(t, good, func(d map[string]any) { packhof(d)["gates"] = nil }),
		"other type":      edit(t, good, func(d map[string]any) { at(d, "signed")["_type"] = "targets" }),
		"other format":    edit(t, good, func(d map[string]any) { packhof(d)["format"] = "packhof.trust/v2" }),
		"other spec":      edit(t, good, func(d map[string]any) { at(d, "signed")["spec_version"] = "2.0.0" }),
		"version 0":       edit(t, good, func(d map[string]any) { at(d, "signed")["version"] = 0 }),
		"bad expiry":      edit(t, good, func(d map[string]any) { at(d, "signed")["expires"] = "2027-01-01T00:00:00.5Z" }),
		"expiry in zone":  edit(t, good, func(d map[string]any) { at(d, "signed")["expires"] = "2027-01-01T00:00:00+01:00" }),
		"bad window":      edit(t, good, func(d map[string]any) { keyOf(d)["notAfter"] = "soon" }),
		"no window":       edit(t, good, func(d map[string]any) { delete(keyOf(d), "notBefore") }),
		"wrong algorithm": edit(t, good, func(d map[string]any) { keyOf(d)["algorithm"] = "ed25519" }),
		"SPKI as PEM":     edit(t, good, func(d map[string]any) { keyOf(d)["spki"] = key.public.PEM() }),
		"no SPKI":         edit(t, good, func(d map[string]any) { keyOf(d)["spki"] = "" }),
		"TUF role signed by others": edit(t, good, func(d map[string]any) {
			at(d, "signed", "roles", "targets")["keyids"] = at(d, "signed", "roles", "root")["keyids"]
		}),
		"fifth TUF role": edit(t, good, func(d map[string]any) {
			at(d, "signed", "roles")["mirrors"] = map[string]any{"keyids": []any{}, "threshold": 1}
		}),
		"no TUF role":     edit(t, good, func(d map[string]any) { delete(at(d, "signed", "roles"), "snapshot") }),
		"TUF key missing": edit(t, good, func(d map[string]any) { at(d, "signed")["keys"] = map[string]any{} }),
		"bad floor":       edit(t, good, func(d map[string]any) { packhof(d)["floorReset"] = "yesterday" }),
		"empty floor":     edit(t, good, func(d map[string]any) { packhof(d)["floorReset"] = "" }),
		"unused key":      edit(t, good, func(d map[string]any) { delete(at(packhof(d), "roles"), "receipt:g") }),
		"role of nothing": edit(t, good, func(d map[string]any) { delete(at(packhof(d), "gates"), "g") }),
		"unknown role":    edit(t, good, func(d map[string]any) { r := at(packhof(d), "roles"); r["admin"] = r["revoke"] }),
		"unknown key id": edit(t, good, func(d map[string]any) {
			at(packhof(d), "roles", "revoke")["keyids"] = []any{strings.Repeat("0", 64)}
		}),
		"no owner":          edit(t, good, func(d map[string]any) { keyOf(d)["owner"] = "" }),
		"signature in caps": edit(t, good, func(d map[string]any) { upper(d, "sig") }),
		"too many signatures": edit(t, good, func(d map[string]any) {
			var list []any
			for i := range signing.MaxSignatures + 1 {
				list = append(list, map[string]any{"keyid": fmt.Sprintf("%04d", i), "sig": "00"})
			}
			d["signatures"] = list
		}),
		"two signatures of one id": edit(t, good, func(d map[string]any) {
			list := d["signatures"].([]any)
			d["signatures"] = append(list, list[0])
		}),
		"empty channel name": edit(t, good, func(d map[string]any) {
			at(packhof(d), "channels")[""] = map[string]any{"epoch": 1, "prefixes": []any{}}
		}),
		"unsorted prefixes": edit(t, good, func(d map[string]any) { at(packhof(d), "channels", channel)["prefixes"] = []any{"b", "a"} }),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := signing.ParseRoot(raw)
			wantCode(t, err, signing.CodeBadRoot)
		})
	}
}

func upper(d map[string]any, member string) {
	sig := d["signatures"].([]any)[0].(map[string]any)
	sig[member] = strings.ToUpper(sig[member].(string))
}

func TestParseRootWantsItsOwnThreshold(t *testing.T) {
	key := newSigner(t)
	good := rootBy(t, key).Bytes()
	unsigned := edit(t, good, func(d map[string]any) { d["signatures"] = []any{} })
	_, err := signing.ParseRoot(unsigned)
	wantCode(t, err, signing.CodeRootSignatures)
	later := edit(t, good, func(d map[string]any) { at(d, "signed")["version"] = 2 })
	_, err = signing.ParseRoot(later)
	wantCode(t, err, signing.CodeRootSignatures)
}

func TestCheckName(t *testing.T) {
	for _, good := range []string{"a", "7", "plant-7", "a.b_c-d", strings.Repeat("x", 64)} {
		if err := signing.CheckName(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "-a", "a-", ".", "..", "a..b", "A", "a/b", "a:b", "ä", "a b", "a\x00", strings.Repeat("x", 65)} {
		if signing.CheckName(bad) == nil {
			t.Errorf("%q is a name", bad)
		}
	}
}

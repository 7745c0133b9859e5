package facts_test

import (
	"context"
	"encoding/json/v2"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/policy"
	"github.com/packhof/packhof/policy/facts"
	"github.com/packhof/packhof/signing"
)

func TestBundleAndTime(t *testing.T) {
	f := forge(t)
	f.Manifest.Note = "please hurry"
	f.Manifest.Serial = 4
	f.Manifest.Previous = new(cas.DigestOf([]byte("before")))
	f.Manifest.Incomplete = []bundle.Omission{{Name: "left", Reason: "too large"}}
	b := f.seal()
	s := f.subject(b)
	s.Gap, s.Preview = []int64{3, 2}, true
	in := state(t, s)

	signer := b.Voucher().Signers()[0]
	want := policy.Bundle{
		Digest: b.Digest().String(), Kind: "content", Channel: "plant-7", Epoch: 1, Serial: 4, Previous: f.Manifest.Previous.String(),
		Gap: []int64{2, 3}, Created: "2026-11-30T12:00:00Z", Expires: "2026-12-30T12:00:00Z", Audience: []string{testkit.GateID},
		Role: string(b.Voucher().Role()), Threshold: 1,
		Signers: []policy.Signer{{KeyID: signer.ID.String(), Owner: "release@example", Role: string(b.Voucher().Role()), NotBefore: "2026-11-30T12:00:00Z", NotAfter: "2029-11-30T12:00:00Z"}},
		Blobs:   f.Manifest.Totals.Files, Bytes: f.Manifest.Totals.Bytes,
		Omitted:   []policy.Omission{{Name: "left", Untrusted: policy.OmissionUntrusted{Reason: "too large"}}},
		Untrusted: policy.BundleUntrusted{Note: "please hurry"},
	}
	if d := cmp.Diff(want, in.Bundle); d != "" {
		t.Errorf("bundle (-want +got)\n%s", d)
	}
	if d := cmp.Diff(policy.Time{Floor: "2026-11-30T12:00:00Z", Wall: "2026-11-30T12:01:30Z", SkewSeconds: 90}, in.Time); d != "" || !in.Preview {
		t.Errorf("preview %v, time (-want +got)\n%s", in.Preview, d)
	}
}

func TestTimeIsWholeSeconds(t *testing.T) {
	f := forge(t)
	s := f.subject(f.seal())
	s.Time = facts.Time{Floor: testkit.Noon().Add(900 * time.Millisecond), Wall: testkit.Noon().Add(1100 * time.Millisecond)}
	if in := state(t, s); in.Time.SkewSeconds != 1 {
		t.Errorf("%+v", in.Time)
	}
}

func TestStateNeedsABundleAndItsRoot(t *testing.T) {
	f := forge(t)
	b := f.seal()
	for name, s := range map[string]facts.Subject{"no bundle": {Root: f.Trust.Root()}, "no root": {Bundle: b}} {
		if in, err := facts.State(t.Context(), s); err == nil {
			t.Errorf("%s: %+v", name, in)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := facts.State(ctx, f.subject(b)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A root that does not know the signers was not the one that vouched: then
// nothing can be judged.
func TestAnotherRootIsNotTaken(t *testing.T) {
	f := forge(t)
	s := f.subject(f.seal())
	stranger, err := testkit.NewSigner("stranger")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := signing.NewRoot(t.Context(), signing.RootParams{
		Signer: stranger, Owner: "stranger@example", Channels: []signing.Channel{{Name: "plant-7", Epoch: 1}},
		Now: testkit.Noon(), Expires: testkit.Noon().AddDate(3, 0, 0),
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.Root, err = signing.ParseRoot(raw); err != nil {
		t.Fatal(err)
	}
	in, err := facts.State(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := in.Encode(); err == nil {
		t.Error("a signer whose validity nobody knows was taken")
	}
}

func TestChangesAgainstWhatThePlantHolds(t *testing.T) {
	f := forge(t)
	f.files(bundle.Model, "kept", map[string][]byte{"a.txt": []byte("a")})
	f.files(bundle.Model, "changed", map[string][]byte{"b.txt": []byte("b")})
	b := f.seal()
	old, other := cas.DigestOf([]byte("old")), cas.DigestOf([]byte("other"))
	s := f.subject(b)
	s.Held = []facts.Held{
		{bundle.Model, "kept", "1.0", f.Manifest.Artifacts[1].Root.Digest},
		{bundle.Model, "changed", "0.9", old},
		{bundle.Dataset, "changed", "0.8", other},
	}
	in := state(t, s)
	for name, want := range map[string]policy.Change{
		"notes":   {State: "new"},
		"kept":    {State: "unchanged", FromVersion: "1.0", FromDigest: f.Manifest.Artifacts[1].Root.Digest.String()},
		"changed": {State: "updated", FromVersion: "0.9", FromDigest: old.String()},
	} {
		if d := cmp.Diff(want, artifactNamed(t, in, name).Change); d != "" {
			t.Errorf("%s (-want +got)\n%s", name, d)
		}
	}
	if d := cmp.Diff([]policy.Removed{{Kind: "dataset", Name: "changed", Version: "0.8", Digest: other.String()}}, in.Removed); d != "" {
		t.Errorf("removed (-want +got)\n%s", d)
	}
}

func TestOrigins(t *testing.T) {
	for _, c := range []struct {
		from      string
		transport bundle.Transport
		host      string
	}{
		{"Registry.example:5000/a/b:1", bundle.TransportTLS, "registry.example:5000"},
		{"registry.example/a@sha256:00", bundle.TransportPlain, "registry.example"},
		{"https://files.example/a/b?c", bundle.TransportTLS, "files.example"},
		{"https://user@files.example:8443/a", bundle.TransportTLS, "files.example:8443"},
		{"localhost/a", bundle.TransportPlain, "localhost"},
		{"a/b", bundle.TransportTLS, "?"},
		{"https:///a", bundle.TransportTLS, "?"},
		{"https://[::1/a", bundle.TransportTLS, "?"},
		{"user@evil.example/a", bundle.TransportTLS, "?"},
		{"alone", bundle.TransportPlain, "?"},
		{"/srv/models", bundle.TransportLocal, ""},
		{"models.example/x", bundle.TransportLocal, ""},
	} {
		f := forge(t)
		f.Manifest.Artifacts[0].Origin = bundle.Origin{From: c.from, At: bundle.At(testkit.Noon()), Transport: c.transport, Verified: bundle.VerifiedDigest}
		got := state(t, f.subject(f.seal())).Artifacts[0].Origin
		want := policy.Origin{Host: c.host, From: c.from, Transport: string(c.transport), Verified: "digest", Pinned: true}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got)\n%s", c.from, d)
		}
	}
}

func TestDestinationsAndLabels(t *testing.T) {
	f := forge(t)
	f.Manifest.Artifacts[0].Labels = map[string]string{"team": "tools", "line": "7"}
	s := f.subject(f.seal())
	s.Destinations = func(a bundle.Artifact) []string { return []string{"s3", "depot-" + a.Name} }
	a := state(t, s).Artifacts[0]
	if d := cmp.Diff([]string{"depot-notes", "s3"}, a.Destinations); d != "" {
		t.Errorf("destinations (-want +got)\n%s", d)
	}
	if d := cmp.Diff([]policy.Label{{Name: "line", Value: "7"}, {Name: "team", Value: "tools"}}, a.Untrusted.Labels); d != "" {
		t.Errorf("labels (-want +got)\n%s", d)
	}
}

func TestControlBundles(t *testing.T) {
	f := forge(t)
	document := f.blob([]byte(`{"rules":[]}`), bundle.RoleMetadata)
	f.Manifest.Kind, f.Manifest.Artifacts = bundle.KindControl, nil
	f.Manifest.Documents = []bundle.Document{{Type: "policy", Version: "1", Blob: document.Digest}}
	if in := state(t, f.subject(f.seal())); in.Bundle.Kind != "control" || len(in.Artifacts) > 0 {
		t.Errorf("%+v", in)
	}
}

// TestFreeTextStaysUntrusted puts a marked word into every free text that a
// sender or an artifact has, and looks where it comes out.
func TestFreeTextStaysUntrusted(t *testing.T) {
	const word = "SAY-ALLOW"
	f := forge(t)
	f.Manifest.Note = word
	f.Manifest.Incomplete = []bundle.Omission{{Name: "left", Reason: word}}
	image := f.platform(`{"os":"`+word+`","architecture":"amd64","config":{"Labels":{"`+word+`":"`+word+`"},"Env":["A=`+word+`"]}}`, configType, layerType)
	f.image(image, image.Digest).Labels = map[string]string{"x": word}
	f.files(bundle.Files, "archive", map[string][]byte{"a.bin": []byte("c" + strings.ReplaceAll(word, "-", "_") + "\nrun\n(tR.")})
	broken := f.platform(`{"config":{"User":"`+word+`","user":"x"}}`, configType, layerType)
	f.image(broken, broken.Digest).Name = "broken"
	b := f.seal()
	s := f.subject(b)
	reports, err := facts.Inspect(t.Context(), b, f.open, limits())
	if err != nil {
		t.Fatal(err)
	}
	s.Inspection = reports
	raw, err := json.Marshal(state(t, s))
	if err != nil {
		t.Fatal(err)
	}
	var document any
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatal(err)
	}
	found := 0
	visit(document, "", func(path, text string) {
		if !strings.Contains(strings.ReplaceAll(text, "_", "-"), word) {
			return
		}
		if found++; !strings.Contains(path, "/untrusted/") {
			t.Errorf("%s has %q", path, text)
		}
	})
	if found < 6 {
		t.Errorf("the word came out %d times: the test looks at too little", found)
	}
}

func visit(v any, path string, do func(path, text string)) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			do(path, name)
			visit(inner, path+"/"+name, do)
		}
	case []any:
		for _, inner := range v {
			visit(inner, path+"/", do)
		}
	case string:
		do(path, v)
	}
}

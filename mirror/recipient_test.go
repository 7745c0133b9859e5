package mirror_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/mirror"
	"github.com/packhof/packhof/signing"
)

func TestRecipients(t *testing.T) {
	const (
		first, second = "age168lzr602ae8gugh93hy0n2a66nx4yftn882c2gzuzcacgjeleqgs4x63ar", "age1ah39y58zk85d8y4utqw49drlcfnp7af0pn7kg0uedm54sppe297qpw2pnf"
		old, new      = "gate-aaaaaaaaaaaaaaaa", "gate-bbbbbbbbbbbbbbbb"
	)
	signer, err := testkit.NewSigner("recipients")
	if err != nil {
		t.Fatal(err)
	}
	now := testkit.Noon()
	raw, err := signing.NewRoot(t.Context(), signing.RootParams{Signer: signer, Owner: "o", Channels: []signing.Channel{{Name: "c"}}, Now: now, Expires: now.AddDate(1, 0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	root, err := signing.ParseRoot(raw)
	if err != nil {
		t.Fatal(err)
	}
	draft := root.Next(root.Expires())
	for _, g := range []signing.Gate{{ID: old, Owner: "o"}, {ID: new, Owner: "o", Recipient: second}} {
		if err := draft.AddGate(g, now, now.AddDate(1, 0, 0), signer.Public()); err != nil {
			t.Fatal(err)
		}
	}
	if raw, err = draft.Sign(t.Context(), signer); err != nil {
		t.Fatal(err)
	}
	if root, err = root.Update(raw); err != nil {
		t.Fatal(err)
	}
	audience := []string{old, new}
	for name, c := range map[string]struct {
		to   []string
		root *signing.Root
		want []string
		code string
	}{
		"nobody":                   {nil, root, nil, ""},
		"a gate and its recipient": {[]string{new, first, second}, root, []string{first, second}, ""},
		"no root needed":           {[]string{second, first}, nil, []string{first, second}, ""},
		"a gate without":           {audience, root, nil, "encrypt/no-recipient"},
		"no root":                  {[]string{new}, nil, nil, "encrypt/no-recipient"},
		"not in the audience":      {[]string{"gate-cccccccccccccccc"}, root, nil, "encrypt/other-gate"},
		"no recipient":             {[]string{"somebody"}, root, nil, "encrypt/recipient"},
		"a private key":            {[]string{"age-secret-key-1secret"}, root, nil, "encrypt/recipient"},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := mirror.Recipients(c.to, audience, c.root)
			if problem.CodeOf(err) != c.code || err != nil && strings.Contains(err.Error(), "1secret") {
				t.Fatalf("%v, want %q", err, c.code)
			}
			var got []string
			for _, r := range list {
				got = append(got, r.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

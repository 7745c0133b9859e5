package signing_test

import (
	"strings"
	"testing"
	"time"

	"github.com/packhof/packhof/signing"
)

// TestRecipientOfAGate: it comes with a gate or later, can be exchanged, and has
// one form.
func TestRecipientOfAGate(t *testing.T) {
	const first = "age168lzr602ae8gugh93hy0n2a66nx4yftn882c2gzuzcacgjeleqgs4x63ar"
	const second = "age1ah39y58zk85d8y4utqw49drlcfnp7af0pn7kg0uedm54sppe297qpw2pnf"
	key := newSigner(t)
	root := next(t, rootBy(t, key), func(d *signing.RootDraft) error {
		return d.AddGate(signing.Gate{ID: "gate-a", Owner: "Werk 7"}, years(-1), years(3), newSigner(t).public)
	}, key)
	if strings.Contains(string(root.Bytes()), "recipient") {
		t.Error("a gate without a recipient has the field")
	}
	for _, want := range []string{first, second} {
		root = next(t, root, func(d *signing.RootDraft) error { return d.SetRecipient("gate-a", want) }, key)
		if gate, ok := root.Gate("gate-a"); !ok || gate.Recipient != want || gate.Owner != "Werk 7" {
			t.Errorf("%+v, want %s", gate, want)
		}
	}
	for _, wrong := range []string{first[:61], strings.ToUpper(first), first + "\n", "age1" + strings.Repeat("b", 58), "somebody"} {
		wantCode(t, root.Next(time.Time{}).SetRecipient("gate-a", wrong), signing.CodeRootChange)
	}
	wantCode(t, root.Next(time.Time{}).SetRecipient("gate-b", first), signing.CodeRootChange)
}

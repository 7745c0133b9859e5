package bundle_test

import (
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/signing"
)

// A reader that knows a newer revocation list than the bundle brings refuses
// what that list names, whoever signed it.
func TestRevokedAfterSigning(t *testing.T) {
	f := testkit.Forge(t, nil)
	for name, revoke := range map[string]func(*signing.RevocationsDraft) error{
		"the serial": func(d *signing.RevocationsDraft) error { return d.RevokeBundle("plant-7", 1, 1, "built on a bad host") },
		"the artifact": func(d *signing.RevocationsDraft) error {
			return d.RevokeDigest(f.Manifest.Artifacts[0].Root.Digest.String(), "backdoor")
		},
		"a blob": func(d *signing.RevocationsDraft) error {
			return d.RevokeDigest(f.Manifest.Blobs[0].Digest.String(), "backdoor")
		},
	} {
		t.Run(name, func(t *testing.T) {
			draft := f.Trust.Revocations().Next(testkit.Noon())
			if err := revoke(draft); err != nil {
				t.Fatal(err)
			}
			list, err := draft.Sign(t.Context(), f.Signer)
			if err != nil {
				t.Fatal(err)
			}
			trust, err := f.Trust.UpdateRevocations(list, testkit.Noon())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := bundle.OpenSealed("x", f.Head, f.Content).Verify(trust, testkit.Noon()); problem.CodeOf(err) != "bundle/revoked" {
				t.Errorf("Verify = %v", err)
			}
		})
	}
}

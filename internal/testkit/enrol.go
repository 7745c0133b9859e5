package testkit

import (
	"testing"

	"github.com/packhof/packhof/signing"
)

// Enrolled is the trust of a forged bundle after a gate was added to the root:
// what the connected side believes once it knows the gate, by the keys of its
// receipts and of its log.
func (f *Forged) Enrolled(t testing.TB, gate string, receipt, log signing.PublicKey) *signing.Trust {
	t.Helper()
	expires := Noon().AddDate(3, 0, 0)
	draft := f.Trust.Root().Next(expires)
	if err := draft.AddGate(signing.Gate{ID: gate, Owner: "Werk 7"}, Noon(), expires, receipt, log); err != nil {
		t.Fatal(err)
	}
	raw, err := draft.Sign(t.Context(), f.Signer)
	if err != nil {
		t.Fatal(err)
	}
	trust, err := f.Trust.UpdateRoots([][]byte{raw})
	if err != nil {
		t.Fatal(err)
	}
	return trust
}

// Package signing answers one question: who vouches for these bytes?
//
// It makes and reads keys, signs bytes as Sigstore bundles, holds the trust
// root (which keys may speak in which role, and how many must), the list of
// what was revoked, and counts signatures against a role:
//
//	trust := signing.NewTrust(root, revocations)
//	signers, err := trust.Genuine(manifest, bundles)                          // anyone of ours at all?
//	voucher, err := trust.Vouch(manifest, bundles, signing.BundleRole(c), at) // enough of the right ones?
//
// Everything that is judged is judged over the exact bytes that were handed
// in; a key is known by the SHA-256 of its public half and by nothing else,
// neither by a hint, a file name nor the bytes of a signature.
//
// The package works on bytes. It never opens a file, never speaks to a
// network, never asks a clock (times are parameters), and never fetches trust
// material: nothing here builds a TUF client. It does not decide what an
// expired root means, whether a bundle is fresh, or what may be loaded. What it
// does not understand it refuses, and an empty Trust trusts nobody.
package signing

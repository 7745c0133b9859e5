// Package bundle is the parcel: what crosses the gap, and nothing else does.
//
// It owns the container (a strict USTAR subset), the manifest and every other
// document that travels, and the shape of artifacts; docs/bundle-format.md and
// docs/artifacts.md are its specifications. A bundle is read in two steps
// which the types keep apart: Open gives a *Sealed, which has arrived and is
// trusted with nothing; Sealed.Verify alone makes a *Bundle, which is vouched
// for.
//
// It never decides whether a bundle may come in, never fetches, and never
// extracts an entry by its name.
package bundle

// Package gate is the air-gapped shore: it takes bundles in, proves them, has
// them inspected and judged, waits for people, and lets through what they
// approved.
//
// A bundle is a case with one row of state. Each step of a case is one
// transaction together with its leaf of the audit log, and may be killed and
// run again. Content lies in one store, by digest; "released" is a row, never
// the place of a file.
//
// The package never fetches anything, never parses a byte that was not proven
// before (beyond what bundle needs to prove it), knows no screen and no kind
// of destination: those implement Sink and are handed in.
package gate

// Package testkit stands in for the world outside: a real OCI registry in
// process, an HTTPS file server, images, model files and data sets made from a
// seed, fixed keys and a clock that stands still.
//
// Functions called Start… return errors and can be used by programs (the demo,
// the benchmark); those called New… take a testing.TB, fail it and clean up
// after themselves. All content is a function of its seed: the same seed gives
// the same bytes on every machine and on every day.
//
// It never imports mirror, gate or web, and no package that ships imports it.
package testkit

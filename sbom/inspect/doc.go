// Package inspect says what a file is, by its content and never by its name,
// and whether loading it could run code: a pickle wherever it hides, an
// executable, a layer of Keras that is Python, a custom operator of ONNX.
//
// A file that is read in two ways (a pickle in front of a zip archive, a zip
// archive whose two directories differ) is looked at in both. What could not
// be looked into, because of a limit, damage, encryption or a format that
// nobody here reads, is part of the report: Report.Unreadable. For archives
// the members are inspected in turn, to Limits.Depth.
//
// It never runs, loads or unpacks to disk what it looks at, never uses the
// network, and never holds more than Limits.Buffer of a member and
// Limits.Window of a decoder's history in memory. Formats of raw content
// (text, pictures, unknown) are judged by their beginning.
package inspect

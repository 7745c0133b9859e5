// Package depot is the built-in destination, and the server that the plant's
// unchanged clients fetch released content from: container tools at /v2/ (pull
// and content discovery of the OCI distribution specification, referrers
// included) and anything that speaks HTTP at /files/, with ranges and a
// SHA256SUMS for each tree.
//
// Loading into it moves nothing: content lies in the gate's store already, and
// names are rows of the gate. What a client may see, the gate.DepotStore says;
// a name or digest that it does not give is not there, whatever the store on
// disk holds.
//
// A whole blob reaches a client only if its bytes were proven: its end is held
// back until the SHA-256 of the file fits, and the connection is cut where it
// does not. Proving runs beside the sending, once for all clients that ask for
// the same blob, and is remembered for an hour together with what the file
// system knows of the file (device, inode, size, times of modification and
// change): within that hour the file is sent as it is, by the kernel itself
// where the connection is not encrypted. A part of a blob, which only a range
// request gets, is not proven: whoever joins parts compares the digest of the
// whole.
//
// It never writes, never reads a path that a client named, never sends what a
// browser would run, and takes nothing from a request but names, digests and
// page numbers.
package depot

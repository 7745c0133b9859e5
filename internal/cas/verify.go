package cas

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
)

// CorruptError says that bytes are not those that their name promises.
type CorruptError struct {
	What      string // which object: a path, a URL
	Want, Got Digest // Got is zero when the size already differs
	WantSize  int64
	GotSize   int64  // bytes seen; at least this many when too long
	Within    Digest // the blob that they are a part of; zero when they are all of one
}

// Blob is the blob whose bytes are wrong.
func (e *CorruptError) Blob() Digest {
	if e.Within.IsZero() {
		return e.Want
	}
	return e.Within
}

func (e *CorruptError) Error() string {
	if e.GotSize < e.WantSize {
		return fmt.Sprintf("%s ends after %d of %d bytes", e.What, e.GotSize, e.WantSize)
	}
	if e.GotSize > e.WantSize {
		return fmt.Sprintf("%s is longer than the promised %d bytes", e.What, e.WantSize)
	}
	return fmt.Sprintf("%s does not have the promised digest", e.What)
}

// Code is the stable code of this error.
func (e *CorruptError) Code() string { return "content/corrupt" }

// Evidence gives both digests, or both sizes.
func (e *CorruptError) Evidence() []string {
	if e.GotSize != e.WantSize {
		return []string{
			fmt.Sprintf("want:  %s, %d bytes", e.Want, e.WantSize),
			fmt.Sprintf("got:   %d bytes", e.GotSize),
		}
	}
	return []string{fmt.Sprintf("want:  %s", e.Want), fmt.Sprintf("got:   %s", e.Got)}
}

// Verifier passes bytes through and refuses to end well when they are not
// exactly the promised ones: it fails on a wrong digest, on too few bytes and
// as soon as there is one too many. A caller that reads to io.EOF cannot
// forget to check.
type Verifier struct {
	r    io.Reader
	hash hash.Hash
	what string
	want Digest
	size int64
	seen int64
	err  error
}

// Verify wraps r. What names the object in errors.
func Verify(r io.Reader, want Digest, size int64, what string) *Verifier {
	return &Verifier{r: r, hash: sha256.New(), what: what, want: want, size: size}
}

// Read returns io.EOF only after the last promised byte and a right digest.
func (v *Verifier) Read(p []byte) (int, error) {
	if v.err != nil {
		return 0, v.err
	}
	n, err := v.r.Read(p)
	v.seen += int64(n)
	if v.seen > v.size {
		v.err = v.corrupt(Digest{})
		return 0, v.err
	}
	_, _ = v.hash.Write(p[:n]) // a hash never fails
	if err == io.EOF {
		err = v.finish()
	}
	v.err = err
	return n, err
}

func (v *Verifier) finish() error {
	if v.seen < v.size {
		return v.corrupt(Digest{})
	}
	var got Digest
	v.hash.Sum(got[:0])
	if got != v.want {
		return v.corrupt(got)
	}
	return io.EOF
}

func (v *Verifier) corrupt(got Digest) error {
	return &CorruptError{What: v.what, Want: v.want, Got: got, WantSize: v.size, GotSize: v.seen}
}

package agefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"
)

// maxHeader is the longest header that is parsed; one for MaxRecipients has
// less.
const maxHeader = 128 << 10

// Begins tells whether a file begins as an age stream does. It reads the first
// line and nothing else.
func Begins(r io.ReaderAt) bool {
	start := make([]byte, introSize)
	n, _ := r.ReadAt(start, 0) // what cannot be read does not begin so
	return string(start[:n]) == intro
}

// Reader reads the plaintext of a stream at any place, by opening only the
// chunks that are asked for. It is safe for use by several goroutines. What
// does not open is a *DamagedError; what the source cannot give is the source's
// own error.
type Reader struct {
	plain io.ReaderAt
	size  int64
	first int64 // byte of the stream at which its first chunk begins
}

// Look tells, without any identity, how long the plaintext of a stream of size
// bytes is if nothing of it is missing. A header that is in no form, or a length
// that no stream has, is a *DamagedError.
func Look(r io.ReaderAt, size int64) (plain int64, err error) {
	header, _, err := readHeader(r, size)
	if err != nil {
		return 0, err
	}
	_, err = age.DecryptHeader(header, nobody{})
	var others *age.NoIdentityMatchError
	if !errors.As(err, &others) {
		return 0, &DamagedError{0, notWritten}
	}
	first := int64(len(header)) + nonceSize
	pieces := (size - first + chunkSize + chunkSeal - 1) / (chunkSize + chunkSeal)
	if size < first+chunkSeal {
		return 0, &DamagedError{size, "it ends before its first piece"}
	}
	if last := size - lastChunk(first, size); last < chunkSeal || last == chunkSeal && pieces > 1 {
		return 0, &DamagedError{lastChunk(first, size), "it ends within a piece"}
	}
	return size - first - pieces*chunkSeal, nil
}

// nobody is an identity that fits nothing.
type nobody struct{}

func (nobody) Unwrap([]*age.Stanza) ([]byte, error) { return nil, age.ErrIncorrectIdentity }

const notWritten = "its header is not the one that was written"

// Open opens a stream of size bytes with the first identity that fits. It reads
// the header and the last chunk, which says where the stream ends. Errors:
// *DamagedError, *ForOthersError where no identity fits, or what the source
// gave.
func Open(r io.ReaderAt, size int64, identities ...*Identity) (*Reader, error) {
	header, stanzas, err := readHeader(r, size)
	if err != nil {
		return nil, err
	}
	if len(identities) == 0 {
		return nil, &ForOthersError{stanzas}
	}
	keys := make([]age.Identity, len(identities))
	for i, identity := range identities {
		keys[i] = identity.key
	}
	fileKey, err := age.DecryptHeader(header, keys...)
	var others *age.NoIdentityMatchError
	if errors.As(err, &others) {
		return nil, &ForOthersError{stanzas}
	}
	if err != nil {
		return nil, &DamagedError{0, notWritten}
	}
	first := int64(len(header)) + nonceSize
	plain, length, err := age.DecryptReaderAt(source{r}, size, age.NewInjectedFileKeyIdentity(fileKey))
	var failed *sourceError
	switch {
	case errors.As(err, &failed):
		return nil, failed.error
	case err != nil && size < first+chunkSeal:
		return nil, &DamagedError{size, "it ends before its first piece"}
	case err != nil:
		return nil, &DamagedError{lastChunk(first, size), "its last piece does not open: something there is missing, wrong, or too much"}
	}
	return &Reader{plain: plain, size: length, first: first}, nil
}

// readHeader reads the header within its bounds, before anything of it is
// parsed, and counts its recipients.
func readHeader(r io.ReaderAt, size int64) (header []byte, stanzas int, err error) {
	b := make([]byte, min(size, maxHeader))
	if n, err := r.ReadAt(b, 0); n < len(b) {
		return nil, 0, fmt.Errorf("read the header of the age stream: %w", err)
	}
	end := bytes.Index(b, []byte("\n---"))
	if end < 0 && len(b) == maxHeader {
		return nil, 0, &DamagedError{0, fmt.Sprintf("its header is longer than %d bytes", maxHeader)}
	}
	line := -1
	if end >= 0 {
		line = bytes.IndexByte(b[end+1:], '\n')
	}
	if line < 0 {
		return nil, 0, &DamagedError{int64(len(b)), "it ends within its header"}
	}
	stanzas = bytes.Count(b[:end+1], []byte("\n-> "))
	if stanzas > MaxRecipients {
		return nil, 0, &DamagedError{0, fmt.Sprintf("its header names %d recipients, more than the %d allowed", stanzas, MaxRecipients)}
	}
	return b[:end+1+line+1], stanzas, nil
}

// lastChunk is where the last chunk of a stream begins.
func lastChunk(first, size int64) int64 {
	const sealed = chunkSize + chunkSeal
	return first + max(0, size-first-1)/sealed*sealed
}

// Size is the length of the plaintext.
func (r *Reader) Size() int64 { return r.size }

// ReadAt implements io.ReaderAt.
func (r *Reader) ReadAt(p []byte, at int64) (int, error) {
	if at >= r.size {
		return 0, io.EOF
	}
	n, err := r.plain.ReadAt(p, at)
	if err == nil || err == io.EOF {
		return n, err
	}
	var failed *sourceError
	if errors.As(err, &failed) {
		return n, failed.error
	}
	chunk := (at + int64(n)) / chunkSize
	return n, &DamagedError{r.first + chunk*(chunkSize+chunkSeal), "its piece there does not open: a byte of it is wrong"}
}

// source marks what the source cannot give, to tell it from what does not open.
type source struct{ r io.ReaderAt }

type sourceError struct{ error }

func (e *sourceError) Unwrap() error { return e.error }

func (s source) ReadAt(p []byte, at int64) (int, error) {
	n, err := s.r.ReadAt(p, at)
	if err == nil || err == io.EOF {
		return n, err
	}
	return n, &sourceError{err}
}

package agefile

import (
	"errors"
	"fmt"
	"io"

	"filippo.io/age"
)

// What an age stream has beside the plaintext, in bytes.
const (
	chunkSize   = 64 << 10 // of plaintext, that is sealed at once
	chunkSeal   = 16       // behind each chunk
	introSize   = len(intro)
	stanzaSize  = 98 // of an X25519 recipient
	closingSize = 48 // the line with the header's own sum
	nonceSize   = 16 // before the first chunk
)

// intro is the first line of every age stream.
const intro = "age-encryption.org/v1\n"

// MaxRecipients is how many recipients a stream can have here.
const MaxRecipients = 1000

// headSize is the length of everything before the first chunk.
func headSize(recipients int) int64 {
	return int64(introSize + recipients*stanzaSize + closingSize + nonceSize)
}

// Size is the exact length of the stream of so much plaintext for so many
// recipients.
func Size(plain int64, recipients int) int64 {
	chunks := max(1, (plain+chunkSize-1)/chunkSize)
	return headSize(recipients) + plain + chunks*chunkSeal
}

// Capacity is the most plaintext whose stream has at most limit bytes; it is
// negative where not even an empty one has room.
func Capacity(limit int64, recipients int) int64 {
	room := limit - headSize(recipients)
	if room < chunkSeal {
		return -1
	}
	full, rest := room/(chunkSize+chunkSeal), room%(chunkSize+chunkSeal)
	return full*chunkSize + max(0, rest-chunkSeal)
}

// Encrypt begins a stream for recipients; what is written to the result goes
// encrypted to w. Only its Close makes the stream whole; it does not close w.
func Encrypt(w io.Writer, recipients ...Recipient) (io.WriteCloser, error) {
	if len(recipients) > MaxRecipients {
		return nil, fmt.Errorf("encrypt to %d recipients, more than %d", len(recipients), MaxRecipients)
	}
	keys := make([]age.Recipient, len(recipients))
	for i, r := range recipients {
		if r.key == nil {
			return nil, errors.New("encrypt to a recipient without a key")
		}
		keys[i] = r.key
	}
	return age.Encrypt(w, keys...)
}

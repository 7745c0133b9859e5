package agefile

import (
	"fmt"
	"strings"
	"time"

	"filippo.io/age"
)

// MaxIdentityFile is the largest file of identities that is read, in bytes.
const MaxIdentityFile = 64 << 10

// maxIdentities bounds the identities of a file: each is tried with every
// recipient of a stream.
const maxIdentities = 16

// recipientLength is that of age1, 32 bytes in base 32 and a checksum.
const recipientLength = 62

// Recipient is a public key that streams can be encrypted to. The zero value
// is none.
type Recipient struct{ key *age.X25519Recipient }

// ParseRecipient reads a recipient: age1 and 58 lower-case letters and digits.
func ParseRecipient(text string) (Recipient, error) {
	wrong := &KeyError{"it is no age recipient: age1 and 58 lower-case letters and digits"}
	if len(text) != recipientLength || text != strings.ToLower(text) {
		return Recipient{}, wrong
	}
	key, err := age.ParseX25519Recipient(text)
	if err != nil || key.String() != text {
		return Recipient{}, wrong
	}
	return Recipient{key}, nil
}

// String is the one way in which the recipient is written.
func (r Recipient) String() string {
	if r.key == nil {
		return ""
	}
	return r.key.String()
}

// Identity is the private half of a recipient.
type Identity struct{ key *age.X25519Identity }

// NewIdentity makes an identity at random.
func NewIdentity() (*Identity, error) {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	return &Identity{key}, nil
}

// Recipient is the public half.
func (i *Identity) Recipient() Recipient { return Recipient{i.key.Recipient()} }

// File is the identity as a file, as age-keygen writes it. It is secret.
func (i *Identity) File(made time.Time) []byte {
	return fmt.Appendf(nil, "# created: %s\n# public key: %s\n%s\n", made.UTC().Format(time.RFC3339), i.Recipient(), i.key)
}

// ParseIdentities reads a file of identities: a line AGE-SECRET-KEY-1… for
// each, 1 to 16 of them, with empty lines and lines beginning with # between
// them. At most MaxIdentityFile bytes.
func ParseIdentities(b []byte) ([]*Identity, error) {
	if len(b) > MaxIdentityFile {
		return nil, &KeyError{fmt.Sprintf("it has more than %d bytes", MaxIdentityFile)}
	}
	var list []*Identity
	number := 0
	for line := range strings.Lines(string(b)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, err := age.ParseX25519Identity(line)
		if err != nil {
			return nil, &KeyError{fmt.Sprintf("its line %d is no age identity, which begins with AGE-SECRET-KEY-1", number)}
		}
		if len(list) == maxIdentities {
			return nil, &KeyError{fmt.Sprintf("it has more than %d identities", maxIdentities)}
		}
		list = append(list, &Identity{key})
	}
	if len(list) == 0 {
		return nil, &KeyError{"it holds no age identity, a line that begins with AGE-SECRET-KEY-1"}
	}
	return list, nil
}

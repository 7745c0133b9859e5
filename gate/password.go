package gate

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"

	"github.com/packhof/packhof/internal/problem"
)

// Parameters of argon2id (RFC 9106): what OWASP recommends where several
// people may log in at once on a small machine.
const (
	argonMemory  = 19 << 10 // KiB
	argonTime    = 2
	argonThreads = 1
	argonKey     = 32
	argonSalt    = 16
)

const (
	minPassword = 10
	maxPassword = 256
)

// checkPassword refuses what is too short to be one, or too long to be hashed
// on request.
func checkPassword(password []byte) error {
	if len(password) < minPassword || len(password) > maxPassword {
		return problem.New("account/password", "a password has %d to %d bytes, this has %d", minPassword, maxPassword, len(password)).
			Hint("use a few words")
	}
	return nil
}

// hashPassword gives the PHC string of a password.
func hashPassword(password []byte) string {
	salt := make([]byte, argonSalt)
	rand.Read(salt) // never fails, or ends the program
	key := argon2.IDKey(password, salt, argonTime, argonMemory, argonThreads, argonKey)
	text := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonThreads, text(salt), text(key))
}

// passwordFits tells whether a password is that of a PHC string of ours. A
// string that cannot be read fits nothing.
func passwordFits(phc string, password []byte) bool {
	var version, memory, rounds, threads int
	parts := strings.Split(phc, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return false
	}
	if _, err := fmt.Sscanf(parts[2], "v=%d", &version); err != nil || version != argon2.Version {
		return false
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &memory, &rounds, &threads); err != nil {
		return false
	}
	if memory < 8 || memory > 1<<20 || rounds < 1 || rounds > 100 || threads < 1 || threads > 16 {
		return false
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil {
		return false
	}
	want, err := base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil || len(want) < 16 || len(want) > 128 {
		return false
	}
	got := argon2.IDKey(password, salt, uint32(rounds), uint32(memory), uint8(threads), uint32(len(want)))
	return subtle.ConstantTimeCompare(got, want) == 1
}

// nobodysPassword is hashed when there is no such account, so that the time an
// answer takes does not tell.
const nobodysPassword = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

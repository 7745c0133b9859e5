package bundle

import (
	"github.com/packhof/packhof/internal/agefile"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/signing"
)

// FormatEnrolment is the format of enrol.json.
const FormatEnrolment = "packhof.enrolment/v1"

const maxEnrolment = 64 << 10

// Enrolment is enrol.json: what a gate tells the connected side about itself
// on its first day. Its fingerprint is compared by people.
type Enrolment struct {
	Format  string   `json:"format"`
	Gate    string   `json:"gate"` // "gate-" and 16 characters of base32
	Owner   string   `json:"owner"`
	Created Instant  `json:"created"`
	Receipt GateKey  `json:"receipt"` // ECDSA P-256: signs receipts
	Log     GateKey  `json:"log"`     // Ed25519: signs checkpoints of the audit log
	Reads   []string `json:"reads"`   // bundle formats and parts of them, as Reads
	Program string   `json:"program"` // name and version
	// Recipient is whom volumes for the gate are encrypted to; gates that were
	// made before there was such a thing have none.
	Recipient string `json:"recipient,omitzero"`
}

// GateKey is a public key of a gate.
type GateKey struct {
	Algorithm signing.Algorithm `json:"algorithm"`
	SPKI      []byte            `json:"spki"` // DER, in base64
}

// ParseEnrolment parses strictly and checks forms, algorithms and keys.
func ParseEnrolment(b []byte) (*Enrolment, error) {
	var e Enrolment
	if err := decodeStrict("the enrolment", b, maxEnrolment, &e); err != nil {
		return nil, err
	}
	if e.Format != FormatEnrolment {
		return nil, problem.New("format/unknown", "the enrolment has format %.60q, this program reads %s", e.Format, FormatEnrolment)
	}
	switch {
	case !ValidGateID(e.Gate):
		return nil, problem.New("format/invalid", "the enrolment names the gate %.60q, which is no gate id", e.Gate)
	case e.Owner == "" || len(e.Owner) > 128 || !printable(e.Owner):
		return nil, problem.New("format/invalid", "the enrolment's owner is empty, too long or not printable")
	case !validReads(e.Reads):
		return nil, problem.New("format/invalid", "the enrolment does not say in the right form what the gate reads")
	}
	if e.Recipient != "" {
		if _, err := agefile.ParseRecipient(e.Recipient); err != nil {
			return nil, problem.New("format/invalid", "the enrolment's recipient: %w", err)
		}
	}
	for _, k := range []struct {
		use  string
		key  GateKey
		want signing.Algorithm
	}{{"receipt", e.Receipt, signing.ECDSA}, {"log", e.Log, signing.Ed25519}} {
		if k.key.Algorithm != k.want {
			return nil, problem.New("format/invalid", "the enrolment's %s key has algorithm %.60q, %s is needed", k.use, k.key.Algorithm, k.want)
		}
		if _, err := k.key.Public(); err != nil {
			return nil, problem.New("format/invalid", "the enrolment's %s key: %w", k.use, err)
		}
	}
	return &e, nil
}

// Public parses the key and checks that it has the algorithm it claims.
func (k GateKey) Public() (signing.PublicKey, error) {
	public, err := signing.ParsePublicKey(k.SPKI)
	if err != nil {
		return public, err
	}
	if public.Algorithm() != k.Algorithm {
		return public, problem.New("format/invalid", "the key has algorithm %s and claims %s", public.Algorithm(), k.Algorithm)
	}
	return public, nil
}

// EncodeEnrolment gives the canonical bytes of an enrolment.
func EncodeEnrolment(e *Enrolment) ([]byte, error) {
	b, err := encodeCanonical(e)
	if err != nil {
		return nil, err
	}
	if _, err := ParseEnrolment(b); err != nil {
		return nil, err
	}
	return b, nil
}

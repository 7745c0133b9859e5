package signing

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
)

// fileSignature is one entry of "signatures" in the {signed, signatures}
// envelope that roots and lists of revocations share.
type fileSignature struct {
	KeyID string `json:"keyid"`
	Sig   string `json:"sig"`
}

// checkSignatureList wants few signatures, sorted, one per key id, in
// lower-case hexadecimal: the one order and spelling that is written.
func checkSignatureList(list []fileSignature) error {
	if len(list) > MaxSignatures {
		return fmt.Errorf("it holds %d signatures, more than %d", len(list), MaxSignatures)
	}
	for i, s := range list {
		if i > 0 && list[i-1].KeyID >= s.KeyID {
			return errors.New("its signatures are not sorted, or one key id is there twice")
		}
		sig, err := hex.DecodeString(s.Sig)
		if err != nil || len(sig) == 0 || hex.EncodeToString(sig) != s.Sig {
			return fmt.Errorf("signature of key id %s is not lower-case hexadecimal", clip(s.KeyID))
		}
	}
	return nil
}

// verifyEnvelope tells whether the signature that stands under a key id is by
// key over a digest.
func verifyEnvelope(list []fileSignature, keyID string, key PublicKey, digest [sha256.Size]byte) bool {
	return slices.ContainsFunc(list, func(s fileSignature) bool {
		if s.KeyID != keyID {
			return false
		}
		sig, err := hex.DecodeString(s.Sig)
		return err == nil && key.verifyDigest(digest, sig)
	})
}

// addSignature puts a signature in its place, over one of the same key id.
func addSignature(list []fileSignature, keyID string, sig []byte) []fileSignature {
	added := slices.DeleteFunc(slices.Clone(list), func(s fileSignature) bool { return s.KeyID == keyID })
	added = append(added, fileSignature{KeyID: keyID, Sig: hex.EncodeToString(sig)})
	slices.SortFunc(added, func(a, b fileSignature) int { return cmp.Compare(a.KeyID, b.KeyID) })
	return added
}

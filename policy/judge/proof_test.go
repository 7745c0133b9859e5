package judge

import "testing"

// FuzzProof: what the child says of the policy's tests is bounded, and about
// that policy.
func FuzzProof(f *testing.F) {
	for _, s := range []string{`{"proofDigest":"x"}`, `{"proofDigest":"y"}`, `{"proofDigest":"x","refusal":{"code":"policy/untested","text":"t"}}`, `{"proofDigest":"x","refusal":{"code":"disk/full"}}`, `{"x":1}`, `[`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		err := decodeProof(b, "x")
		if err != nil && len(err.Error()) > len(b)+1000 {
			t.Errorf("%q becomes %d bytes", b, len(err.Error()))
		}
	})
}

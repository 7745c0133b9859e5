package bundle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/signing"
)

// Limits of what stands before the blobs, known before anything is verified.
const (
	maxVolumeJSON  = 32 << 20
	maxIndexSize   = 32 << 20
	maxSums        = 32 << 20
	maxRevocations = 4 << 20
)

// Names of the entries of a head.
const (
	nameManifest  = "packhof.json"
	nameVolume    = "volume.json"
	nameLayout    = "oci-layout"
	nameIndex     = "index.json"
	dirTrust      = "trust/"
	dirSignatures = "signatures/"
	dirBlobs      = "blobs/sha256/"

	signatureSuffix = ".sigstore.json"
	manifestSuffix  = "." + nameManifest // of the copy that lies beside the volumes
)

// Head is what a bundle is judged by, before any blob: the manifest's bytes,
// the trust documents that come along, and the signatures. All of it is as it
// arrived and unproven.
type Head struct {
	Manifest    []byte
	Roots       []TrustDocument // ascending
	Revocations TrustDocument
	Signatures  []Signature // ascending by name
}

// TrustDocument is a version of the root or of the revocation list.
type TrustDocument struct {
	Version int64
	Bytes   []byte
}

// Signature is a Sigstore bundle over the manifest's bytes. Key is the first
// 16 hex digits of its key's id, as the entry's name claims.
type Signature struct {
	Key   string
	Bytes []byte
}

// headEntry is a small entry held in memory.
type headEntry struct {
	name string
	data []byte
}

// entries lays the head out in the order of the format.
func (h *Head) entries() []headEntry {
	list := []headEntry{{nameManifest, h.Manifest}}
	for _, root := range h.Roots {
		list = append(list, headEntry{fmt.Sprintf("%sroot-%d.json", dirTrust, root.Version), root.Bytes})
	}
	list = append(list, headEntry{fmt.Sprintf("%srevocations-%d.json", dirTrust, h.Revocations.Version), h.Revocations.Bytes})
	for _, s := range h.Signatures {
		list = append(list, headEntry{dirSignatures + s.Key + signatureSuffix, s.Bytes})
	}
	return list
}

// limitFor is how large an entry of this name may be, and whether the head
// has such an entry at all.
func limitFor(name string) (limit int64, inHead bool) {
	switch {
	case name == nameManifest:
		return MaxManifestSize, true
	case strings.HasPrefix(name, dirTrust+"root-"):
		return signing.MaxRoot, true
	case strings.HasPrefix(name, dirTrust):
		return maxRevocations, true
	case strings.HasPrefix(name, dirSignatures):
		return signing.MaxBundle, true
	case name == nameVolume:
		return maxVolumeJSON, true
	case name == nameLayout:
		return int64(len(ociLayout)), true
	case name == nameIndex:
		return maxIndexSize, true
	}
	return 0, false
}

// add takes one entry of a volume's head. The order of entries is checked by
// comparing with entries() afterwards.
func (h *Head) add(e headEntry) error {
	switch {
	case e.name == nameManifest:
		h.Manifest = e.data
		return nil
	case strings.HasPrefix(e.name, dirTrust):
		return h.addTrust(e)
	case strings.HasPrefix(e.name, dirSignatures):
		key, ok := strings.CutSuffix(strings.TrimPrefix(e.name, dirSignatures), signatureSuffix)
		if !ok || !isHex16(key) || len(h.Signatures) >= signing.MaxSignatures {
			return problem.New("format/invalid", "the entry %q is no signature, or one too many", e.name)
		}
		h.Signatures = append(h.Signatures, Signature{Key: key, Bytes: e.data})
		return nil
	}
	return problem.New("format/invalid", "the entry %q has no place in the head", e.name)
}

func (h *Head) addTrust(e headEntry) error {
	base, isJSON := strings.CutSuffix(strings.TrimPrefix(e.name, dirTrust), ".json")
	kind, number, _ := strings.Cut(base, "-")
	version, err := strconv.ParseInt(number, 10, 32)
	if !isJSON || err != nil || version < 1 || strconv.FormatInt(version, 10) != number {
		return problem.New("format/invalid", "the entry %q is no trust document", e.name)
	}
	doc := TrustDocument{Version: version, Bytes: e.data}
	switch {
	case kind == "root" && len(h.Roots) < signing.MaxRoots:
		h.Roots = append(h.Roots, doc)
	case kind == "revocations" && h.Revocations.Version == 0:
		h.Revocations = doc
	default:
		return problem.New("format/invalid", "the entry %q is no trust document, or one too many", e.name)
	}
	return nil
}

func isHex16(s string) bool {
	return len(s) == 16 && !strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) })
}

// sortHead puts trust documents and signatures into the order of the format.
func sortHead(h *Head) {
	slices.SortFunc(h.Roots, func(a, b TrustDocument) int { return int(a.Version - b.Version) })
	slices.SortFunc(h.Signatures, func(a, b Signature) int { return strings.Compare(a.Key, b.Key) })
}

// Digest is the identity of the bundle: the SHA-256 of the manifest's bytes.
func (h *Head) Digest() Digest { return cas.DigestOf(h.Manifest) }

// raw gives the bytes of every signature.
func (h *Head) raw() [][]byte {
	list := make([][]byte, len(h.Signatures))
	for i, s := range h.Signatures {
		list[i] = s.Bytes
	}
	return list
}

// BaseName is <channel>-<serial>, with the epoch between them from the second
// one on: the beginning of every file name on a medium.
func BaseName(m *Manifest) string {
	if m.Epoch > 1 {
		return fmt.Sprintf("%s-e%d-%06d", m.Channel, m.Epoch, m.Serial)
	}
	return fmt.Sprintf("%s-%06d", m.Channel, m.Serial)
}

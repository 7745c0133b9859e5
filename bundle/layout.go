package bundle

import (
	"strconv"
	"strings"
)

// ociLayout is the file that makes a volume readable as an OCI image layout.
const ociLayout = `{"imageLayoutVersion":"1.0.0"}`

const annotationRefName = "org.opencontainers.image.ref.name"

// buildIndex makes index.json: a function of the manifest alone, which the
// reader makes again and compares. Roots and referrers are listed; only roots
// have a name.
func buildIndex(m *Manifest) ([]byte, error) {
	index := OCI{SchemaVersion: 2, MediaType: TypeOCIIndex, Manifests: []OCIDescriptor{}}
	names := RefNames(m)
	listed := map[Digest]bool{}
	for i, a := range m.Artifacts {
		d := plainDescriptor(a.Root)
		d.Annotations = map[string]string{annotationRefName: names[i]}
		index.Manifests = append(index.Manifests, d)
		listed[a.Root.Digest] = true
	}
	for _, a := range m.Artifacts {
		for _, r := range a.Referrers {
			if !listed[r.Descriptor.Digest] {
				index.Manifests = append(index.Manifests, plainDescriptor(r.Descriptor))
				listed[r.Descriptor.Digest] = true
			}
		}
	}
	return encodeCanonical(&index)
}

func plainDescriptor(d Descriptor) OCIDescriptor {
	return OCIDescriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size, ArtifactType: d.ArtifactType}
}

// RefNames gives the name of each artifact in the OCI layout, in the order of
// the manifest: <name>_<version> in the characters that skopeo and oras both
// take, made unique by a piece of the digest.
func RefNames(m *Manifest) []string {
	names := make([]string, len(m.Artifacts))
	count := map[string]int{}
	for i, a := range m.Artifacts {
		names[i] = refName(a.Name + "_" + a.Version)
		count[names[i]]++
	}
	for i, a := range m.Artifacts {
		if count[names[i]] > 1 || names[i] == "" {
			names[i] = strings.TrimPrefix(names[i]+"-"+a.Root.Digest.Short(), "-")
		}
	}
	return unique(names)
}

// unique appends a counter where even name, version and digest are the same
// (one image under two kinds, say). Its time does not grow with the square of
// the number of names: this runs before any signature is checked.
func unique(names []string) []string {
	taken := make(map[string]bool, len(names))
	next := map[string]int{}
	for i, base := range names {
		for taken[names[i]] {
			next[base] = max(2, next[base]+1)
			names[i] = base + "-" + strconv.Itoa(next[base])
		}
		taken[names[i]] = true
	}
	return names
}

// refName keeps letters, digits and single separators.
func refName(s string) string {
	var b strings.Builder
	separated := true // nothing may begin with a separator
	for _, r := range s {
		switch {
		case r < 128 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'):
			b.WriteRune(r)
			separated = false
			continue
		case separated:
			continue
		case strings.ContainsRune("-._+/", r):
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
		separated = true
	}
	return strings.TrimRight(b.String(), "-._+/")
}

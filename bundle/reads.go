package bundle

import (
	"regexp"
	"slices"
)

// What a reader states in its enrolment and its receipts that it reads: the
// format of bundles, and by name each part of it that not every program with
// that format knows. A writer uses such a part only for gates that state it.
const (
	ReadsControl   = "control"   // bundles of that kind
	ReadsAnswers   = "answers"   // answers to requests
	ReadsPacks     = "packs"     // trees whose small files lie in packs
	ReadsWithdraws = "withdraws" // digests that are withdrawn
)

// Reads is what this program reads.
func Reads() []string {
	return []string{FormatV1, ReadsAnswers, ReadsControl, ReadsPacks, ReadsWithdraws}
}

// Needs is what a reader of this manifest has to state that it reads.
func (m *Manifest) Needs() []string {
	needs := []string{m.Format}
	for _, part := range []struct {
		used bool
		name string
	}{{len(m.Answers) > 0, ReadsAnswers}, {m.Kind == KindControl, ReadsControl}, {len(m.Withdraws) > 0, ReadsWithdraws}} {
		if part.used {
			needs = append(needs, part.name)
		}
	}
	return needs
}

// ContentNeeds is what a reader has to state besides, because of what the
// artifacts of the manifest are; content gives their manifests.
func ContentNeeds(m *Manifest, content Content) ([]string, error) {
	packed := false
	read := func(d OCIDescriptor) ([]byte, error) { return readBlob(content, d.Digest, d.Size, MaxOCIManifestSize) }
	for _, a := range m.Artifacts {
		root := OCIDescriptor{MediaType: a.Root.MediaType, Digest: a.Root.Digest, Size: a.Root.Size}
		err := Walk(root, read, func(d OCIDescriptor, _ Role) error {
			packed = packed || IsPackIndex(d)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if !packed {
		return nil, nil
	}
	return []string{ReadsPacks}, nil
}

// Unread lists what is needed and not stated to be read.
func Unread(reads, needs []string) []string {
	var lacking []string
	for _, need := range needs {
		if !slices.Contains(reads, need) {
			lacking = append(lacking, need)
		}
	}
	return lacking
}

const maxReads = 16

var readsForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9./-]{0,62}[a-z0-9])?$`)

// validReads accepts 1 to 16 names of formats and parts, each once.
func validReads(reads []string) bool {
	for i, name := range reads {
		if !readsForm.MatchString(name) || slices.Contains(reads[:i], name) {
			return false
		}
	}
	return len(reads) > 0 && len(reads) <= maxReads
}

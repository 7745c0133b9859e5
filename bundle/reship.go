package bundle

import (
	"fmt"

	"github.com/packhof/packhof/internal/agefile"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/signing"
)

// Reship plans to write what these volumes hold as another volume set, with all
// their signatures: split, joined, encrypted, or with signatures that came later. Nothing
// is vouched for by it; blobs are hashed on their way. Sets that are not whole
// refuse with volume/not-complete.
//
// root chooses between signatures where IsAmbiguous; without one, such volumes
// refuse with volume/signatures-differ: the good one must not get lost.
func (s *Sealed) Reship(limits []int64, root *signing.Root, recipients ...agefile.Recipient) (*SetPlan, Content, error) {
	m, err := parseManifest(s.head.Manifest)
	if err != nil {
		return nil, nil, err
	}
	if err := s.checkVolumes(m); err != nil {
		return nil, nil, err
	}
	if err := s.settle(root); err != nil {
		return nil, nil, err
	}
	if err := s.checkSignatureNames(); err != nil {
		return nil, nil, err
	}
	if err := s.checkWholeSets(); err != nil {
		return nil, nil, err
	}
	content := contentOf(s.volumes, m)
	only := []Piece{}
	for _, v := range s.volumes {
		for _, segment := range v.info.own() {
			only = append(only, Piece{Blob: segment.Blob, Offset: segment.Offset, Length: segment.Length})
		}
	}
	if err := content.canProve(m, only); err != nil {
		return nil, nil, err
	}
	set, err := PlanSet(s.head, SetOptions{Limits: limits, Only: only, Recipients: recipients})
	return set, content, err
}

// canProve makes sure that all of what pieces are proven by is in the volumes.
func (c volumeContent) canProve(m *Manifest, pieces []Piece) error {
	for _, p := range Provable(m, pieces) {
		for _, gap := range c[p.Blob].gaps() {
			if gap.Offset < p.Offset+p.Length && p.Offset < gap.Offset+gap.Length {
				return problem.New("volume/not-complete", "the volumes bring a part of the blob %s that cannot be proven alone", p.Blob).
					With(fmt.Sprintf("missing:  bytes %d to %d", gap.Offset, gap.Offset+gap.Length)).Hint("add the volumes of the set that brings the rest")
			}
		}
	}
	return nil
}

// checkWholeSets makes sure that of each set here no volume is missing.
func (s *Sealed) checkWholeSets() error {
	for set, missing := range missingOf(s.volumes) {
		return problem.New("volume/not-complete", "of the volumes of the set %s, %d are missing", set.Hex()[:8], len(missing)).
			With(fmt.Sprintf("missing:  %s", NumbersText(missing))).Hint("name the other volumes too, or the folder that they are in")
	}
	return nil
}

// missingOf lists, for each set of which not all volumes are here, the numbers
// of the others. The layout of the volumes has been checked.
func missingOf(volumes []*volume) map[Digest][]int {
	here, counts := map[Digest]map[int]bool{}, map[Digest]int{}
	for _, v := range volumes {
		if here[v.info.Set] == nil {
			here[v.info.Set] = map[int]bool{}
		}
		here[v.info.Set][v.info.Number], counts[v.info.Set] = true, v.info.Count
	}
	missing := map[Digest][]int{}
	for set, count := range counts {
		for n := 1; n <= count; n++ {
			if !here[set][n] {
				missing[set] = append(missing[set], n)
			}
		}
	}
	return missing
}

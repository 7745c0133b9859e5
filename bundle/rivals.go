package bundle

import (
	"cmp"
	"slices"
)

// Rivals are the volumes that claim the same place in the same set and do not
// list the same bytes: at most one of them is from the exporter. By place, and
// for each claim the paths of the volumes that make it, in the order in which
// they were met. Nobody has vouched for any of it; content is not read.
func (s *Sealed) Rivals() [][][]string {
	m, err := parseManifest(s.head.Manifest)
	if err != nil {
		return nil
	}
	type place struct {
		set    Digest
		number int
	}
	claims := map[place][][]string{}
	sums := map[place][]Digest{} // of the claims
	for _, v := range s.volumes {
		info, err := v.readInfo(m)
		if err != nil {
			continue
		}
		at, sum := place{info.Set, info.Number}, v.listSum()
		i := slices.Index(sums[at], sum)
		if i < 0 {
			i = len(sums[at])
			sums[at], claims[at] = append(sums[at], sum), append(claims[at], nil)
		}
		claims[at][i] = append(claims[at][i], v.path)
	}
	var rivals [][][]string
	for _, c := range claims {
		if len(c) > 1 {
			rivals = append(rivals, c)
		}
	}
	slices.SortFunc(rivals, func(a, b [][]string) int { return cmp.Compare(a[0][0], b[0][0]) })
	return rivals
}

// listSum stands for SHA256SUMS; zero for one that cannot be read.
func (v *volume) listSum() Digest {
	e, ok := v.entry(sumsName)
	if !ok || e.size > maxSums {
		return Digest{}
	}
	data, err := v.read(e)
	if err != nil {
		return Digest{}
	}
	return digestOf(data)
}

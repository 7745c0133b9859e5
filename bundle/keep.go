package bundle

import "slices"

// keeper has what thousands of volumes say alike be in memory once: the names of
// their entries, and all entries of those that are copies of each other.
type keeper struct {
	names   map[string]string
	entries map[likeness][]entry
}

// likeness is what volumes with the same entries have in common.
type likeness struct {
	size, count int64
	middle      string // name of an entry
}

// share has a volume use what another one has.
func (k *keeper) share(v *volume) {
	if k.names == nil {
		k.names, k.entries = map[string]string{}, map[likeness][]entry{}
	}
	like := likeness{v.size, int64(len(v.entries)), v.entries[len(v.entries)/2].name}
	if same, ok := k.entries[like]; ok && slices.Equal(same, v.entries) {
		v.entries = same
		return
	}
	for i, e := range v.entries {
		name, known := k.names[e.name]
		if !known {
			name = e.name
			k.names[name] = name
		}
		v.entries[i].name = name
	}
	like.middle = v.entries[len(v.entries)/2].name
	v.entries = slices.Clip(slices.Clone(v.entries))
	k.entries[like] = v.entries
}

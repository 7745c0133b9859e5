package bundle

import (
	"errors"
	"fmt"

	"github.com/packhof/packhof/internal/problem"
)

// checkLayout holds the volume against the one layout that it can have: every
// entry that follows from its head, the manifest and its volume.json, in order,
// with its size, and nothing else. It sets info.
func (v *volume) checkLayout(m *Manifest) error {
	info, err := v.readInfo(m)
	if err != nil {
		return err
	}
	index, err := buildIndex(m)
	if err != nil {
		return err
	}
	sortHead(&v.head)
	plan, _ := v.entry(nameVolume) // readInfo has read it
	var list []expected
	for _, e := range v.head.entries() {
		list = append(list, expected{e.name, int64(len(e.data))})
	}
	derived := []headEntry{{nameLayout, []byte(ociLayout)}, {nameIndex, index}}
	list = append(list, expected{nameVolume, plan.size}, expected{nameLayout, int64(len(ociLayout))}, expected{nameIndex, int64(len(index))})
	small := len(list)
	for _, e := range entriesOf(m, info) {
		list = append(list, expected{e.Entry, e.Length})
	}
	if err := v.checkOrder(list); err != nil {
		return err
	}
	for i, e := range derived {
		at := v.entries[small-len(derived)+i]
		got, err := v.read(at)
		if err != nil {
			return err
		}
		if string(got) != string(e.data) {
			return &DamagedError{Volume: v.name, Entry: e.name, Offset: at.offset, What: "it is not what follows from the manifest",
				Want: digestOf(e.data).String(), Got: digestOf(got).String()}
		}
	}
	v.info = info
	return nil
}

func (v *volume) readInfo(m *Manifest) (*VolumeInfo, error) {
	e, ok := v.entry(nameVolume)
	if !ok {
		return nil, &DamagedError{Volume: v.name, Offset: v.size, What: "the entry " + nameVolume + " is missing", Want: nameVolume, Got: "nothing"}
	}
	if e.size > maxVolumeJSON {
		return nil, problem.New("format/too-large", "volume.json has %d bytes, more than the %d allowed", e.size, maxVolumeJSON)
	}
	data, err := v.read(e)
	if err != nil {
		return nil, err
	}
	info, err := parseVolume(data, m, v.head.Digest())
	var bad *problem.Problem
	// Nobody has signed it, so what is wrong with it happened on the way.
	if errors.As(err, &bad) && (bad.Code() == "format/malformed" || bad.Code() == "format/invalid") {
		return nil, &DamagedError{Volume: v.name, Entry: nameVolume, Offset: e.offset, What: err.Error(), Want: v.promised(e, data), Got: digestOf(data).String()}
	}
	return info, err
}

// expected is an entry that has to be there.
type expected struct {
	name string
	size int64
}

func (v *volume) checkOrder(want []expected) error {
	for i, w := range want {
		if i >= len(v.entries) {
			return &DamagedError{Volume: v.name, Offset: v.size, What: "the entry " + w.name + " is missing", Want: w.name, Got: "nothing"}
		}
		if got := v.entries[i]; got.name != w.name || got.size != w.size {
			return &DamagedError{Volume: v.name, Entry: got.name, Offset: got.offset - blockSize, What: "another entry belongs here",
				Want: fmt.Sprintf("%s, %d bytes", w.name, w.size), Got: fmt.Sprintf("%s, %d bytes", got.name, got.size)}
		}
	}
	if len(v.entries) != len(want)+1 || v.entries[len(want)].name != sumsName {
		return &DamagedError{Volume: v.name, Offset: v.size, What: "after the blobs there is not exactly the entry " + sumsName,
			Want: fmt.Sprintf("%d entries, the last one %s", len(want)+1, sumsName), Got: fmt.Sprintf("%d, the last one %.120s", len(v.entries), v.entries[len(v.entries)-1].name)}
	}
	return nil
}

// promised is what SHA256SUMS has for an entry, or in words what belongs there,
// where the sum is that of these wrong bytes or says nothing.
func (v *volume) promised(e entry, data []byte) string {
	listed, sums, err := v.listedSums()
	if err == nil {
		for i, l := range listed {
			if l.name == e.name && sums[i] != digestOf(data) {
				return sums[i].String()
			}
		}
	}
	return "a plan for the content of the manifest"
}

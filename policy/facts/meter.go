package facts

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/policy"
)

// meter counts the bytes of facts as they are stated, each once, so that a
// bundle which would have too many is refused before they fill the memory: a
// manifest of a few MiB can name millions of paths.
type meter struct {
	label     string // of the bundle
	bytes     int64  // as JSON
	artifacts int    // stated wholly
	files     int
}

func newMeter(b *bundle.Bundle) *meter {
	m := b.Manifest()
	return &meter{label: fmt.Sprintf("%s, serial %d", m.Channel, m.Serial)}
}

// Write counts, so that json can write into it.
func (m *meter) Write(p []byte) (int, error) {
	m.bytes += int64(len(p))
	return len(p), nil
}

// add counts a fact. Text that is not UTF-8 is counted, too: the policy refuses
// it in its own words.
func (m *meter) add(fact any) error {
	if err := json.MarshalWrite(m, fact, jsontext.AllowInvalidUTF8(true)); err != nil {
		return fmt.Errorf("size of the facts: %w", err)
	}
	if m.bytes <= policy.MaxInput {
		return nil
	}
	return problem.New("policy/too-large", "there are more facts about the bundle than can be judged").With(
		fmt.Sprintf("limit:   %d bytes of facts", policy.MaxInput),
		fmt.Sprintf("so far:  %d files of %d artifacts, and there are more", m.files, m.artifacts+1),
	).Hint("have the sender pack small files into archives, or split %s over several serials", m.label)
}

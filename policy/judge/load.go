package judge

import (
	"context"
	"io/fs"

	"github.com/packhof/packhof/policy"
)

// Loaded is the policy that a gate judges by.
type Loaded struct {
	Source policy.Source
	Own    int    // rules of the plant's
	Proven string // digest of what tests have proven; "" if all rules are those that ship
}

// Load gives the policy that a gate judges by: the rules that ship, and those
// of a plant's folder with its parameters, once their tests have proven them:
// what nothing proves judges nothing. Without a folder (nil) it is what ships.
//
// proven is the Loaded.Proven of an earlier time, or "". What was proven
// before is not proven again.
func (c Child) Load(ctx context.Context, plant fs.FS, proven string) (Loaded, error) {
	library, err := policy.Library()
	if err != nil || plant == nil {
		return Loaded{Source: library}, err
	}
	whole, err := library.Extend(plant)
	if err != nil {
		return Loaded{}, err
	}
	loaded := Loaded{Source: whole, Own: len(whole.Rules()) - len(library.Rules())}
	if !whole.Adds(library) {
		return loaded, nil
	}
	digest, err := whole.ProofDigest()
	if err != nil {
		return Loaded{}, err
	}
	if digest != proven {
		if digest, err = c.Prove(ctx, whole); err != nil {
			return Loaded{}, err
		}
	}
	loaded.Proven = digest
	return loaded, nil
}

package gate

import (
	"context"
	"errors"
	"fmt"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/policy"
	"github.com/packhof/packhof/policy/facts"
	"github.com/packhof/packhof/signing"
)

// Preview is what the head of a bundle tells, in seconds whatever its size.
// Nothing of it can be approved: the content has not been looked at.
type Preview struct {
	File      string           `json:"file"`
	Claims    *bundle.Claims   `json:"claims"`
	Genuine   bool             `json:"genuine"`  // enough of the right keys signed the manifest
	Accepted  bool             `json:"accepted"` // and this gate would take it in
	Problem   *Problem         `json:"problem"`  // why not
	Signers   []ReviewSigner   `json:"signers"`  // who signed, as the trust root knows them
	Threshold int              `json:"threshold"`
	Missing   []int64          `json:"missing"`   // serials that never arrived before it
	Abandoned []int64          `json:"abandoned"` // serials just before it that the sender gave up
	Known     CaseID           `json:"known"`     // the case of this bundle, 0 if there is none
	Decision  *policy.Decision `json:"decision"`  // what the policy says of the metadata alone
}

// Preview tells what is in a bundle, who signed it, and what the policy says
// of its metadata. It reads the head and the metadata, never the content, and
// changes nothing.
func (g *Gate) Preview(ctx context.Context, by Actor, path string) (p *Preview, err error) {
	if err := by.needs(MayReceive); err != nil {
		return nil, err
	}
	sealed, damage := Opener(g.dir).OpenFile(path)
	if sealed == nil {
		return nil, damage
	}
	defer func() { err = errors.Join(err, sealed.Close()) }()
	p = &Preview{File: sealed.Name(), Signers: []ReviewSigner{}, Missing: []int64{}, Abandoned: []int64{}}
	if p.Claims, err = sealed.Claims(); err != nil {
		return nil, errors.Join(damage, err)
	}
	a, err := g.judgeHead(ctx, g.db.read, sealed)
	var ours *problem.Problem
	if errors.As(err, &ours) { // there is no trust root yet
		p.Problem = asProblem(err)
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	p.Problem, p.Genuine = asProblem(a.refusal), a.bundle != nil
	if a.bundle == nil {
		p.Signers = append(p.Signers, validSigners(a.refusal)...)
		return p, nil
	}
	p.Accepted, p.Threshold = a.refusal == nil, a.bundle.Voucher().Threshold()
	before, err := gapBefore(ctx, g.db.read, a.bundle.Manifest(), 0)
	if err != nil {
		return nil, err
	}
	p.Missing, p.Abandoned = append(append(p.Missing, before...), a.fresh.missing...), append(p.Abandoned, a.fresh.abandoned...)
	for _, s := range a.bundle.Voucher().Signers() {
		p.Signers = append(p.Signers, ReviewSigner{Owner: s.Owner, Key: s.ID.String()})
	}
	if r, err := liveRow(ctx, g.db.read, a.bundle.Digest()); err != nil {
		return nil, err
	} else if r != nil {
		p.Known = r.ID
	}
	if there, err := a.bundle.HasMetadata(); err != nil {
		return nil, err
	} else if !there {
		p.Problem = asProblem(problem.New("volume/not-complete", "what the policy judges by is in volume 1 of this set").Hint("inspect that one"))
		return p, nil
	}
	p.Decision, err = g.foretell(ctx, a, p.Missing)
	return p, err
}

// validSigners are the keys whose signatures are good though they do not
// suffice.
func validSigners(refusal error) []ReviewSigner {
	var untrusted *signing.UntrustedError
	if !errors.As(refusal, &untrusted) {
		return nil
	}
	var signers []ReviewSigner
	for _, s := range untrusted.Valid {
		signers = append(signers, ReviewSigner{Owner: s.Owner, Key: s.ID.String()})
	}
	return signers
}

// foretell has the policy judge what the metadata tells.
func (g *Gate) foretell(ctx context.Context, a admission, gap []int64) (*policy.Decision, error) {
	held, err := heldBy(ctx, g.db.read, a.bundle.Manifest().Channel)
	if err != nil {
		return nil, err
	}
	floor, err := floorOf(ctx, g.db.read)
	if err != nil {
		return nil, err
	}
	in, err := facts.State(ctx, facts.Subject{
		Bundle: a.bundle, Root: a.trust.Root(), Time: facts.Time{Floor: floor, Wall: g.clock()}, Held: held, Gap: gap,
		Destinations: g.destinationsOf, Preview: true,
	})
	if err != nil {
		return nil, err
	}
	return g.judge.Evaluate(ctx, in)
}

// Verification is what proving a bundle, or one volume of it, came to.
type Verification struct {
	File     string              `json:"file"`
	OK       bool                `json:"ok"`
	Manifest bundle.Digest       `json:"manifest"`
	Channel  string              `json:"channel"`
	Serial   int64               `json:"serial"`
	Volume   bundle.VolumeState  `json:"volume"`  // which one of its set the file is
	Missing  []int               `json:"missing"` // numbers of the other volumes of the set
	Lacking  int64               `json:"lacking"` // bytes of the bundle that are not in the file
	Checks   []VerificationCheck `json:"checks"`
}

// VerificationCheck is one thing that was proven.
type VerificationCheck struct {
	Name   string   `json:"name"`
	Detail string   `json:"detail"` // for people; English
	Said   Sentence `json:"said"`   // the same
}

func held(name string, s Sentence) VerificationCheck {
	return VerificationCheck{name, s.String(), s}
}

// VerifyFile proves signatures, audience, freshness and every byte of a bundle
// by what this gate trusts. It changes nothing; what does not hold is an error.
func (g *Gate) VerifyFile(ctx context.Context, by Actor, path string, observe func(done, total int64)) (v *Verification, err error) {
	if err := by.needs(MayReceive); err != nil {
		return nil, err
	}
	sealed, err := g.openVolume(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sealed.Close()) }()
	a, err := g.judgeHead(ctx, g.db.read, sealed)
	if err != nil {
		return nil, err
	}
	if a.refusal != nil {
		return nil, a.refusal
	}
	m := a.bundle.Manifest()
	var report func(int64)
	lacking := bytesOf(a.bundle.Lacks())
	if observe != nil {
		var done int64
		report = func(n int64) { done += n; observe(done, m.Totals.Bytes-lacking) }
	}
	if err := a.bundle.Check(ctx, report); err != nil {
		return nil, err
	}
	voucher := a.bundle.Voucher()
	return &Verification{
		File: sealed.Name(), OK: true, Manifest: a.bundle.Digest(), Channel: m.Channel, Serial: m.Serial,
		Volume: a.bundle.Volumes()[0], Missing: a.bundle.MissingVolumes(), Lacking: lacking,
		Checks: []VerificationCheck{
			held("trust root", said("version {version}, revocations version {revocations}", "version", voucher.RootVersion(), "revocations", voucher.RevocationsVersion())),
			held("signatures", said("{signers}", "signers", signersText(a.bundle))),
			held("audience", said("{gate}", "gate", g.id)),
			held("freshness", freshnessSaid(m, a.fresh)),
			held("blobs", blobsSaid(a.bundle)),
			held("artifacts", artifactsSaid(m, lacking)),
		},
	}, nil
}

// blobsSaid says how much of a bundle is in the volumes that were proven.
func blobsSaid(b *bundle.Bundle) Sentence {
	m := b.Manifest()
	if lacking := bytesOf(b.Lacks()); lacking > 0 {
		return said("{here} of {bytes} bytes are in this volume, all of them sound", "here", m.Totals.Bytes-lacking, "bytes", m.Totals.Bytes)
	}
	return said("{n} of {n}, {bytes} bytes", "n", m.Totals.Files, "bytes", m.Totals.Bytes)
}

// artifactsSaid says how far artifacts could be followed from their roots.
func artifactsSaid(m *bundle.Manifest, lacking int64) Sentence {
	if lacking > 0 {
		return said("{n}, described from their roots as far as that is in this volume", "n", len(m.Artifacts))
	}
	return said("{n}, each whole from its root", "n", len(m.Artifacts))
}

func freshnessSaid(m *bundle.Manifest, f freshness) Sentence {
	place := []any{"channel", m.Channel, "epoch", m.Epoch, "serial", fmt.Sprint(m.Serial)}
	switch {
	case f.again:
		return said("{channel}, epoch {epoch}, serial {serial}, accepted before", place...)
	case f.fills:
		return said("{channel}, epoch {epoch}, serial {serial}, was missing", place...)
	case len(f.missing) > 0:
		return counted(len(f.missing), "{channel}, epoch {epoch}, serial {serial}, {n} serial before it never arrived",
			"{channel}, epoch {epoch}, serial {serial}, {n} serials before it never arrived", place...)
	}
	return said("{channel}, epoch {epoch}, serial {serial}, follows what was accepted", place...)
}

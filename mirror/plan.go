package mirror

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// Planner turns a Spec into a Lock.
type Planner struct {
	Sources map[string]Source
	Store   *cas.Store
	Trust   *TrustFolder
	Ledger  *Ledger
	Gates   *Gates
	Dir     string // folder of packhof.yaml, where the paths of documents begin
	Before  *Lock  // the lock there is already; nil if none
	Control bool   // pin the documents for a control bundle, and no artifacts
	Now     time.Time
}

const planParallel = 4

// Plan resolves every artifact and settles the bundle's place in its channel.
// It seals nothing: planning again gives the same serial until an export has
// sealed it. Artifacts that cannot be resolved are reported all together.
func (p *Planner) Plan(ctx context.Context, spec *Spec) (*Lock, error) {
	l := &Lock{
		Format: FormatLock, Channel: spec.Channel, Created: bundle.At(p.Now), Expires: bundle.At(p.Now.Add(time.Duration(spec.ValidFor))),
		TrustRoot: p.Trust.Newest(), Revocations: p.Trust.Revoked(), Note: spec.Note,
		Wanted: spec.wanted(p.Control), Answers: spec.answers(), Artifacts: []Pinned{},
	}
	var err error
	if l.Withdraws, err = spec.withdraws(); err != nil {
		return nil, err
	}
	if p.Control {
		l.Kind = string(bundle.KindControl)
		if p.Before != nil {
			l.Carried = p.Before.subjects()
		}
	}
	for _, r := range p.Trust.Roots {
		l.Roots = append(l.Roots, r.Version)
	}
	if err := p.setPosition(l); err != nil {
		return nil, err
	}
	if err := p.setAudience(l, spec); err != nil {
		return nil, err
	}
	if err := p.Gates.Read(l.Audience, l.needs()...); err != nil {
		return nil, err
	}
	if err := p.pin(ctx, l, spec); err != nil {
		return nil, err
	}
	if err := checkWithdrawn(l); err != nil {
		return nil, err
	}
	carryTimes(l.Artifacts, p.Before, l.Created)
	return l, nil
}

func (p *Planner) setPosition(l *Lock) error {
	channel, ok := p.Trust.Trust.Root().Channel(l.Channel)
	if !ok {
		return problem.New("trust/no-channel", "the trust root does not know the channel %s", l.Channel).
			Hint("set the channel in packhof.yaml to one of the trust root: packhof trust show")
	}
	l.Epoch = int64(channel.Epoch)
	var err error
	l.Serial, l.Previous, err = p.Ledger.next(l.Epoch)
	return err
}

func (p *Planner) setAudience(l *Lock, spec *Spec) error {
	known := map[string]bool{}
	for _, g := range p.Trust.Trust.Root().Gates() {
		known[g.ID] = true
		if len(spec.Audience) == 0 {
			l.Audience = append(l.Audience, g.ID)
		}
	}
	for i, id := range spec.Audience {
		if !known[id] {
			return problem.Field(fmt.Sprintf("audience[%d]", i), fmt.Sprintf("the trust root does not know the gate %s", id), "packhof trust add-gate enrol.json")
		}
		l.Audience = append(l.Audience, id)
	}
	if len(l.Audience) == 0 {
		return problem.New("trust/no-gate", "the trust root knows no gate, so the bundle would be for nobody").
			Hint("packhof trust add-gate enrol.json")
	}
	slices.Sort(l.Audience)
	l.Audience = slices.Compact(l.Audience)
	return nil
}

// checkWithdrawn refuses to withdraw what comes along.
func checkWithdrawn(l *Lock) error {
	for _, w := range l.Withdraws {
		for _, a := range l.Artifacts {
			if a.Root.Digest == w.Digest {
				return problem.Field("withdraws", fmt.Sprintf("%s is withdrawn, and is what %s %s, version %s, stands for today", w.Digest, a.Kind, a.Name, a.Version), "leave one of the two out")
			}
		}
	}
	return nil
}

// pin fills in what the bundle carries.
func (p *Planner) pin(ctx context.Context, l *Lock, spec *Spec) (err error) {
	switch {
	case p.Control:
		l.Documents, err = p.pinDocuments(ctx, spec)
		return err
	case len(spec.Artifacts) == 0:
		return problem.Field("artifacts", "there are none to plan", "add one, or plan the documents: packhof plan --control")
	}
	return p.resolve(ctx, l, spec)
}

func (p *Planner) resolve(ctx context.Context, l *Lock, spec *Spec) error {
	l.Artifacts = make([]Pinned, len(spec.Artifacts))
	failures := make([]error, len(spec.Artifacts))
	var group errgroup.Group
	group.SetLimit(planParallel)
	for i := range spec.Artifacts {
		group.Go(func() error {
			l.Artifacts[i], failures[i] = p.resolveOne(ctx, &spec.Artifacts[i])
			return nil
		})
	}
	_ = group.Wait() // failures has them all
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := together("cannot be planned", failures); err != nil {
		return err
	}
	if err := p.checkNames(l); err != nil {
		return err
	}
	if err := checkCount(l.Artifacts); err != nil {
		return err
	}
	return checkUnique(l.Artifacts)
}

// checkNames holds the names to what a manifest takes, and to what the trust
// root lets the channel carry.
func (p *Planner) checkNames(l *Lock) error {
	channel, _ := p.Trust.Trust.Root().Channel(l.Channel) // setPosition has seen it
	for i, a := range l.Artifacts {
		path := fmt.Sprintf("artifacts[%d]", i)
		if err := bundle.CheckArtifactName(a.Name, a.Version); err != nil {
			return problem.Field(path, err.Error(), "give it a name and a version of its own")
		}
		if !channel.Allows(a.Name) {
			return problem.Field(path, fmt.Sprintf("the trust root does not let the channel %s carry %q", l.Channel, a.Name), "names must begin with one of: "+strings.Join(channel.Prefixes, ", "))
		}
	}
	return nil
}

// checkCount finds before all the fetching that a bundle would have too many
// blobs.
func checkCount(pins []Pinned) error {
	var files int64
	for _, p := range pins {
		files += p.Files
	}
	if files > bundle.MaxBlobs {
		return problem.New("artifact/too-many-files", "the artifacts have %d files, and a bundle takes %d blobs", files, bundle.MaxBlobs).
			Hint("split them over two channels, or pack small files into archives")
	}
	return nil
}

func (p *Planner) resolveOne(ctx context.Context, a *ArtifactSpec) (Pinned, error) {
	key, request := a.Request()
	source, ok := p.Sources[key]
	if !ok {
		return Pinned{}, fmt.Errorf("no source %q", key)
	}
	pin, err := source.Resolve(ctx, request, p.Store)
	if err != nil {
		return pin, err
	}
	pin.Source = key
	return pin, nil
}

func checkUnique(pins []Pinned) error {
	seen := map[string]int{}
	for i, pin := range pins {
		key := fmt.Sprintf("%s %s %s", pin.Kind, pin.Name, pin.Version)
		if first, twice := seen[key]; twice {
			return problem.Field(fmt.Sprintf("artifacts[%d]", i), fmt.Sprintf("the %s, version %s, is artifacts[%d] already", pin.Kind+" "+bundle.Kind(pin.Name), pin.Version, first), "leave one out, or give it another name or version")
		}
		seen[key] = i
	}
	return nil
}

// IncompleteError is several artifacts that failed, reported together.
type IncompleteError struct {
	What     string
	Failures []error // none is nil
	Total    int
}

func (e *IncompleteError) Error() string {
	return fmt.Sprintf("%d of %d artifacts %s", len(e.Failures), e.Total, e.What)
}

// Unwrap lets errors.Is and errors.As look into every failure.
func (e *IncompleteError) Unwrap() []error { return e.Failures }

// Code is the stable code of this error.
func (e *IncompleteError) Code() string { return "export/incomplete" }

// Remedy is for all of them together, not that of the first.
func (e *IncompleteError) Remedy() string { return "mend them and run it again" }

// Evidence lists the failures, with their own evidence indented.
func (e *IncompleteError) Evidence() []string {
	var lines []string
	for _, err := range e.Failures {
		lines = append(lines, strings.TrimSpace(err.Error()))
		for _, line := range problem.EvidenceOf(err) {
			lines = append(lines, "  "+line)
		}
		if remedy := problem.RemedyOf(err); remedy != "" {
			lines = append(lines, "  hint: "+remedy)
		}
		if code := problem.CodeOf(err); code != "" {
			lines = append(lines, "  code: "+code)
		}
	}
	return lines
}

// together turns a list of results into no error, the error of an only
// artifact, or an IncompleteError.
func together(what string, results []error) error {
	failures := slices.DeleteFunc(slices.Clone(results), func(err error) bool { return err == nil })
	switch {
	case len(failures) == 0:
		return nil
	case len(results) == 1:
		return failures[0]
	}
	return &IncompleteError{What: what, Failures: failures, Total: len(results)}
}

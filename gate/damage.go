package gate

import (
	"slices"
	"unicode/utf8"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/policy"
)

// codeRowDamaged says that a row cannot be right. Nothing is done with it.
const codeRowDamaged = "gate/row-damaged"

func rowDamaged(id CaseID, what string, args ...any) error {
	return damagedRow(problem.New(codeRowDamaged, "the row of case %d cannot be right: "+what, append([]any{id}, args...)...))
}

func damagedRow(p *problem.Problem) error {
	return p.Hint("packhof-gate doctor; then compare gate.db with the last backup")
}

// isRowDamaged tells a row that cannot be right from a database that cannot be
// read.
func isRowDamaged(err error) bool {
	return problem.CodeOf(err) == codeRowDamaged
}

// rawSummary is what of a row has to be parsed before it means anything.
type rawSummary struct {
	manifest, state, verdict string
	arrived, changed         int64
}

// maxSeconds is the end of the year 9999, the last that can be written down.
const maxSeconds = 253402300799

// parse takes over what of a row means something; unknown words and numbers
// that cannot be are refused here, before anything is built on them.
func (r *row) parse(raw rawSummary) (err error) {
	r.ended = raw.state == string(Rejected)
	if r.Manifest, err = cas.ParseDigest(raw.manifest); err != nil {
		return rowDamaged(r.ID, "%w", err)
	}
	if !utf8.ValidString(r.Channel) || !utf8.ValidString(r.Submitter) {
		return rowDamaged(r.ID, "its channel or its submitter is no text")
	}
	if r.State = State(raw.state); r.State == Unreadable || !slices.Contains(States(), r.State) {
		return rowDamaged(r.ID, "there is no state %.40q", raw.state)
	}
	if r.Verdict = policy.Verdict(raw.verdict); r.Verdict != "" && !slices.Contains(verdicts(), r.Verdict) {
		return rowDamaged(r.ID, "there is no verdict %.40q", raw.verdict)
	}
	for _, seconds := range []int64{raw.arrived, raw.changed} {
		if seconds < 0 || seconds > maxSeconds {
			return rowDamaged(r.ID, "%d is no time", seconds)
		}
	}
	for _, n := range []int64{r.Epoch, r.Serial, r.Size, int64(r.Artifacts), int64(r.Deny), int64(r.Review), int64(r.Warn), int64(r.Needed)} {
		if n < 0 {
			return rowDamaged(r.ID, "it counts %d of something", n)
		}
	}
	r.Arrived, r.Changed = fromSeconds(raw.arrived), fromSeconds(raw.changed)
	return nil
}

func verdicts() []policy.Verdict {
	return []policy.Verdict{policy.Allow, policy.Review, policy.Deny, policy.Failed}
}

// contradicted says what of a row does not go with the rest of it.
func (r *row) contradicted() error {
	judged := r.decision != nil
	switch {
	case judged != (r.Verdict != "") || judged != (len(r.review) > 0):
		return rowDamaged(r.ID, "verdict, decision and review are there only in part")
	case judged && r.decision.Verdict != r.Verdict:
		return rowDamaged(r.ID, "it says %s, and the policy's decision %.40q", r.Verdict, r.decision.Verdict)
	case judged && r.reviewDigest != reviewDigest(r.review), !judged && r.reviewDigest != "":
		return rowDamaged(r.ID, "its review is not the one of its digest")
	case r.problem != nil && r.problem.Code == "":
		return rowDamaged(r.ID, "its problem has no code")
	}
	switch r.State {
	case Awaiting, Approved, Loading, Loaded:
		if r.Verdict.Blocks() { // which no verdict at all does, too
			return rowDamaged(r.ID, "it is %s, with the verdict %q", r.State, r.Verdict)
		}
	case PartlyLoaded:
		if r.Verdict.Blocks() && r.problem == nil {
			return rowDamaged(r.ID, "it is %s, with the verdict %q and no reason", r.State, r.Verdict)
		}
	case Blocked, Rejected, Expired, NotGenuine, Damaged, CheckFailed:
		if r.problem == nil {
			return rowDamaged(r.ID, "it is %s, and does not say why", r.State)
		}
	}
	return nil
}

// refusal is what stands against a case that cannot go on: always an error.
func (r *row) refusal() error {
	if r.problem == nil || r.problem.Code == "" {
		return rowDamaged(r.ID, "it is %s with the verdict %q, and does not say why", r.State, r.Verdict)
	}
	return r.problem.Err()
}

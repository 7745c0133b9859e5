package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/policy"
)

// caseView is the page of a case: with a review once there is one.
type caseView struct {
	Case   *gate.Case
	Shape  string
	Review *reviewView // nil before the policy has judged
	Form   decisionForm
	// MayRelease says that the reader can have it loaded from here.
	MayRelease bool
	// AtConsole says that it waits to be loaded, from the console.
	AtConsole bool
}

// decisionForm is what a person is about to decide.
type decisionForm struct {
	Open   bool   // they may decide now
	Closed string // why not: a key of texts
	Choice gate.Choice
	Reason string
	Fault  string // what is wrong with the form: a key of texts, "" for nothing
	Field  string // the field that Fault is about
}

// maxReason bounds a reason, in bytes.
const maxReason = 4000

func (s *server) pageCase(c echo.Context) error {
	return s.showCase(c, http.StatusOK, decisionForm{})
}

func (s *server) pageBackToCase(c echo.Context) error {
	id, err := caseID(c)
	if err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, casePath(id)+"#decision")
}

// showCase shows the page of a case, with the form as far as it was filled in.
func (s *server) showCase(c echo.Context, status int, form decisionForm) error {
	found, review, err := s.caseOf(c)
	if err != nil {
		return err
	}
	who := actorOf(c)
	view := caseView{Case: found, Shape: shapeOf(found.State, found.Verdict), Form: form}
	if review != nil {
		view.Review = s.reviewed(review, languageOf(c.Request()))
		view.Form.Open, view.Form.Closed = mayDecide(found, review, who)
	}
	if found.State == gate.Approved || found.State == gate.PartlyLoaded {
		view.MayRelease = who.May(gate.MayRelease) && s.options.Background != nil
		view.AtConsole = !view.MayRelease
	}
	p := page{Nav: "inbox", Path: casePath(found.ID), Failed: form.Fault != "", Body: view}
	switch found.State {
	case gate.Received, gate.Verified, gate.Inspected, gate.Loading:
		p.Refresh = 5
	case gate.NotGenuine:
		return s.show(c, status, "unknown", p)
	}
	return s.show(c, status, "case", p)
}

func casePath(id gate.CaseID) string { return "/cases/" + formatID(id) }

// caseOf gets a case, and its review if there is one yet.
func (s *server) caseOf(c echo.Context) (*gate.Case, *gate.ReviewPage, error) {
	id, err := caseID(c)
	if err != nil {
		return nil, nil, err
	}
	ctx, who := c.Request().Context(), actorOf(c)
	found, err := s.gate.Case(ctx, who, id)
	if err != nil {
		return nil, nil, err
	}
	review, err := s.gate.Review(ctx, who, id)
	if codeOf(err) == "case/no-review" {
		return found, nil, nil
	}
	return found, review, err
}

// mayDecide tells whether the form is open, or why it is not. The gate has the
// last word on both.
func mayDecide(c *gate.Case, review *gate.ReviewPage, who gate.Actor) (open bool, closed string) {
	decided := slices.ContainsFunc(review.Decisions, func(d gate.Decision) bool { return d.Counts && d.Actor == who.Name() })
	switch {
	case c.State != gate.Awaiting:
		return false, ""
	case !who.May(gate.MayDecide):
		return false, "decision.closed.role"
	case isSubmitter(c.Summary, who):
		return false, "decision.closed.submitter"
	case decided:
		return false, "decision.closed.decided"
	}
	return true, ""
}

// reviewView is a review in the order in which it is read.
type reviewView struct {
	*gate.ReviewPage
	Code         string         // the beginning of its digest
	Counts       map[string]int // of findings, by level
	New          []gate.ReviewArtifact
	Updated      []gate.ReviewArtifact
	Unchanged    int
	Groups       []findingGroup
	Destinations []destinationView
	Decided      []gate.Decision // those that count
	NeedReason   bool            // to approve
}

// findingGroup is what one rule found.
type findingGroup struct {
	Rule   string
	Level  policy.Level // the heaviest
	Title  string
	Remedy string
	Items  []findingView
}

type findingView struct {
	Level    policy.Level
	Sentence string
	Subject  string // name and version of the artifact, or "" for the bundle
	Digest   string
}

// destinationView is what happens at one destination.
type destinationView struct {
	Name     string
	Created  int
	Replaced int
}

// levels from the heaviest on.
func levels() []policy.Level {
	return []policy.Level{policy.LevelDeny, policy.LevelReview, policy.LevelWarn, policy.LevelInfo}
}

const codeLength = 12 // characters of a review's digest that people compare

func (s *server) reviewed(p *gate.ReviewPage, lang string) *reviewView {
	v := &reviewView{ReviewPage: p, Counts: map[string]int{}}
	v.Code = strings.TrimPrefix(p.Digest, "sha256:")
	v.Code = v.Code[:min(codeLength, len(v.Code))]
	for _, l := range levels() {
		v.Counts[string(l)] = 0
	}
	for _, a := range p.Review.Artifacts {
		switch a.Change {
		case "unchanged":
			v.Unchanged++
		case "updated":
			v.Updated = append(v.Updated, a)
		default:
			v.New = append(v.New, a)
		}
	}
	for _, f := range p.Review.Findings {
		v.Counts[string(f.Level)]++
		v.addFinding(f, s.words(f, lang))
	}
	slices.SortStableFunc(v.Groups, func(a, b findingGroup) int {
		return slices.Index(levels(), a.Level) - slices.Index(levels(), b.Level)
	})
	for _, d := range p.Decisions {
		if d.Counts {
			v.Decided = append(v.Decided, d)
		}
	}
	v.NeedReason = v.Counts[string(policy.LevelReview)] > 0
	v.Destinations = destinationsOf(p.Review.Artifacts)
	return v
}

// addFinding puts a finding to the others of its rule.
func (v *reviewView) addFinding(f policy.Finding, words policy.Text) {
	i := slices.IndexFunc(v.Groups, func(g findingGroup) bool { return g.Rule == f.Rule })
	if i < 0 {
		i = len(v.Groups)
		v.Groups = append(v.Groups, findingGroup{Rule: f.Rule, Level: f.Level, Title: words.Title, Remedy: words.Remedy})
	}
	g := &v.Groups[i]
	if slices.Index(levels(), f.Level) < slices.Index(levels(), g.Level) {
		g.Level = f.Level
	}
	item := findingView{Level: f.Level, Sentence: words.Sentence, Digest: f.Artifact}
	for _, a := range v.ReviewPage.Review.Artifacts {
		if a.Digest.String() == f.Artifact {
			item.Subject = a.Name + " " + a.Version
		}
	}
	g.Items = append(g.Items, item)
}

// destinationsOf counts what is written where, in the order of the plan.
func destinationsOf(artifacts []gate.ReviewArtifact) []destinationView {
	var list []destinationView
	for _, a := range artifacts {
		for _, plan := range a.Plan {
			i := slices.IndexFunc(list, func(d destinationView) bool { return d.Name == plan.Destination })
			if i < 0 {
				i = len(list)
				list = append(list, destinationView{Name: plan.Destination})
			}
			if plan.Replaces == nil {
				list[i].Created++
			} else {
				list[i].Replaced++
			}
		}
	}
	return list
}

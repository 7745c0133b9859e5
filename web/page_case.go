package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/policy"
)

// caseView is the page of a case: with a review once there is one.
type caseView struct {
	standing
	Case   *gate.Case
	Review *reviewView // nil before the policy has judged
	Digest string      // of the review; "" before the policy has judged
	Form   decisionForm
	Offers offers
	Parts  parts
}

// Volumes is how many volumes the case waits for, as far as their numbers are
// known, and Numbers are those.
func (v *caseView) Volumes() int {
	if v.Case.Lacks == nil {
		return 0
	}
	return len(v.Case.Lacks.Volumes)
}

// Numbers writes the numbers of these volumes, at most the first of many.
func (v *caseView) Numbers() []string {
	var texts []string
	for _, n := range v.Case.Lacks.Volumes[:min(len(v.Case.Lacks.Volumes), mostNumbers)] {
		texts = append(texts, strconv.Itoa(n))
	}
	if v.Volumes() > mostNumbers {
		texts = append(texts, "…")
	}
	return texts
}

const mostNumbers = 50

// Absent is how many bytes of the content are not here.
func (v *caseView) Absent() int64 { return v.Case.Size - v.Case.Progress }

// decisionForm is what a person is about to decide.
type decisionForm struct {
	Choice gate.Choice
	Reason string
	Fault  string // what is wrong with the form: a key of texts, "" for nothing
	Field  string // the id of what Fault is about
}

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
	view, err := s.caseView(c)
	if err != nil {
		return err
	}
	view.Form = form
	if form.Fault != "" && !view.Offers.Decide() {
		view.Form.Field = "main" // what the fault was about is gone
	}
	p := page{Nav: "inbox", Path: view.Parts.address(), Failed: form.Fault != "", Body: view}
	switch view.Case.State {
	case gate.Received, gate.Verified, gate.Inspected, gate.Loading:
		if !p.Failed && !view.Case.Waiting {
			p.Refresh = 5
		}
	case gate.NotGenuine:
		return s.show(c, status, "unknown", p)
	}
	return s.show(c, status, "case", p)
}

// caseView gets all about the case that a request names.
func (s *server) caseView(c echo.Context) (*caseView, error) {
	found, review, err := s.caseOf(c)
	if err != nil {
		return nil, err
	}
	view := &caseView{standing: standingOf(found), Case: found, Parts: partsOf(c, casePath(found.ID), nil)}
	var decisions []gate.Decision
	if review != nil {
		review.JSON = nil // as large again as the review, and no page shows it
		view.Review, view.Digest, decisions = s.reviewed(review, languageOf(c.Request()), view.Parts), review.Digest, review.Decisions
	}
	view.Offers = offersTo(actorOf(c), found, decisions, s.options.Background != nil)
	return view, nil
}

func casePath(id gate.CaseID) string { return "/cases/" + formatID(id) }

// caseOf gets a case, and its review if there is one yet.
func (s *server) caseOf(c echo.Context) (*gate.Case, *gate.ReviewPage, error) {
	id, err := caseID(c)
	if err != nil {
		return nil, nil, err
	}
	ctx, who := c.Request().Context(), actorOf(c)
	// The review first: a case may be judged again when it is looked at.
	review, err := s.gate.Review(ctx, who, id)
	switch codeOf(err) {
	case "", "case/no-review", "gate/row-damaged": // the case says what is wrong with it
	default:
		return nil, nil, err
	}
	found, err := s.gate.Case(ctx, who, id)
	return found, review, err
}

// reviewView is a review in the order in which it is read.
type reviewView struct {
	*gate.ReviewPage
	Code         string                // the beginning of its digest
	Counts       map[string]int        // of findings, by level
	Changed      []gate.ReviewArtifact // new and updated ones, and whatever else there is something to say about
	Unchanged    int                   // the others
	Groups       []findingGroup
	Destinations []destinationView
	To           []string // destinations at which a release sets names
	Obstacles    []obstacle
	NeedReason   bool // to approve
	Contents     []artifactView
	Shown        window // which of all artifacts Contents are
	Parts        parts
}

// findingGroup is what one rule found.
type findingGroup struct {
	Rule   string
	Level  policy.Level // the heaviest
	Title  string
	Remedy string
	Items  []findingView
	Shown  window // which of them a page shows
}

type findingView struct {
	Level    policy.Level
	Sentence string
	Subject  string // name and version of the artifact, or "" for the bundle
	Digest   string
}

// levels from the heaviest on.
func levels() []policy.Level {
	return []policy.Level{policy.LevelDeny, policy.LevelReview, policy.LevelWarn, policy.LevelInfo}
}

const codeLength = 12 // characters of a review's digest that people compare

func (s *server) reviewed(p *gate.ReviewPage, lang string, at parts) *reviewView {
	v := &reviewView{ReviewPage: p, Counts: map[string]int{}, Parts: at}
	v.Code = strings.TrimPrefix(p.Digest, "sha256:")
	v.Code = v.Code[:min(codeLength, len(v.Code))]
	for _, l := range levels() {
		v.Counts[string(l)] = 0
	}
	v.Changed = changedIn(p.Review.Artifacts)
	v.Unchanged = len(p.Review.Artifacts) - len(v.Changed)
	subjects := subjectsOf(p.Review.Artifacts)
	for _, f := range s.gate.Policy().InWords(p.Review.Findings, lang) {
		v.Counts[string(f.Level)]++
		v.addFinding(f, subjects[f.Artifact])
	}
	slices.SortStableFunc(v.Groups, func(a, b findingGroup) int {
		return slices.Index(levels(), a.Level) - slices.Index(levels(), b.Level)
	})
	for i := range v.Groups {
		v.Groups[i].Shown = at.Of("findings-"+strconv.Itoa(i), len(v.Groups[i].Items))
	}
	v.Contents, v.Shown = contentsOf(p.Review.Artifacts, at)
	v.NeedReason = p.Review.Verdict == policy.Review
	v.Destinations, v.Obstacles = destinationsOf(p.Review.Artifacts), obstaclesOf(p.Review.Artifacts)
	v.To = writtenTo(v.Destinations)
	return v
}

// addFinding puts a finding to the others of its rule.
func (v *reviewView) addFinding(f policy.Worded, subject string) {
	i := slices.IndexFunc(v.Groups, func(g findingGroup) bool { return g.Rule == f.Rule })
	if i < 0 {
		i = len(v.Groups)
		v.Groups = append(v.Groups, findingGroup{Rule: f.Rule, Level: f.Level, Title: f.Title, Remedy: f.Remedy})
	}
	g := &v.Groups[i]
	if slices.Index(levels(), f.Level) < slices.Index(levels(), g.Level) {
		g.Level = f.Level
	}
	g.Items = append(g.Items, findingView{Level: f.Level, Sentence: f.Sentence, Subject: subject, Digest: f.Artifact})
}

// subjectsOf names artifacts by their digest. Of several with the same content
// the last one gives the name.
func subjectsOf(artifacts []gate.ReviewArtifact) map[string]string {
	names := make(map[string]string, len(artifacts))
	for _, a := range artifacts {
		names[a.Digest.String()] = a.Name + " " + a.Version
	}
	return names
}

// artifactView is an artifact with the parts of its lists that a page shows.
type artifactView struct {
	gate.ReviewArtifact
	Open  bool // the reader asked for a part of it
	SBOMs window
	Refs  window
	Tree  window
}

// contentsOf gives the artifacts that a page shows. One that has a list of
// which a part is asked for is among them.
func contentsOf(artifacts []gate.ReviewArtifact, at parts) ([]artifactView, window) {
	place := at
	asked, inside := at.artifact()
	if inside {
		place = parts{path: at.path, list: idContents, from: asked}
	}
	shown := place.Of(idContents, len(artifacts))
	step := min(rowsShown, max(rowsLeast, rowsNested/max(1, shown.To-shown.From)))
	var list []artifactView
	for i := shown.From; i < shown.To; i++ {
		a, number := artifacts[i], strconv.Itoa(i)
		list = append(list, artifactView{
			ReviewArtifact: a, Open: inside && i == asked,
			SBOMs: at.of(idSBOMs+number, len(a.SBOM), step), Refs: at.of(idRefs+number, len(a.Referrers), step), Tree: at.of(idFiles+number, len(a.Files), step),
		})
	}
	return list, shown
}

package web

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/policy"
)

// hostileTexts are what an artifact could call itself.
func hostileTexts() []string {
	return []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `</td></table><h1>approved</h1>`,
		`javascript:alert(1)`, `{{.}} ${1} &lt;`, `--><!-- <![CDATA[`, `</textarea></style></title><base href=//evil.example>`,
		"invoice\u202efdp.exe", "a\x00b\x1b[2Jc\x07", "zero\u200b\u2060width\ufeff", "\u2066iso\u2069late", "\u3164\u2800", "bad\xff\xfeutf", "line\u2028break\u0085",
	}
}

// fill sets everything in v: every text to the given one, every list to one
// element, every number to one.
func fill(v reflect.Value, text string) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(testkit.Noon()))
		return
	case bundle.Instant:
		v.Set(reflect.ValueOf(bundle.At(testkit.Noon())))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Interface:
		v.Set(reflect.ValueOf(text))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), text)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), text)
		}
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value, text)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("text"), value)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), text)
		}
	default:
		panic("cannot fill a " + v.Type().String())
	}
}

func filled[T any](text string) *T {
	v := new(T)
	fill(reflect.ValueOf(v).Elem(), text)
	return v
}

// hostileScreens are all screens on which text of others is shown, with every
// such text being the given one. Findings are of a rule that is in force, and
// of one that is not.
func hostileScreens(s *server, lang, text string) map[string]page {
	found := filled[gate.Case](text)
	review := filled[gate.ReviewPage](text)
	review.Digest = found.Manifest.String() // the gate's own, which goes back to it as it is
	inForce := review.Review.Findings[0]
	inForce.Rule = s.gate.Policy().Rules()[0].ID
	review.Review.Findings = append(review.Review.Findings, inForce)
	for _, change := range []func(*gate.ReviewArtifact){
		func(a *gate.ReviewArtifact) { a.Change = changeUpdate },
		func(a *gate.ReviewArtifact) { a.Plan[0].Owner = "" },                               // kept
		func(a *gate.ReviewArtifact) { a.Plan[0].Owner, a.Plan[0].Kept = "", false },        // replaces
		func(a *gate.ReviewArtifact) { a.Change, a.Plan = changeNone, []gate.ReviewPlan{} }, // nowhere
	} {
		another := *filled[gate.ReviewArtifact](text)
		change(&another)
		review.Review.Artifacts = append(review.Review.Artifacts, another)
	}
	view := &caseView{standing: standing{Shape: "decide"}, Case: found, Review: s.reviewed(review, lang, parts{}), Digest: review.Digest,
		Form: decisionForm{Choice: gate.Approve, Reason: visible(text), Fault: "fault.reason", Field: "reason"}, Offers: offers{Approve: true, Reject: true, Closed: "decision.closed.role", Release: true}}
	partly, dark := *view, *view
	partly.Case = filled[gate.Case](text)
	partly.Case.State, partly.Offers = gate.PartlyLoaded, offers{Approve: true, Live: true, Release: true}
	dark.Review, dark.Digest, dark.Offers = nil, "", offers{Reject: true}
	listing := &depotListing{Repositories: []depotRepository{{text, []gate.DepotTag{*filled[gate.DepotTag](text)}}}, Next: text}
	image := *filled[gate.DepotTag](text)
	image.Kind = bundle.Image
	listing.Repositories[0].Tags = append(listing.Repositories[0].Tags, image)
	return map[string]page{
		"case":                {Body: view},
		"case: partly loaded": {Body: &partly},
		"case: not judged":    {Body: &dark},
		"unknown":             {Body: view},
		"confirm":             {Account: officer, Body: confirmView{view, true, true}},
		"inbox":               {Body: inboxOf([]gate.Summary{found.Summary}, tabWaiting, gate.Actor{}, parts{})},
		"depot":               {Body: depotOf(listing, text)},
		"system":              {Body: systemView{Gate: text, Checks: []gate.Check{*filled[gate.Check](text)}, Trust: filled[gate.TrustStatus](text)}},
		"error":               {Body: failureView{Problem: *filled[gate.Problem](text), Status: 422}},
		"login":               {Body: loginView{To: "/", Account: text, Code: "login/failed"}},
	}
}

// TestT70TextOfArtifactsHasNoEffect fills every string field of everything
// that a screen shows: the elements and attributes of the screen must stay
// what they are with harmless text, and nothing invisible may come through.
func TestT70TextOfArtifactsHasNoEffect(t *testing.T) {
	l := newLab(t)
	assets, err := loadAssets()
	l.must(err)
	for _, lang := range languages() {
		set, err := loadScreens(lang, assets, l.clock.Now)
		l.must(err)
		s := &server{gate: l.gate}
		harmless := map[string]string{}
		for name, p := range hostileScreens(s, lang, "harmless") {
			harmless[name], _ = render(t, set, name, p)
		}
		for _, hostile := range hostileTexts() {
			for name, p := range hostileScreens(s, lang, hostile) {
				got, raw := render(t, set, name, p)
				if want := harmless[name]; got != want {
					t.Errorf("%s, %s: %q changes the screen:\n%s\nwant\n%s", lang, name, hostile, got, want)
				}
				for _, r := range raw {
					if r != '\n' && r != '\t' && policy.Visible(string(r)) != string(r) {
						t.Errorf("%s, %s: %q brings %U through", lang, name, hostile, r)
					}
				}
			}
		}
	}
}

// render gives the skeleton of a screen, elements and attributes without text,
// and its source.
func render(t *testing.T, set *screens, name string, p page) (skeleton, raw string) {
	t.Helper()
	p.Lang, p.Title, p.Path = set.code, "title", "/"
	var out bytes.Buffer
	name, _, _ = strings.Cut(name, ":")
	if err := set.pages[name].Execute(&out, p); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	doc, err := html.Parse(bytes.NewReader(out.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for n := range doc.Descendants() {
		switch n.Type {
		case html.ElementNode:
			fmt.Fprintf(&b, "%s", n.Data)
			for _, a := range n.Attr {
				fmt.Fprintf(&b, " %s", a.Key)
				if a.Key == "href" || a.Key == "src" || a.Key == "action" {
					address, _, _ := strings.Cut(a.Val, "?")
					fmt.Fprintf(&b, "=%s", address)
				}
			}
			b.WriteByte('\n')
		case html.CommentNode:
			fmt.Fprintf(&b, "comment %s\n", n.Data)
		}
	}
	return b.String(), out.String()
}

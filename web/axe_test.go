package web

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// verdict is what axe-core finds on a page.
type verdict struct {
	Passes     int         `json:"passes"` // rules that found nothing
	Violations []violation `json:"violations"`
}

type violation struct {
	ID    string `json:"id"`
	Help  string `json:"help"`
	Nodes []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// TestAxeHasNothingAgainstTheScreens runs axe-core, whose axe.min.js
// PACKHOF_AXE names, on the screens in a real browser, light and dark.
func TestAxeHasNothingAgainstTheScreens(t *testing.T) {
	file := os.Getenv("PACKHOF_AXE")
	if file == "" {
		t.Skip("PACKHOF_AXE names no axe.min.js: npm pack axe-core")
	}
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, lang := range languages() {
		t.Run(lang, func(t *testing.T) {
			l := newLab(t)
			l.richCase()
			l.receive(l.stranger())
			l.blocked()
			ctx, heard := openBrowser(t, lang)
			j := &journey{t: t, ctx: ctx, heard: heard, lang: lang}
			check := func(name string) { j.axe(name, string(source)) }
			j.do("open", chromedp.Navigate(l.server.URL+"/login"))
			check("login")
			j.do("log in", logIn(officer))
			for _, path := range []string{"/cases", "/cases?tab=blocked", "/cases?tab=done", "/cases/2", "/cases/3", "/depot", "/system", "/cases/99"} {
				j.heard.take()
				if err := chromedp.Run(ctx, chromedp.Navigate(l.server.URL+path), chromedp.WaitVisible("h1", chromedp.ByQuery)); err != nil {
					t.Fatal(err)
				}
				check(path)
			}
			j.heard.take() // that there is no case 99
			j.do("review", chromedp.Navigate(l.server.URL+"/cases/1"), chromedp.Click("details.artifact summary", chromedp.ByQuery))
			check("review")
			j.do("confirm", chromedp.Click(`input[value="approve"]`, chromedp.ByQuery), chromedp.SendKeys("#reason", "agreed", chromedp.ByQuery),
				chromedp.Submit("#reason", chromedp.ByQuery), chromedp.WaitVisible("button.approve", chromedp.ByQuery))
			check("confirm")
			j.do("approve", chromedp.SendKeys("#password", passwordOf(officer), chromedp.ByQuery), chromedp.Submit("#password", chromedp.ByQuery), chromedp.WaitVisible(".act button", chromedp.ByQuery))
			check("approved")
			j.load(l)
			j.do("depot", chromedp.Navigate(l.server.URL+"/depot"), chromedp.WaitVisible("table", chromedp.ByQuery))
			check("full depot")
		})
	}
}

// axe checks the page that is open, as it looks by day and by night.
func (j *journey) axe(name, source string) {
	j.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		var found verdict
		err := chromedp.Run(j.ctx, colours(scheme), chromedp.Evaluate(source+"; true", new(bool)),
			chromedp.Evaluate(`axe.run(document).then(r => ({passes: r.passes.length, violations: r.violations}))`, &found, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
		if err != nil {
			j.t.Fatalf("%s: %v", name, err)
		}
		if found.Passes == 0 {
			j.t.Errorf("%s: axe-core found nothing to look at", name)
		}
		for _, v := range found.Violations {
			var where strings.Builder
			for _, n := range v.Nodes {
				fmt.Fprintf(&where, "\n%s\n%s", n.HTML, n.Summary)
			}
			j.t.Errorf("%s, %s, %s: %s: %s%s", j.lang, name, scheme, v.ID, v.Help, where.String())
		}
	}
	if err := chromedp.Run(j.ctx, colours("light")); err != nil {
		j.t.Fatal(err)
	}
}

func colours(scheme string) chromedp.Action {
	return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}})
}

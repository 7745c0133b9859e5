package web

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	browserpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/testkit"
)

// complaints are what a browser reports: breaches of the content security
// policy, script errors, files that are not there.
type complaints struct {
	mu   sync.Mutex
	list []string
}

func (c *complaints) listen(event any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e := event.(type) {
	case *log.EventEntryAdded:
		c.list = append(c.list, fmt.Sprintf("%s %s: %s (%s)", e.Entry.Source, e.Entry.Level, e.Entry.Text, e.Entry.URL))
	case *runtime.EventExceptionThrown:
		c.list = append(c.list, e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		c.list = append(c.list, fmt.Sprintf("console.%s: %v", e.Type, e.Args))
	}
}

func (c *complaints) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.list
	c.list = nil
	return list
}

// openBrowser starts a real Chromium with a profile of its own, that talks to
// nobody but the page it is given.
func openBrowser(t *testing.T, lang string) (context.Context, *complaints) {
	t.Helper()
	program := testkit.Tool(t, "chromium")
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 800),
		chromedp.Flag("ignore-certificate-errors", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("no-first-run", true), chromedp.Flag("lang", lang),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"), chromedp.Flag("password-store", "basic"),
	)
	// The test's own context ends too early to close the browser by: one that
	// is killed leaves children behind, who write to the profile.
	allocator, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	t.Cleanup(stop)
	// Events that are newer than the library's description of the protocol
	// are none that the test needs.
	ctx, closeTab := chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {}))
	t.Cleanup(closeTab)
	browser := ctx
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(cancel)
	t.Cleanup(func() {
		if err := chromedp.Cancel(browser); err != nil {
			t.Error(err)
		}
	})
	c := &complaints{}
	chromedp.ListenTarget(ctx, c.listen)
	err := chromedp.Run(ctx, log.Enable(), network.Enable(), network.SetExtraHTTPHeaders(network.Headers{"Accept-Language": lang}),
		emulation.SetDeviceMetricsOverride(1280, 800, 1, false))
	if err != nil {
		t.Fatal(err)
	}
	return ctx, c
}

// journey is somebody's way through the screens.
type journey struct {
	t        *testing.T
	ctx      context.Context
	heard    *complaints
	lang     string
	pictures string // folder for screenshots; "" for none
}

func (j *journey) do(what string, actions ...chromedp.Action) {
	j.t.Helper()
	if err := chromedp.Run(j.ctx, actions...); err != nil {
		j.t.Fatalf("%s: %v", what, err)
	}
	for _, complaint := range j.heard.take() {
		j.t.Errorf("%s: %s", what, complaint)
	}
}

// load starts the release from the page of the case, waits for the page that
// comes next, and for the release.
func (j *journey) load(l *lab) {
	j.t.Helper()
	if _, err := chromedp.RunResponse(j.ctx, chromedp.Click(".act button", chromedp.ByQuery)); err != nil {
		j.t.Fatalf("load: %v", err)
	}
	l.background.Wait()
}

// sees waits for a screen, and keeps a picture of it.
func (j *journey) sees(name, selector string, texts ...string) {
	j.t.Helper()
	var body string
	j.do(name, chromedp.WaitVisible(selector, chromedp.ByQuery), chromedp.Text("body", &body, chromedp.ByQuery))
	for _, want := range texts {
		if !strings.Contains(body, want) {
			j.t.Errorf("%s does not show %q:\n%s", name, want, body)
		}
	}
	j.fitsATelephone(name)
	if j.pictures == "" {
		return
	}
	var picture, whole, narrow, paper []byte
	j.do("picture of "+name, chromedp.CaptureScreenshot(&picture), chromedp.FullScreenshot(&whole, 100),
		chromedp.EmulateViewport(768, 1024), chromedp.FullScreenshot(&narrow, 100), chromedp.EmulateViewport(1280, 800),
		chromedp.ActionFunc(func(ctx context.Context) (err error) {
			paper, _, err = browserpage.PrintToPDF().WithPreferCSSPageSize(true).Do(ctx)
			return err
		}))
	for ending, b := range map[string][]byte{".png": picture, "-whole.png": whole, "-768.png": narrow, ".pdf": paper} {
		if err := os.WriteFile(filepath.Join(j.pictures, name+"-"+j.lang+ending), b, 0o600); err != nil {
			j.t.Fatal(err)
		}
	}
}

// fitsATelephone looks whether a screen as narrow as a telephone's would have
// to be moved sideways: only tables may, each by itself.
func (j *journey) fitsATelephone(name string) {
	j.t.Helper()
	const width = 390
	var needed int
	var telephone []byte
	j.do(name+" on a telephone", chromedp.EmulateViewport(width, 844), chromedp.Evaluate(`document.documentElement.scrollWidth`, &needed))
	if needed > width {
		var widest string
		j.do(name, chromedp.Evaluate(`[...document.querySelectorAll("main *, header *, footer *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll")).map(e => e.outerHTML.slice(0, 120)).join("\n")`, &widest))
		j.t.Errorf("%s needs %d pixels on a telephone of %d:\n%s", name, needed, width, widest)
	}
	if j.pictures != "" {
		j.do("picture of "+name, chromedp.FullScreenshot(&telephone, 100))
		if err := os.WriteFile(filepath.Join(j.pictures, name+"-"+j.lang+"-390.png"), telephone, 0o600); err != nil {
			j.t.Fatal(err)
		}
	}
	j.do(name, chromedp.EmulateViewport(1280, 800))
}

// TestJourneyInARealBrowser logs in, looks at the inbox, reads a review,
// approves it, loads it, and sees that it is. Whatever the browser has to complain about
// fails it. PACKHOF_SCREENSHOTS names a folder for pictures.
func TestJourneyInARealBrowser(t *testing.T) {
	for lang, want := range map[string]struct{ inbox, review, confirm, approved string }{
		"de": {"Ihre Entscheidung fehlt", "Entscheidung nötig: ", "Vorgang 1 freigeben?", "freigegeben"},
		"en": {"your decision is missing", "Decision needed: ", "Approve case 1?", "approved"},
	} {
		pictures := os.Getenv("PACKHOF_SCREENSHOTS")
		if lang != languages()[0] && pictures == "" {
			continue // the way is the same in every language; the pictures are not
		}
		t.Run(lang, func(t *testing.T) {
			testkit.Tool(t, "chromium")
			l := newLab(t)
			l.richCase()
			l.receive(l.stranger())
			l.blocked()
			ctx, heard := openBrowser(t, lang)
			j := &journey{t: t, ctx: ctx, heard: heard, lang: lang, pictures: pictures}

			j.do("open", chromedp.Navigate(l.server.URL+"/"))
			j.sees("login", "#account")
			j.do("log in", logIn(officer))
			j.sees("inbox", "table.cases", want.inbox)
			j.do("open the case", chromedp.Click(`a[href="/cases/1"]`, chromedp.ByQuery))
			j.sees("review", "#decision", want.review, "<script>")
			j.do("open the details", chromedp.Click("details.artifact summary", chromedp.ByQuery))
			j.sees("details", "details[open]")
			j.do("decide", chromedp.Click(`input[value="approve"]`, chromedp.ByQuery), chromedp.SendKeys("#reason", "agreed with the sender", chromedp.ByQuery), chromedp.Submit("#reason", chromedp.ByQuery))
			j.sees("confirm", "button.approve", want.confirm, "agreed with the sender", "depot")
			j.do("confirm", chromedp.SendKeys("#password", passwordOf(officer), chromedp.ByQuery), chromedp.Submit("#password", chromedp.ByQuery))
			j.sees("approved", "#decisions", want.approved, "agreed with the sender")
			j.load(l)
			for _, screen := range []string{"cases/1", "cases/2", "cases/3", "cases?tab=blocked", "depot", "system"} {
				j.do(screen, chromedp.Navigate(l.server.URL+"/"+screen))
				j.sees(strings.NewReplacer("/", "-", "?tab=", "-").Replace(screen), "h1")
			}
			if c, err := l.gate.Case(t.Context(), gate.Console("root"), 1); err != nil || c.State != gate.Loaded {
				t.Errorf("%+v, %v", c, err)
			}
		})
	}
}

// TestRareScreensInARealBrowser: a case that a later serial has overtaken, and
// one that lacks volumes, fit every screen too.
func TestRareScreensInARealBrowser(t *testing.T) {
	for lang, want := range map[string]struct{ overtaken, lacking string }{
		"de": {"überholt von Nr. 2", "Es fehlt Teil 2 von 2."},
		"en": {"overtaken by serial 2", "The case waits for volume 2 of 2."},
	} {
		pictures := os.Getenv("PACKHOF_SCREENSHOTS")
		if lang != languages()[0] && pictures == "" {
			continue
		}
		t.Run(lang, func(t *testing.T) {
			testkit.Tool(t, "chromium")
			l := newLab(t)
			l.waiting()
			later := l.receive(l.forge(func(m *bundle.Manifest) { m.Artifacts[0].Version = "2.0" }))
			l.approve(officer, later.ID)
			_, err := l.gate.Release(t.Context(), l.actor(officer), later.ID, nil)
			l.must(err)
			f := l.forge(nil)
			lost := testkit.Bytes("lost", 300_000)
			f.AddTree(t, bundle.Dataset, "line-5-images", []bundle.File{{Path: "part-0001.csv", Size: int64(len(lost)), Digest: f.Content.Add(lost)}})
			f.Reseal(t)
			l.firstVolume(f, len(f.Volume)*2/3)
			ctx, heard := openBrowser(t, lang)
			j := &journey{t: t, ctx: ctx, heard: heard, lang: lang, pictures: pictures}
			j.do("open", chromedp.Navigate(l.server.URL+"/"))
			j.do("log in", logIn(officer))
			j.sees("rare-inbox", "table.cases", want.overtaken)
			for screen, text := range map[string]string{"cases/1": want.overtaken, "cases/3": want.lacking} {
				j.do(screen, chromedp.Navigate(l.server.URL+"/"+screen))
				j.sees("rare-"+strings.ReplaceAll(screen, "/", "-"), "h1", text)
			}
		})
	}
}

func logIn(account string) chromedp.Action {
	return chromedp.Tasks{
		chromedp.SendKeys("#account", account, chromedp.ByQuery), chromedp.SendKeys("#password", passwordOf(account), chromedp.ByQuery),
		chromedp.Submit("#password", chromedp.ByQuery), chromedp.WaitVisible("nav.tabs", chromedp.ByQuery),
	}
}

// richCase waits for a decision on several artifacts, some of which have names
// that would like to be more than names.
func (l *lab) richCase() {
	l.t.Helper()
	l.trust()
	f := l.forge(func(m *bundle.Manifest) {
		m.Note = "Weekly delivery.\nNew: settings of line 4. <script>document.title='owned'</script>"
	})
	add := func(kind bundle.Kind, name, path string, content []byte) {
		f.AddTree(l.t, kind, name, []bundle.File{{Path: path, Size: int64(len(content)), Digest: f.Content.Add(content)}})
	}
	add(bundle.Dataset, "line-4-images", "images/part-0001.csv", testkit.Bytes("images", 300_000))
	add(bundle.Files, "plc-settings-with-a-rather-long-name-that-needs-room-in-every-table", "settings/<script>alert(1)</script>.json", []byte(`{"line": 4}`))
	f.AddImage(l.t, "registry.example/line-4/inspector", "2.1", testkit.ImageSpec{Seed: "inspector"}, "amd64", "arm64")
	f.Reseal(l.t)
	if c := l.receive(f); c.State != gate.Awaiting {
		l.t.Fatalf("%s: %+v", c.State, c.Problem)
	}
}

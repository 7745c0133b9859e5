package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
)

//go:embed templates
var templateFiles embed.FS

// screens are the templates in one language.
type screens struct {
	*Words
	pages map[string]*template.Template // by file name without ending
}

// page is what every screen has around its content.
type page struct {
	Lang    string
	Title   string // without the name of the program
	Nav     string // the entry of the navigation that this is
	Account string // "" before a login
	Version string
	Zone    string
	Path    string // of a page that can be got, for the choice of the language
	Refresh int    // seconds, while something is going on; 0: never
	Failed  bool   // there is an error summary
	Body    any
}

const (
	layoutFile = "layout.html"
	partsFile  = "parts.html"
)

func loadScreens(lang string, a *assets, clock func() time.Time) (*screens, error) {
	l, err := LoadWords(lang, clock)
	if err != nil {
		return nil, err
	}
	s := &screens{Words: l, pages: map[string]*template.Template{}}
	files, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		name := path.Base(file)
		if name == layoutFile || name == partsFile {
			continue
		}
		t, err := template.New(layoutFile).Option("missingkey=error").Funcs(s.functions(a)).
			ParseFS(templateFiles, "templates/"+layoutFile, "templates/"+partsFile, file)
		if err != nil {
			return nil, err
		}
		s.pages[strings.TrimSuffix(name, ".html")] = t
	}
	return s, nil
}

func (s *screens) functions(a *assets) template.FuncMap {
	return template.FuncMap{
		"t": s.text, "tn": s.count, "word": s.word,
		"show": func(v any) string { return visible(fmt.Sprint(v)) }, "lines": visibleLines,
		"num":  func(n any) (string, error) { return s.value(n) },
		"said": s.Sentence, "meaning": s.Meaning, "evidence": s.Evidence, "remedy": s.remedyOf,
		"size": s.size, "date": s.date, "age": s.age,
		"day":   func(i bundle.Instant) string { return s.date(i.Time) },
		"short": shortDigest, "list": s.list,
		"asset": func(name string) (string, error) {
			if hashed, ok := a.names[name]; ok {
				return "/assets/" + hashed, nil
			}
			return "", fmt.Errorf("no asset %q", name)
		},
	}
}

// remedy is what helps, and the language it is in where that is not the
// screen's.
type remedy struct{ Text, Lang string }

func (s *screens) remedyOf(code, english string) remedy {
	text, foreign := s.Remedy(code, english)
	if foreign {
		return remedy{text, "en"}
	}
	return remedy{text, s.code}
}

// shortDigest is enough of a digest to tell two apart at a glance. The whole
// one stands beside it wherever it matters.
func shortDigest(d fmt.Stringer) string {
	const length = len("sha256:") + 12
	text := d.String()
	if len(text) <= length {
		return text
	}
	return text[:length] + "…"
}

// show answers with a screen. It is whole before its first byte is sent.
func (s *server) show(c echo.Context, status int, name string, p page) error {
	set := s.screen[languageOf(c.Request())]
	p.Lang, p.Version, p.Account = set.code, s.options.Version, accountOf(actorOf(c))
	p.Zone = s.options.Clock().In(set.zone).Format("MST")
	if p.Path == "" {
		p.Path = c.Request().URL.RequestURI()
	}
	title, err := set.text("title." + name)
	if err != nil {
		return err
	}
	if p.Title == "" {
		p.Title = title
	}
	var out bytes.Buffer
	if err := set.pages[name].Execute(&out, p); err != nil {
		return err
	}
	return s.send(c, status, "text/html; charset=utf-8", out.Bytes())
}

func accountOf(who gate.Actor) string {
	if who.Account() {
		return who.Name()
	}
	return ""
}

// failureView is an error on a screen.
type failureView struct {
	Problem gate.Problem
	Status  int
}

// pageError shows an error as a screen. Who is not logged in is asked to.
func (s *server) pageError(c echo.Context, err error) error {
	p := documentOf(err)
	if p.Code == "login/needed" {
		to := "/login"
		if c.Request().Method == http.MethodGet && c.Request().URL.Path != "/" {
			to += "?to=" + template.URLQueryEscaper(c.Request().URL.RequestURI())
		}
		return c.Redirect(http.StatusSeeOther, to)
	}
	return s.show(c, statusOf(p.Code), "error", page{Path: "/", Body: failureView{gate.Problem{Code: p.Code, What: p.Detail, Evidence: p.Evidence, Remedy: p.Remedy}, statusOf(p.Code)}})
}

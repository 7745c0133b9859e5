package web

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template/parse"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/policy"
)

func german(t *testing.T) *Words  { return mustLoad(t, "de") }
func english(t *testing.T) *Words { return mustLoad(t, "en") }

func mustLoad(t *testing.T, code string) *Words {
	t.Helper()
	l, err := LoadWords(code, testkit.Noon)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// wordSets are the values of the sets that templates show with word. Where a
// screen can meet only some of a type's values, only those need a word.
func wordSets() map[string][]string {
	return map[string][]string{
		"state": texts(gate.States()...), "next": append(texts(gate.States()...), needReplacing, needVolumes),
		"next.mine":   texts(gate.Awaiting, gate.Approved, gate.PartlyLoaded),
		"tab":         tabs(),
		"inbox.empty": tabs(),
		"level":       texts(levels()...),
		"format":      {"unknown"},
		"proof":       {"trust root", "signatures", "audience", "freshness", "blobs", "artifacts"},
		"verdict":     texts(policy.Allow, policy.Review, policy.Deny, policy.Failed),
		"kind":        texts(bundle.Kinds()...),
		"referrer":    {"sbom", "signature", "attestation", "other"},
		"change":      {"new", "updated", "unchanged", "removed"},
		"transport":   texts(bundle.TransportTLS, bundle.TransportPlain, bundle.TransportLocal),
		"verified":    texts(bundle.VerifiedDigest, bundle.VerifiedLock),
		"sbom":        texts(bundle.SBOMPresent, bundle.SBOMAbsent, bundle.SBOMFailed),
		"document":    {gate.DocumentInForce, gate.DocumentKept, gate.DocumentClaimed},
		"answer":      texts(bundle.OutcomeDelivered, bundle.OutcomeLater, bundle.OutcomeDeclined),
		"event":       caseEvents(),
		"doctor":      {"data directory", "space", "trust root", "clock", "audit log", "policy", "rules of your own", "people", "destinations", "cases", "database", "gate"},
		"load":        {gate.LoadPut, gate.LoadPublished, gate.LoadVerified},
		"decided":     texts(gate.Approve, gate.Reject),
		"check":       {gate.CheckOK, gate.CheckWarning, gate.CheckBad},
	}
}

func texts[T ~string](values ...T) []string {
	var list []string
	for _, v := range values {
		list = append(list, string(v))
	}
	return list
}

// caseEvents finds in the gate's sources which events a case can have, so that
// a new one cannot stay without a word.
func caseEvents() []string {
	found := map[string]bool{}
	files, err := filepath.Glob("../gate/*.go")
	if err != nil || len(files) == 0 {
		panic("no sources of the gate")
	}
	literal := regexp.MustCompile(`(?:Type:|kind(?:, [a-z]+)? :?=|logDecision\(ctx, by, r,) *"((?:case|load)\.[a-z-]+)"`)
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		for _, match := range literal.FindAllStringSubmatch(string(b), -1) {
			found[match[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func TestLanguagesHaveTheSameTexts(t *testing.T) {
	de, en := german(t).texts, english(t).texts
	if diff := cmp.Diff(slices.Sorted(maps.Keys(de)), slices.Sorted(maps.Keys(en))); diff != "" {
		t.Errorf("keys differ (de-, en+):\n%s", diff)
	}
	placeholder := regexp.MustCompile(`\{[a-z]*\}`)
	for key, text := range de {
		inGerman, inEnglish := placeholder.FindAllString(text, -1), placeholder.FindAllString(en[key], -1)
		slices.Sort(inGerman)
		slices.Sort(inEnglish)
		if diff := cmp.Diff(inGerman, inEnglish); diff != "" {
			t.Errorf("%s: placeholders differ (de-, en+):\n%s", key, diff)
		}
		if text == "" || en[key] == "" {
			t.Errorf("%s is empty in one language", key)
		}
	}
}

func TestNoTextIsMissingOrUnused(t *testing.T) {
	used, sets := map[string]bool{}, wordSets()
	usedInTemplates(t, used, sets)
	usedInSources(t, used)
	for set, values := range sets {
		for _, v := range values {
			used[wordKey(set, v)] = true
		}
	}
	have := german(t).texts
	for key := range used {
		if _, ok := have[key]; !ok {
			t.Errorf("%q is used and has no text", key)
		}
	}
	for key := range have {
		if !used[key] {
			t.Errorf("%q has a text and is not used", key)
		}
	}
}

// usedInTemplates finds the keys after t and tn, and refuses sets of word that
// nobody listed.
func usedInTemplates(t *testing.T, used map[string]bool, sets map[string][]string) {
	files, err := filepath.Glob("templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".html")
		if name != "layout" && name != "parts" {
			used["title."+name] = true
		}
		tree := parse.New(file)
		tree.Mode = parse.SkipFuncCheck
		trees := map[string]*parse.Tree{}
		if _, err := tree.Parse(string(b), "", "", trees); err != nil {
			t.Fatal(err)
		}
		for _, tree := range trees {
			walk(tree.Root, func(function, key string) {
				switch function {
				case "t":
					used[key] = true
				case "tn":
					used[key+".one"], used[key+".other"] = true, true
				case "word":
					if sets[key] == nil {
						t.Errorf("%s: there is no set %q", file, key)
					}
				}
			})
		}
	}
}

// walk calls found for every function that has a literal as its first argument.
func walk(node parse.Node, found func(function, literal string)) {
	switch n := node.(type) {
	case *parse.ListNode:
		if n != nil {
			for _, child := range n.Nodes {
				walk(child, found)
			}
		}
	case *parse.ActionNode:
		walk(n.Pipe, found)
	case *parse.TemplateNode:
		if n.Pipe != nil {
			walk(n.Pipe, found)
		}
	case *parse.IfNode:
		walkBranch(n.BranchNode, found)
	case *parse.RangeNode:
		walkBranch(n.BranchNode, found)
	case *parse.WithNode:
		walkBranch(n.BranchNode, found)
	case *parse.PipeNode:
		for _, c := range n.Cmds {
			walk(c, found)
		}
	case *parse.CommandNode:
		if len(n.Args) > 1 {
			function, isName := n.Args[0].(*parse.IdentifierNode)
			literal, isText := n.Args[1].(*parse.StringNode)
			if isName && isText {
				found(function.Ident, literal.Text)
			}
		}
		for _, arg := range n.Args {
			walk(arg, found)
		}
	}
}

func walkBranch(n parse.BranchNode, found func(function, literal string)) {
	walk(n.Pipe, found)
	walk(n.List, found)
	walk(n.ElseList, found)
}

// usedInSources finds the keys that Go code names: in calls of text and count,
// and as faults, headlines and closed forms, which templates show.
func usedInSources(t *testing.T, used map[string]bool) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	key := regexp.MustCompile(`^(fault|headline|decision\.closed)\.[a-z-]+$`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(source, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				function, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || len(n.Args) == 0 {
					return true
				}
				switch text := literalText(n.Args[0]); {
				case text == "":
				case function.Sel.Name == "text":
					used[text] = true
				case function.Sel.Name == "count":
					used[text+".one"], used[text+".other"] = true, true
				}
			case *ast.BasicLit:
				if text := literalText(n); key.MatchString(text) {
					used[text] = true
				}
			}
			return true
		})
	}
}

func literalText(e ast.Expr) string {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return text
}

// saidIn finds what is said in English in the sources of a folder: by the gate
// with said and counted, and as advice of a check; on the terminal with say,
// many and heads.
func saidIn(t *testing.T, folder string) []string {
	files, err := filepath.Glob(folder + "/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sources in %s: %v", folder, err)
	}
	var found []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(source, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				found = append(found, saidBy(call)...)
			}
			return true
		})
	}
	return found
}

func saidBy(call *ast.CallExpr) (forms []string) {
	name := ""
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
	}
	first, last := 0, 0
	switch name {
	case "said", "say", "Say":
		last = 1
	case "counted", "many", "Many":
		first, last = 1, 3
	case "found": // a check, and what it advises
		first, last = 3, 4
	case "heads":
		last = len(call.Args)
	}
	for i := first; i < min(last, len(call.Args)); i++ {
		form := literalText(call.Args[i])
		command := name == "found" && strings.HasPrefix(form, "packhof-gate ") || form == "chmod go= "
		if form != "" && !command {
			forms = append(forms, form)
		}
	}
	return forms
}

// TestEverythingSaidIsTranslated: what the gate and its terminal say in English
// has a German text with the same placeholders, and no German text is left
// over.
func TestEverythingSaidIsTranslated(t *testing.T) {
	have := german(t).said
	forms := append(saidIn(t, "../gate"), saidIn(t, "../cmd/packhof-gate")...)
	if len(forms) < 100 {
		t.Errorf("only %d forms were found", len(forms))
	}
	placeholder := regexp.MustCompile(`\{[a-z]*\}`)
	for _, form := range forms {
		text, ok := have[form]
		if !ok {
			t.Errorf("%q has no German text", form)
			continue
		}
		inEnglish, inGerman := placeholder.FindAllString(form, -1), placeholder.FindAllString(text, -1)
		slices.Sort(inEnglish)
		slices.Sort(inGerman)
		if diff := cmp.Diff(inEnglish, inGerman); diff != "" {
			t.Errorf("%q: placeholders differ (en-, de+):\n%s", form, diff)
		}
	}
	for form := range have {
		if !slices.Contains(forms, form) {
			t.Errorf("%q is translated and nobody says it", form)
		}
	}
}

func TestSay(t *testing.T) {
	de, en := german(t), english(t)
	s := gate.Sentence{Form: "version {version} ends at {at}", Params: map[string]any{"version": 3.0, "at": "2026-11-30T12:00:00Z"}}
	if got := de.Sentence(s); got != "Version 3 läuft am 30.11.2026, 12:00 ab" {
		t.Errorf("%q", got)
	}
	if got := en.Sentence(s); got != "version 3 ends at 30 Nov 2026, 12:00" {
		t.Errorf("%q", got)
	}
	for n, want := range map[int]string{0: "0 Dateien untersucht", 1: "1 Datei untersucht", 2: "2 Dateien untersucht"} {
		if got := de.Many(n, "{n} file looked into", "{n} files looked into"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := de.Sentence(gate.Sentence{Form: "a rule {that} was", Params: map[string]any{"that": "\u202e"}}); got != "a rule ⟨U+202E⟩ was" {
		t.Errorf("%q", got)
	}
}

func TestWordsOfProblems(t *testing.T) {
	de, en := german(t), english(t)
	if de.Meaning("volume/damaged") == "" || de.Meaning("no/such") != "" || en.Meaning("volume/damaged") != "" {
		t.Error("the meaning of a code")
	}
	for _, c := range []struct {
		l             *Words
		code, english string
		want          string
		foreign       bool
	}{
		{en, "volume/damaged", "copy it again", "copy it again", false},
		{de, "volume/damaged", "copy it again", "den Datenträger erneut beschreiben lassen", false},
		{de, "", "set the clock of this machine", "die Uhr dieses Rechners stellen", false},
		{de, "policy/error", "look there", "look there", true},
		{de, "", "", "", false},
	} {
		if got, foreign := c.l.Remedy(c.code, c.english); got != c.want || foreign != c.foreign {
			t.Errorf("%s, %s, %q: %q, %v", c.l.code, c.code, c.english, got, foreign)
		}
	}
	if got := de.Evidence([]string{"want:  x"}); got[0] != "erwartet:  x" {
		t.Errorf("%q", got)
	}
}

func TestNumbersAndDates(t *testing.T) {
	moment := time.Date(2026, time.November, 30, 14, 5, 59, 0, time.UTC)
	for _, c := range []struct{ got, want string }{
		{german(t).date(moment), "30.11.2026, 14:05"},
		{english(t).date(moment), "30 Nov 2026, 14:05"},
		{german(t).number(1234567), "1.234.567"},
		{english(t).number(1234567), "1,234,567"},
		{english(t).number(-1000), "−1,000"},
		{german(t).number(0), "0"},
		{german(t).size(700), "700 B"},
		{german(t).size(1023), "1.023 B"},
		{german(t).size(1536), "1,5 KiB"},
		{english(t).size(1536), "1.5 KiB"},
		{german(t).size(1<<30*1023 + 1<<29), "1.023,5 GiB"},
		{german(t).size(5 << 60), "5.120,0 PiB"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestDatesAreInThePlantsTime(t *testing.T) {
	berlin := time.FixedZone("CET", 3600)
	l, err := LoadWords("de", func() time.Time { return testkit.Noon().In(berlin) })
	if err != nil {
		t.Fatal(err)
	}
	if got := l.date(testkit.Noon()); got != "30.11.2026, 13:00" {
		t.Errorf("noon in Greenwich is %s", got)
	}
}

func TestAge(t *testing.T) {
	l := german(t)
	for before, want := range map[time.Duration]string{
		0: "gerade eben", 59 * time.Second: "gerade eben", time.Minute: "vor 1 Minute", 59 * time.Minute: "vor 59 Minuten",
		time.Hour: "vor 1 Stunde", 47 * time.Hour: "vor 47 Stunden", 48 * time.Hour: "vor 2 Tagen", -time.Hour: "gerade eben",
	} {
		if got, err := l.age(testkit.Noon().Add(-before)); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", before, got, err, want)
		}
	}
}

func TestTextFillsPlaceholdersOnce(t *testing.T) {
	l := &Words{code: "en", texts: map[string]string{"k": "{a} and {b}", "one.one": "{n} file", "one.other": "{n} files"}}
	got, err := l.text("k", "a", "{b}\u202e", "b", int64(1234))
	if err != nil || got != "{b}⟨U+202E⟩ and 1,234" {
		t.Errorf("%q, %v", got, err)
	}
	for n, want := range map[int]string{0: "0 files", 1: "1 file", 2: "2 files"} {
		if got, err := l.count("one", n); err != nil || got != want {
			t.Errorf("%d: %q, %v", n, got, err)
		}
	}
	for name, call := range map[string]func() (string, error){
		"missing key": func() (string, error) { return l.text("nothing") },
		"odd pairs":   func() (string, error) { return l.text("k", "a") },
		"bad value":   func() (string, error) { return l.text("k", "a", 1.5) },
	} {
		if got, err := call(); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestListOfNames(t *testing.T) {
	for names, want := range map[string]string{"": "", "depot": "depot", "depot harbor": "depot und harbor", "a b c": "a, b und c"} {
		if got := german(t).list(strings.Fields(names)); got != want {
			t.Errorf("%q: %q, want %q", names, got, want)
		}
	}
	if got := english(t).list([]string{"depot", "harbor"}); got != "depot and harbor" {
		t.Errorf("%q", got)
	}
}

func TestAcceptedLanguage(t *testing.T) {
	for header, want := range map[string]string{
		"": "de", "de": "de", "en": "en", "en-GB,en;q=0.9": "en", "fr": "de", "fr, en;q=0.5": "en", "en;q=0.5, de;q=0.7": "de",
		"de;q=0.1, en": "en", "en;q=x": "de", "en;q=0": "de", "EN": "en", "en;q=9": "de", strings.Repeat("xx,", 1000) + "en": "en",
	} {
		if got := acceptedLanguage(header); got != want {
			t.Errorf("%.40q: %s, want %s", header, got, want)
		}
	}
}

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain text, äöü":  "plain text, äöü",
		"a\u202eb":         "a⟨U+202E⟩b",
		"a\x00b\x1b[31m":   "a⟨U+0000⟩b⟨U+001B⟩[31m",
		"a\nb":             "a⟨U+000A⟩b",
		"zero\u200bwidth":  "zero⟨U+200B⟩width",
		"no\u00a0break":    "no⟨U+00A0⟩break",
		"\u3164":           "⟨U+3164⟩",
		"x\ufe0f":          "x⟨U+FE0F⟩",
		"tag\U000E0041":    "tag⟨U+E0041⟩",
		"bad\xff":          "bad⟨U+FFFD⟩",
		"<b>&amp;</b>":     "<b>&amp;</b>",
		"\u2066iso\u2069":  "⟨U+2066⟩iso⟨U+2069⟩",
		"line\u2028break":  "line⟨U+2028⟩break",
		"\u061carabic":     "⟨U+061C⟩arabic",
		"soft\u00adhyphen": "soft⟨U+00AD⟩hyphen",
	} {
		if got := visible(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if long := visible(strings.Repeat("ä", 2*longestText)); len([]rune(long)) != longestText+1 {
		t.Errorf("a long text has %d characters", len([]rune(long)))
	}
}

func TestLocalPath(t *testing.T) {
	for path, want := range map[string]string{
		"/cases/7": "/cases/7", "/cases?tab=done": "/cases?tab=done", "": "/", "//evil.example": "/", "/\\evil.example": "/",
		"https://evil.example/": "/", "javascript:alert(1)": "/", "cases": "/", "/\t/evil.example": "/", "/%zz": "/", "/x\r\nSet-Cookie: a=b": "/",
	} {
		if got := localPath(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}

func TestEveryStateHasATabAndAShape(t *testing.T) {
	for _, state := range gate.States() {
		if tab := tabOf(state); !slices.Contains(tabs(), tab) {
			t.Errorf("%s: %q", state, tab)
		}
		if state.Final() && tabOf(state) == tabWaiting {
			t.Errorf("%s is final and waits", state)
		}
	}
	for _, c := range []struct {
		state   gate.State
		verdict policy.Verdict
		want    string
	}{
		{gate.Received, "", "open"}, {gate.Awaiting, policy.Review, "decide"}, {gate.Awaiting, policy.Allow, "pass"},
		{gate.Loaded, policy.Review, "pass"}, {gate.Blocked, policy.Deny, "stop"}, {gate.CheckFailed, policy.Failed, "alert"},
		{gate.NotGenuine, "", "stop"}, {gate.Unreadable, "", "alert"}, {gate.Rejected, policy.Review, "stop"}, {gate.PartlyLoaded, policy.Allow, "alert"},
	} {
		if got := shapeOf(c.state, c.verdict); got != c.want {
			t.Errorf("%s, %s: %s, want %s", c.state, c.verdict, got, c.want)
		}
	}
}

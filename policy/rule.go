package policy

import (
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Rule is what a rule says of itself.
type Rule struct {
	ID      string   `json:"id"`
	Kinds   []string `json:"kinds"` // of artifacts that it judges; "bundle" is the bundle itself
	English Wording  `json:"en"`
	German  Wording  `json:"de"`
}

// Wording is a rule's text in one language. Message may have placeholders such
// as {file}, which the parameters of a finding fill.
type Wording struct {
	Title   string `json:"title"`
	Message string `json:"message"`
	Remedy  string `json:"remedy"`
}

// ofBundle is the kind of a rule about the bundle; what it checks is "".
const ofBundle = "bundle"

func ruleKinds() []string {
	return []string{ofBundle, "image", "chart", "model", "dataset", "files", "packages"}
}

// customKeys are all that a rule's metadata may have below custom.
func customKeys() []string {
	return []string{"kinds", "title_de", "message", "message_de", "remedy", "remedy_de"}
}

// describe reads the metadata of a rule's package.
func describe(id, file string, m *ast.Module) (Rule, error) {
	var found *ast.Annotations
	for _, a := range m.Annotations {
		if len(a.Schemas) > 0 {
			return Rule{}, invalidRule(id, file, a.Location.Row, "metadata gives schemas; the input's is fixed")
		}
		if a.Scope == "package" {
			found = a
		}
	}
	if found == nil {
		return Rule{}, invalidRule(id, file, m.Package.Location.Row, "the package has no METADATA")
	}
	fail := func(format string, args ...any) (Rule, error) {
		return Rule{}, invalidRule(id, file, found.Location.Row, fmt.Sprintf(format, args...))
	}
	for key := range found.Custom {
		if !slices.Contains(customKeys(), key) {
			return fail("METADATA has custom.%s, which means nothing", Visible(key))
		}
	}
	text := func(key string) string {
		s, _ := found.Custom[key].(string) // anything else is as good as missing
		return s
	}
	r := Rule{
		ID:      id,
		English: Wording{Title: found.Title, Message: text("message"), Remedy: text("remedy")},
		German:  Wording{Title: text("title_de"), Message: text("message_de"), Remedy: text("remedy_de")},
	}
	for _, w := range []Wording{r.English, r.German} {
		if w.Title == "" || w.Message == "" || w.Remedy == "" {
			return fail("METADATA lacks one of title, custom.title_de, custom.message, custom.message_de, custom.remedy, custom.remedy_de")
		}
	}
	english, okEnglish := placeholders(r.English.Message)
	german, okGerman := placeholders(r.German.Message)
	if !okEnglish || !okGerman || !slices.Equal(english, german) {
		return fail("custom.message and custom.message_de must have the same placeholders, such as {file}")
	}
	list, _ := found.Custom["kinds"].([]any)
	for _, v := range list {
		kind, _ := v.(string)
		if !slices.Contains(ruleKinds(), kind) || slices.Contains(r.Kinds, kind) {
			return fail("custom.kinds names %q, which is no kind, or twice", fmt.Sprint(v))
		}
		r.Kinds = append(r.Kinds, kind)
	}
	if len(r.Kinds) == 0 {
		return fail("custom.kinds says of no kind of artifact that it is judged")
	}
	return r, nil
}

// due are the digests that a rule must have looked at, sorted, each once.
func (r Rule) due(in *Input) []string {
	var digests []string
	if slices.Contains(r.Kinds, ofBundle) {
		digests = append(digests, "")
	}
	for _, a := range in.Artifacts {
		if slices.Contains(r.Kinds, a.Kind) {
			digests = append(digests, a.Digest)
		}
	}
	slices.Sort(digests)
	return slices.Compact(digests)
}

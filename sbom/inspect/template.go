package inspect

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Chat templates are programs in Jinja, which a model brings in its GGUF file,
// under a key of a JSON file, or as a file of their own.

const (
	templateKey  = "chat_template"
	templateKeep = 1 << 20 // bytes of a template that are looked at
)

// reaching are the words by which a Jinja template leaves its sandbox.
var reaching = regexp.MustCompile(`__|\|\s*attr\b|\b(lipsum|cycler|joiner|subclasses|mro|globals|popen|import|include|request)\b|\bos\.|\bself\.`)

func (s *scan) template(key, text string, at place) {
	if word := reaching.FindString(text); word != "" {
		s.find(at, CodeTemplate, "%s has %q", key, word)
	}
}

// isTemplate tells whether a name suggests a template that is a file of its
// own. In JSON it is a matter of keys.
func isTemplate(name string) bool {
	base := strings.ToLower(path.Base(name))
	switch path.Ext(base) {
	case ".jinja", ".jinja2", ".j2":
		return true
	case ".json":
		return false
	}
	return strings.HasPrefix(base, templateKey) || strings.HasPrefix(base, "chat-template")
}

// asTemplate says what would be suspicious about a text if it were a template.
// The name does not matter for the file itself: one content can be in a bundle
// under several, see Report.Named.
func (s *scan) asTemplate(f *source, format Format, at place) error {
	if !slices.Contains([]Format{Text, JSON, Script}, format) || at.depth > 0 && !isTemplate(at.name) {
		return nil
	}
	text, err := f.head(templateKeep)
	if err != nil {
		return err
	}
	var word []byte
	if bytes.Contains(text, []byte("{{")) || bytes.Contains(text, []byte("{%")) { // otherwise it does nothing, and need not be searched
		word = reaching.Find(text)
	}
	why := ""
	if word != nil {
		why = fmt.Sprintf("the template has %q", word)
	} else if f.size > int64(len(text)) {
		why = fmt.Sprintf("the template is longer than the %d bytes that were looked at", len(text))
	}
	if at.depth == 0 {
		s.report.AsTemplate = clip(why)
	} else if why != "" {
		s.find(at, CodeTemplate, "%s", why)
	}
	return nil
}

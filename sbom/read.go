package sbom

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"io"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

// Read parses a CycloneDX JSON document of any version, ours or foreign,
// within the limits of this package. Names that appear twice in one object,
// also if they differ only in case, refuse: parsers would not agree on them.
func Read(doc []byte) (*cyclonedx.BOM, error) {
	if len(doc) > MaxDocument {
		return nil, tooLarge("%d bytes, more than the %d allowed", len(doc), MaxDocument)
	}
	if err := survey(&source{reader: bytes.NewReader(doc), part: MaxDocument}); err != nil {
		return nil, err
	}
	var bom cyclonedx.BOM
	if err := json.Unmarshal(doc, &bom); err != nil {
		return nil, malformed(err, "not CycloneDX")
	}
	if bom.BOMFormat != cyclonedx.BOMFormat {
		return nil, malformed(nil, "bomFormat is %.60q", bom.BOMFormat)
	}
	return &bom, nil
}

// survey walks over the tokens of a document before anything is built of
// them, so that a small hostile text cannot become a large structure.
func survey(doc *source) error {
	s := surveyor{source: doc, dec: jsontext.NewDecoder(doc)}
	for {
		token, err := s.dec.ReadToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return malformed(err, "not JSON")
		}
		if err := s.see(token); err != nil {
			return err
		}
	}
}

type surveyor struct {
	source     *source
	dec        *jsontext.Decoder
	levels     []level
	values     int
	components int
}

// level is one open object or array.
type level struct {
	object bool
	list   string              // for an array: the name it is the value of
	name   string              // for an object: the name last read
	names  map[string]struct{} // for an object: names read, folded
	isName bool                // for an object: the next token is a name
}

func (s *surveyor) see(token jsontext.Token) error {
	if err := s.measure(); err != nil {
		return err
	}
	switch token.Kind() {
	case jsontext.KindEndObject, jsontext.KindEndArray:
		s.levels = s.levels[:len(s.levels)-1]
		return nil
	}
	parent := s.parent()
	if parent != nil && parent.object && parent.isName {
		parent.isName = false
		return parent.named(token.String())
	}
	if parent == nil {
		if s.values++; s.values > 1 {
			return malformed(nil, "more than one document")
		}
	}
	if parent != nil && parent.object {
		parent.isName = true
	}
	switch token.Kind() {
	case jsontext.KindBeginObject:
		if parent != nil && parent.list == "components" {
			if s.components++; s.components > MaxComponents {
				return tooLarge("more than %d components", MaxComponents)
			}
		}
		return s.open(level{object: true, isName: true, names: map[string]struct{}{}})
	case jsontext.KindBeginArray:
		list := ""
		if parent != nil {
			list = parent.name
		}
		return s.open(level{list: list})
	}
	return nil
}

// measure ends a part that is too large while it is read: names are kept as
// long as their object is open.
func (s *surveyor) measure() error {
	at := s.dec.InputOffset()
	if at-s.source.mark > s.source.part {
		return tooLarge("a part of more than %d bytes", s.source.part)
	}
	if n := len(s.levels); n <= 1 || n == 2 && !s.levels[1].object {
		s.source.mark = at
	}
	return nil
}

func (s *surveyor) parent() *level {
	if len(s.levels) == 0 {
		return nil
	}
	return &s.levels[len(s.levels)-1]
}

func (s *surveyor) open(l level) error {
	if len(s.levels) == MaxDepth {
		return tooLarge("nested deeper than %d", MaxDepth)
	}
	s.levels = append(s.levels, l)
	return nil
}

func (l *level) named(name string) error {
	folded := fold(name)
	if _, twice := l.names[folded]; twice {
		return malformed(nil, "name %.60q is there twice in one object", name)
	}
	if exact := spelling(folded); exact != "" && exact != name {
		return malformed(nil, "name %.60q is misspelt %q", name, exact)
	}
	l.names[folded] = struct{}{}
	l.name = name
	return nil
}

// fold makes names equal that a case-insensitive parser takes for equal.
func fold(name string) string {
	for i := range len(name) {
		if c := name[i]; c >= 0x80 || 'A' <= c && c <= 'Z' {
			return strings.ToLower(strings.ToUpper(name))
		}
	}
	return name
}

// spelling returns the exact spelling of a folded name if it is one that we
// act upon, else "". In another case a strict parser would skip such a name
// and a lax one would not.
func spelling(folded string) string {
	switch folded {
	case "bomformat":
		return "bomFormat"
	case "specversion":
		return "specVersion"
	case "serialnumber":
		return "serialNumber"
	case "dependson":
		return "dependsOn"
	case "metadata", "timestamp", "tools", "component", "components", "bom-ref", "type", "name", "version",
		"hashes", "alg", "content", "purl", "properties", "licenses", "license", "id", "expression",
		"dependencies", "ref":
		return folded
	}
	return ""
}

package sbom

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"io"

	"github.com/CycloneDX/cyclonedx-go"
)

// MaxPart bounds what Skim holds of a document at once, in bytes of its text: a
// member of it, or one component or dependency.
const MaxPart = 16 << 20

// Skim reads a document as Read does and counts it as Count does, and holds no
// more of it than a part: there may be a component for each file of a large
// tree. What it gives of the document lacks components and dependencies. It
// opens the document twice, and reads it to its end; a reader that gives more
// than MaxDocument is refused.
func Skim(open func() (io.ReadCloser, error)) (*cyclonedx.BOM, Report, error) {
	err := reading(open, MaxPart, survey)
	if err != nil {
		return nil, Report{}, err
	}
	s := skimmer{counted: Report{Licences: map[string]int{}}}
	if err := reading(open, MaxDocument, s.document); err != nil {
		return nil, Report{}, err
	}
	if s.bom.BOMFormat != cyclonedx.BOMFormat {
		return nil, Report{}, malformed(nil, "bomFormat is %.60q", s.bom.BOMFormat)
	}
	report := reportOf(&s.bom)
	report.Components, report.Files, report.Packages = s.counted.Components, s.counted.Files, s.counted.Packages
	report.Licences, report.Unlicensed = s.counted.Licences, s.counted.Unlicensed
	return &s.bom, report, nil
}

// reading gives a document to one that reads it, in parts of at most so many
// bytes. What is wrong with the reader is told as it is, also where what was
// read makes no sense: that may be why.
func reading(open func() (io.ReadCloser, error), part int64, read func(*source) error) error {
	rc, err := open()
	if err != nil {
		return err
	}
	s := &source{reader: rc, part: part}
	err = read(s)
	if s.err == nil {
		s.part = MaxDocument
		_, _ = io.Copy(io.Discard, s) // s.err says how it ended
	}
	if s.err != nil {
		err = s.err
	}
	return errors.Join(err, rc.Close())
}

// source reads a document. It remembers how its reader failed, which JSON would
// call malformed, and ends before a single text can fill the memory.
type source struct {
	reader     io.Reader
	size, mark int64 // that were read; where the present part begins
	part       int64 // bytes that one may have
	err        error
}

func (s *source) Read(p []byte) (int, error) {
	if s.size > MaxDocument {
		s.err = tooLarge("more than the %d bytes allowed", MaxDocument)
	} else if s.size-s.mark > s.part+1<<20 { // what was read ahead, beside what the tokens tell
		s.err = tooLarge("a part of more than %d bytes", s.part)
	}
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.reader.Read(p)
	s.size += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

type skimmer struct {
	bom     cyclonedx.BOM
	counted Report
}

// document reads the members of a document that has been surveyed.
func (s *skimmer) document(r *source) error {
	dec := jsontext.NewDecoder(r)
	begin, err := dec.ReadToken()
	if err != nil {
		return malformed(err, "not JSON")
	}
	if begin.Kind() != jsontext.KindBeginObject {
		return malformed(nil, "not CycloneDX")
	}
	for dec.PeekKind() != jsontext.KindEndObject {
		name, err := dec.ReadToken()
		if err == nil {
			err = s.member(dec, name.String())
		}
		if err != nil {
			return malformed(err, "not CycloneDX")
		}
	}
	for { // to the end, where a verifying reader gives its verdict
		if _, err := dec.ReadToken(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return malformed(err, "not JSON")
		}
	}
}

func (s *skimmer) member(dec *jsontext.Decoder, name string) error {
	switch {
	case name == "components" && dec.PeekKind() == jsontext.KindBeginArray:
		return elements(dec, func(c *cyclonedx.Component) {
			s.counted.count(c)
			each(c.Components, s.counted.count)
		})
	case name == "dependencies" && dec.PeekKind() == jsontext.KindBeginArray:
		return elements(dec, func(*cyclonedx.Dependency) {})
	}
	value, err := dec.ReadValue()
	if err != nil {
		return err
	}
	text, err := jsontext.AppendQuote(append([]byte{}, '{'), name)
	if err != nil {
		return err
	}
	return json.Unmarshal(append(append(append(text, ':'), value...), '}'), &s.bom)
}

// elements reads a list, one element after the other.
func elements[T any](dec *jsontext.Decoder, visit func(*T)) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != jsontext.KindEndArray {
		var element T
		if err := json.UnmarshalDecode(dec, &element); err != nil {
			return err
		}
		visit(&element)
	}
	_, err := dec.ReadToken()
	return err
}

package sbom

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// Expect is what a document of ours must say.
type Expect struct {
	Subject Subject
	Time    time.Time
}

// Report is what a document says, counted. It is as true as the document.
type Report struct {
	SpecVersion string
	Serial      string
	Timestamp   string
	Tools       []Tool         // programs and libraries named as its makers
	Components  int            // of all levels, the subject not included
	Files       int            // of these, files
	Packages    int            // of these, neither files nor operating systems
	Licences    map[string]int // packages by SPDX id, expression or name of licence
	Unlicensed  int            // packages without any
}

// Check verifies that doc is the document of ours about exactly this subject
// at exactly this time: version 1.6, metadata.component equal to the
// subject's, the serial number and the timestamp that follow, unique bom-refs
// and canonical bytes. It does not verify that the components are really in
// the artifact. Errors are *Error.
func Check(doc []byte, expect Expect) (Report, error) {
	bom, err := Read(doc)
	if err != nil {
		return Report{}, err
	}
	if bom.SpecVersion != cyclonedx.SpecVersion1_6 {
		return Report{}, mismatch(codeVersion, "SBOM has another specification version", cyclonedx.SpecVersion1_6.String(), bom.SpecVersion.String())
	}
	if err := checkSubject(bom.Metadata, expect); err != nil {
		return Report{}, err
	}
	if want := Serial(expect.Subject.Digest, expect.Time); bom.SerialNumber != want {
		return Report{}, mismatch(codeSerial, "SBOM has another serial number", want, bom.SerialNumber)
	}
	if err := checkRefs(bom); err != nil {
		return Report{}, err
	}
	canonical := jsontext.Value(bytes.Clone(doc))
	if err := canonical.Canonicalize(); err != nil {
		return Report{}, malformed(err, "not JSON")
	}
	if !bytes.Equal(canonical, doc) {
		return Report{}, &Error{Kind: codeNotCanonical, Text: "SBOM is not in canonical form (RFC 8785)"}
	}
	return Count(bom), nil
}

func checkSubject(metadata *cyclonedx.Metadata, expect Expect) error {
	if metadata == nil || metadata.Component == nil {
		return mismatch(codeSubject, "SBOM names no subject", expect.Subject.Digest, "")
	}
	if want := stamp(expect.Time); metadata.Timestamp != want {
		return mismatch(codeTime, "SBOM has another time", want, metadata.Timestamp)
	}
	if got := metadata.Component.BOMRef; got != expect.Subject.Digest {
		return mismatch(codeSubject, "SBOM describes another subject", expect.Subject.Digest, got)
	}
	want, err := json.Marshal(expect.Subject.component())
	if err != nil {
		return malformed(err, "subject")
	}
	got, err := json.Marshal(metadata.Component)
	if err != nil {
		return malformed(err, "subject")
	}
	if !bytes.Equal(want, got) {
		return mismatch(codeSubject, "SBOM describes its subject otherwise", string(want), string(got))
	}
	return nil
}

// checkRefs requires that every component has a bom-ref and none has another's.
func checkRefs(bom *cyclonedx.BOM) error {
	seen := map[string]bool{bom.Metadata.Component.BOMRef: true}
	var failure error
	each(bom.Components, func(c *cyclonedx.Component) {
		if failure == nil && (c.BOMRef == "" || seen[c.BOMRef]) {
			failure = malformed(nil, "bom-ref %.200q of component %.100q is empty or there twice", c.BOMRef, c.Name)
		}
		seen[c.BOMRef] = true
	})
	return failure
}

// Count counts what a document says.
func Count(bom *cyclonedx.BOM) Report {
	report := reportOf(bom)
	each(bom.Components, report.count)
	return report
}

// reportOf is what a document says of itself, before its components are counted.
func reportOf(bom *cyclonedx.BOM) Report {
	report := Report{SpecVersion: bom.SpecVersion.String(), Serial: bom.SerialNumber, Licences: map[string]int{}}
	if bom.Metadata != nil {
		report.Timestamp = bom.Metadata.Timestamp
		report.Tools = tools(bom.Metadata.Tools)
	}
	return report
}

func (r *Report) count(c *cyclonedx.Component) {
	r.Components++
	switch c.Type {
	case cyclonedx.ComponentTypeFile:
		r.Files++
	case cyclonedx.ComponentTypeOS:
	default:
		r.Packages++
		names := licences(c)
		if len(names) == 0 {
			r.Unlicensed++
		}
		for name := range names {
			r.Licences[name]++
		}
	}
}

func each(components *[]cyclonedx.Component, visit func(*cyclonedx.Component)) {
	if components == nil {
		return
	}
	for i := range *components {
		c := &(*components)[i]
		visit(c)
		each(c.Components, visit)
	}
}

func licences(c *cyclonedx.Component) map[string]bool {
	names := map[string]bool{}
	if c.Licenses == nil {
		return names
	}
	for _, choice := range *c.Licenses {
		switch {
		case choice.Expression != "":
			names[choice.Expression] = true
		case choice.License != nil && choice.License.ID != "":
			names[choice.License.ID] = true
		case choice.License != nil && choice.License.Name != "":
			names[choice.License.Name] = true
		}
	}
	return names
}

func tools(choice *cyclonedx.ToolsChoice) []Tool {
	if choice == nil {
		return nil
	}
	var named []Tool
	if choice.Components != nil {
		for _, c := range *choice.Components {
			named = append(named, Tool{c.Name, c.Version})
		}
	}
	if choice.Tools != nil { // the older form, in foreign documents
		for _, t := range *choice.Tools {
			named = append(named, Tool{t.Name, t.Version})
		}
	}
	return named
}

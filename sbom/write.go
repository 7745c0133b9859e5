package sbom

import (
	"bytes"
	"cmp"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"slices"
	"strconv"

	"github.com/CycloneDX/cyclonedx-go"
)

// Found is what a scanner found in an artifact. Every component has a bom-ref
// of its own that depends on the content only.
type Found struct {
	Components   []cyclonedx.Component
	Dependencies []cyclonedx.Dependency
	Tools        []Tool
}

// Write makes the canonical document for a request: its subject, its files as
// components of type file (bom-ref "file:" and the path, SHA-256, SHA-512),
// and what was found. The subject depends on every package that nothing else
// depends on, so that the graph has one root. found is sorted in place.
func Write(request Request, found Found) ([]byte, error) {
	if err := request.Validate(); err != nil {
		return nil, err
	}
	if n := len(request.Files) + len(found.Components); n > MaxComponents {
		return nil, tooLarge("%d components, more than the %d allowed", n, MaxComponents)
	}
	components, err := arrange(append(fileComponents(request.Files), found.Components...))
	if err != nil {
		return nil, err
	}
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = Serial(request.Subject.Digest, request.Time)
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: stamp(request.Time),
		Tools:     toolsChoice(found.Tools),
		Component: request.Subject.component(),
	}
	bom.Components = &components
	bom.Dependencies = rooted(request.Subject.Digest, components, found.Dependencies)

	var text bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetEscapeHTML(false)
	if err := encoder.EncodeVersion(bom, cyclonedx.SpecVersion1_6); err != nil {
		return nil, malformed(err, "cannot be written")
	}
	doc := jsontext.Value(bytes.TrimSpace(text.Bytes()))
	if err := doc.Canonicalize(); err != nil {
		return nil, malformed(err, "cannot be written")
	}
	if len(doc) > MaxDocument {
		return nil, tooLarge("%d bytes, more than the %d allowed", len(doc), MaxDocument)
	}
	return doc, nil
}

func fileComponents(files []File) []cyclonedx.Component {
	components := make([]cyclonedx.Component, 0, len(files))
	for _, f := range files {
		components = append(components, cyclonedx.Component{
			BOMRef: "file:" + f.Path,
			Type:   cyclonedx.ComponentTypeFile,
			Name:   f.Path,
			Hashes: &[]cyclonedx.Hash{
				{Algorithm: cyclonedx.HashAlgoSHA256, Value: f.SHA256},
				{Algorithm: cyclonedx.HashAlgoSHA512, Value: f.SHA512},
			},
			Properties: &[]cyclonedx.Property{{Name: "packhof:file:size", Value: strconv.FormatInt(f.Size, 10)}},
		})
	}
	return components
}

func toolsChoice(tools []Tool) *cyclonedx.ToolsChoice {
	if len(tools) == 0 {
		return nil // an empty choice cannot be written
	}
	components := make([]cyclonedx.Component, 0, len(tools))
	for _, t := range tools {
		components = append(components, cyclonedx.Component{Type: cyclonedx.ComponentTypeApplication, Name: t.Name, Version: t.Version})
	}
	slices.SortFunc(components, func(a, b cyclonedx.Component) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	return &cyclonedx.ToolsChoice{Components: &components}
}

// arrange sorts components and the lists inside them, and drops repetitions.
func arrange(components []cyclonedx.Component) ([]cyclonedx.Component, error) {
	for i := range components {
		c := &components[i]
		if c.BOMRef == "" {
			return nil, malformed(nil, "component %.100q has no bom-ref", c.Name)
		}
		sortList(c.Hashes)
		sortList((*[]cyclonedx.LicenseChoice)(c.Licenses))
		sortList(c.Properties)
		sortList(c.ExternalReferences)
		if c.Components != nil {
			nested, err := arrange(*c.Components)
			if err != nil {
				return nil, err
			}
			*c.Components = nested
		}
	}
	slices.SortStableFunc(components, func(a, b cyclonedx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	for i := 1; i < len(components); i++ {
		if components[i].BOMRef == components[i-1].BOMRef {
			return nil, malformed(nil, "two components have the bom-ref %.200q", components[i].BOMRef)
		}
	}
	return components, nil
}

// sortList sorts a list, whose order says nothing, by the JSON of its elements.
func sortList[T any](list *[]T) {
	if list == nil || len(*list) < 2 {
		return
	}
	type keyed struct {
		key   string
		value T
	}
	sorted := make([]keyed, len(*list))
	for i, value := range *list {
		// What cannot be written sorts as "" here and fails when the document is written.
		key, _ := json.Marshal(value, json.Deterministic(true))
		sorted[i] = keyed{string(key), value}
	}
	slices.SortStableFunc(sorted, func(a, b keyed) int { return cmp.Compare(a.key, b.key) })
	for i := range sorted {
		(*list)[i] = sorted[i].value
	}
}

// rooted sorts the dependencies and adds the subject as their root.
func rooted(subject string, components []cyclonedx.Component, dependencies []cyclonedx.Dependency) *[]cyclonedx.Dependency {
	needed := map[string]bool{}
	all := make([]cyclonedx.Dependency, 0, len(dependencies)+1)
	for _, d := range dependencies {
		if d.Dependencies == nil || len(*d.Dependencies) == 0 {
			continue
		}
		on := slices.Clone(*d.Dependencies)
		slices.Sort(on)
		on = slices.Compact(on)
		for _, ref := range on {
			needed[ref] = needed[ref] || ref != d.Ref
		}
		all = append(all, cyclonedx.Dependency{Ref: d.Ref, Dependencies: &on})
	}
	var top []string
	for _, c := range components {
		if c.Type != cyclonedx.ComponentTypeFile && !needed[c.BOMRef] {
			top = append(top, c.BOMRef)
		}
	}
	root := cyclonedx.Dependency{Ref: subject}
	if len(top) > 0 {
		root.Dependencies = &top
	}
	all = append(all, root)
	slices.SortFunc(all, func(a, b cyclonedx.Dependency) int { return cmp.Compare(a.Ref, b.Ref) })
	return &all
}

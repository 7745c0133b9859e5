package sbom

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/CycloneDX/cyclonedx-go"
)

// Subject is what a document describes: one artifact, or for an image of
// several platforms one platform's manifest.
type Subject struct {
	Kind      string `json:"kind"`               // of artifact: image, chart, model, dataset, files, packages
	Name      string `json:"name"`               // as upstream has it
	Version   string `json:"version,omitempty"`  // as upstream has it
	Digest    string `json:"digest"`             // of the manifest, "sha256:" and 64 hex digits
	MediaType string `json:"mediaType"`          // of the manifest
	Platform  string `json:"platform,omitempty"` // os/architecture[/variant], for images
}

const maxText = 1024 // bytes of a name, version or media type

var (
	digestForm   = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	platformForm = regexp.MustCompile(`^[a-z0-9]+/[a-z0-9_.-]+(/[a-z0-9_.-]+)?$`)
)

// componentTypes has the CycloneDX component type for every kind of artifact.
func componentType(kind string) (cyclonedx.ComponentType, bool) {
	switch kind {
	case "image":
		return cyclonedx.ComponentTypeContainer, true
	case "model":
		return cyclonedx.ComponentTypeMachineLearningModel, true
	case "dataset", "files":
		return cyclonedx.ComponentTypeData, true
	case "chart", "packages":
		return cyclonedx.ComponentTypeApplication, true
	}
	return "", false
}

// Validate says whether a document can be made for s.
func (s Subject) Validate() error {
	if _, known := componentType(s.Kind); !known {
		return fmt.Errorf("subject: unknown kind of artifact %.60q", s.Kind)
	}
	if !digestForm.MatchString(s.Digest) {
		return fmt.Errorf("subject: %.100q is not a sha256 digest", s.Digest)
	}
	if s.Platform != "" && !platformForm.MatchString(s.Platform) {
		return fmt.Errorf("subject: %.100q is not a platform", s.Platform)
	}
	if s.Name == "" || s.MediaType == "" {
		return fmt.Errorf("subject %s: name or media type is missing", s.Digest)
	}
	for _, text := range []string{s.Name, s.Version, s.MediaType} {
		if !plain(text, maxText) {
			return fmt.Errorf("subject %s: %.100q is too long or no plain text", s.Digest, text)
		}
	}
	return nil
}

func plain(text string, most int) bool {
	return len(text) <= most && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// component is the subject as a document's metadata.component.
func (s Subject) component() *cyclonedx.Component {
	kind, _ := componentType(s.Kind)
	properties := []cyclonedx.Property{
		{Name: "packhof:subject:digest", Value: s.Digest},
		{Name: "packhof:subject:kind", Value: s.Kind},
		{Name: "packhof:subject:mediaType", Value: s.MediaType},
	}
	if s.Platform != "" {
		properties = append(properties, cyclonedx.Property{Name: "packhof:subject:platform", Value: s.Platform})
	}
	return &cyclonedx.Component{
		BOMRef:     s.Digest,
		Type:       kind,
		Name:       s.Name,
		Version:    s.Version,
		PackageURL: s.packageURL(),
		Hashes:     &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: strings.TrimPrefix(s.Digest, "sha256:")}},
		Properties: &properties,
	}
}

// packageURL names an image as the purl type "oci" does: by the last part of
// the repository and the digest. Other kinds have no purl that their content decides.
func (s Subject) packageURL() string {
	if s.Kind != "image" {
		return ""
	}
	query := url.Values{"repository_url": {s.Name}}
	if _, rest, found := strings.Cut(s.Platform, "/"); found {
		architecture, _, _ := strings.Cut(rest, "/")
		query.Set("arch", architecture)
	}
	name := strings.ToLower(path.Base(s.Name))
	return "pkg:oci/" + url.PathEscape(name) + "@" + url.QueryEscape(s.Digest) + "?" + query.Encode()
}

// Serial returns the serial number of the document about a subject at a time:
// a UUID version 8 made of the first 122 free bits of
// SHA-256("packhof.sbom/v1\n" digest "\n" time "\n").
func Serial(digest string, at time.Time) string {
	sum := sha256.Sum256([]byte("packhof.sbom/v1\n" + digest + "\n" + stamp(at) + "\n"))
	id := sum[:16]
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[0:4], id[4:6], id[6:8], id[8:10], id[10:16])
}

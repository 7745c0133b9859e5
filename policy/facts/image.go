package facts

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/policy"
)

const maxConfig = 4 << 20 // bytes of an image config

// image says what the configs of an image are, one for each platform manifest.
func (a *artifact) image(ctx context.Context) (policy.Image, error) {
	stated := policy.Image{Status: "not-applicable", Configs: []policy.ImageConfig{}}
	if a.Kind != bundle.Image {
		return stated, nil
	}
	stated.Status = "read"
	for _, p := range a.parts {
		if err := ctx.Err(); err != nil {
			return stated, err
		}
		if !p.runnable {
			continue
		}
		config := a.config(p)
		if err := a.meter.add(config); err != nil {
			return stated, err
		}
		stated.Configs = append(stated.Configs, config)
	}
	if len(stated.Configs) == 0 {
		stated.Status, stated.Reason = "unread", "it has no manifest of an image"
		if root := a.parts[0]; root.why != "" {
			stated.Reason = root.why
		}
	}
	return stated, nil
}

// runnable tells whether a manifest is, or could be, an image for some platform:
// what cannot be read could be. An attestation that BuildKit puts beside an
// image is none, by the types of its layers and not only by what it says of
// its platform.
func runnable(d bundle.OCIDescriptor, doc *bundle.OCI) bool {
	if bundle.IsIndex(d.MediaType) {
		return false
	}
	if doc == nil || len(doc.Layers) == 0 {
		return true
	}
	return slices.ContainsFunc(doc.Layers, func(l bundle.OCIDescriptor) bool { return l.MediaType != typeInToto })
}

// config reads one config. Its text in fields that people judge by (user,
// names of variables) is foreign, but has its own places.
func (a *artifact) config(p part) policy.ImageConfig {
	c := policy.ImageConfig{
		Digest: p.Digest.String(), Status: "unread", Entrypoint: []string{}, Command: []string{}, EnvNames: []string{}, ExposedPorts: []string{},
		Untrusted: policy.ImageConfigUntrusted{Labels: []policy.Label{}},
	}
	if p.Platform != nil {
		c.Platform = platform(*p.Platform)
	}
	if p.why != "" {
		c.Reason = p.why
		return c
	}
	doc, why := a.readConfig(*p.config)
	if why != "" {
		c.Reason = why
		return c
	}
	if c.Platform == "" {
		c.Platform = platform(bundle.OCIPlatform{OS: doc.OS, Architecture: doc.Architecture, Variant: doc.Variant})
	}
	c.Status, c.User = "read", doc.Config.User
	c.Entrypoint, c.Command = list(doc.Config.Entrypoint), list(doc.Config.Cmd)
	for _, variable := range doc.Config.Env {
		name, _, _ := strings.Cut(variable, "=")
		c.EnvNames = append(c.EnvNames, name)
	}
	slices.Sort(c.EnvNames)
	c.ExposedPorts = append(c.ExposedPorts, slices.Sorted(maps.Keys(doc.Config.ExposedPorts))...)
	c.Untrusted.Labels = labels(doc.Config.Labels)
	return c
}

var platformForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,39}(/[a-z0-9][a-z0-9_.-]{0,39}){1,2}$`)

// platform is "" for what is none: the text is foreign.
func platform(p bundle.OCIPlatform) string {
	if s := p.String(); platformForm.MatchString(s) {
		return s
	}
	return ""
}

// imageConfig is the part of an image config that facts are taken from.
type imageConfig struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Variant      string `json:"variant"`
	Config       struct {
		User         string              `json:"User"`
		Entrypoint   []string            `json:"Entrypoint"`
		Cmd          []string            `json:"Cmd"`
		Env          []string            `json:"Env"`
		ExposedPorts map[string]struct{} `json:"ExposedPorts"`
		Labels       map[string]string   `json:"Labels"`
	} `json:"config"`
}

// Types of image configs.
const (
	typeOCIConfig    = "application/vnd.oci.image.config.v1+json"
	typeDockerConfig = "application/vnd.docker.container.image.v1+json"
)

// readConfig takes names in any case, as container runtimes do, and refuses a
// name that is there twice, also in two cases: runtimes do not agree on which
// counts.
func (a *artifact) readConfig(d bundle.OCIDescriptor) (doc imageConfig, why string) {
	if d.MediaType != typeOCIConfig && d.MediaType != typeDockerConfig {
		return doc, "its config is not that of an image"
	}
	raw, err := a.Bundle.ReadAll(d.Digest, maxConfig)
	if err != nil {
		return doc, missing("the config", d.Digest, err)
	}
	if err := json.Unmarshal(raw, &doc, json.MatchCaseInsensitiveNames(true)); err != nil {
		return doc, fmt.Sprintf("the config %s is malformed", d.Digest.Short())
	}
	return doc, ""
}

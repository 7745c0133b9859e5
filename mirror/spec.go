package mirror

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/config"
	"github.com/packhof/packhof/internal/problem"
)

// APIVersion and SpecKind head every packhof.yaml.
const (
	APIVersion = config.Version
	SpecKind   = "Export"
)

// Spec is packhof.yaml: what one channel carries, to whom, signed with which
// key. Paths are relative to the folder of the file.
type Spec struct {
	APIVersion string          `json:"apiVersion" jsonschema:"enum=packhof/v1"`
	Kind       string          `json:"kind" jsonschema:"enum=Export"`
	Channel    string          `json:"channel" jsonschema:"pattern=^[a-z0-9]([a-z0-9-]{0\\,38}[a-z0-9])?$" jsonschema_description:"the ordered stream of bundles that a plant follows"`
	Audience   []string        `json:"audience,omitempty" jsonschema_description:"ids of the gates it is meant for; empty: every gate of the trust root"`
	Key        string          `json:"key,omitempty" jsonschema_description:"private key file; default keys/packhof.key"`
	Trust      string          `json:"trust,omitempty" jsonschema_description:"folder of the trust root's versions and the revocations; default trust"`
	Store      string          `json:"store,omitempty" jsonschema_description:"folder that keeps fetched content; default .packhof"`
	ValidFor   config.Span     `json:"validFor,omitempty" jsonschema_description:"how long a bundle may be accepted after it was planned, such as 30d or 12h; default 30d"`
	Note       string          `json:"note,omitempty" jsonschema_description:"what comes and why, shown to the reviewer"`
	Hosts      map[string]Host `json:"hosts,omitempty" jsonschema_description:"settings by host or host:port"`
	Scan       ScanSpec        `json:"scan,omitempty" jsonschema_description:"bounds of the program that makes SBOMs"`
	Artifacts  []ArtifactSpec  `json:"artifacts,omitempty" jsonschema:"minItems=1"`
	Documents  []DocumentSpec  `json:"documents,omitempty" jsonschema_description:"what packhof plan --control sends"`
	Answers    []AnswerSpec    `json:"answers,omitempty" jsonschema_description:"answers to what a gate has asked for"`
	Withdraws  []WithdrawSpec  `json:"withdraws,omitempty" jsonschema_description:"what was sent before and must not be used any more"`
}

// Host says how a host may be reached.
type Host struct {
	PlainHTTP bool   `json:"plainHTTP,omitempty" jsonschema_description:"allow http without TLS; recorded in the bundle"`
	CA        string `json:"ca,omitempty" jsonschema_description:"PEM file with the certificate authority of this host"`
}

// ScanSpec bounds packhof-scan.
type ScanSpec struct {
	Program string      `json:"program,omitempty" jsonschema_description:"path of packhof-scan; default: beside packhof, then PATH"`
	Timeout config.Span `json:"timeout,omitempty" jsonschema_description:"for each artifact; default 15m"`
	Memory  config.Size `json:"memory,omitempty" jsonschema_description:"default 4GiB"`
}

// ArtifactSpec is one artifact. Exactly one of Image, Dir, File and URL says
// where it comes from.
type ArtifactSpec struct {
	Kind      bundle.Kind       `json:"kind,omitempty" jsonschema:"enum=image,enum=model,enum=dataset,enum=files" jsonschema_description:"default: image for an image, files for the rest"`
	Name      string            `json:"name,omitempty" jsonschema_description:"default: the repository of an image; needed for the rest"`
	Version   string            `json:"version,omitempty" jsonschema_description:"default: the tag of an image; needed for the rest"`
	Image     string            `json:"image,omitempty" jsonschema_description:"an image by tag, digest or both"`
	Dir       string            `json:"dir,omitempty" jsonschema_description:"a folder on this machine"`
	File      string            `json:"file,omitempty" jsonschema_description:"a file on this machine"`
	URL       string            `json:"url,omitempty" jsonschema_description:"a file behind https; needs sha256"`
	SHA256    string            `json:"sha256,omitempty" jsonschema_description:"64 hex digits; what the file behind url must be"`
	Platforms []string          `json:"platforms,omitempty" jsonschema_description:"such as linux/amd64; default: all that the image has"`
	Labels    map[string]string `json:"labels,omitempty" jsonschema_description:"words of your own that travel with it"`
}

// Defaults of a Spec.
const (
	defaultKey      = "keys/packhof.key"
	defaultTrust    = "trust"
	defaultStore    = ".packhof"
	defaultValidFor = config.Span(30 * 24 * time.Hour)
	maxValidFor     = 400 * 24 * time.Hour
	defaultTimeout  = config.Span(15 * time.Minute)
	defaultMemory   = config.Size(4 << 30)
)

// SetDefaults fills what may be left out.
func (s *Spec) SetDefaults() {
	s.Key = cmp.Or(s.Key, defaultKey)
	s.Trust = cmp.Or(s.Trust, defaultTrust)
	s.Store = cmp.Or(s.Store, defaultStore)
	s.ValidFor = cmp.Or(s.ValidFor, defaultValidFor)
	s.Scan.Timeout = cmp.Or(s.Scan.Timeout, defaultTimeout)
	s.Scan.Memory = cmp.Or(s.Scan.Memory, defaultMemory)
	for i := range s.Artifacts {
		a := &s.Artifacts[i]
		if a.Kind == "" && a.Image != "" {
			a.Kind = bundle.Image
		}
		a.Kind = cmp.Or(a.Kind, bundle.Files)
	}
}

// Validate finds every wrong field: the error is a *problem.FieldError, or
// joins several.
func (s *Spec) Validate() error {
	var wrong problem.Fields
	config.CheckHead(s.APIVersion, s.Kind, SpecKind, &wrong)
	if !bundle.ValidChannel(s.Channel) {
		wrong.Add("channel", fmt.Sprintf("%q cannot name a channel", s.Channel), "use up to 40 of a-z, 0-9 and hyphens, such as plant-7")
	}
	if s.ValidFor < config.Span(time.Hour) || s.ValidFor > config.Span(maxValidFor) {
		wrong.Add("validFor", fmt.Sprintf("%s is not between 1h and 400d", s.ValidFor), "write  validFor: 30d")
	}
	if err := bundle.CheckText(s.Note); err != nil {
		wrong.Add("note", err.Error(), "shorten it")
	}
	for i, gate := range s.Audience {
		if !bundle.ValidGateID(gate) {
			wrong.Add(fmt.Sprintf("audience[%d]", i), fmt.Sprintf("%q is no gate id", gate), "take the id from the gate's enrol.json")
		}
	}
	for _, host := range slices.Sorted(maps.Keys(s.Hosts)) {
		if host == "" || strings.ContainsAny(host, "/ @") {
			wrong.Add("hosts."+host, "this is no host and no host:port", "write the host alone, such as registry.example:5000")
		}
	}
	s.validateNotices(&wrong)
	if len(s.Artifacts) == 0 && len(s.Documents) == 0 {
		wrong.Add("artifacts", "there are none", "add one, such as  - image: docker.io/library/debian:12")
	}
	for i := range s.Artifacts {
		s.Artifacts[i].validate(fmt.Sprintf("artifacts[%d]", i), &wrong)
	}
	return wrong.Err()
}

func (a *ArtifactSpec) validate(path string, wrong *problem.Fields) {
	var given []string
	for _, from := range []struct{ key, value string }{{"image", a.Image}, {"dir", a.Dir}, {"file", a.File}, {"url", a.URL}} {
		if from.value != "" {
			given = append(given, from.key)
		}
	}
	if len(given) != 1 { // what else is right depends on it
		wrong.Add(path, fmt.Sprintf("exactly one of image, dir, file and url is needed, got %d", len(given)), "say where the artifact comes from, once")
		return
	}
	a.validateKind(path+".kind", given[0], wrong)
	if a.Image == "" {
		a.validateNames(path, wrong)
	}
	if strings.Contains(a.Dir+a.File, "://") {
		wrong.Add(path, "an address stands where a path belongs", "write it as  url:")
	}
	a.validateURL(path, wrong)
}

// validateKind tells a word that is no kind from one that does not go with the
// place that the artifact comes from.
func (a *ArtifactSpec) validateKind(path, from string, wrong *problem.Fields) {
	names := []string{string(bundle.Image), string(bundle.Model), string(bundle.Dataset), string(bundle.Files)}
	if !slices.Contains(names, string(a.Kind)) {
		fix := "write one of " + strings.Join(names, ", ")
		if near := config.Nearest(string(a.Kind), names); near != "" {
			fix = fmt.Sprintf("did you mean %q?", near)
		}
		wrong.Add(path, fmt.Sprintf("there is no kind %.60q", a.Kind), fix)
		return
	}
	switch isImage := a.Image != ""; {
	case isImage && a.Kind != bundle.Image:
		wrong.Add(path, fmt.Sprintf("a %s cannot come from %s", a.Kind, from), "write  kind: image")
	case !isImage && a.Kind == bundle.Image:
		wrong.Add(path, "an image cannot come from "+from, "write  kind: files")
	}
}

// validateNames is about what only an image need not say.
func (a *ArtifactSpec) validateNames(path string, wrong *problem.Fields) {
	if a.Name == "" {
		wrong.Add(path, "it has no name", "add  name: …")
	}
	if a.Version == "" {
		wrong.Add(path, "it has no version", "add  version: …")
	}
	if a.Name != "" && a.Version != "" {
		if err := bundle.CheckArtifactName(a.Name, a.Version); err != nil {
			wrong.Add(path, err.Error(), "use a shorter name or version, without control characters")
		}
	}
	if len(a.Platforms) > 0 {
		wrong.Add(path+".platforms", "only images have platforms", "leave it out")
	}
}

func (a *ArtifactSpec) validateURL(path string, wrong *problem.Fields) {
	if a.URL == "" {
		if a.SHA256 != "" {
			wrong.Add(path+".sha256", "only a file behind a url has one", "leave it out")
		}
		return
	}
	if _, err := cas.ParseHex(a.SHA256); err != nil {
		wrong.Add(path+".sha256", "it must be 64 lower-case hex digits", "take it from the publisher of the file")
	}
	u, err := url.Parse(a.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.Fragment != "" {
		wrong.Add(path+".url", fmt.Sprintf("%q is no https address without credentials", problem.Address(a.URL)), "write it as https://host/path")
	} else if u.RawQuery != "" {
		wrong.Add(path+".url", "it has a query (?…), which may hold credentials and would travel in the bundle", "download the file yourself and name it as  file:")
	}
}

// Request turns the artifact into what a source is asked, and says which
// source: "oci" or "files".
func (a *ArtifactSpec) Request() (source string, r Request) {
	r = Request{Kind: a.Kind, Name: a.Name, Version: a.Version, Platforms: a.Platforms, Labels: a.Labels}
	if a.Image != "" {
		r.From = a.Image
		return "oci", r
	}
	r.From = a.Dir + a.File + a.URL // exactly one is set
	if a.SHA256 != "" {
		r.Digest, _ = cas.ParseHex(a.SHA256) // Validate has seen it
	}
	return "files", r
}

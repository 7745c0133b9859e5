package mirror_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/config"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/mirror"
)

const sum = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"

func goodSpec() *mirror.Spec {
	s := &mirror.Spec{
		APIVersion: mirror.APIVersion, Kind: mirror.SpecKind, Channel: channel, Audience: []string{testkit.GateID},
		Hosts: map[string]mirror.Host{"registry.example:5000": {PlainHTTP: true}},
		Artifacts: []mirror.ArtifactSpec{
			{Image: "debian:12", Platforms: []string{"linux/amd64"}},
			{Dir: "d", Name: "d", Version: "1"},
			{URL: "https://example.com/f", SHA256: sum, Name: "f", Version: "1", Kind: bundle.Model},
		},
	}
	s.SetDefaults()
	return s
}

func TestSpecDefaults(t *testing.T) {
	s := goodSpec()
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	if s.Key != "keys/packhof.key" || s.Trust != "trust" || s.Store != ".packhof" || s.ValidFor != config.Span(720*time.Hour) ||
		s.Artifacts[0].Kind != bundle.Image || s.Artifacts[1].Kind != bundle.Files || s.Artifacts[2].Kind != bundle.Model {
		t.Errorf("%+v", s)
	}
}

func TestSpecFindsTheField(t *testing.T) {
	artifact := func(i int, change func(*mirror.ArtifactSpec)) func(*mirror.Spec) {
		return func(s *mirror.Spec) { change(&s.Artifacts[i]) }
	}
	url := func(u string) func(*mirror.Spec) {
		return artifact(2, func(a *mirror.ArtifactSpec) { a.URL = u })
	}
	for name, c := range map[string]struct {
		change func(*mirror.Spec)
		path   string
	}{
		"apiVersion":          {func(s *mirror.Spec) { s.APIVersion = "packhof/v2" }, "apiVersion"},
		"kind":                {func(s *mirror.Spec) { s.Kind = "Import" }, "kind"},
		"channel":             {func(s *mirror.Spec) { s.Channel = "Plant 7" }, "channel"},
		"too short":           {func(s *mirror.Spec) { s.ValidFor = config.Span(time.Minute) }, "validFor"},
		"too long":            {func(s *mirror.Spec) { s.ValidFor = config.Span(401 * 24 * time.Hour) }, "validFor"},
		"nothing":             {func(s *mirror.Spec) { s.Artifacts = nil }, "artifacts"},
		"gate":                {func(s *mirror.Spec) { s.Audience = append(s.Audience, "gate-1") }, "audience[1]"},
		"host with a path":    {func(s *mirror.Spec) { s.Hosts["example.com/x"] = mirror.Host{} }, "hosts.example.com/x"},
		"no source":           {artifact(0, func(a *mirror.ArtifactSpec) { a.Image = "" }), "artifacts[0]"},
		"two sources":         {artifact(1, func(a *mirror.ArtifactSpec) { a.File = "f" }), "artifacts[1]"},
		"an image of a dir":   {artifact(1, func(a *mirror.ArtifactSpec) { a.Kind = bundle.Image }), "artifacts[1].kind"},
		"a model of an image": {artifact(0, func(a *mirror.ArtifactSpec) { a.Kind = bundle.Model }), "artifacts[0].kind"},
		"a chart":             {artifact(1, func(a *mirror.ArtifactSpec) { a.Kind = bundle.Chart }), "artifacts[1].kind"},
		"no name":             {artifact(1, func(a *mirror.ArtifactSpec) { a.Name = "" }), "artifacts[1]"},
		"no version":          {artifact(1, func(a *mirror.ArtifactSpec) { a.Version = "" }), "artifacts[1]"},
		"platforms of a dir":  {artifact(1, func(a *mirror.ArtifactSpec) { a.Platforms = []string{"linux/amd64"} }), "artifacts[1].platforms"},
		"sha256 of a dir":     {artifact(1, func(a *mirror.ArtifactSpec) { a.SHA256 = sum }), "artifacts[1].sha256"},
		"sha256 missing":      {artifact(2, func(a *mirror.ArtifactSpec) { a.SHA256 = "" }), "artifacts[2].sha256"},
		"sha256 upper case":   {artifact(2, func(a *mirror.ArtifactSpec) { a.SHA256 = strings.ToUpper(sum) }), "artifacts[2].sha256"},
		"ftp":                 {url("ftp://example.com/f"), "artifacts[2].url"},
		"credentials":         {url("https://u:p@example.com/f"), "artifacts[2].url"},
		"fragment":            {url("https://example.com/f#x"), "artifacts[2].url"},
		"no host":             {url("https:///f"), "artifacts[2].url"},
		"no address":          {url("://"), "artifacts[2].url"},
	} {
		s := goodSpec()
		c.change(s)
		err := s.Validate()
		var field *problem.FieldError
		if !errors.As(err, &field) || field.Path != c.path || field.Remedy() == "" || problem.CodeOf(err) != "config/invalid" {
			t.Errorf("%s: %v, want %s", name, err, c.path)
		}
	}
}

// TestUnknownKinds: a word that is no kind is told from a kind in the wrong
// place, and the one that was meant is named.
func TestUnknownKinds(t *testing.T) {
	for kind, c := range map[bundle.Kind]struct{ what, fix string }{
		"datset":     {`there is no kind "datset"`, `did you mean "dataset"?`},
		"Files":      {`there is no kind "Files"`, `did you mean "files"?`},
		"spacecraft": {`there is no kind "spacecraft"`, "write one of image, model, dataset, files"},
		"image":      {"an image cannot come from dir", "write  kind: files"},
	} {
		s := goodSpec()
		s.Artifacts[1].Kind = kind
		field, ok := errors.AsType[*problem.FieldError](s.Validate())
		if !ok || field.What != c.what || field.Fix != c.fix {
			t.Errorf("%s: %+v, want %q and %q", kind, field, c.what, c.fix)
		}
	}
}

func TestRequests(t *testing.T) {
	s := goodSpec()
	for i, want := range []struct{ source, from string }{{"oci", "debian:12"}, {"files", "d"}, {"files", "https://example.com/f"}} {
		source, r := s.Artifacts[i].Request()
		if source != want.source || r.From != want.from || r.Kind != s.Artifacts[i].Kind || r.Digest.IsZero() != (i < 2) {
			t.Errorf("artifact %d: %s, %+v", i, source, r)
		}
	}
}

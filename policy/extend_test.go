package policy_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/policy"
)

const ownRule = `# METADATA
# title: Nothing is too large
# custom:
#   kinds: [bundle]
#   title_de: "Nichts ist zu groß"
#   message: "{bytes} bytes"
#   message_de: "{bytes} Byte"
#   remedy: "send less"
#   remedy_de: "Weniger schicken"
package packhof.rules.own_size

checked contains ""

findings contains {"artifact": "", "level": "review", "params": {"bytes": input.bundle.bytes}} if {
	input.bundle.bytes > data.packhof.config.own_limit
}
`

func folder(files map[string]string) fstest.MapFS {
	dir := fstest.MapFS{}
	for name, text := range files {
		dir[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return dir
}

func shipped(t *testing.T) policy.Source {
	t.Helper()
	s, err := policy.Library()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestExtend(t *testing.T) {
	for name, c := range map[string]struct {
		files   map[string]string
		changes map[string]any // parameters
		rules   int            // more than the library has
	}{
		"nothing":            {nil, nil, 0},
		"a parameter":        {map[string]string{"config.json": `{"allowed_sources":["registry.example"]}`}, map[string]any{"allowed_sources": []any{"registry.example"}}, 0},
		"a rule":             {map[string]string{"own_size.rego": strings.ReplaceAll(ownRule, "data.packhof.config.own_limit", "7")}, nil, 1},
		"a rule's parameter": {map[string]string{"own_size.rego": ownRule, "config.json": `{"own_limit":7}`}, map[string]any{"own_limit": 7.0}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			library := shipped(t)
			got, err := library.Extend(folder(c.files))
			if err != nil {
				t.Fatal(err)
			}
			want := maps.Clone(library.Config)
			maps.Copy(want, c.changes)
			if diff := cmp.Diff(want, got.Config); diff != "" {
				t.Errorf("parameters (-want +got):\n%s", diff)
			}
			p, err := policy.Compile(t.Context(), got)
			if err != nil {
				t.Fatal(err)
			}
			base, err := policy.Compile(t.Context(), library)
			if err != nil {
				t.Fatal(err)
			}
			if more := len(p.Rules()) - len(base.Rules()); more != c.rules || got.Adds(library) != (c.rules > 0) {
				t.Errorf("%d more rules, want %d; adds: %v", more, c.rules, got.Adds(library))
			}
			if changed := p.Digest() != base.Digest(); changed != (c.rules > 0 || c.changes != nil) {
				t.Errorf("the digest changed: %v", changed)
			}
			if diff := cmp.Diff(shipped(t), library); diff != "" {
				t.Errorf("the library itself was changed:\n%s", diff)
			}
		})
	}
}

func TestExtendRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		code  string
	}{
		"a rule that ships":      {map[string]string{"sbom_present.rego": ownRule}, "policy/invalid-rule"},
		"a file of another kind": {map[string]string{"README.md": "hello"}, "policy/unknown-file"},
		"a folder":               {map[string]string{"more/own_size.rego": ownRule}, "policy/unknown-file"},
		"an unknown parameter":   {map[string]string{"config.json": `{"allowed_source":["x"]}`}, "policy/invalid-config"},
		"another type":           {map[string]string{"config.json": `{"allowed_sources":"x"}`}, "policy/invalid-config"},
		"no JSON":                {map[string]string{"config.json": `allowed_sources: x`}, "policy/invalid-config"},
		"too large a rule":       {map[string]string{"own.rego": strings.Repeat("#", policy.MaxModuleSize+1)}, "policy/too-large"},
		"too large parameters":   {map[string]string{"config.json": strings.Repeat(" ", policy.MaxConfigSize+1)}, "policy/too-large"},
		"hidden characters":      {map[string]string{"own.rego": ownRule + "# \u202e\n"}, "policy/invalid-rule"},
	} {
		_, err := shipped(t).Extend(folder(c.files))
		var refused *policy.Error
		if !errors.As(err, &refused) || refused.Code() != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}

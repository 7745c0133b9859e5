package architecture

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// drawn makes a graph of packages from lines "package: import import". Packages
// below ./cmd are programs.
func drawn(lines ...string) graph {
	g := graph{}
	for _, line := range lines {
		name, imports, _ := strings.Cut(line, ":")
		g[name] = node{name: name, program: strings.HasPrefix(name, "./cmd/"), imports: strings.Fields(imports)}
	}
	return g
}

// TestRulesBite draws a graph that breaks each kind of rule once, beside
// imports that are allowed.
func TestRulesBite(t *testing.T) {
	for name, c := range map[string]struct {
		check func(graph) []string
		graph graph
		want  []string // how the violations begin
	}{
		"shores meet, even through a third package": {
			check: func(g graph) []string { return broken(g, shores) },
			graph: drawn("./mirror: ./internal/w ./internal/x", "./internal/w: ./internal/x", "./internal/x: ./bundle ./gate", "./gate: ./bundle", "./bundle:"),
			want:  []string{"./mirror imports ./internal/x, which imports ./gate: "},
		},
		"siblings": {
			check: func(g graph) []string { return broken(g, shores) },
			graph: drawn("./mirror/oci: ./mirror ./mirror/oci/layout", "./mirror/oci/layout:", "./mirror/hub: ./mirror ./mirror/oci", "./mirror:"),
			want:  []string{"./mirror/hub imports ./mirror/oci: "},
		},
		"direct imports only": {
			check: func(g graph) []string { return broken(g, neighbours) },
			graph: drawn("./bundle: ./signing", "./signing: example.org/x", "example.org/x: net/http", "./policy/facts:"),
			want:  nil,
		},
		"a direct import": {
			check: func(g graph) []string { return broken(g, neighbours) },
			graph: drawn("./bundle: net/http"),
			want:  []string{"./bundle imports net/http: "},
		},
		"anything of ours, with an exception": {
			check: func(g graph) []string { return broken(g, neighbours) },
			graph: drawn("./sbom/inspect: ./sbom ./internal/cas", "./sbom:", "./internal/cas: os"),
			want:  []string{"./sbom/inspect imports ./internal/cas: "},
		},
		"anything but the standard library, with an exception": {
			check: func(g graph) []string { return broken(g, neighbours) },
			graph: drawn("./internal/child: os/exec golang.org/x/sys/unix github.com/a/b", "./internal/problem: errors gopkg.in/yaml.v3"),
			want:  []string{"./internal/problem imports gopkg.in/yaml.v3: ", "./internal/child imports github.com/a/b: "},
		},
		"the gate links a fetcher": {
			check: func(g graph) []string { return broken(g, gateLinks) },
			graph: drawn("./cmd/packhof-gate: ./gate ./signing/cosign", "./signing/cosign: github.com/sigstore/cosign/v2/pkg/cosign", "./gate: ./mirror/oci",
				"./cmd/packhof: ./mirror/oci ./signing/cosign"),
			want: []string{
				"./cmd/packhof-gate imports ./gate, which imports ./mirror/oci: ",
				"./cmd/packhof-gate imports ./signing/cosign, which imports github.com/sigstore/cosign/v2/pkg/cosign: ",
			},
		},
		"out of its room": {
			check: func(g graph) []string { return outOfRoom(g, rooms) },
			graph: drawn("./gate: github.com/labstack/echo/v4", "./web: github.com/labstack/echo/v4 github.com/labstack/echo/v4/middleware",
				"./cmd/packhof-gate: ./web github.com/spf13/cobra", "./internal/demo: github.com/anchore/syft/syft", "./policy: github.com/open-policy-agent/opa/v1/rego"),
			want: []string{"./gate imports github.com/labstack/echo/v4, which only ./web may"},
		},
		"linked by another program": {
			check: func(g graph) []string { return wronglyLinked(g, links) },
			graph: drawn("./cmd/packhof: ./sbom ./signing/cosign", "./sbom: ./sbom/scan", "./cmd/packhof-scan: ./sbom/scan", "./internal/demo: ./sbom/scan"),
			want:  []string{"./cmd/packhof imports ./sbom, which imports ./sbom/scan, which only ./cmd/packhof-scan may contain: "},
		},
		"upward, sideways and without a floor": {
			check: upward,
			graph: drawn("./bundle: ./signing ./policy/facts", "./gate/s3: ./gate ./gate/dir", "./gate: ./bundle", "./attic: ./bundle"),
			want: []string{
				"./attic has no floor",
				"./bundle (floor 2) imports ./policy/facts (floor 4)",
				"./gate/s3 (floor 6) imports ./gate/dir (floor 6)",
			},
		},
		"folders to and fro": {
			check: toAndFro,
			graph: drawn("./policy/facts: ./bundle", "./bundle: ./internal/cas", "./internal/cas: ./policy", "./policy:", "./signing/cosign: ./signing", "./signing:"),
			want:  []string{"./bundle and ./internal/cas", "./bundle and ./policy", "./internal/cas and ./policy"},
		},
		"drawers": {
			check: inDrawers,
			graph: drawn("./mirror/util:", "./internal/types/oci:", "./bundle:"),
			want:  []string{"./internal/types/oci:", "./mirror/util:"},
		},
		"the kit ships": {
			check: shippedKit,
			graph: drawn("./gate: ./internal/testkit", "./gate/sinktest: ./internal/testkit", "./internal/bench: ./internal/testkit", "./mirror/oci: ./mirror/sourcetest"),
			want:  []string{"./gate imports ./internal/testkit", "./mirror/oci imports ./mirror/sourcetest"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			begins := cmp.Comparer(func(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) })
			if diff := cmp.Diff(c.want, c.check(c.graph), begins); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMisspeltPatternsAreFound(t *testing.T) {
	modules := map[string]string{"github.com/anchore/syft": "v1.57.1", "github.com/distribution/distribution/v3": "v3.1.2"}
	got := unknownPatterns([]string{
		"./mirror/...", "./miror/...", "./gate/*", "./gate/harbour", "./...", "*", "net/http",
		syft, distribution, "github.com/anchore/syf/...", helm, "github.com/labstack/ekko/...",
	}, modules)
	want := []string{"./miror/...", "./gate/harbour", "github.com/anchore/syf/...", "github.com/labstack/ekko/..."}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unknown patterns (-want +got):\n%s", diff)
	}
}

func TestTooOldVersionsAreFound(t *testing.T) {
	minimums := []minimum{{"a", "v1.2.3", "why a"}, {"b", "v2.0.0", "why b"}, {"c", "v0.10.0", "why c"}, {"d", "v1.0.0", "why d"}}
	got := tooOld(map[string]string{"a": "v1.2.3", "b": "v2.0.0-rc.1", "c": "v0.9.9"}, minimums)
	want := []string{"b v2.0.0-rc.1, want at least v2.0.0: why b", "c v0.9.9, want at least v0.10.0: why c"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

func TestListingIsRead(t *testing.T) {
	g, err := parse([]byte(`{"ImportPath":"github.com/packhof/packhof/cmd/packhof","Name":"main","Imports":["fmt","github.com/packhof/packhof/mirror"]}
{"ImportPath":"github.com/packhof/packhofish","Name":"other"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := graph{
		"./cmd/packhof":                 {name: "./cmd/packhof", program: true, imports: []string{"fmt", "./mirror"}},
		"github.com/packhof/packhofish": {name: "github.com/packhof/packhofish", imports: []string{}},
	}
	if diff := cmp.Diff(want, g, cmp.AllowUnexported(node{})); diff != "" {
		t.Errorf("graph (-want +got):\n%s", diff)
	}
	if _, err := parse([]byte(`{"ImportPath":`)); err == nil {
		t.Error("a truncated listing was accepted")
	}
}

package registry_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/gate/registry"
	"github.com/packhof/packhof/internal/testkit"
)

// With nothing to plan, a plan says whether the registry can be used: that is
// how a gate asks for its health.
func (serials) nothingToPlan(t *testing.T) {
	r := testkit.NewRegistry(t, testkit.WithTLS(), testkit.WithBasicAuth("robot", "secret"))
	right := registry.Config{Registry: r.Host() + "/plant", CA: r.CAPEM(), Credentials: registry.Credentials{User: "robot", Password: "secret"}}
	wrong := right
	wrong.Credentials.Password = "guess"
	stopped := testkit.NewRegistry(t)
	if err := stopped.Close(); err != nil {
		t.Fatal(err)
	}
	elsewhere := testkit.NewRegistry(t, testkit.WithFault(testkit.Refuse(testkit.Everything, http.StatusNotFound, "")))
	for name, c := range map[string]struct {
		config registry.Config
		code   string
		says   []string
	}{
		"a wrong password":     {wrong, "destination/refused", []string{"401 Unauthorized", "UNAUTHORIZED", "check the credentials of this destination"}},
		"nobody":               {registry.Config{Registry: r.Host(), CA: r.CAPEM()}, "destination/refused", []string{"check the credentials of this destination"}},
		"an unknown authority": {registry.Config{Registry: r.Host()}, "destination/unreachable", []string{"the PEM file of the authority"}},
		"nobody listens":       {registry.Config{Registry: stopped.Host(), Plain: true}, "destination/unreachable", []string{"can be reached from here"}},
		"no registry":          {registry.Config{Registry: elsewhere.Host(), Plain: true}, "destination/unreachable", []string{"404", "is the address of a registry"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newSink(t, c.config).Plan(t.Context(), &gate.Release{})
			wantIn(t, told(t, err, c.code), c.says...)
		})
	}
	r.ForgetRequests()
	if actions, err := newSink(t, right).Plan(t.Context(), &gate.Release{}); err != nil || len(actions) != 0 {
		t.Errorf("the right account: %v, %v", actions, err)
	}
	var asked []string
	for _, q := range r.Requests() {
		asked = append(asked, q.Method+" "+q.Path)
	}
	if diff := cmp.Diff([]string{"GET /v2/", "GET /v2/"}, asked); diff != "" {
		t.Errorf("without and with credentials (-want +got):\n%s", diff)
	}
}

package registry_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/packhof/packhof/internal/registry"
	"github.com/packhof/packhof/internal/testkit"
)

// TestMount takes a blob over from another repository of the same registry,
// with nothing sent, and leaves nothing behind where that cannot be.
func TestMount(t *testing.T) {
	for name, options := range map[string][]testkit.Option{
		"anybody": nil, "an account, over TLS": {testkit.WithTLS(), testkit.WithBasicAuth("robot", "secret")},
	} {
		t.Run(name, func(t *testing.T) {
			r := testkit.NewRegistry(t, options...)
			config := registry.Config{
				Hosts: map[string]registry.Host{r.Host(): {PlainHTTP: r.CAPEM() == nil, CA: r.CAPEM()}}, Bulk: true,
				Keychain: keychain{"robot", "secret"},
			}
			client := newClient(t, config)
			first := client.Writer(ref(t, r.Host()+"/team/base:1"))
			second := client.Writer(ref(t, r.Host()+"/team/app:1"))
			s := &source{b: testkit.Bytes("layer", 3*piece)}
			if err := first.PutBlob(t.Context(), s.digest(), s.size(), s.open); err != nil {
				t.Fatal(err)
			}
			r.ForgetRequests()
			mounted, err := second.Mount(t.Context(), s.digest(), "team/base")
			if err != nil || !mounted || !has(t, second, s.digest()) {
				t.Errorf("mounted %v, %v", mounted, err)
			}
			if n := requests(r, http.MethodPut) + requests(r, http.MethodPatch); n != 0 {
				t.Errorf("%d uploads", n)
			}
			other := &source{b: testkit.Bytes("nowhere", 100)}
			r.ForgetRequests()
			mounted, err = second.Mount(t.Context(), other.digest(), "team/nothing")
			if err != nil || mounted || has(t, second, other.digest()) {
				t.Errorf("from nowhere: mounted %v, %v", mounted, err)
			}
			if n := requests(r, http.MethodDelete); n != 1 {
				t.Errorf("the upload that was begun instead was taken back %d times", n)
			}
		})
	}
}

// TestMountThatIsRefusedIsNoError: the upload that follows says why.
func TestMountThatIsRefusedIsNoError(t *testing.T) {
	refuse := testkit.Refuse(func(q *http.Request) bool { return strings.Contains(q.URL.RawQuery, "mount=") }, http.StatusForbidden, "")
	r := testkit.NewRegistry(t, testkit.WithFault(refuse))
	s := &source{b: testkit.Bytes("layer", 100)}
	if mounted, err := writer(t, r, registry.Config{}).Mount(t.Context(), s.digest(), "team/base"); err != nil || mounted {
		t.Errorf("mounted %v, %v", mounted, err)
	}
}

package web

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/packhof/packhof/gate"
)

func TestAddressOfARequest(t *testing.T) {
	network, console := &server{}, &server{user: func(r *http.Request) string { return "otto" }}
	for _, c := range []struct {
		server *server
		remote string
		want   gate.Address
	}{
		{network, "192.0.2.7:40000", "192.0.2.7"},
		{network, "192.0.2.7:40001", "192.0.2.7"},
		{network, "[::ffff:192.0.2.7]:40000", "192.0.2.7"},
		{network, "[2001:db8:1:2:3:4:5:6]:40000", "2001:db8:1:2::"},
		{network, "[2001:db8:1:2:ffff::1]:40000", "2001:db8:1:2::"},
		{network, "[fe80::1%eth0]:40000", "fe80::"},
		{network, "somewhere", "somewhere"},
		{console, "@", "console otto"},
		{console, "192.0.2.7:40000", "console otto"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.remote
		if got := c.server.address(r); got != c.want {
			t.Errorf("%s: %q, want %q", c.remote, got, c.want)
		}
	}
}

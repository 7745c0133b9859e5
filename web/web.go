package web

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
)

// Options is what the handlers need besides the gate.
type Options struct {
	Clock   func() time.Time // its location is the time zone of the screens
	Version string           // name and version of the program, such as "packhof-gate 1.2.0"
	Address string           // of the screens; "" where nothing serves them

	// Secure says that people come over TLS. Without it the session's cookie
	// lacks the protection that browsers give to secure ones: for tests.
	Secure bool

	// Background runs what outlives the request that started it, and is given
	// its error: a release that was started in a browser. Without it releases
	// are started at the console only.
	Background func(task func(context.Context) error)

	// Work runs each receive and each release of a request and gives its error,
	// so that who serves knows what an end would cut. Without it they just run.
	Work func(task func() error) error
}

// server is one of the two faces of a gate.
type server struct {
	gate    *gate.Gate
	options Options
	// user names the user of the operating system behind a request; nil where
	// people come over the network.
	user   func(*http.Request) string
	assets *assets
	screen map[string]*screens // by language

	cases   turn       // of whoever tells about a case
	plans   turn       // of whoever plans a release
	sending *allowance // for large documents on their way
}

// New gives the screens and the API for the network: accounts log in, by a
// session or for each request, and nobody names paths of the gate's machine.
func New(g *gate.Gate, o Options) (http.Handler, error) {
	if g == nil || o.Clock == nil {
		return nil, errors.New("the screens need a gate and a clock")
	}
	s := newServer(g, o)
	s.screen = map[string]*screens{}
	var err error
	if s.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	for _, lang := range languages() {
		if s.screen[lang], err = loadScreens(lang, s.assets, o.Clock); err != nil {
			return nil, err
		}
	}
	return s.handler(append(apiRoutes(), pageRoutes()...)), nil
}

func newServer(g *gate.Gate, o Options) *server {
	if o.Work == nil {
		o.Work = func(task func() error) error { return task() }
	}
	return &server{gate: g, options: o, cases: newTurn(), plans: newTurn(), sending: newAllowance()}
}

// NewConsole gives the API for the socket in the data directory, and for the
// same in process. user names who is at the other end, as the kernel says; for
// "" everything is refused.
func NewConsole(g *gate.Gate, o Options, user func(*http.Request) string) (http.Handler, error) {
	if g == nil || o.Clock == nil || user == nil {
		return nil, errors.New("the console needs a gate, a clock and the names of its users")
	}
	s := newServer(g, o)
	s.user = user
	return s.handler(apiRoutes()), nil
}

// address is where a request comes from: the user at the console, or the
// network address of the client, of IPv6 the network, since every host there
// has as many addresses as it likes.
func (s *server) address(r *http.Request) gate.Address {
	if s.console() {
		return gate.Address("console " + s.user(r))
	}
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return gate.Address(r.RemoteAddr)
	}
	host := at.Addr().Unmap().WithZone("")
	if host.Is6() {
		host = netip.PrefixFrom(host, 64).Masked().Addr()
	}
	return gate.Address(host.String())
}

func (s *server) console() bool { return s.user != nil }

// actor tells who asks: an account whose name and password come along, the
// account of a session, or the user at the console.
func (s *server) actor(r *http.Request) (gate.Actor, error) {
	if name, password, ok := r.BasicAuth(); ok && isAPI(r) {
		return s.gate.Authenticate(r.Context(), s.address(r), name, []byte(password))
	}
	if s.console() {
		if name := s.user(r); name != "" {
			return gate.Console(name), nil
		}
		return gate.Actor{}, problem.New("login/needed", "nobody knows who is at the console")
	}
	cookie, err := r.Cookie(s.cookieName())
	if err != nil {
		return gate.Actor{}, problem.New("login/needed", "nobody is logged in").Hint("log in")
	}
	return s.gate.Session(r.Context(), cookie.Value)
}

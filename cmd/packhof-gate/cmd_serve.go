package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/gate/depot"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/web"
)

type serveOptions struct {
	listen    string
	logLevel  string
	logFormat string
}

func newServe(s *site) *cobra.Command {
	var o serveOptions
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve screens, API and depot, and go on with what was interrupted",
		Long: `Serve the screens for people, the API, and the depot for the plant's clients,
over TLS. Other packhof-gate commands on this machine speak with it over a
socket in the data directory. It ends on SIGTERM or Ctrl-C: what runs is given
ten seconds to end, and goes on at the next start otherwise.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runServe(s, c, o) },
	}
	flags := c.Flags()
	flags.StringVar(&o.listen, "listen", "", "`address` and port, such as :8443; default: listen of gate.yaml")
	flags.StringVar(&o.logLevel, "log-level", "info", "least `level` of lines in the log: debug, info, warn or error")
	flags.StringVar(&o.logFormat, "log-format", "text", "`format` of the log on stderr: text or json")
	return c
}

// serveDocument is what "serve" prints once it serves.
type serveDocument struct {
	Gate        string `json:"gate"`
	Address     string `json:"address"`
	Certificate string `json:"certificate"` // SHA-256 of the certificate, in hex
}

func runServe(s *site, c *cobra.Command, o serveOptions) (err error) {
	log, err := logger(s.app.Stderr, c, o)
	if err != nil {
		return err
	}
	g, err := s.openGate(c.Context())
	if err != nil {
		return s.servedAlready(c.Context(), err)
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	if o.listen != "" {
		s.config.Listen = o.listen
	}
	if err := checkListen("listen", s.config.Listen); err != nil {
		return &cli.UsageError{What: err.Error(), Command: c.CommandPath()}
	}
	certificate, err := tls.LoadX509KeyPair(s.path(s.config.TLS.Certificate), s.path(s.config.TLS.Key))
	if err != nil {
		return problem.New("serve/certificate", "the certificate cannot be used: %w", err).Hint("correct tls in %s", s.configPath())
	}
	d := &daemon{site: s, gate: g, log: log, grace: 10 * time.Second, halt: 20 * time.Second}
	if err := d.open(certificate); err != nil {
		return err
	}
	sum := sha256.Sum256(certificate.Certificate[0])
	doc := serveDocument{Gate: g.ID(), Address: d.address(), Certificate: hex.EncodeToString(sum[:])}
	if err := s.app.Print("Serve", doc, func(w io.Writer) { doc.table(w, s) }); err != nil {
		return errors.Join(err, d.closeListeners())
	}
	return d.run(c.Context())
}

func (d *serveDocument) table(w io.Writer, s *site) {
	fmt.Fprintln(w, s.say("{gate} serves at {address}", "gate", d.Gate, "address", d.Address))
	fmt.Fprintln(w, s.say("certificate  sha256 {digest}", "digest", strings.ToUpper(colons(d.Certificate))))
}

// servedAlready names the address of the serve that has the data directory, if
// that is why this one cannot have it.
func (s *site) servedAlready(ctx context.Context, err error) error {
	var busy *gate.BusyError
	if !errors.As(err, &busy) || !s.serving(ctx) {
		return err
	}
	var running struct {
		Address string `json:"address"`
	}
	api := overSocket(s)
	_, asked := api.call(ctx, http.MethodGet, "version", nil, &running)
	if asked = errors.Join(asked, api.close()); asked != nil {
		return errors.Join(err, asked)
	}
	return problem.New("gate/busy", "packhof-gate serve works in %s already", s.dir).With("at:  "+running.Address).Hint("open %s, or stop that serve first", running.Address)
}

// colons writes a fingerprint as browsers show it.
func colons(digits string) string {
	pairs := make([]string, 0, len(digits)/2)
	for i := 0; i+1 < len(digits); i += 2 {
		pairs = append(pairs, digits[i:i+2])
	}
	return strings.Join(pairs, ":")
}

// logger makes the log of serve.
func logger(w io.Writer, c *cobra.Command, o serveOptions) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return nil, &cli.UsageError{What: fmt.Sprintf("there is no log level %q", o.logLevel), Command: c.CommandPath()}
	}
	options := &slog.HandlerOptions{Level: level}
	switch o.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, &cli.UsageError{What: fmt.Sprintf("there is no log format %q", o.logFormat), Command: c.CommandPath()}
}

// daemon is a serve that runs.
type daemon struct {
	site    *site
	gate    *gate.Gate
	log     *slog.Logger
	network net.Listener
	socket  net.Listener
	tasks   sync.WaitGroup // what outlives the request that began it

	grace time.Duration // for what runs to end by itself
	halt  time.Duration // for what was told to end
}

// open listens on both sides before anything is served, so that what cannot be
// had is an error at once.
func (d *daemon) open(certificate tls.Certificate) error {
	plain, err := net.Listen("tcp", d.site.config.Listen)
	if err != nil {
		return problem.New("serve/address", "cannot listen on %s: %w", d.site.config.Listen, err).Hint("choose another with --listen, or in %s", d.site.configPath())
	}
	// HTTP/2 would cut layers and weights into frames of 16 KiB, and clients
	// fetch few of them at a time.
	d.network = tls.NewListener(plain, &tls.Config{
		Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
	})
	if d.socket, err = d.site.listenSocket(); err != nil {
		return errors.Join(err, d.network.Close())
	}
	return nil
}

// address is where the screens are.
func (d *daemon) address() string { return "https://" + d.network.Addr().String() }

func (d *daemon) closeListeners() error { return errors.Join(d.network.Close(), d.socket.Close()) }

// Bounds of serving. Answers have none: a depot gives out large files, and a
// release takes as long as it takes.
const (
	headerTimeout = 10 * time.Second
	bodyTimeout   = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
)

// run serves until the context ends, or one of the servers fails.
func (d *daemon) run(ctx context.Context) error {
	working, halt := context.WithCancel(context.WithoutCancel(ctx))
	defer halt()
	servers, err := d.servers(working)
	if err != nil {
		return errors.Join(err, d.closeListeners())
	}
	failed := make(chan error, len(servers)+1)
	for listener, server := range servers {
		go func() {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("serve: %w", err)
			}
		}()
	}
	d.tasks.Go(func() {
		if err := d.gate.Resume(working); err != nil && working.Err() == nil {
			failed <- fmt.Errorf("go on with what was interrupted: %w", err)
		}
	})
	d.log.Info("serving", "address", d.network.Addr().String(), "program", program())
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	d.log.Info("ending")
	return errors.Join(err, d.end(servers, halt))
}

// servers are the one for the network and the one for the socket.
func (d *daemon) servers(working context.Context) (map[net.Listener]*http.Server, error) {
	options := web.Options{Clock: d.site.app.Now, Version: program(), Address: d.address(), Secure: true, Background: func(task func(context.Context) error) {
		d.tasks.Go(func() {
			if err := task(working); err != nil {
				d.log.Error("a release that was started in a browser failed; its case says so too", "error", err, "code", cli.CodeOf(err))
			}
		})
	}}
	screens, err := web.New(d.gate, options)
	if err != nil {
		return nil, err
	}
	console, err := web.NewConsole(d.gate, options, peerOf)
	if err != nil {
		return nil, err
	}
	plant := depot.Handler(d.gate.Depot(), depot.Options{Log: d.log, Clock: d.site.app.Now})
	network, socket := d.server(working, faces(plant, boundBody(screens, bodyTimeout))), d.server(working, onlyPeers(boundBody(console, bodyTimeout)))
	socket.ConnContext = peerContext
	return map[net.Listener]*http.Server{d.network: network, d.socket: socket}, nil
}

// faces gives the plant's clients the depot and everybody else the screens. It
// is no http.ServeMux, which would rewrite paths before the depot judges them,
// and nothing stands between the depot and the connection.
func faces(plant, screens http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2" || strings.HasPrefix(r.URL.Path, "/v2/") || strings.HasPrefix(r.URL.Path, "/files/") {
			plant.ServeHTTP(w, r)
			return
		}
		screens.ServeHTTP(w, r)
	})
}

func (d *daemon) server(working context.Context, handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return working },
		ErrorLog:    slog.NewLogLogger(d.log.Handler(), slog.LevelDebug),
	}
}

// end stops accepting, gives what runs some time, then halts it: a case halts
// where it can go on.
func (d *daemon) end(servers map[net.Listener]*http.Server, halt func()) error {
	if d.settle(servers, d.grace) {
		halt()
		return nil
	}
	d.log.Warn("what still runs is halted; it goes on at the next start")
	halt()
	if d.settle(servers, d.halt) {
		return nil
	}
	var err error
	for _, server := range servers {
		err = errors.Join(err, server.Close())
	}
	return errors.Join(err, errors.New("something did not end when it was told to"))
}

// settle waits until nothing runs any more, for at most so long. All servers
// close their listeners at once, since one that still accepts while another
// waits would take what is halted next. What requests began is waited for after
// the requests, which may begin more.
func (d *daemon) settle(servers map[net.Listener]*http.Server, most time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	var stopping sync.WaitGroup
	var late atomic.Bool
	for _, server := range servers {
		stopping.Go(func() {
			if server.Shutdown(ctx) != nil {
				late.Store(true)
			}
		})
	}
	stopping.Wait()
	if late.Load() {
		return false
	}
	done := make(chan struct{})
	go func() { d.tasks.Wait(); close(done) }()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

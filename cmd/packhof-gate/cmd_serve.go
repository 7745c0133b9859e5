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
	"math"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/problem"
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
socket in the data directory. It ends on SIGTERM or Ctrl-C: answers that are on
their way are given five seconds, a receive or a release ten. One that is cut
goes on at the next start, and serve then ends as interrupted.`,
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
	defer func() { err = closing(err, g.Close()) }()
	if o.listen != "" {
		s.config.Listen = o.listen
	}
	if err := checkListen("listen", s.config.Listen); err != nil {
		return &cli.UsageError{What: err.Error(), Command: c.CommandPath()}
	}
	certificate, err := s.certificate()
	if err != nil {
		return problem.New("serve/certificate", "the certificate cannot be used: %w", err).Hint("correct tls in %s", s.configPath())
	}
	boundMemory()
	d := &daemon{site: s, gate: g, log: log, patience: 5 * time.Second, grace: 10 * time.Second, halt: 20 * time.Second}
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

// memoryGoal is what serve is to get along with, in bytes: documents about large
// cases leave much garbage, which is collected before more memory is taken.
const memoryGoal = 128 << 20

// boundMemory sets the goal, unless GOMEMLIMIT says another.
func boundMemory() {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(memoryGoal)
	}
}

// certificate reads what tls of the configuration names: two small plain files,
// never a device or a pipe, which may not end.
func (s *site) certificate() (tls.Certificate, error) {
	chain, err := readSmall(s.path(s.config.TLS.Certificate))
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := readSmall(s.path(s.config.TLS.Key))
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(chain, key)
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

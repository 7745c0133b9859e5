package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/gate/depot"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/web"
)

// daemon is a serve that runs.
type daemon struct {
	site    *site
	gate    *gate.Gate
	log     *slog.Logger
	network net.Listener
	socket  net.Listener

	requests tally       // all of them, also those whose client is slow
	work     tally       // receives and releases, of requests or not
	cut      atomic.Bool // some work was halted before its end

	patience time.Duration // for answers that are on their way when it ends
	grace    time.Duration // for work to end by itself, from the same moment
	halt     time.Duration // for what was told to end
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
	headerTimeout   = 10 * time.Second
	bodyTimeout     = 30 * time.Second
	unwantedTimeout = 5 * time.Second // of a body that nobody reads
	idleTimeout     = 2 * time.Minute
	maxHeader       = 64 << 10
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
	d.background(working, func() error { return d.goOn(working) }, func(err error) {
		if working.Err() == nil {
			failed <- fmt.Errorf("go on with what was interrupted: %w", err)
		}
	})
	looking := d.look(working)
	defer looking()
	d.log.Info("serving", "address", d.network.Addr().String(), "program", program())
	select {
	case err = <-failed:
	case <-d.gate.Lost(): // which is what closing the gate says
	case <-ctx.Done():
	}
	d.log.Info("ending")
	return errors.Join(err, d.end(servers, halt))
}

// lookEvery is how often serve makes sure that the database is still its own:
// until somebody writes, nothing else would notice.
const lookEvery = 2 * time.Second

// look has the gate look at its database until it is stopped. One that another
// file was copied over is what the gate itself tells of; of one that is gone, it
// has kept what was in it, and each step says so.
func (d *daemon) look(working context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(working)
	var looking sync.WaitGroup
	looking.Go(func() {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		said := ""
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			err := d.gate.Look(ctx)
			if code := cli.CodeOf(err); err != nil && ctx.Err() == nil && code != said {
				said = code
				d.log.Error("the database cannot be used", "error", err, "code", code)
			}
		}
	})
	return func() { cancel(); looking.Wait() }
}

// goOn does at the start what was left to do. An index of the depot that cannot be
// made anew on a full disk keeps nobody from being served: what it is wrong about
// is not.
func (d *daemon) goOn(working context.Context) error {
	if err := d.gate.MendDepot(working); err != nil && working.Err() == nil {
		if !isFull(err) {
			return err
		}
		d.log.Error("the index of the depot was not made anew, and what it is wrong about is not served; packhof-gate doctor says more", "error", err, "code", cli.CodeOf(err))
	}
	return d.gate.Resume(working)
}

// isFull tells that a disk is full.
func isFull(err error) bool {
	code := cli.CodeOf(err)
	return code == "gate/full" || code == "disk/full"
}

// worked runs a receive or a release. working ends when work is halted.
func (d *daemon) worked(working context.Context, task func() error) error {
	defer d.work.begin()()
	err := task()
	if err != nil && working.Err() != nil {
		d.cut.Store(true)
	}
	return err
}

// background runs work that outlives the request that began it. It counts from
// now on, so that an end which comes before it has begun waits for it as well.
func (d *daemon) background(working context.Context, task func() error, failed func(error)) {
	done := d.work.begin()
	go func() {
		defer done()
		if err := d.worked(working, task); err != nil {
			failed(err)
		}
	}()
}

// servers are the one for the network and the one for the socket.
func (d *daemon) servers(working context.Context) (map[net.Listener]*http.Server, error) {
	options := web.Options{
		Clock: d.site.app.Now, Version: program(), Address: d.address(), Secure: true,
		Work: func(task func() error) error { return d.worked(working, task) },
		Background: func(task func(context.Context) error) {
			d.background(working, func() error { return task(working) }, func(err error) {
				d.log.Error("a release that was started in a browser failed; its case says so too", "error", err, "code", cli.CodeOf(err))
			})
		},
	}
	screens, err := web.New(d.gate, options)
	if err != nil {
		return nil, err
	}
	console, err := web.NewConsole(d.gate, options, peerOf)
	if err != nil {
		return nil, err
	}
	plant := depot.Handler(d.gate.Depot(), depot.Options{Log: d.log, Clock: d.site.app.Now})
	network := d.server(working, faces(unwantedBody(plant, unwantedTimeout), boundBody(screens, bodyTimeout)))
	socket := d.server(working, onlyPeers(boundBody(console, bodyTimeout)))
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
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer d.requests.begin()()
		handler.ServeHTTP(w, r)
	})
	return &http.Server{
		Handler: counted, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return working },
		ErrorLog:    slog.NewLogLogger(d.log.Handler(), slog.LevelDebug),
	}
}

// end stops accepting, gives what runs some time, and closes every connection:
// a client that does not read, or does not send, keeps nobody from ending. Work
// that takes longer is halted, at a point from which its case can go on, and is
// what makes an end an interruption.
func (d *daemon) end(servers map[net.Listener]*http.Server, halt func()) error {
	hurry := time.Now().Add(d.grace)
	if !d.settle(servers, d.patience) && !d.work.none(time.Until(hurry)) {
		d.log.Warn("what still runs is halted; it goes on at the next start")
		halt()
		if d.work.none(d.halt) {
			d.settle(servers, lastWords) // whoever asked for the work is told
		}
	}
	halt()
	var err error
	for _, server := range servers {
		err = errors.Join(err, server.Close())
	}
	if !d.requests.none(d.halt) || !d.work.none(d.halt) {
		err = errors.Join(err, errors.New("something did not end when it was told to"))
	}
	if d.cut.Load() {
		err = errors.Join(problem.New("interrupted", "a receive or a release was cut").With("cut:  a receive or a release; it goes on where it was"), err)
	}
	return err
}

// lastWords is how long the answers of halted work may take.
const lastWords = time.Second

// settle waits until nothing runs any more, for at most so long. All servers
// close their listeners at once, since one that still accepts while another
// waits would take what is halted next. Work is waited for after the requests,
// which may begin more.
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
	deadline, _ := ctx.Deadline()
	return !late.Load() && d.work.none(time.Until(deadline))
}

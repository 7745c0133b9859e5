package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/config"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/policy"
	"github.com/packhof/packhof/web"
)

// site is the data directory of a gate.
type site struct {
	app    *cli.App
	dir    string // of --data
	config settings
	file   *config.File
	lang   string // of --lang
	words  *web.Words
}

func (s *site) configPath() string { return filepath.Join(s.dir, "gate.yaml") }

// path makes a path of the configuration one of the process.
func (s *site) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(s.dir, name)
}

func noGate(dir string) error {
	return problem.New("gate/none", "%s is no data directory of a gate", dir).
		Hint("make one with  packhof-gate init, or name the right one with --data")
}

// load reads gate.yaml.
func (s *site) load() error {
	if _, err := os.Stat(filepath.Join(s.dir, "enrol.json")); errors.Is(err, fs.ErrNotExist) {
		return noGate(s.dir)
	}
	file, err := config.Read(s.configPath(), config.Form{
		Into:  &s.config,
		Check: func() error { s.config.setDefaults(); return s.config.validate() },
		// init, which made it, does not make it again.
		Remedy: "write the first two lines,  apiVersion: packhof/v1  and  kind: Gate; the rest has defaults",
	})
	s.file = file
	return err
}

// openGate opens the data directory in this process: a *gate.BusyError if
// another has it.
func (s *site) openGate(ctx context.Context) (*gate.Gate, error) {
	if err := s.load(); err != nil {
		return nil, err
	}
	var g *gate.Gate // destinations come before the gate that opens with them
	destinations, err := s.destinations(func() gate.DepotStore { return g.Depot() })
	if err != nil {
		return nil, err
	}
	self, err := startedProgram()
	if err != nil {
		return nil, err
	}
	child := s.judgeChild(self)
	source, err := s.provenPolicy(ctx, child)
	if err != nil {
		return nil, err
	}
	compiled, err := policy.Compile(ctx, source)
	if err != nil {
		return nil, err
	}
	g, err = gate.Open(ctx, gate.Options{
		Dir: s.dir, Clock: s.app.Now, Program: program(), Destinations: destinations, Policy: compiled, Judge: &boundedJudge{child: child, program: self, source: source},
		Approvals: gate.Approvals{Allow: *s.config.Approvals.Allow, Review: *s.config.Approvals.Review},
	})
	return g, err
}

// connect gives a client of the gate: of a serve that runs, or of a gate in
// this process, behind the same API.
//
// A serve is found by connecting to its socket, never by the socket's being
// there, since a serve that was killed leaves it behind. Who else has the data
// directory is told by the lock.
func (s *site) connect(ctx context.Context) (*client, error) {
	if s.serving(ctx) {
		return overSocket(s), nil
	}
	g, err := s.openGate(ctx)
	var busy *gate.BusyError
	if errors.As(err, &busy) && s.waitServing(ctx) {
		return overSocket(s), nil
	}
	if err != nil {
		return nil, err
	}
	handler, err := web.NewConsole(g, web.Options{Clock: s.app.Now, Version: program()}, peerOf)
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	carry := &inProcess{handler: onlyPeers(handler), user: userName(uint32(os.Getuid()))}
	return &client{carry: carry, close: func() error { carry.wait(); return g.Close() }}, nil
}

func (s *site) serving(ctx context.Context) bool {
	conn, err := s.dialSocket(ctx)
	return err == nil && conn.Close() == nil
}

// waitServing gives a serve that has the lock and no socket yet a moment.
func (s *site) waitServing(ctx context.Context) bool {
	const tries, pause = 20, 50 * time.Millisecond
	for range tries {
		if s.serving(ctx) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
	return false
}

// with runs a command's work with a client and closes it.
func (s *site) with(ctx context.Context, do func(*client) error) (err error) {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if closed := c.close(); closed != nil {
			err = closing(err, closed)
		}
	}()
	return do(c)
}

// closing joins what a gate says when it is closed to what failed before: a
// database that was taken away, or written over, is why the rest did.
func closing(err, closed error) error {
	if code := cli.CodeOf(closed); code == codeOverwritten || code == "gate/no-database" {
		return cli.Standing(closed)
	}
	return errors.Join(err, closed)
}

const codeOverwritten = "gate/database-overwritten"

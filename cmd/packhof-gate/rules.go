package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/policy"
	"github.com/packhof/packhof/policy/judge"
)

// policyFolder is the folder with the plant's rules and parameters. It may be
// empty and has to be there: a name that was misspelt, or a disk that was not
// mounted, must not mean that nothing but what ships is asked.
func (s *site) policyFolder() (string, error) {
	dir := s.path(s.config.Policy)
	info, err := os.Stat(dir)
	if err == nil && info.IsDir() {
		return dir, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ELOOP) {
		return "", err
	}
	return "", s.file.Locate(problem.Field("policy", "there is no folder "+dir, "correct policy, or make the folder, empty if there are no rules of your own:  mkdir "+dir))
}

// provenPolicy is what this gate judges by. Tests of the plant's rules run in
// the child, once for every change of rules, tests, parameters or program.
func (s *site) provenPolicy(ctx context.Context, child judge.Child) (policy.Source, error) {
	dir, err := s.policyFolder()
	if err != nil {
		return policy.Source{}, err
	}
	before := s.provenBefore()
	loaded, err := child.Load(ctx, os.DirFS(dir), before)
	if err != nil {
		return policy.Source{}, fmt.Errorf("%s: %w", dir, err)
	}
	if loaded.Proven != "" && loaded.Proven != before {
		mark := loaded.Proven + " " + program() + "\n"
		if err := cas.WriteBytes(s.provenPath(), 0o600, []byte(mark)); err != nil {
			return policy.Source{}, err
		}
	}
	return loaded.Source, nil
}

// provenPath is the file with the digest of what was proven last, and the
// program that did it.
func (s *site) provenPath() string { return filepath.Join(s.dir, "policy.proven") }

// provenBefore is the digest that this program has proven, or "". A mark that
// cannot be read marks nothing: the tests run again.
func (s *site) provenBefore() string {
	mark, err := readSmall(s.provenPath())
	if err != nil {
		return ""
	}
	digest, by, _ := strings.Cut(strings.TrimSuffix(string(mark), "\n"), " ")
	if by != program() {
		return ""
	}
	return digest
}

// doctorRules looks at the folder of the plant's rules as it is now, and
// whether it is what the gate judges by, which has the digest in judged: a
// serve reads it when it starts.
func (s *site) doctorRules(ctx context.Context, judged string) gate.Check {
	c := gate.Check{Name: "rules of your own", Result: gate.CheckOK}
	dir, own, digest, err := s.rulesNow(ctx)
	if err != nil {
		c.Result, c.Detail, c.Code, c.Remedy = gate.CheckBad, err.Error(), cli.CodeOf(err), problem.RemedyOf(err)
		return c
	}
	c.Detail = s.many(own, "{folder}: {n} rule", "{folder}: {n} rules", "folder", dir)
	if !strings.Contains(judged, digest) {
		c.Result, c.Remedy = gate.CheckWarning, s.say("restart packhof-gate serve")
		c.Detail += s.say("; changed since the gate was started, which judges by what was there then")
	}
	return c
}

// rulesNow reads configuration and folder again: another process may be the
// one that judges.
func (s *site) rulesNow(ctx context.Context) (dir string, own int, digest string, err error) {
	now := &site{app: s.app, dir: s.dir}
	if err := now.load(); err != nil {
		return "", 0, "", err
	}
	if dir, err = now.policyFolder(); err != nil {
		return "", 0, "", err
	}
	library, err := policy.Library()
	if err != nil {
		return "", 0, "", err
	}
	whole, err := library.Extend(os.DirFS(dir))
	if err != nil {
		return "", 0, "", fmt.Errorf("%s: %w", dir, err)
	}
	compiled, err := policy.Compile(ctx, whole)
	if err != nil {
		return "", 0, "", fmt.Errorf("%s: %w", dir, err)
	}
	return dir, len(whole.Rules()) - len(library.Rules()), compiled.Digest(), nil
}

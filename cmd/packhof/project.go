package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/config"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/registry"
	"github.com/packhof/packhof/mirror"
	"github.com/packhof/packhof/mirror/files"
	"github.com/packhof/packhof/mirror/oci"
	"github.com/packhof/packhof/signing"
)

// project is the folder of a packhof.yaml and what belongs to it.
type project struct {
	app    *cli.App
	file   string // of --file
	config *config.File
	spec   mirror.Spec
}

func (p *project) load() (err error) {
	p.config, err = config.Read(p.file, config.Form{Into: &p.spec, Check: p.check, Remedy: "make one with  packhof init"})
	return err
}

func (p *project) check() error {
	var wrong problem.Fields
	p.spec.SetDefaults()
	wrong.Join(p.spec.Validate())
	wrong.Join(p.checkOwnFiles())
	return wrong.Err()
}

// checkOwnFiles refuses to carry a folder in which the project's own key,
// store, trust or ledger lie: a private key must never travel by mistake.
func (p *project) checkOwnFiles() error {
	var wrong problem.Fields
	own := []string{p.path(p.spec.Key), p.path(p.spec.Store), p.path(p.spec.Trust), p.ledgerPath()}
	for i, a := range p.spec.Artifacts {
		holds := slices.IndexFunc(own, func(file string) bool { return a.Dir != "" && inside(p.path(a.Dir), file) })
		if holds >= 0 {
			wrong.Add(fmt.Sprintf("artifacts[%d].dir", i), fmt.Sprintf("the folder holds %s, which must not travel", own[holds]), "name a folder of its own for what is to travel")
		}
	}
	for i, d := range p.spec.Documents {
		if d.File != "" && slices.ContainsFunc(own, func(file string) bool { return inside(file, p.path(d.File)) }) {
			wrong.Add(fmt.Sprintf("documents[%d].file", i), fmt.Sprintf("%s must not travel as a document", d.File), "name a file outside of key, store, trust and ledger")
		}
	}
	return wrong.Err()
}

// inside reports whether file lies in dir.
func inside(dir, file string) bool {
	from, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	to, err := filepath.Abs(file)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(from, to)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// path makes a path of the configuration one of the process.
func (p *project) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(p.file), name)
}

func (p *project) lockPath() string   { return p.path("packhof.lock") }
func (p *project) ledgerPath() string { return p.path("packhof.ledger") }

// guard keeps other processes of ours out of a folder until its release is
// called: the one of packhof.yaml, where lock, ledger and trust lie, or the
// store. The folder itself is what is locked, so that nothing is left behind.
func guard(dir string) (release func() error, err error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		busy := problem.New("project/busy", "another packhof works in %s", dir)
		return nil, errors.Join(busy, folder.Close())
	}
	return func() error { return cas.Unlock(folder) }, nil
}

// alone keeps other processes out of the folder of packhof.yaml.
func (p *project) alone() (release func() error, err error) { return guard(filepath.Dir(p.file)) }

// aloneWith reads packhof.yaml and does something while no other process works
// in its folder.
func (p *project) aloneWith(do func() error) (err error) {
	if err := p.load(); err != nil {
		return err
	}
	release, err := p.alone()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	return do()
}

// openStore opens the store and keeps other processes out of the project and
// out of the store until release is called.
func (p *project) openStore() (store *cas.Store, release func() error, err error) {
	releaseProject, err := p.alone()
	if err != nil {
		return nil, nil, err
	}
	dir := p.path(p.spec.Store)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, errors.Join(err, releaseProject())
	}
	releaseStore, err := guard(dir)
	if err != nil {
		return nil, nil, errors.Join(err, releaseProject())
	}
	release = func() error { return errors.Join(releaseStore(), releaseProject()) }
	store, err = mirror.OpenStore(dir)
	if err == nil {
		err = errors.Join(store.Sweep(), os.RemoveAll(filepath.Join(dir, "work")))
	}
	if err != nil {
		return nil, nil, errors.Join(err, release())
	}
	return store, release, nil
}

// guardTarget keeps other exports out of the folder that is written to, unless
// it is one that openStore guards already.
func (p *project) guardTarget(dir string) (release func() error, err error) {
	target, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	for _, guarded := range []string{filepath.Dir(p.file), p.path(p.spec.Store)} {
		if info, err := os.Stat(guarded); err == nil && os.SameFile(info, target) {
			return func() error { return nil }, nil
		}
	}
	return guard(dir)
}

// warn tells of something that is no error and worth knowing.
func (p *project) warn(what string, evidence []string) {
	fmt.Fprintf(p.app.Stderr, "warning: %s\n", cli.Clean(what))
	for _, line := range evidence {
		fmt.Fprintf(p.app.Stderr, "  %s\n", cli.Clean(line))
	}
}

// sources makes every source that an artifact can name.
func (p *project) sources(progress cli.Progress) (map[string]mirror.Source, error) {
	registryHosts, fileHosts := map[string]registry.Host{}, map[string]files.Host{}
	for name, host := range p.spec.Hosts {
		var ca []byte
		if host.CA != "" {
			var err error
			if ca, err = os.ReadFile(p.path(host.CA)); err != nil {
				return nil, p.config.Locate(problem.Field("hosts."+name+".ca", err.Error(), "name a PEM file"))
			}
		}
		registryHosts[name] = registry.Host{PlainHTTP: host.PlainHTTP, CA: ca}
		fileHosts[name] = files.Host{PlainHTTP: host.PlainHTTP, CA: ca}
	}
	client, err := registry.New(registry.Config{Hosts: registryHosts, UserAgent: "packhof/" + version})
	if err != nil {
		return nil, err
	}
	show := shown{progress}
	tree, err := files.New(filepath.Dir(p.file), fileHosts, show)
	if err != nil {
		return nil, err
	}
	return map[string]mirror.Source{"oci": oci.New(client, fetchParallel, show, oci.WithNotes(p.note)), "files": tree}, nil
}

const fetchParallel = 6

// note tells of something that is no error and worth knowing.
func (p *project) note(n oci.Note) {
	fmt.Fprintf(p.app.Stderr, "note: %s: %s\n", cli.Clean(n.Reference), cli.Clean(n.Text))
	for _, line := range n.Evidence {
		fmt.Fprintf(p.app.Stderr, "  %s\n", cli.Clean(line))
	}
}

// shown lets the terminal show what the mirror does; neither knows the other.
type shown struct{ cli.Progress }

func (s shown) Start(what string, bytes int64) mirror.Item { return s.Progress.Start(what, bytes) }

// volume shows a step of writing a volume, for bundle.SetWriteOptions.
func (s shown) volume(what string, bytes int64) (func(n int64), func(error)) {
	item := s.Progress.Start(what, bytes)
	return item.Advance, item.Done
}

// signer opens the private key.
func (p *project) signer(ctx context.Context) (signing.Signer, error) {
	path := p.path(p.spec.Key)
	b, err := readKeyFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, problem.New("key/missing", "there is no key file %s", path).
			Hint("make one with  packhof key generate, or correct key in %s", p.file)
	}
	if err != nil {
		return nil, err
	}
	phrase, err := p.app.Passphrase(ctx, path, false)
	if err != nil {
		return nil, err
	}
	key, err := signing.ParsePrivateKey(b, phrase)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

const maxKeyFile = 64 << 10

// readKeyFile reads a small plain file, and never waits for a pipe.
func readKeyFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, problem.New("signing/not-a-key", "%s is not a plain file", path)
	}
	if info.Size() > maxKeyFile {
		return nil, problem.New("signing/key-too-large", "%s has %d bytes, and a key file has at most %d", path, info.Size(), maxKeyFile)
	}
	return os.ReadFile(path)
}

func (p *project) trust() (*mirror.TrustFolder, error) {
	folder, err := mirror.ReadTrust(p.path(p.spec.Trust), p.app.Now())
	if err == nil && folder.Trust.Root().Expired(p.app.Now()) {
		p.warn(fmt.Sprintf("the trust root expired at %s; gates take no new bundles until it is renewed", folder.Trust.Root().Expires().Format(time.DateOnly)), nil)
	}
	return folder, err
}

// scanner finds packhof-scan: where the configuration says, beside this
// program, or in PATH. Where it is not, its path is given all the same, so
// that its absence becomes a fact in the manifest.
func (p *project) scanner(store *cas.Store) (*mirror.ScanProgram, error) {
	path := p.spec.Scan.Program
	if path != "" {
		path = p.path(path)
	} else {
		path = besideUs("packhof-scan")
	}
	path, err := filepath.Abs(path)
	return &mirror.ScanProgram{Path: path, Store: store, Memory: int64(p.spec.Scan.Memory), Timeout: time.Duration(p.spec.Scan.Timeout)}, err
}

func besideUs(name string) string {
	self, err := os.Executable()
	if err == nil {
		beside := filepath.Join(filepath.Dir(self), name)
		if _, err := os.Stat(beside); err == nil {
			return beside
		}
	}
	if found, err := exec.LookPath(name); err == nil {
		return found
	}
	return filepath.Join(filepath.Dir(self), name)
}

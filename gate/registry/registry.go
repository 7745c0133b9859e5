// Package registry is the destination "an OCI registry": it brings what a
// gate lets through to any registry that follows the OCI distribution
// specification, by digest first and by name last.
//
// Manifests go there byte for byte, blobs as streams that the gate's store
// proves while they are read. Where a registry has no referrers API, the tags
// of the fallback schema are kept up to date. The package never deletes, never
// reads an image apart from its manifests, and keeps nothing on disk.
package registry

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/registry"
)

// Config says which registry, and how to speak with it.
type Config struct {
	// Registry is its host, with the port if there is one, and optionally what
	// all repositories begin with: "registry.example:5000/plant".
	Registry string
	// CA is the PEM of an authority to trust beside the system's own; nil for
	// none.
	CA []byte
	// Plain speaks HTTP without TLS.
	Plain bool
	// Credentials log in; the zero value comes as anybody.
	Credentials Credentials
	// Program is the name and version that the registry is told.
	Program string
	// Packs takes trees whose small files lie in packs, as packs.
	Packs bool
	// Sleep waits between attempts; nil means a timer.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Credentials are an account of the registry, such as a robot's.
type Credentials struct {
	User, Password string
}

const (
	// parallel is how many blobs are under way at the same time.
	parallel = 4
	// patience is how long the registry may take over a blob after its last
	// byte: some copy it to where it stays before they answer.
	patience = 15 * time.Minute
	// mostRemembered bounds whereabouts.
	mostRemembered = 100_000
)

// Sink is a registry as a destination. It is safe for use by several
// goroutines.
type Sink struct {
	client *registry.Client
	host   string
	prefix string        // of repositories; "" or ends in a slash
	links  chan struct{} // held by the one goroutine that writes a fallback tag
	where  whereabouts
	packs  bool // as Config.Packs
}

// whereabouts remembers a repository of the registry that has a blob, for as
// long as the process runs: images share layers, and another repository can
// take them over from there.
type whereabouts struct {
	mu    sync.Mutex
	repos map[bundle.Digest]string
}

func (w *whereabouts) of(d bundle.Digest) (repository string, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	repository, known = w.repos[d]
	return repository, known
}

func (w *whereabouts) note(d bundle.Digest, repository string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.repos == nil || len(w.repos) >= mostRemembered {
		w.repos = map[bundle.Digest]string{}
	}
	w.repos[d] = repository
}

var _ gate.Sink = (*Sink)(nil)

// New makes the destination. Nothing is sent yet. An error, of code
// destination/config, says what of the configuration cannot be right.
func New(config Config) (*Sink, error) {
	host, prefix, _ := strings.Cut(strings.TrimSuffix(config.Registry, "/"), "/")
	if prefix != "" {
		prefix += "/"
	}
	if _, err := registry.ParseReference(host + "/" + prefix + "name:tag"); err != nil || !strings.ContainsAny(host, ".:") && host != "localhost" {
		return nil, problem.New("destination/config", "%.200q is not the host of a registry, with or without a prefix of repositories", problem.Address(config.Registry)).
			Hint("write it as in registry.example:5000/plant")
	}
	if (config.Credentials.User == "") != (config.Credentials.Password == "") {
		return nil, problem.New("destination/config", "the credentials for %s lack the user or the password", host).
			Hint("give both, or neither")
	}
	client, err := registry.New(registry.Config{
		Hosts:    map[string]registry.Host{host: {PlainHTTP: config.Plain, CA: config.CA}},
		Keychain: config.Credentials, UserAgent: config.Program, Sleep: config.Sleep, Patience: patience, Bulk: true,
	})
	if err != nil {
		return nil, problem.New("destination/config", "%w", err)
	}
	return &Sink{client: client, host: strings.ToLower(host), prefix: prefix, links: make(chan struct{}, 1), packs: config.Packs}, nil
}

// Resolve implements authn.Keychain: there is one registry to log in at, and
// nothing else is looked for.
func (c Credentials) Resolve(authn.Resource) (authn.Authenticator, error) {
	if c.User == "" {
		return authn.Anonymous, nil
	}
	return authn.FromConfig(authn.AuthConfig{Username: c.User, Password: c.Password}), nil
}

// Close closes the connections that nothing uses.
func (s *Sink) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

// reference is where a name is at the registry.
func (s *Sink) reference(name gate.Name) (registry.Reference, error) {
	ref, err := registry.ParseReference(s.host + "/" + s.prefix + name.Repository + ":" + name.Tag)
	if err != nil {
		return registry.Reference{}, problem.New("destination/refused", "%s cannot be a name at %s: %w", name, s.host, err).
			Hint("change the destination's naming")
	}
	return ref, nil
}

package testkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/distribution/distribution/v3/configuration"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd" // the access controller named in the configuration
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem" // the two drivers named in the configuration
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/sirupsen/logrus"
	"golang.org/x/crypto/bcrypt"
)

// Registry is the CNCF distribution registry, running in this process on
// 127.0.0.1. Deleting is allowed. Like every release of it, it has no referrers
// API: clients fall back to the referrers tag schema of the OCI distribution
// specification 1.1.
type Registry struct {
	*server
	app            *handlers.App
	user, password string
	scratch        string // directory of the password file; "" without one
}

// StartRegistry starts a registry that runs until Close.
func StartRegistry(opts ...Option) (*Registry, error) {
	o := collect(opts)
	r := &Registry{user: o.user, password: o.password}
	config, err := r.configuration(o)
	if err != nil {
		return nil, errors.Join(err, r.discard())
	}
	// The registry logs every request through the process-wide logger of
	// logrus, which nothing of ours uses, and offers no other way to quiet it.
	logrus.SetOutput(io.Discard)
	r.app = handlers.NewApp(context.Background(), config)
	r.server, err = serve(r.app, o)
	if err != nil {
		return nil, errors.Join(err, r.app.Shutdown(), r.discard())
	}
	return r, nil
}

// NewRegistry starts a registry that runs until the end of the test.
func NewRegistry(t testing.TB, opts ...Option) *Registry {
	t.Helper()
	r, err := StartRegistry(opts...)
	if err != nil {
		t.Fatalf("start registry: %v", err)
	}
	closeAtEnd(t, r.Close)
	return r
}

func (r *Registry) configuration(o options) (*configuration.Configuration, error) {
	driver, parameters := "inmemory", configuration.Parameters{}
	if o.storage != "" {
		driver, parameters = "filesystem", configuration.Parameters{"rootdirectory": o.storage}
	}
	config := &configuration.Configuration{
		Log: configuration.Log{AccessLog: configuration.AccessLog{Disabled: true}},
		Storage: configuration.Storage{
			driver:   parameters,
			"delete": configuration.Parameters{"enabled": true},
			// Nothing here lives long enough to be purged.
			"maintenance": configuration.Parameters{"uploadpurging": map[any]any{"enabled": false}},
		},
	}
	config.HTTP.Secret = "not a secret"
	if o.user == "" {
		return config, nil
	}
	file, err := r.passwordFile(o.user, o.password)
	if err != nil {
		return nil, err
	}
	config.Auth = configuration.Auth{"htpasswd": configuration.Parameters{"realm": "packhof test", "path": file}}
	return config, nil
}

func (r *Registry) passwordFile(user, password string) (string, error) {
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		return "", fmt.Errorf("hash the registry password: %w", err)
	}
	if r.scratch, err = os.MkdirTemp("", "testkit-registry-"); err != nil {
		return "", fmt.Errorf("make a directory for the registry's password file: %w", err)
	}
	file := filepath.Join(r.scratch, "htpasswd")
	if err := os.WriteFile(file, fmt.Appendf(nil, "%s:%s\n", user, hash), 0o600); err != nil {
		return "", fmt.Errorf("write the registry's password file: %w", err)
	}
	return file, nil
}

func (r *Registry) discard() error {
	if r.scratch == "" {
		return nil
	}
	return os.RemoveAll(r.scratch)
}

// Close ends the registry; what it held in memory is gone. It may be called
// again.
func (r *Registry) Close() error {
	return errors.Join(r.server.Close(), r.app.Shutdown(), r.discard())
}

// Ref parses "team/app:1.0" or "team/app@sha256:…" as a reference into this
// registry.
func (r *Registry) Ref(repoAndTag string) (name.Reference, error) {
	opts := []name.Option{name.StrictValidation}
	if r.CAPEM() == nil {
		opts = append(opts, name.Insecure)
	}
	return name.ParseReference(r.Host()+"/"+repoAndTag, opts...)
}

// RemoteOptions returns what go-containerregistry's remote package needs to
// talk to this registry: its authority and, if it asks for them, credentials.
func (r *Registry) RemoteOptions(ctx context.Context) []remote.Option {
	auth := authn.Anonymous
	if r.user != "" {
		auth = authn.FromConfig(authn.AuthConfig{Username: r.user, Password: r.password})
	}
	return []remote.Option{remote.WithContext(ctx), remote.WithTransport(r.Client().Transport), remote.WithAuth(auth)}
}

// PushImage uploads an image and returns its digest.
func (r *Registry) PushImage(ctx context.Context, repoAndTag string, image v1.Image) (v1.Hash, error) {
	ref, err := r.Ref(repoAndTag)
	if err != nil {
		return v1.Hash{}, err
	}
	if err := remote.Write(ref, image, r.RemoteOptions(ctx)...); err != nil {
		return v1.Hash{}, fmt.Errorf("push %s: %w", ref, err)
	}
	return image.Digest()
}

// PushIndex uploads an index with all its images and returns its digest.
func (r *Registry) PushIndex(ctx context.Context, repoAndTag string, index v1.ImageIndex) (v1.Hash, error) {
	ref, err := r.Ref(repoAndTag)
	if err != nil {
		return v1.Hash{}, err
	}
	if err := remote.WriteIndex(ref, index, r.RemoteOptions(ctx)...); err != nil {
		return v1.Hash{}, fmt.Errorf("push %s: %w", ref, err)
	}
	return index.Digest()
}

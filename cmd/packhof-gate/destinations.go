package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/gate/depot"
	"github.com/packhof/packhof/gate/registry"
	gates3 "github.com/packhof/packhof/gate/s3"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/s3"
)

// destinations are those of the configuration, in its order, and the depot.
// view is asked once the gate is open.
func (s *site) destinations(view func() gate.DepotStore) ([]gate.Destination, error) {
	// The depot comes last: what the others have read to its end, it need not
	// read again.
	var all []gate.Destination
	builtIn := gate.Destination{Name: gate.DepotName, Location: "this gate", Accepts: bundle.Kinds(), Naming: gate.DefaultNaming(), Sink: depot.New(view)}
	for i, spec := range s.config.Destinations {
		sink, err := s.sink(spec)
		if err != nil {
			return nil, s.file.Locate(inDestination(i, err))
		}
		all = append(all, gate.Destination{
			Name: spec.Name, Location: spec.location(), Accepts: spec.Accepts, Sink: sink,
			Naming: gate.Naming{Repository: spec.Naming.Repository, Tag: spec.Naming.Tag},
		})
	}
	return append(all, builtIn), nil
}

// location is where a destination is, for people. Approvals are bound to it.
func (d *destinationSpec) location() string {
	if d.Type == typeS3 {
		return strings.TrimRight(d.Endpoint, "/") + "/" + strings.TrimRight(d.Bucket+"/"+strings.Trim(d.Prefix, "/"), "/")
	}
	return strings.TrimRight(d.Registry, "/")
}

func (s *site) sink(spec destinationSpec) (gate.Sink, error) {
	var ca []byte
	if spec.CAFile != "" {
		var err error
		if ca, err = readSmall(s.path(spec.CAFile)); err != nil {
			return nil, err
		}
	}
	password, err := s.secretOf(spec.Credentials)
	if err != nil {
		return nil, err
	}
	if spec.Type == typeS3 {
		return s.bucket(spec, ca, password)
	}
	return registry.New(registry.Config{
		Registry: spec.Registry, CA: ca, Plain: spec.Plain, Packs: spec.Packs, Program: program(),
		Credentials: registry.Credentials{User: spec.Credentials.User, Password: password},
	})
}

// bucket is a destination of type s3.
func (s *site) bucket(spec destinationSpec, ca []byte, secret string) (gate.Sink, error) {
	client, err := s3.New(s3.Config{
		Endpoint: spec.Endpoint, Insecure: spec.Plain, CA: ca, Region: spec.Region, Bucket: spec.Bucket, Prefix: spec.Prefix,
		AccessKey: spec.Credentials.User, SecretKey: secret, UserAgent: program(), PartSize: gates3.PartSize, InFlight: gates3.InFlight,
	})
	if err != nil {
		return nil, err
	}
	return gates3.New(gates3.Config{Client: client}), nil
}

// secretOf reads the password of a destination from where the configuration
// says; it never stands in the configuration itself.
func (s *site) secretOf(c credentials) (string, error) {
	if c.PasswordEnv != "" {
		secret, ok := s.app.LookupEnv(c.PasswordEnv)
		if !ok || secret == "" {
			return "", problem.New("destination/config", "the environment has no %s", c.PasswordEnv)
		}
		return secret, nil
	}
	if c.PasswordFile == "" {
		return "", nil
	}
	b, err := readSmall(s.path(c.PasswordFile))
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSuffix(first, "\r"), nil
}

// inDestination says of which destination an error is, unless it says so
// itself.
func inDestination(i int, err error) error {
	return problem.Field(fmt.Sprintf("destinations[%d]", i), err.Error(), remedyOf(err))
}

func remedyOf(err error) string {
	if os.IsNotExist(err) {
		return "paths start from the data directory"
	}
	return problem.RemedyOf(err)
}

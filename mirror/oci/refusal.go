package oci

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/registry"
)

func isCorrupt(err error) bool {
	var corrupt *cas.CorruptError
	return errors.As(err, &corrupt)
}

// isLost reports that the store has no sound copy of a blob.
func isLost(err error) bool { return isCorrupt(err) || errors.Is(err, fs.ErrNotExist) }

func isNotFound(err error) bool {
	var p *problem.Problem
	return errors.As(err, &p) && p.Code() == "registry/not-found"
}

func isSchema1(mediaType string) bool {
	return strings.HasPrefix(mediaType, "application/vnd.docker.distribution.manifest.v1+")
}

func schema1(ref registry.Reference, mediaType string) error {
	return problem.New("source/schema1", "%s is in Docker's old format (schema 1), whose content no digest pins", ref).
		With("type:  " + mediaType).
		Hint("copy it into a registry of yours with  skopeo copy --format oci  and name that")
}

func foreignLayer(ref registry.Reference, d bundle.OCIDescriptor) error {
	evidence := []string{"layer: " + d.Digest.String(), fmt.Sprintf("type:  %.100q", d.MediaType)}
	if len(d.URLs) > 0 {
		evidence = append(evidence, fmt.Sprintf("urls:  %.200q", d.URLs[0]))
	}
	return problem.New("source/foreign-layer", "%s has a layer that its registry does not hold or that may not be passed on", ref).
		With(evidence...).Hint("use an image without foreign layers; Packhof never follows the urls of a layer")
}

func moved(ref registry.Reference, locked, now cas.Digest) error {
	return problem.New("source/moved", "%s points elsewhere than when the lock was made", ref).
		With("locked: "+locked.String(), "now:    "+now.String()).
		Hint("run  packhof plan  to take the new one, or write @%s in packhof.yaml to keep the old", locked)
}

func weaker(ref registry.Reference) error {
	return problem.New("source/plain-http", "%s would be read without TLS, and the lock says that it is not", ref).
		With("locked: "+string(bundle.TransportTLS), "now:    "+string(bundle.TransportPlain)).Hint("packhof plan")
}

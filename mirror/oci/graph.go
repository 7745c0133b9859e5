package oci

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"fmt"
	"slices"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/registry"
	"github.com/packhof/packhof/mirror"
)

// reader brings the small documents of one repository: from the store, or
// from upstream into the store. With keep false it leaves none there.
type reader struct {
	source *Source
	ref    registry.Reference
	store  *cas.Store
	keep   bool
}

// manifest reads a manifest or index and refuses what we cannot carry.
func (r reader) manifest(ctx context.Context, d bundle.OCIDescriptor) ([]byte, *bundle.OCI, error) {
	b, err := r.bytes(ctx, d, func() ([]byte, error) {
		at := registry.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
		return r.source.client.Manifest(ctx, r.ref, at, bundle.MaxOCIManifestSize)
	})
	if err != nil {
		return nil, nil, err
	}
	doc, err := bundle.ParseOCI(b, d.MediaType)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", r.ref, err)
	}
	for _, child := range doc.Children() {
		if isForeign(child) {
			return nil, nil, foreignLayer(r.ref, child)
		}
	}
	return b, doc, nil
}

// bytes reads a small document. What the store has is believed only if its
// digest is right; a rotten copy is replaced.
func (r reader) bytes(ctx context.Context, d bundle.OCIDescriptor, fetch func() ([]byte, error)) ([]byte, error) {
	if ok, err := r.store.Has(d.Digest, d.Size); err != nil {
		return nil, err
	} else if ok {
		b, err := r.store.ReadAll(d.Digest, bundle.MaxOCIManifestSize)
		if !isLost(err) {
			return b, err
		}
	}
	var b []byte
	err := r.source.persist(ctx, func() (err error) {
		b, err = fetch()
		return err
	})
	if err != nil || !r.keep {
		return b, err
	}
	return b, r.store.Put(ctx, bytes.NewReader(b), d.Digest, d.Size, r.ref.At(d.Digest).String())
}

// graph is everything below a root, each digest once.
type graph struct {
	root      bundle.OCIDescriptor
	manifests map[cas.Digest]*bundle.OCI
	blobs     []bundle.OCIDescriptor // configs and layers, in the order of bundle.Walk
}

func (g *graph) bytes() (n int64) {
	for _, d := range g.blobs {
		n += d.Size
	}
	return n
}

// survey reads every manifest below the root.
func (r reader) survey(ctx context.Context, root bundle.OCIDescriptor) (*graph, error) {
	g := &graph{root: root, manifests: map[cas.Digest]*bundle.OCI{}}
	read := func(d bundle.OCIDescriptor) ([]byte, error) {
		b, doc, err := r.manifest(ctx, d)
		g.manifests[d.Digest] = doc
		return b, err
	}
	visit := func(d bundle.OCIDescriptor, _ bundle.Role) error {
		g.blobs = append(g.blobs, d)
		return nil
	}
	if err := bundle.Walk(root, read, visit); err != nil {
		return nil, err
	}
	g.blobs = slices.DeleteFunc(g.blobs, func(d bundle.OCIDescriptor) bool { return g.manifests[d.Digest] != nil })
	return g, nil
}

// subjects lists each platform's manifest. Attestations and artifacts that are
// no images are subjects only where nothing runs: then the root is the one.
func (r reader) subjects(ctx context.Context, g *graph) ([]mirror.Subject, error) {
	s := subjectList{reader: r, graph: g}
	if err := s.add(ctx, g.root, 0); err != nil {
		return nil, err
	}
	if len(s.found) == 0 {
		return []mirror.Subject{{Digest: g.root.Digest}}, nil
	}
	return s.found, nil
}

type subjectList struct {
	reader reader
	graph  *graph
	found  []mirror.Subject
}

// maxNesting is more than bundle.Walk lets through.
const maxNesting = 16

func (s *subjectList) add(ctx context.Context, d bundle.OCIDescriptor, depth int) error {
	doc := s.graph.manifests[d.Digest]
	if doc == nil || depth > maxNesting || d.Annotations[attestedBy] != "" {
		return nil
	}
	if bundle.IsIndex(d.MediaType) {
		for _, child := range doc.Manifests {
			if err := s.add(ctx, child, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	p := platformOf(d)
	if d.Platform == nil {
		var err error
		if p, err = s.reader.configPlatform(ctx, doc); err != nil {
			return err
		}
	}
	known := slices.ContainsFunc(s.found, func(f mirror.Subject) bool { return f.Digest == d.Digest })
	if p.runs() && !known {
		s.found = append(s.found, mirror.Subject{Digest: d.Digest, Platform: p.String()})
	}
	return nil
}

// Media types of the config of what runs.
const (
	typeOCIConfig    = "application/vnd.oci.image.config.v1+json"
	typeDockerConfig = "application/vnd.docker.container.image.v1+json"
)

// configPlatform reads from an image's config what it runs on; the zero
// platform where the manifest is no image or its config does not say.
func (r reader) configPlatform(ctx context.Context, doc *bundle.OCI) (platform, error) {
	d := *doc.Config
	if d.MediaType != typeOCIConfig && d.MediaType != typeDockerConfig {
		return platform{}, nil
	}
	if d.Size > bundle.MaxOCIManifestSize {
		return platform{}, badConfig(r.ref, d, "it has more than %d bytes", bundle.MaxOCIManifestSize)
	}
	b, err := r.bytes(ctx, d, func() ([]byte, error) { return r.source.readBlob(ctx, r.ref, d) })
	if err != nil {
		return platform{}, err
	}
	return parseConfig(b, func(err error) error { return badConfig(r.ref, d, "%w", err) })
}

func parseConfig(b []byte, bad func(error) error) (platform, error) {
	var config struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
		Variant      string `json:"variant"`
	}
	if err := json.Unmarshal(b, &config); err != nil {
		return platform{}, bad(err)
	}
	return normalise(platform{os: config.OS, architecture: config.Architecture, variant: config.Variant}), nil
}

func badConfig(ref registry.Reference, d bundle.OCIDescriptor, format string, args ...any) error {
	return problem.New("source/config-malformed", "the config of %s is malformed: "+format, append([]any{ref}, args...)...).
		With("config: " + d.Digest.String())
}

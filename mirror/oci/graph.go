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
// from upstream into the store.
type reader struct {
	source *Source
	ref    registry.Reference
	store  *cas.Store
	plain  bool // HTTP without TLS will do, as far as the configuration allows it
}

// client is the way to upstream, unless it is weaker than the lock says.
func (r reader) client() (*registry.Client, error) {
	if !r.plain && r.source.client.Plain(r.ref.Host) {
		return nil, weaker(r.ref)
	}
	return r.source.client, nil
}

// manifest reads a manifest or index and parses it.
func (r reader) manifest(ctx context.Context, d bundle.OCIDescriptor) ([]byte, *bundle.OCI, error) {
	b, err := r.bytes(ctx, d, func(client *registry.Client) ([]byte, error) {
		at := registry.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
		return client.Manifest(ctx, r.ref, at, bundle.MaxOCIManifestSize)
	})
	if err != nil {
		return nil, nil, err
	}
	doc, err := r.parse(b, d.MediaType)
	return b, doc, err
}

// parse reads what a document says and refuses what we cannot carry.
func (r reader) parse(b []byte, mediaType string) (*bundle.OCI, error) {
	doc, err := bundle.ParseOCI(b, mediaType)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.ref, err)
	}
	for _, child := range doc.Children() {
		if child.IsForeign() {
			return nil, foreignLayer(r.ref, child)
		}
	}
	return doc, nil
}

// bytes reads a small document. What the store has is believed only if its
// digest is right; a rotten copy is replaced.
func (r reader) bytes(ctx context.Context, d bundle.OCIDescriptor, fetch func(*registry.Client) ([]byte, error)) ([]byte, error) {
	if ok, err := r.store.Has(d.Digest, d.Size); err != nil {
		return nil, err
	} else if ok {
		b, err := r.store.ReadAll(d.Digest, bundle.MaxOCIManifestSize)
		if !isLost(err) {
			return b, err
		}
	}
	client, err := r.client()
	if err != nil {
		return nil, err
	}
	var b []byte
	err = r.source.persist(ctx, func() (err error) {
		b, err = fetch(client)
		return err
	})
	if err != nil {
		return nil, err
	}
	return b, r.store.Put(ctx, bytes.NewReader(b), d.Digest, d.Size, r.ref.At(d.Digest).String())
}

// maxDocuments bounds the manifests, and the configs that are looked into,
// below one root: bytes of all together. Registries take 4 MiB for each.
const maxDocuments = 64 << 20

// graph is everything below a root, each digest once.
type graph struct {
	root      bundle.OCIDescriptor
	kind      string // artifactType of the root
	manifests map[cas.Digest]node
	blobs     []bundle.OCIDescriptor // bare configs and layers, in the order of bundle.Walk
	documents int64                  // bytes that were read for it
}

// node is what is still needed of a manifest after the walk.
type node struct {
	config   bundle.OCIDescriptor   // zero in an index
	children []bundle.OCIDescriptor // of an index
}

func (g *graph) bytes() (n int64) {
	for _, d := range g.blobs {
		n += d.Size
	}
	return n
}

// spend counts the bytes of a document before it is read.
func (g *graph) spend(size int64) error {
	if g.documents += size; g.documents > maxDocuments {
		return problem.New("oci/malformed", "the manifest %s is malformed: more than %d bytes of manifests and configs are below it", g.root.Digest, maxDocuments)
	}
	return nil
}

// survey reads every manifest below the root. How many blobs there may be is
// bounded by bundle.Walk.
func (r reader) survey(ctx context.Context, root bundle.OCIDescriptor) (*graph, error) {
	g := &graph{root: root, manifests: map[cas.Digest]node{}}
	read := func(d bundle.OCIDescriptor) ([]byte, error) {
		if err := g.spend(d.Size); err != nil {
			return nil, err
		}
		b, doc, err := r.manifest(ctx, d)
		if err == nil {
			g.keep(d, doc)
		}
		return b, err
	}
	visit := func(d bundle.OCIDescriptor, _ bundle.Role) error {
		g.blobs = append(g.blobs, bare(d))
		return nil
	}
	if err := bundle.Walk(root, read, visit); err != nil {
		return nil, err
	}
	g.blobs = slices.DeleteFunc(g.blobs, func(d bundle.OCIDescriptor) bool {
		_, is := g.manifests[d.Digest]
		return is
	})
	return g, nil
}

// bare is a descriptor without what upstream says besides.
func bare(d bundle.OCIDescriptor) bundle.OCIDescriptor {
	return bundle.OCIDescriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
}

// keep remembers of a manifest what subjects and pin need. Layers are in
// g.blobs.
func (g *graph) keep(d bundle.OCIDescriptor, doc *bundle.OCI) {
	if d.Digest == g.root.Digest {
		g.kind = doc.ArtifactType
	}
	n := node{children: doc.Manifests}
	if doc.Config != nil {
		n.config = bare(*doc.Config)
	}
	g.manifests[d.Digest] = n
}

// subjects lists each platform's manifest. Attestations and artifacts that are
// no images are subjects only where nothing runs: then the root is the one.
func (r reader) subjects(ctx context.Context, g *graph) ([]mirror.Subject, error) {
	s := subjectList{reader: r, graph: g, done: map[cas.Digest]bool{}}
	if err := s.add(ctx, g.root); err != nil {
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
	done   map[cas.Digest]bool // looked into: an index may name the same a million times
}

// add goes as deep as bundle.Walk let survey go.
func (s *subjectList) add(ctx context.Context, d bundle.OCIDescriptor) error {
	n, ok := s.graph.manifests[d.Digest]
	if !ok || s.done[d.Digest] || d.Annotations[attestedBy] != "" {
		return nil
	}
	if bundle.IsIndex(d.MediaType) {
		s.done[d.Digest] = true
		for _, child := range n.children {
			if err := s.add(ctx, child); err != nil {
				return err
			}
		}
		return nil
	}
	p := platformOf(d)
	if d.Platform == nil {
		s.done[d.Digest] = true
		var err error
		if p, err = s.configPlatform(ctx, n.config); err != nil {
			return err
		}
	}
	if p.runs() {
		s.done[d.Digest] = true
		s.found = append(s.found, mirror.Subject{Digest: d.Digest, Platform: p.String()})
	}
	return nil
}

func (s *subjectList) configPlatform(ctx context.Context, config bundle.OCIDescriptor) (platform, error) {
	if isImageConfig(config) {
		if err := s.graph.spend(config.Size); err != nil {
			return platform{}, err
		}
	}
	return s.reader.configPlatform(ctx, config)
}

// Media types of the config of what runs.
const (
	typeOCIConfig    = "application/vnd.oci.image.config.v1+json"
	typeDockerConfig = "application/vnd.docker.container.image.v1+json"
)

func isImageConfig(d bundle.OCIDescriptor) bool {
	return d.MediaType == typeOCIConfig || d.MediaType == typeDockerConfig
}

// configPlatform reads from an image's config what it runs on; the zero
// platform where the manifest is no image or its config does not say.
func (r reader) configPlatform(ctx context.Context, d bundle.OCIDescriptor) (platform, error) {
	if !isImageConfig(d) {
		return platform{}, nil
	}
	if d.Size > bundle.MaxOCIManifestSize {
		return platform{}, badConfig(r.ref, d, "it has more than %d bytes", bundle.MaxOCIManifestSize)
	}
	b, err := r.bytes(ctx, d, func(client *registry.Client) ([]byte, error) { return readBlob(ctx, client, r.ref, d) })
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

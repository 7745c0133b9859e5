package bundle

import (
	"encoding/json/v2"
	"fmt"
	"slices"
	"strings"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// Media types of manifests that a bundle can hold.
const (
	TypeOCIManifest    = "application/vnd.oci.image.manifest.v1+json"
	TypeOCIIndex       = "application/vnd.oci.image.index.v1+json"
	TypeDockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	TypeDockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
	typeEmpty          = "application/vnd.oci.empty.v1+json"
)

// MaxOCIManifestSize bounds manifests and indices: what registries take.
const MaxOCIManifestSize = 4 << 20

func manifestTypes() []string {
	return []string{TypeOCIManifest, TypeOCIIndex, TypeDockerManifest, TypeDockerList}
}

// IsIndex reports whether the media type is that of an index of manifests.
func IsIndex(mediaType string) bool { return mediaType == TypeOCIIndex || mediaType == TypeDockerList }

// IsManifest reports whether the media type is that of a manifest or index.
func IsManifest(mediaType string) bool { return slices.Contains(manifestTypes(), mediaType) }

// OCI is what Packhof needs to know of an OCI (or Docker schema 2) manifest
// or index. The bytes that it was parsed from are what is stored and sent on.
type OCI struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType,omitzero"`
	ArtifactType  string            `json:"artifactType,omitzero"`
	Config        *OCIDescriptor    `json:"config,omitzero"`
	Layers        []OCIDescriptor   `json:"layers,omitzero"`
	Manifests     []OCIDescriptor   `json:"manifests,omitzero"`
	Subject       *OCIDescriptor    `json:"subject,omitzero"`
	Annotations   map[string]string `json:"annotations,omitzero"`
}

// OCIDescriptor is a content descriptor of the OCI image specification.
type OCIDescriptor struct {
	MediaType    string            `json:"mediaType"`
	Digest       Digest            `json:"digest"`
	Size         int64             `json:"size"`
	URLs         []string          `json:"urls,omitzero"`
	Annotations  map[string]string `json:"annotations,omitzero"`
	ArtifactType string            `json:"artifactType,omitzero"`
	Platform     *OCIPlatform      `json:"platform,omitzero"`
}

// OCIPlatform is what a manifest in an index runs on.
type OCIPlatform struct {
	Architecture string   `json:"architecture"`
	OS           string   `json:"os"`
	OSVersion    string   `json:"os.version,omitzero"`
	OSFeatures   []string `json:"os.features,omitzero"`
	Variant      string   `json:"variant,omitzero"`
}

// String is the os/architecture[/variant] form of docker.
func (p *OCIPlatform) String() string {
	if p.Variant == "" {
		return p.OS + "/" + p.Architecture
	}
	return p.OS + "/" + p.Architecture + "/" + p.Variant
}

// IsForeign reports a blob that is meant to be fetched from elsewhere, or that
// may not be passed on. A client would ask another server for it, whatever a
// registry has.
func (d *OCIDescriptor) IsForeign() bool {
	return len(d.URLs) > 0 || strings.Contains(d.MediaType, ".nondistributable.") || strings.Contains(d.MediaType, ".rootfs.foreign.")
}

func foreignLayer(d OCIDescriptor) error {
	p := problem.New("oci/foreign-layer", "%s is to be fetched from elsewhere, or may not be passed on", d.Digest).With(fmt.Sprintf("type:  %.100q", d.MediaType))
	if len(d.URLs) > 0 {
		p = p.With(fmt.Sprintf("urls:  %.200q", d.URLs[0]))
	}
	return p.Hint("have its sender leave the artifact out")
}

// ParseOCI parses a foreign manifest or index of the media type that its
// descriptor gives. Duplicate keys, a mediaType that differs and documents
// that could be read as both manifest and index (CVE-2021-41190) refuse.
func ParseOCI(b []byte, mediaType string) (*OCI, error) {
	bad := func(format string, args ...any) error {
		return problem.New("oci/malformed", "the manifest %s is malformed: "+format, append([]any{cas.DigestOf(b)}, args...)...)
	}
	if len(b) > MaxOCIManifestSize {
		return nil, bad("it has more than %d bytes", MaxOCIManifestSize)
	}
	if err := checkDepth(b); err != nil {
		return nil, bad("%w", problem.JSON(err))
	}
	var doc OCI
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, bad("%w", problem.JSON(err))
	}
	switch {
	case !IsManifest(mediaType):
		return nil, bad("media type %.100q is neither a manifest nor an index", mediaType)
	case doc.SchemaVersion != 2:
		return nil, bad("schema version %d, only 2 is supported", doc.SchemaVersion)
	case doc.MediaType != "" && doc.MediaType != mediaType:
		return nil, bad("it says of itself that it is %.100q, and its descriptor that it is %.100q", doc.MediaType, mediaType)
	case IsIndex(mediaType) && (doc.Config != nil || doc.Layers != nil):
		return nil, bad("an index with a config or layers can be read in two ways")
	case !IsIndex(mediaType) && (doc.Manifests != nil || doc.Config == nil):
		return nil, bad("a manifest has a config, and no list of manifests")
	}
	for _, d := range doc.Children() {
		if d.Size < 0 || d.Size > maxBlobSize || d.Digest.IsZero() {
			return nil, bad("a descriptor with size %d", d.Size)
		}
	}
	return &doc, nil
}

// Children lists everything that the manifest needs: config and layers, or
// the manifests of an index. A subject is no child.
func (o *OCI) Children() []OCIDescriptor {
	var children []OCIDescriptor
	if o.Config != nil {
		children = append(children, *o.Config)
	}
	return append(append(children, o.Layers...), o.Manifests...)
}

// Walk visits everything reachable from the manifest or index root, parents
// first, each digest once. read brings the bytes of a manifest. visit is told
// the role that a bundle gives the blob: manifests and configs are metadata.
func Walk(root OCIDescriptor, read func(OCIDescriptor) ([]byte, error), visit func(OCIDescriptor, Role) error) error {
	w := walker{read: read, visit: visit, seen: map[Digest]int64{}}
	return w.manifest(root, 0)
}

type walker struct {
	read  func(OCIDescriptor) ([]byte, error)
	visit func(OCIDescriptor, Role) error
	seen  map[Digest]int64 // size that the first descriptor gave
	named int              // descriptors so far, the same digest counted each time
}

const maxIndexDepth = 8

// MaxEntries is how many files an artifact can have, and the manifests that
// list them; the same content under two names counts twice.
const MaxEntries = 250_000

func (w *walker) manifest(d OCIDescriptor, depth int) error {
	if depth > maxIndexDepth {
		return problem.New("oci/malformed", "the index is nested deeper than %d", maxIndexDepth)
	}
	first, err := w.once(d, RoleMetadata)
	if err != nil || !first {
		return err
	}
	b, err := w.read(d)
	if err != nil {
		return err
	}
	doc, err := ParseOCI(b, d.MediaType)
	if err != nil {
		return err
	}
	for _, child := range doc.Manifests {
		if err := w.manifest(child, depth+1); err != nil {
			return err
		}
	}
	if doc.Config != nil {
		if _, err := w.once(*doc.Config, RoleMetadata); err != nil {
			return err
		}
	}
	for _, layer := range doc.Layers {
		if _, err := w.once(layer, layerRole(layer)); err != nil {
			return err
		}
	}
	return nil
}

// once visits a digest the first time; two sizes for one digest contradict
// each other.
func (w *walker) once(d OCIDescriptor, role Role) (first bool, err error) {
	if w.named++; w.named > MaxEntries {
		return false, problem.New("oci/too-many-entries", "the artifact names more than %d manifests and files", MaxEntries).
			Hint("have its sender split it into several artifacts")
	}
	if size, seen := w.seen[d.Digest]; seen {
		if size != d.Size {
			return false, problem.New("oci/malformed", "%s is named with %d bytes and with %d bytes", d.Digest, size, d.Size)
		}
		return false, nil
	}
	if len(w.seen) == MaxBlobs {
		return false, problem.New("oci/malformed", "the artifact has more than %d blobs", MaxBlobs)
	}
	w.seen[d.Digest] = d.Size
	return true, w.visit(d, role)
}

// checkGraph follows every artifact from its root and its referrers and makes
// sure that the bundle names all of it with the right sizes, and nothing that
// belongs to no artifact.
func checkGraph(m *Manifest, content Content) error {
	needed := map[Digest]bool{}
	read := documentsOf(content)
	for i := range m.Artifacts {
		a := &m.Artifacts[i]
		err := checkArtifactGraph(m, a, read, needed)
		if err == nil && a.Kind.IsTree() {
			_, err = EachTreeFile(a.Root, read, func(TreeFile) error { return nil })
		}
		if err != nil {
			return fmt.Errorf("artifact %.200q: %w", a.Name, err)
		}
	}
	for _, d := range m.Documents {
		needed[d.Blob] = true
	}
	for _, b := range m.Blobs {
		if b.Chunks != nil {
			needed[*b.Chunks] = true
		}
	}
	for _, b := range m.Blobs {
		if !needed[b.Digest] {
			return problem.New("bundle/stray-blob", "the blob %s belongs to no artifact", b.Digest)
		}
	}
	return nil
}

func checkArtifactGraph(m *Manifest, a *Artifact, read func(OCIDescriptor) ([]byte, error), needed map[Digest]bool) error {
	own := map[Digest]int64{}
	visit := func(d OCIDescriptor, _ Role) error {
		if d.IsForeign() {
			return foreignLayer(d)
		}
		b, ok := m.Blob(d.Digest)
		if !ok || b.Size != d.Size {
			return problem.New("bundle/incomplete-graph", "%s of %d bytes is needed and not in the bundle's list of blobs", d.Digest, d.Size)
		}
		own[d.Digest] = d.Size
		needed[d.Digest] = true
		return nil
	}
	roots := []Descriptor{a.Root}
	for _, r := range a.Referrers {
		if err := checkSubject(r, read); err != nil {
			return err
		}
		roots = append(roots, r.Descriptor)
	}
	for _, root := range roots {
		d := OCIDescriptor{MediaType: root.MediaType, Digest: root.Digest, Size: root.Size}
		if err := Walk(d, read, visit); err != nil {
			return err
		}
	}
	var size int64
	for _, n := range own {
		size += n
	}
	if size != a.Size {
		return problem.New("bundle/incomplete-graph", "its size is given as %d bytes and its blobs add up to %d", a.Size, size)
	}
	for _, r := range a.Referrers {
		if _, ok := own[r.Subject]; !ok {
			return problem.New("bundle/incomplete-graph", "the referrer %s has a subject outside the artifact", r.Descriptor.Digest)
		}
	}
	return nil
}

// checkSubject makes sure that a referrer says of itself what the manifest
// says of it: both directions are listed, and must agree.
func checkSubject(r Referrer, read func(OCIDescriptor) ([]byte, error)) error {
	d := OCIDescriptor{MediaType: r.Descriptor.MediaType, Digest: r.Descriptor.Digest, Size: r.Descriptor.Size}
	b, err := read(d)
	if err != nil {
		return err
	}
	doc, err := ParseOCI(b, d.MediaType)
	if err != nil {
		return err
	}
	if doc.Subject == nil || doc.Subject.Digest != r.Subject {
		return problem.New("bundle/incomplete-graph", "the referrer %s does not name %s as its subject", r.Descriptor.Digest, r.Subject)
	}
	return nil
}

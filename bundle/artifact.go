package bundle

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// Limits of the manifests that we make ourselves (docs/artifacts.md): a
// registry needs about a millisecond a layer to take a manifest.
const (
	maxLayers        = 1000
	maxOwnManifest   = 1 << 20
	maxPathLength    = 1024
	maxPathComponent = 255
)

// Media types of the CNCF ModelPack specification. Layers are raw: one file
// each, not archived and not compressed.
const (
	typeModelManifest = "application/vnd.cncf.model.manifest.v1+json"
	typeModelConfig   = "application/vnd.cncf.model.config.v1+json"
	typeModelWeight   = "application/vnd.cncf.model.weight.v1.raw"
	typeModelSettings = "application/vnd.cncf.model.weight.config.v1.raw"
	typeModelDoc      = "application/vnd.cncf.model.doc.v1.raw"
	typeModelCode     = "application/vnd.cncf.model.code.v1.raw"
	typeModelDataset  = "application/vnd.cncf.model.dataset.v1.raw"

	annotationModelPath = "org.cncf.model.filepath"
)

const (
	// TitleAnnotation has the path of a file, on the descriptor of its layer.
	TitleAnnotation = "org.opencontainers.image.title"
	typeFile        = "application/octet-stream"
	emptyConfig     = "{}"
)

// File is one file of a tree that becomes an artifact.
type File struct {
	Path   string `json:"path"` // slash-separated, relative
	Size   int64  `json:"size"`
	Digest Digest `json:"digest"`
}

// Tree is an artifact made of files: the documents that were made for it and
// the root among them.
type Tree struct {
	Root      Descriptor
	Documents [][]byte // manifests and configs, to be stored under their digests

	have map[Digest]bool
}

// artifactType is the kind's type as a manifest carries it.
func artifactType(kind Kind) string {
	if kind == Model {
		return typeModelManifest
	}
	return "application/vnd.packhof." + string(kind) + ".v1"
}

// BuildTree makes the manifests of a tree of files: one manifest, or above
// 1,000 layers or 1 MiB an index of manifests. Files are sorted by path. The
// result depends on nothing but the arguments.
func BuildTree(kind Kind, name, version string, files []File) (*Tree, error) {
	return BuildPackedTree(kind, name, version, files, nil)
}

// BuildPackedTree is BuildTree for a tree of which some files lie in packs, as
// PlanPacks says: a layer for each of the other files and for each pack, in the
// order of their titles, and after them the indices.
func BuildPackedTree(kind Kind, name, version string, own []File, packs []Pack) (*Tree, error) {
	if len(own)+len(packs) == 0 {
		return nil, problem.New("artifact/empty", "the %s %q has no files", kind, name)
	}
	var layers []OCIDescriptor
	for _, f := range own {
		if err := CheckPath(f.Path); err != nil {
			return nil, err
		}
		layers = append(layers, fileLayer(kind, f))
	}
	for _, p := range packs {
		layers = append(layers, OCIDescriptor{MediaType: TypePack, Digest: p.Digest, Size: p.Size, Annotations: map[string]string{TitleAnnotation: p.Title}})
	}
	slices.SortFunc(layers, func(a, b OCIDescriptor) int { return strings.Compare(titleOf(a), titleOf(b)) })
	for i := range layers {
		if i > 0 && titleOf(layers[i-1]) == titleOf(layers[i]) {
			return nil, problem.New("artifact/bad-path", "the path %q is there twice", titleOf(layers[i]))
		}
	}
	for _, p := range packs {
		layers = append(layers, OCIDescriptor{MediaType: TypePackIndex, Digest: p.Index, Size: p.IndexSize})
	}
	tree := &Tree{have: map[Digest]bool{}}
	return tree, tree.build(kind, name, version, layers)
}

func titleOf(layer OCIDescriptor) string { return layer.Annotations[TitleAnnotation] }

func fileLayer(kind Kind, f File) OCIDescriptor {
	layer := OCIDescriptor{MediaType: layerType(kind, f.Path), Digest: f.Digest, Size: f.Size, Annotations: map[string]string{TitleAnnotation: f.Path}}
	if kind == Model {
		layer.Annotations[annotationModelPath] = f.Path
	}
	return layer
}

func (t *Tree) build(kind Kind, name, version string, layers []OCIDescriptor) error {
	var parts []OCIDescriptor
	for _, part := range splitLayers(layers) {
		d, err := t.addManifest(kind, name, version, part)
		if err != nil {
			return err
		}
		parts = append(parts, d)
	}
	if len(parts) == 1 {
		t.Root = Descriptor{MediaType: parts[0].MediaType, Digest: parts[0].Digest, Size: parts[0].Size, ArtifactType: parts[0].ArtifactType}
		return nil
	}
	return t.addIndex(kind, parts)
}

// layerCost is more than the bytes that a layer takes in a manifest.
func layerCost(layer OCIDescriptor) int { return 512 + 12*len(titleOf(layer)) }

func splitLayers(layers []OCIDescriptor) [][]OCIDescriptor {
	var parts [][]OCIDescriptor
	begin, cost := 0, 0
	for i, layer := range layers {
		if i > begin && (i-begin == maxLayers || cost+layerCost(layer) > maxOwnManifest) {
			parts = append(parts, layers[begin:i])
			begin, cost = i, 0
		}
		cost += layerCost(layer)
	}
	return append(parts, layers[begin:])
}

func (t *Tree) addManifest(kind Kind, name, version string, layers []OCIDescriptor) (OCIDescriptor, error) {
	config, configType, err := treeConfig(kind, name, version, layers)
	if err != nil {
		return OCIDescriptor{}, err
	}
	doc := OCI{SchemaVersion: 2, MediaType: TypeOCIManifest, ArtifactType: artifactType(kind), Layers: layers}
	doc.Config = &OCIDescriptor{MediaType: configType, Digest: t.add(config), Size: int64(len(config))}
	b, err := encodeCanonical(&doc)
	if err != nil {
		return OCIDescriptor{}, err
	}
	return OCIDescriptor{MediaType: TypeOCIManifest, Digest: t.add(b), Size: int64(len(b)), ArtifactType: doc.ArtifactType}, nil
}

func (t *Tree) addIndex(kind Kind, parts []OCIDescriptor) error {
	b, err := encodeCanonical(&OCI{SchemaVersion: 2, MediaType: TypeOCIIndex, ArtifactType: artifactType(kind), Manifests: parts})
	if err != nil {
		return err
	}
	t.Root = Descriptor{MediaType: TypeOCIIndex, Digest: t.add(b), Size: int64(len(b)), ArtifactType: artifactType(kind)}
	if len(b) > MaxOCIManifestSize {
		return problem.New("artifact/too-many-files", "the %s has too many files for one artifact", kind).Hint("split the tree into several artifacts")
	}
	return nil
}

func (t *Tree) add(document []byte) Digest {
	d := cas.DigestOf(document)
	if !t.have[d] {
		t.have[d] = true
		t.Documents = append(t.Documents, document)
	}
	return d
}

// modelConfig is the part of a ModelPack config that follows from the files.
type modelConfig struct {
	Descriptor struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"descriptor"`
	ModelFS struct {
		Type    string   `json:"type"`
		DiffIDs []Digest `json:"diffIds"`
	} `json:"modelfs"`
	Config struct{} `json:"config"`
}

func treeConfig(kind Kind, name, version string, layers []OCIDescriptor) (config []byte, mediaType string, err error) {
	if kind != Model {
		return []byte(emptyConfig), typeEmpty, nil
	}
	var c modelConfig
	c.Descriptor.Name, c.Descriptor.Version = name, version
	c.ModelFS.Type = "layers"
	for _, layer := range layers {
		c.ModelFS.DiffIDs = append(c.ModelFS.DiffIDs, layer.Digest)
	}
	config, err = encodeCanonical(&c)
	return config, typeModelConfig, err
}

// layerType is the ModelPack type that a file's name suggests. It is a hint
// for those who show the artifact: what a file really is, inspection decides.
func layerType(kind Kind, name string) string {
	if kind != Model {
		return typeFile
	}
	base := strings.ToLower(path.Base(name))
	switch path.Ext(base) {
	case ".md", ".txt", ".pdf", ".rst", "":
		return typeModelDoc
	case ".json", ".yaml", ".yml", ".toml", ".model", ".jinja":
		return typeModelSettings
	case ".py", ".sh", ".ipynb":
		return typeModelCode
	case ".csv", ".jsonl", ".parquet", ".arrow":
		return typeModelDataset
	}
	return typeModelWeight
}

// CheckPath refuses paths that could not be a file below a folder on every
// destination: absolute, with empty, "." or ".." parts, with backslashes,
// control or formatting characters, or too long.
func CheckPath(p string) error {
	bad := func(why string) error {
		return problem.New("artifact/bad-path", "the path %q cannot travel: %s", p, why).Hint("rename the file, or leave it out")
	}
	switch {
	case p == "" || len(p) > maxPathLength:
		return bad("it is empty or longer than 1024 bytes")
	case !utf8.ValidString(p):
		return bad("it is not UTF-8")
	case strings.ContainsRune(p, '\\'):
		return bad("it has a backslash")
	case strings.ContainsFunc(p, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }):
		return bad("it has a control or formatting character")
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == "" || part == "." || part == ".." || len(part) > maxPathComponent {
			return bad("a part of it is empty, a dot, two dots or longer than 255 bytes")
		}
	}
	return nil
}

// BuildReferrer makes the manifest that attaches a document to its subject,
// as OCI 1.1 says: artifactType, empty config, one layer, subject.
func BuildReferrer(documentType string, document Digest, size int64, subject Descriptor) (manifest, config []byte, err error) {
	doc := OCI{
		SchemaVersion: 2, MediaType: TypeOCIManifest, ArtifactType: documentType,
		Config:  &OCIDescriptor{MediaType: typeEmpty, Digest: cas.DigestOf([]byte(emptyConfig)), Size: int64(len(emptyConfig))},
		Layers:  []OCIDescriptor{{MediaType: documentType, Digest: document, Size: size}},
		Subject: &OCIDescriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size},
	}
	manifest, err = encodeCanonical(&doc)
	return manifest, []byte(emptyConfig), err
}

package s3

import (
	"encoding/json/jsontext"
	"encoding/json/v2"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
)

const documentFormat = "application/vnd.packhof.objects.v1+json"

// document is .packhof/artifact.json. It depends on the artifact alone, so
// that the same artifact in a later bundle changes nothing.
type document struct {
	Format    string            `json:"format"`
	Kind      bundle.Kind       `json:"kind"`
	Name      string            `json:"name"`
	Version   string            `json:"version"`
	Root      bundle.Descriptor `json:"root"`
	Referrers []bundle.Referrer `json:"referrers"`
}

const (
	layoutName = "oci-layout"
	layout     = `{"imageLayoutVersion":"1.0.0"}`
	indexName  = "index.json"
	refName    = "org.opencontainers.image.ref.name"
)

// documentsOf makes the documents that tell what the blobs are, by path.
func documentsOf(a bundle.Artifact, name gate.Name) (map[string][]byte, error) {
	own, err := encode(&document{
		Format: documentFormat, Kind: a.Kind, Name: a.Name, Version: a.Version, Root: a.Root,
		Referrers: append([]bundle.Referrer{}, a.Referrers...),
	})
	if err != nil {
		return nil, err
	}
	documents := map[string][]byte{documentName: own}
	if a.Kind.IsTree() {
		return documents, nil
	}
	root := plain(a.Root)
	root.Annotations = map[string]string{refName: name.Tag}
	index := bundle.OCI{SchemaVersion: 2, MediaType: bundle.TypeOCIIndex, Manifests: []bundle.OCIDescriptor{root}}
	for _, r := range a.Referrers {
		index.Manifests = append(index.Manifests, plain(r.Descriptor))
	}
	documents[layoutName] = []byte(layout)
	documents[indexName], err = encode(&index)
	return documents, err
}

func encode(v any) ([]byte, error) {
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.WithIndent("  "))
	return append(b, '\n'), err
}

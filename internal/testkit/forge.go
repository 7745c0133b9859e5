package testkit

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"testing"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/signing"
)

// Signer signs with the key of a seed, deterministically.
type Signer struct {
	key    *ecdsa.PrivateKey
	public signing.PublicKey
}

// NewSigner makes the signer of a seed.
func NewSigner(seed string) (*Signer, error) {
	key := Key(seed)
	public, err := signing.NewPublicKey(&key.PublicKey)
	return &Signer{key: key, public: public}, err
}

// Public implements signing.Signer.
func (s *Signer) Public() signing.PublicKey { return s.public }

// SignDigest implements signing.Signer, by RFC 6979.
func (s *Signer) SignDigest(_ context.Context, digest [32]byte) ([]byte, error) {
	return s.key.Sign(nil, digest[:], crypto.SHA256)
}

// GateID is the gate that forged bundles are meant for.
const GateID = "gate-aaaabbbbccccdddd"

// Memory is content in memory.
type Memory map[cas.Digest][]byte

// Add stores bytes under their digest.
func (m Memory) Add(b []byte) cas.Digest {
	d := cas.DigestOf(b)
	m[d] = b
	return d
}

// Has implements bundle.Content.
func (m Memory) Has(d cas.Digest) (bool, error) {
	_, ok := m[d]
	return ok, nil
}

// Open implements bundle.Content.
func (m Memory) Open(d cas.Digest) (io.ReadCloser, error) {
	b, ok := m[d]
	if !ok {
		return nil, fmt.Errorf("blob %s: %w", d, fs.ErrNotExist)
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// Forged is a bundle made by hand, with everything it was made of.
type Forged struct {
	Signer   *Signer
	Trust    *signing.Trust
	Root     bundle.TrustDocument
	Revoked  bundle.TrustDocument
	Manifest *bundle.Manifest
	Head     bundle.Head
	Content  Memory
	Volume   []byte
}

// Forge makes a small genuine bundle: one file set of two files with an SBOM
// that says absent. change, when given, edits the manifest before it is
// sealed; extra are further blobs that it may name.
func Forge(t testing.TB, change func(*bundle.Manifest), extra ...[]byte) *Forged {
	t.Helper()
	f, err := forge(context.Background(), change, extra)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func forge(ctx context.Context, change func(*bundle.Manifest), extra [][]byte) (*Forged, error) {
	signer, err := NewSigner("release")
	if err != nil {
		return nil, err
	}
	f := &Forged{Signer: signer, Content: Memory{}}
	for _, b := range extra {
		f.Content.Add(b)
	}
	if err := f.makeTrust(ctx); err != nil {
		return nil, err
	}
	if err := f.makeManifest(); err != nil {
		return nil, err
	}
	if change != nil {
		change(f.Manifest)
	}
	b, err := bundle.EncodeManifest(f.Manifest)
	if err != nil {
		return nil, err
	}
	return f, f.Seal(ctx, b)
}

func (f *Forged) makeTrust(ctx context.Context) error {
	root, err := signing.NewRoot(ctx, signing.RootParams{
		Signer: f.Signer, Owner: "release@example", Channels: []signing.Channel{{Name: "plant-7", Epoch: 1}},
		Now: Noon(), Expires: Noon().AddDate(3, 0, 0), KeyNotAfter: Noon().AddDate(3, 0, 0),
	})
	if err != nil {
		return err
	}
	list, err := signing.NewRevocations(ctx, f.Signer, Noon())
	if err != nil {
		return err
	}
	parsed, err := signing.ParseRoot(root)
	if err != nil {
		return err
	}
	f.Root, f.Revoked = bundle.TrustDocument{Version: 1, Bytes: root}, bundle.TrustDocument{Version: 1, Bytes: list}
	f.Trust, err = signing.NewTrust(parsed, nil).UpdateRevocations(list, Noon())
	return err
}

func (f *Forged) makeManifest() error {
	files := []bundle.File{}
	for _, name := range []string{"README.md", "data/values.csv"} {
		b := Bytes(name, 700)
		files = append(files, bundle.File{Path: name, Size: int64(len(b)), Digest: f.Content.Add(b)})
	}
	f.Manifest = &bundle.Manifest{
		Format: bundle.FormatV1, Kind: bundle.KindContent, Channel: "plant-7", Epoch: 1, Serial: 1, Audience: []string{GateID},
		Created: bundle.At(Noon()), Expires: bundle.At(Noon().Add(30 * 24 * time.Hour)),
		TrustRoot:   bundle.Versioned{Version: 1, Digest: cas.DigestOf(f.Root.Bytes)},
		Revocations: bundle.Versioned{Version: 1, Digest: cas.DigestOf(f.Revoked.Bytes)},
	}
	return f.addTree(bundle.Files, "notes", files)
}

// AddTree adds an artifact made of files, whose content need not be in memory.
func (f *Forged) AddTree(t testing.TB, kind bundle.Kind, name string, files []bundle.File) {
	t.Helper()
	if err := f.addTree(kind, name, files); err != nil {
		t.Fatal(err)
	}
}

func (f *Forged) addTree(kind bundle.Kind, name string, files []bundle.File) error {
	tree, err := bundle.BuildTree(kind, name, "1.0", files)
	if err != nil {
		return err
	}
	artifact := madeByHand(kind, name, tree.Root)
	for _, document := range tree.Documents {
		artifact.Size += f.hold(document, bundle.RoleMetadata)
	}
	own := map[bundle.Digest]bool{}
	for _, file := range files {
		if !own[file.Digest] {
			own[file.Digest] = true
			artifact.Size += f.name(bundle.Blob{Digest: file.Digest, Size: file.Size, Role: bundle.RoleContent})
		}
	}
	f.Manifest.Artifacts = append(f.Manifest.Artifacts, artifact)
	return nil
}

func madeByHand(kind bundle.Kind, name string, root bundle.Descriptor) bundle.Artifact {
	return bundle.Artifact{
		Kind: kind, Name: name, Version: "1.0", Root: root, Referrers: []bundle.Referrer{},
		Origin: bundle.Origin{From: name, At: bundle.At(Noon()), Transport: bundle.TransportLocal, Verified: bundle.VerifiedLock},
		SBOM:   []bundle.SBOM{{Subject: root.Digest, Status: bundle.SBOMAbsent, Reason: "made by hand"}},
	}
}

// hold takes a blob in and names it, once; it returns its size.
func (f *Forged) hold(b []byte, role bundle.Role) int64 {
	return f.name(bundle.Blob{Digest: f.Content.Add(b), Size: int64(len(b)), Role: role})
}

// name names a blob in the manifest unless it is there, and returns its size.
func (f *Forged) name(b bundle.Blob) int64 {
	if _, there := f.Manifest.Blob(b.Digest); !there {
		addBlob(f.Manifest, b)
	}
	return b.Size
}

// AddBlob names a blob in the manifest and returns its size.
func AddBlob(m *bundle.Manifest, b []byte, role bundle.Role) int64 {
	addBlob(m, bundle.Blob{Digest: cas.DigestOf(b), Size: int64(len(b)), Role: role})
	return int64(len(b))
}

func addBlob(m *bundle.Manifest, b bundle.Blob) {
	m.Blobs = append(m.Blobs, b)
	slices.SortFunc(m.Blobs, func(a, b bundle.Blob) int { return a.Digest.Compare(b.Digest) })
	m.Totals.Files++
	m.Totals.Bytes += b.Size
}

// AddChunks names the chunk list of a blob.
func (f *Forged) AddChunks(blob, list cas.Digest, size int64) {
	for i := range f.Manifest.Blobs {
		if f.Manifest.Blobs[i].Digest == blob {
			f.Manifest.Blobs[i].Chunks = &list
		}
	}
	addBlob(f.Manifest, bundle.Blob{Digest: list, Size: size, Role: bundle.RoleMetadata})
}

// Seal signs manifest bytes, right or wrong, and lays the volume if they can
// be laid.
func (f *Forged) Seal(ctx context.Context, manifest []byte) error {
	signature, err := signing.Sign(ctx, f.Signer, manifest)
	if err != nil {
		return err
	}
	f.Head = bundle.Head{
		Manifest: manifest, Roots: []bundle.TrustDocument{f.Root}, Revocations: f.Revoked,
		Signatures: []bundle.Signature{{Key: f.Signer.Public().ID().Short(), Bytes: signature}},
	}
	return f.Lay(ctx)
}

// Lay writes the volume of the head and the content as they are now.
func (f *Forged) Lay(ctx context.Context) error {
	plan, err := bundle.PlanComplete(f.Head)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := plan.Write(ctx, &out, f.Content, nil); err != nil {
		return err
	}
	f.Volume = out.Bytes()
	return nil
}

// ForgeLarge makes the head of a genuine bundle with one file, whose content need
// not be anywhere, and gives it with all other content. list is its chunk list.
func ForgeLarge(ctx context.Context, file bundle.File, list []byte) (bundle.Head, Memory, error) {
	f, err := forge(ctx, nil, nil)
	if err != nil {
		return bundle.Head{}, nil, err
	}
	f.Manifest.Artifacts, f.Manifest.Blobs, f.Manifest.Totals = nil, nil, bundle.Totals{}
	if err := f.addTree(bundle.Model, "large", []bundle.File{file}); err != nil {
		return bundle.Head{}, nil, err
	}
	f.AddChunks(file.Digest, f.Content.Add(list), int64(len(list)))
	if f.Head.Manifest, err = bundle.EncodeManifest(f.Manifest); err != nil {
		return bundle.Head{}, nil, err
	}
	signature, err := signing.Sign(ctx, f.Signer, f.Head.Manifest)
	f.Head.Signatures = []bundle.Signature{{Key: f.Signer.Public().ID().Short(), Bytes: signature}}
	return f.Head, f.Content, err
}

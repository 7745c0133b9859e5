package mirror

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/child"
	"github.com/packhof/packhof/sbom"
)

// ScanProgram runs packhof-scan, a bounded child process without a network,
// to make SBOMs. That it is absent or fails is a fact about the artifact,
// never the end of an export.
type ScanProgram struct {
	Path    string        // absolute
	Timeout time.Duration // for each subject
	Memory  int64         // bytes
	Store   *cas.Store
}

// NoteSHA512 is the name of the note that keeps a file's SHA-512 in hex, for
// its SBOM; sources of files compute it while they fetch.
const NoteSHA512 = "sha512"

const (
	scanFormat     = "CycloneDX 1.6"
	versionTimeout = time.Minute
	scanOpenFiles  = 4096
)

// Version names the scanner and the libraries it was built with; documents
// are kept per version. It is what the program prints, as one line.
func (s *ScanProgram) Version(ctx context.Context) (string, error) {
	result, err := s.run(ctx, []string{"version"}, nil, versionTimeout, 64<<10)
	if err != nil {
		return "", err
	}
	var version map[string]any
	if err := json.Unmarshal(result.Stdout, &version); err != nil {
		return "", &sbom.Error{Kind: "scan/response", Text: "the scanner does not say its version", Err: err}
	}
	return fmt.Sprintf("packhof-scan %v, syft %v", version["version"], version["syft"]), nil
}

func (s *ScanProgram) run(ctx context.Context, args []string, stdin []byte, timeout time.Duration, maxOutput int64) (child.Result, error) {
	work, err := s.workDir()
	if err != nil {
		return child.Result{}, err
	}
	result, err := child.Run(ctx, child.Spec{
		Path: s.Path, Args: args, Dir: work, Stdin: stdin, Timeout: timeout,
		MaxOutput: maxOutput, MaxData: s.Memory, MaxOpen: scanOpenFiles, NoNetwork: true,
	})
	return result, errors.Join(err, os.RemoveAll(work))
}

// workDir makes a folder beside the blobs: same file system, so that hard
// links work, and no bulk data in the system's temporary folder.
func (s *ScanProgram) workDir() (string, error) {
	parent := filepath.Join(s.Store.Dir(), "work")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(parent, "scan-")
	if err != nil {
		return "", err
	}
	return filepath.Abs(dir)
}

// Scan makes the SBOM of one subject and checks that it is the one asked for.
func (s *ScanProgram) Scan(ctx context.Context, subject sbom.Subject, manifest bundle.OCIDescriptor, at time.Time) (*sbom.Response, error) {
	content, err := s.workDir()
	if err != nil {
		return nil, err
	}
	response, err := s.scanIn(ctx, content, subject, manifest, at)
	if cleanup := os.RemoveAll(content); cleanup != nil {
		err = errors.Join(err, cleanup)
	}
	return response, err
}

func (s *ScanProgram) scanIn(ctx context.Context, content string, subject sbom.Subject, manifest bundle.OCIDescriptor, at time.Time) (*sbom.Response, error) {
	request := sbom.Request{Format: sbom.RequestFormat, Form: sbom.FormTree, Subject: subject, Time: at.UTC(), Dir: content}
	var err error
	if subject.Kind == string(bundle.Image) {
		request.Form = sbom.FormImage
		err = s.layOutImage(content, manifest)
	} else {
		request.Files, err = s.layOutTree(ctx, content, manifest)
	}
	if err != nil {
		return nil, err
	}
	stdin, err := request.Encode()
	if err != nil {
		return nil, err
	}
	result, err := s.run(ctx, nil, stdin, s.Timeout, sbom.MaxResponse)
	if err != nil {
		return nil, err
	}
	response, err := sbom.ReadResponse(bytes.NewReader(result.Stdout))
	if err != nil {
		return nil, err
	}
	_, err = sbom.Check(response.Document, sbom.Expect{Subject: subject, Time: at.UTC()})
	return &response, err
}

// layOutImage makes an OCI layout with exactly one manifest, whose blobs are
// those of the store.
func (s *ScanProgram) layOutImage(dir string, manifest bundle.OCIDescriptor) error {
	blobs, err := filepath.Abs(filepath.Dir(s.Store.BlobsDir()))
	if err != nil {
		return err
	}
	index, err := json.Marshal(bundle.OCI{SchemaVersion: 2, MediaType: bundle.TypeOCIIndex, Manifests: []bundle.OCIDescriptor{
		{MediaType: manifest.MediaType, Digest: manifest.Digest, Size: manifest.Size},
	}})
	if err != nil {
		return err
	}
	return errors.Join(
		os.Symlink(blobs, filepath.Join(dir, "blobs")),
		os.WriteFile(filepath.Join(dir, "oci-layout"), []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644),
		os.WriteFile(filepath.Join(dir, "index.json"), index, 0o644))
}

// layOutTree makes a folder with the files of a tree under their names, as
// hard links to their blobs.
func (s *ScanProgram) layOutTree(ctx context.Context, dir string, root bundle.OCIDescriptor) (list []sbom.File, err error) {
	tree, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	files, err := treeFiles(s.Store, root)
	if err != nil {
		return nil, err
	}
	list = make([]sbom.File, 0, len(files))
	for _, f := range files {
		if err := linkInto(tree, s.Store.Path(f.Digest), f.Path); err != nil {
			return nil, err
		}
		sum, err := fileSHA512(ctx, s.Store, f.Digest)
		if err != nil {
			return nil, err
		}
		list = append(list, sbom.File{Path: f.Path, Size: f.Size, SHA256: f.Digest.Hex(), SHA512: sum})
	}
	return list, err
}

func linkInto(tree *os.Root, blob, path string) error {
	name := filepath.FromSlash(path)
	if err := tree.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.Link(blob, filepath.Join(tree.Name(), name))
}

// treeFiles lists the files of an artifact that is a tree.
func treeFiles(store *cas.Store, root bundle.OCIDescriptor) ([]bundle.File, error) {
	var files []bundle.File
	manifests := []bundle.OCIDescriptor{root}
	for len(manifests) > 0 {
		d := manifests[0]
		manifests = manifests[1:]
		b, err := store.ReadAll(d.Digest, bundle.MaxOCIManifestSize)
		if err != nil {
			return nil, err
		}
		doc, err := bundle.ParseOCI(b, d.MediaType)
		if err != nil {
			return nil, err
		}
		manifests = append(manifests, doc.Manifests...)
		for _, layer := range doc.Layers {
			path := layer.Annotations["org.opencontainers.image.title"]
			if err := bundle.CheckPath(path); err != nil {
				return nil, err
			}
			files = append(files, bundle.File{Path: path, Size: layer.Size, Digest: layer.Digest})
		}
	}
	return files, nil
}

// fileSHA512 gives the note that the source left at fetch, or reads the blob.
func fileSHA512(ctx context.Context, store *cas.Store, d cas.Digest) (string, error) {
	note, ok, err := store.Note(NoteSHA512, d)
	if err != nil {
		return "", err
	}
	if ok {
		return string(note), nil
	}
	r, err := store.Open(d)
	if err != nil {
		return "", err
	}
	h := sha512.New()
	_, err = io.Copy(h, r)
	if err = errors.Join(err, r.Close(), ctx.Err()); err != nil {
		return "", err
	}
	sum := hex.EncodeToString(h.Sum(nil))
	return sum, store.SetNote(NoteSHA512, d, []byte(sum))
}

// reason is an error as one line of the manifest: what happened, never a path
// of this machine.
func (s *ScanProgram) reason(err error) string {
	text := err.Error()
	var failure *child.Error
	if errors.As(err, &failure) {
		if said := failure.Evidence(); len(said) > 0 {
			text += ": " + said[len(said)-1]
		}
	}
	text = strings.Join(strings.Fields(text), " ")
	for _, dir := range []string{s.Store.Dir(), filepath.Dir(s.Path)} {
		if abs, absErr := filepath.Abs(dir); absErr == nil {
			text = strings.ReplaceAll(text, abs, "…")
		}
		text = strings.ReplaceAll(text, dir+string(filepath.Separator), "…/")
	}
	if len(text) > 500 {
		text = text[:500] + "…"
	}
	return strings.ToValidUTF8(text, "?")
}

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
	"regexp"
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
// are kept per version. It is what the program prints, as one line. isolated
// says whether the kernel kept the network from it.
func (s *ScanProgram) Version(ctx context.Context) (version string, isolated bool, err error) {
	result, err := s.run(ctx, []string{"version"}, nil, versionTimeout, 64<<10)
	if err != nil {
		return "", result.NetworkIsolated, err
	}
	var said map[string]any
	if err := json.Unmarshal(result.Stdout, &said); err != nil {
		return "", result.NetworkIsolated, &sbom.Error{Kind: "scan/response", Text: "the scanner does not say its version", Err: err}
	}
	return fmt.Sprintf("packhof-scan %v, syft %v", said["version"], said["syft"]), result.NetworkIsolated, nil
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

// layOutTree makes a folder with the files of a tree under their names: as hard
// links to their blobs, or as copies of what lies in packs.
func (s *ScanProgram) layOutTree(ctx context.Context, dir string, root bundle.OCIDescriptor) (list []sbom.File, err error) {
	tree, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	read := func(d bundle.OCIDescriptor) ([]byte, error) { return s.Store.ReadAll(d.Digest, bundle.ReadLimit(d)) }
	top := bundle.Descriptor{MediaType: root.MediaType, Digest: root.Digest, Size: root.Size}
	_, err = bundle.EachTreeFile(top, read, func(f bundle.TreeFile) error {
		if err := bundle.CheckPath(f.Path); err != nil {
			return err
		}
		one, err := s.layOut(ctx, tree, f)
		list = append(list, one)
		return err
	})
	return list, err
}

// layOut puts one file in its place. Its bytes are proven on the way.
func (s *ScanProgram) layOut(ctx context.Context, tree *os.Root, f bundle.TreeFile) (sbom.File, error) {
	one := sbom.File{Path: f.Path, Size: f.Size, SHA256: f.Digest.Hex(), SHA512: hex.EncodeToString(f.SHA512[:])}
	if f.Packed() {
		return one, s.copyOut(ctx, tree, f)
	}
	var err error
	if one.SHA512, err = verifiedSHA512(ctx, s.Store, f.Digest); err != nil {
		return one, err
	}
	return one, linkInto(tree, s.Store.Path(f.Digest), f.Path)
}

func (s *ScanProgram) copyOut(ctx context.Context, tree *os.Root, f bundle.TreeFile) (err error) {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r, err := bundle.OpenTreeFile(bundle.StoreContent(s.Store), f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	name := filepath.FromSlash(f.Path)
	if err := tree.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	w, err := tree.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}

func linkInto(tree *os.Root, blob, path string) error {
	name := filepath.FromSlash(path)
	if err := tree.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.Link(blob, filepath.Join(tree.Name(), name))
}

// verifiedSHA512 reads a file of the store to its end, which proves it: what is
// described must be what is signed for. Its SHA-512 comes from the note that
// the source left at fetch, or is computed in the same pass.
func verifiedSHA512(ctx context.Context, store *cas.Store, d cas.Digest) (string, error) {
	note, ok, err := store.Note(NoteSHA512, d)
	if err != nil {
		return "", err
	}
	r, err := store.Open(d)
	if err != nil {
		return "", err
	}
	h := sha512.New()
	var into io.Writer = h
	if ok {
		into = io.Discard
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{into}, r, make([]byte, 256<<10))
	if err = errors.Join(err, r.Close(), ctx.Err()); err != nil || ok {
		return string(note), err
	}
	sum := hex.EncodeToString(h.Sum(nil))
	return sum, store.SetNote(NoteSHA512, d, []byte(sum))
}

// scanCode is how packhof-scan begins its last words, with a code of its own.
var scanCode = regexp.MustCompile(`packhof-scan: (scan/[a-z-]+):`)

// reason is a failure as one line of the manifest: the same on every machine
// and in every run, without what the scanner said about this one.
func reason(err error) string {
	var failure *child.Error
	var document *sbom.Error
	switch {
	case errors.As(err, &failure):
		text := failureText(failure)
		if code := scannerCode(failure); code != "" {
			text += " (" + code + ")"
		}
		return text
	case errors.As(err, &document):
		return "the scanner gave no SBOM of this subject (" + document.Code() + ")"
	}
	return "the scanner could not be used"
}

func failureText(e *child.Error) string {
	switch e.Reason {
	case child.Absent:
		return "packhof-scan is not installed"
	case child.Unstartable, child.Unsupported:
		return "packhof-scan cannot be started"
	case child.Timeout:
		return "the scanner ran longer than " + e.Limit
	case child.Memory:
		return "the scanner needed more memory than " + e.Limit
	case child.Output:
		return "the scanner wrote more than " + e.Limit
	case child.Disk:
		return "the scanner used more disk than " + e.Limit
	}
	if e.Signal != "" {
		return "the scanner ended by signal " + e.Signal
	}
	return fmt.Sprintf("the scanner ended with exit code %d", e.ExitCode)
}

// scannerCode is the code that packhof-scan gave for its failure, if it did.
func scannerCode(e *child.Error) string {
	for _, line := range e.Evidence() {
		if m := scanCode.FindStringSubmatch(line); m != nil {
			return m[1]
		}
	}
	return ""
}

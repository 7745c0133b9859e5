package sbom

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"time"
)

// RequestFormat is the value of Request.Format.
const RequestFormat = "packhof.scan-request/v1"

// Limits of a request.
const (
	MaxRequest = 256 << 20 // bytes
	MaxFiles   = 500_000   // more make a document past MaxDocument
)

// DefaultMaxUnpacked is what an image may unpack to where a request does not say.
const DefaultMaxUnpacked = 64 << 30 // bytes

// Form is the form in which an artifact's content lies before the scanner.
type Form string

const (
	// FormImage is an OCI image layout whose index.json names exactly one
	// manifest, the subject. blobs/ may be a symbolic link to a larger store.
	FormImage Form = "image"

	// FormTree is a directory with the files under their real names, and
	// nothing but directories and these files.
	FormTree Form = "tree"
)

// Request asks the scanner for one document. It is read strictly: unknown and
// duplicate keys refuse.
type Request struct {
	Format  string    `json:"format"`
	Form    Form      `json:"form"`
	Subject Subject   `json:"subject"`
	Time    time.Time `json:"time"` // the document's timestamp, whole seconds
	Dir     string    `json:"dir"`  // absolute path of the content

	// Files are all files of a tree with the hashes computed when they were
	// fetched, so that nothing is hashed again. Empty for an image.
	Files []File `json:"files,omitempty"`

	// MaxUnpacked limits the bytes of all layers of an image together, once
	// uncompressed; 0 is DefaultMaxUnpacked.
	MaxUnpacked int64 `json:"maxUnpacked,omitempty"`
}

// File is one file of a tree.
type File struct {
	Path   string `json:"path"`   // slash-separated, relative to Dir
	Size   int64  `json:"size"`   // bytes
	SHA256 string `json:"sha256"` // hex
	SHA512 string `json:"sha512"` // hex
}

var (
	hex256 = regexp.MustCompile(`^[0-9a-f]{64}$`)
	hex512 = regexp.MustCompile(`^[0-9a-f]{128}$`)
)

// ReadRequest reads one request from r to its end.
func ReadRequest(r io.Reader) (Request, error) {
	var request Request
	text, err := readLimited(r, MaxRequest)
	if err != nil {
		return Request{}, badRequest(err)
	}
	if err := json.Unmarshal(text, &request, json.RejectUnknownMembers(true)); err != nil {
		return Request{}, badRequest(err)
	}
	if err := request.Validate(); err != nil {
		return Request{}, err
	}
	return request, nil
}

// Encode returns the request as the scanner reads it.
func (r Request) Encode() ([]byte, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, badRequest(err)
	}
	if len(text) > MaxRequest {
		return nil, badRequest(fmt.Errorf("%d bytes are more than the %d allowed", len(text), MaxRequest))
	}
	return text, nil
}

// Validate says whether a request makes sense, without looking at Dir.
func (r Request) Validate() error {
	for _, check := range []func() error{r.Subject.Validate, r.validateTerms, r.validateFiles} {
		if err := check(); err != nil {
			return badRequest(err)
		}
	}
	return nil
}

func (r Request) validateTerms() error {
	switch {
	case r.Format != RequestFormat:
		return fmt.Errorf("format is %.60q, not %q", r.Format, RequestFormat)
	case r.Form != FormImage && r.Form != FormTree:
		return fmt.Errorf("unknown form %.60q", r.Form)
	case (r.Form == FormImage) != (r.Subject.Kind == "image"):
		return fmt.Errorf("artifact of kind %s in the form %q", r.Subject.Kind, r.Form)
	case !filepath.IsAbs(r.Dir):
		return fmt.Errorf("directory %.200q is not absolute", r.Dir)
	case r.Time.IsZero() || !r.Time.Equal(r.Time.Truncate(time.Second)) || r.Time.Year() > 9999:
		return fmt.Errorf("time %s is missing or has parts of a second", r.Time)
	case r.MaxUnpacked < 0:
		return fmt.Errorf("limit of %d unpacked bytes", r.MaxUnpacked)
	}
	return nil
}

func (r Request) validateFiles() error {
	if r.Form == FormImage && len(r.Files) > 0 {
		return errors.New("an image with a list of files")
	}
	if len(r.Files) > MaxFiles {
		return fmt.Errorf("%d files are more than the %d allowed", len(r.Files), MaxFiles)
	}
	seen := make(map[string]bool, len(r.Files))
	for _, f := range r.Files {
		switch {
		case !fs.ValidPath(f.Path) || f.Path == "." || !plain(f.Path, 4096):
			return fmt.Errorf("file path %.200q", f.Path)
		case seen[f.Path]:
			return fmt.Errorf("file %.200q is there twice", f.Path)
		case f.Size < 0:
			return fmt.Errorf("file %.200q has size %d", f.Path, f.Size)
		case !hex256.MatchString(f.SHA256) || !hex512.MatchString(f.SHA512):
			return fmt.Errorf("file %.200q lacks a SHA-256 or SHA-512 in lower-case hex", f.Path)
		}
		seen[f.Path] = true
	}
	return nil
}

func badRequest(err error) error {
	return &Error{Kind: codeRequest, Text: "scan request", Err: err}
}

func readLimited(r io.Reader, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("more than the %d bytes allowed", limit)
	}
	return text, nil
}

// Package sbom reads, writes and checks CycloneDX documents, and defines the
// two documents spoken with the scanner process (Request, Response).
//
// Our own documents are CycloneDX 1.6 JSON and deterministic. The same content
// gives the same bytes:
//
//   - the text is canonical JSON (RFC 8785);
//   - the serial number is a UUID version 8 (RFC 9562, 5.8) from the SHA-256
//     of the subject's digest and the time, see Serial;
//   - the timestamp is the time given by the caller, never the time of the scan;
//   - components are sorted by bom-ref, dependencies by ref, and the lists in a
//     component (hashes, licences, properties, references) by their content;
//   - the tools named are the scanner and the library it used, with versions:
//     another version may give other bytes, so versions belong into cache keys;
//   - nothing names the scanning host: no random identifiers, and paths only as
//     they are inside the artifact.
//
// The package never looks into an artifact itself, never uses the network and
// never trusts a document because of who wrote it.
package sbom

import (
	"fmt"
	"time"
)

// Limits of a document. A document past any of them is refused, whoever wrote it.
const (
	MaxDocument   = 256 << 20 // bytes
	MaxDepth      = 64        // nesting of JSON
	MaxComponents = 1_000_000 // of all levels together
)

// MediaType is the media type of a CycloneDX JSON document.
const MediaType = "application/vnd.cyclonedx+json"

// Tool is one of the programs that made a document.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Error is a refusal of a document. Which kind it is says its code:
//
//	sbom/too-large       past one of the limits
//	sbom/malformed       not JSON, not CycloneDX, or ambiguous
//	sbom/version         another version of the specification
//	sbom/subject         describes something else
//	sbom/time            another timestamp
//	sbom/serial          another serial number than subject and time give
//	sbom/not-canonical   the content may be right, the bytes are not
//	scan/request         a scan request that makes no sense
//	scan/response        not the answer of a scanner
type Error struct {
	Kind      string // the code
	Text      string
	Want, Got string // both or neither
	Err       error
}

func (e *Error) Error() string {
	text := e.Text
	if e.Want != "" || e.Got != "" {
		text += fmt.Sprintf(": want %q, got %q", e.Want, e.Got)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the error underneath, if there is one.
func (e *Error) Unwrap() error { return e.Err }

// Code returns the stable code.
func (e *Error) Code() string { return e.Kind }

// Evidence returns what was wanted and what was found instead.
func (e *Error) Evidence() []string {
	if e.Want == "" && e.Got == "" {
		return nil
	}
	return []string{fmt.Sprintf("want:  %q", e.Want), fmt.Sprintf("got:   %q", e.Got)}
}

// Remedy returns the one thing to do, or "".
func (e *Error) Remedy() string {
	switch e.Kind {
	case codeVersion, codeSubject, codeTime, codeSerial, codeNotCanonical:
		return "have the document made again from the artifact"
	}
	return ""
}

const (
	codeTooLarge     = "sbom/too-large"
	codeMalformed    = "sbom/malformed"
	codeVersion      = "sbom/version"
	codeSubject      = "sbom/subject"
	codeTime         = "sbom/time"
	codeSerial       = "sbom/serial"
	codeNotCanonical = "sbom/not-canonical"
	codeRequest      = "scan/request"
	codeResponse     = "scan/response"
)

func malformed(err error, format string, args ...any) error {
	return &Error{Kind: codeMalformed, Text: fmt.Sprintf("SBOM is malformed: "+format, args...), Err: err}
}

func mismatch(code, what, want, got string) error {
	return &Error{Kind: code, Text: what, Want: want, Got: got}
}

// stamp is the one form of time in our documents: UTC, whole seconds.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

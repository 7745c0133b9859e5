package sbom

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"io"
)

// ResponseFormat is the value of Response.Format.
const ResponseFormat = "packhof.scan-response/v1"

// MaxResponse limits a response: the document and a little around it.
const MaxResponse = MaxDocument + 16<<20 // bytes

// MaxUnknowns limits the entries of Response.Unknowns.
const MaxUnknowns = 1000

// Response is the scanner's answer. It is a claim: whoever reads it runs Check
// on the document.
type Response struct {
	Format   string         `json:"format"`
	Document jsontext.Value `json:"document"` // canonical; see Write

	// Unknowns are places in the artifact that could not be looked into, by
	// path. At most MaxUnknowns are listed; UnknownsTotal counts all.
	Unknowns      []Unknown `json:"unknowns,omitempty"`
	UnknownsTotal int       `json:"unknownsTotal,omitempty"`
}

// Unknown is one place that could not be looked into.
type Unknown struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Encode returns the response as ReadResponse reads it.
func (r Response) Encode() ([]byte, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, badResponse(err)
	}
	return text, nil
}

// ReadResponse reads one response from r to its end, strictly. Its document has
// the bytes that the scanner sent; that it is JSON is all that was checked of it.
func ReadResponse(r io.Reader) (Response, error) {
	var response Response
	text, err := readLimited(r, MaxResponse)
	if err != nil {
		return Response{}, badResponse(err)
	}
	if err := json.Unmarshal(text, &response, json.RejectUnknownMembers(true)); err != nil {
		return Response{}, badResponse(err)
	}
	if err := response.validate(); err != nil {
		return Response{}, err
	}
	return response, nil
}

func (r Response) validate() error {
	switch {
	case r.Format != ResponseFormat:
		return badResponse(fmt.Errorf("format is %.60q, not %q", r.Format, ResponseFormat))
	case len(r.Document) == 0 || r.Document[0] != '{':
		return badResponse(fmt.Errorf("no document"))
	case len(r.Document) > MaxDocument:
		return tooLarge("%d bytes, more than the %d allowed", len(r.Document), MaxDocument)
	case len(r.Unknowns) > MaxUnknowns || r.UnknownsTotal < len(r.Unknowns):
		return badResponse(fmt.Errorf("%d unknowns listed, %d counted, at most %d allowed", len(r.Unknowns), r.UnknownsTotal, MaxUnknowns))
	}
	return nil
}

func badResponse(err error) error {
	return &Error{Kind: codeResponse, Text: "scan response", Err: err}
}

func tooLarge(format string, args ...any) error {
	return &Error{Kind: codeTooLarge, Text: fmt.Sprintf("SBOM is too large: "+format, args...)}
}

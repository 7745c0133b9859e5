package registry

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/packhof/packhof/internal/download"
	"github.com/packhof/packhof/internal/problem"
)

// CodeInterrupted is the code of an error of reading a Blob or a manifest
// whose connection was lost: beginning again may help.
const CodeInterrupted = "registry/interrupted"

// Interrupted reports whether err is a download that broke off.
func Interrupted(err error) bool {
	var p *problem.Problem
	return errors.As(err, &p) && p.Code() == CodeInterrupted
}

// body is what a registry sends; its errors say of what.
type body struct {
	io.ReadCloser
	what string
}

func (b body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	var broken *download.BrokenOffError
	switch {
	case err == nil, err == io.EOF:
		return n, err
	case errors.As(err, &broken):
		return n, problem.New(CodeInterrupted, "the download of %s %w", b.what, broken).With(broken.Evidence()...)
	}
	return n, fmt.Errorf("download %s: %w", b.what, err)
}

// short cuts what a registry sends where it sends no content: beside a status
// other than 2xx, and at its base, where one logs in. go-containerregistry
// reads some of these bodies to their end, however far that is, and takes a
// longer explanation of a refusal for no answer at all.
func short(resp *http.Response) {
	if resp.StatusCode/100 == 2 && resp.Request.URL.Path != "/v2/" {
		return
	}
	resp.Body = cut{io.LimitReader(resp.Body, maxMessage), resp.Body}
}

// cut is the beginning of a body.
type cut struct {
	io.Reader
	io.Closer
}

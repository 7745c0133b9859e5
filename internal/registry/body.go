package registry

import (
	"errors"
	"fmt"
	"io"

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

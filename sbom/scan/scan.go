// Package scan finds out what is in an artifact, with syft as a library, and
// writes it down through package sbom. It is linked by the scanner process
// only, which its parent bounds and, where it can, cuts off the network.
//
// It never uses the network, never runs a program, never unpacks a layer to
// files of their own (stereoscope keeps each layer as one uncompressed tar
// under TMPDIR), and never hashes files of a tree again. What syft cannot look
// into is reported as unknown, not passed over.
package scan

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/anchore/syft/syft"
	"github.com/anchore/syft/syft/format/common/cyclonedxhelpers"
	syftsbom "github.com/anchore/syft/syft/sbom"
	"github.com/anchore/syft/syft/source"

	"github.com/packhof/packhof/sbom"
)

// Error is a scan that came to no document. Its code is one of
//
//	scan/content   the content is not in the form that the request says
//	scan/damaged   a blob is not what its digest or size says
//	scan/unpacked  the layers unpack to more than the request allows
//	scan/disk      temporary data hit the disk's end or the process's limit
//	scan/failed    syft gave up
type Error struct {
	Kind string
	Text string
	Err  error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.Text
	}
	return e.Text + ": " + e.Err.Error()
}

// Unwrap returns the error underneath, if there is one.
func (e *Error) Unwrap() error { return e.Err }

// Code returns the stable code.
func (e *Error) Code() string { return e.Kind }

const (
	codeContent  = "scan/content"
	codeDamaged  = "scan/damaged"
	codeUnpacked = "scan/unpacked"
	codeDisk     = "scan/disk"
	codeFailed   = "scan/failed"
)

func unlike(err error, format string, args ...any) error {
	return &Error{Kind: codeContent, Text: fmt.Sprintf(format, args...), Err: err}
}

// Run scans what the request names. scanner is this program, for the list of
// tools. Temporary data goes under os.TempDir and is removed again; a killed
// process leaves it there. Errors are *Error or *sbom.Error.
func Run(ctx context.Context, request sbom.Request, scanner sbom.Tool) (response sbom.Response, err error) {
	if err := request.Validate(); err != nil {
		return sbom.Response{}, err
	}
	content, err := open(ctx, request)
	if err != nil {
		return sbom.Response{}, failed(err)
	}
	defer func() { err = errors.Join(err, content.Close()) }()

	inventory, err := syft.CreateSBOM(ctx, content, configuration())
	if err != nil {
		return sbom.Response{}, failed(err)
	}
	doc, err := sbom.Write(request, found(inventory, scanner))
	if err != nil {
		return sbom.Response{}, err
	}
	response = sbom.Response{Format: sbom.ResponseFormat, Document: doc}
	response.Unknowns, response.UnknownsTotal = unknowns(inventory)
	return response, nil
}

func open(ctx context.Context, request sbom.Request) (source.Source, error) {
	if request.Form == sbom.FormImage {
		return openImage(ctx, request)
	}
	return openTree(request)
}

// failed keeps an error of ours and calls any other one syft's.
func failed(err error) error {
	if ours, ok := errors.AsType[*Error](err); ok {
		return ours
	}
	for _, full := range []error{syscall.ENOSPC, syscall.EFBIG, syscall.EDQUOT} {
		if errors.Is(err, full) {
			return &Error{Kind: codeDisk, Text: "temporary data of the scan", Err: full}
		}
	}
	return &Error{Kind: codeFailed, Text: "syft", Err: err}
}

// found takes from syft's document what depends on the content only. Its
// random serial number, its time and its description of the source stay behind,
// and so do components of type file: those of a tree come from the request.
func found(inventory *syftsbom.SBOM, scanner sbom.Tool) sbom.Found {
	bom := cyclonedxhelpers.ToFormatModel(*inventory)
	result := sbom.Found{Tools: []sbom.Tool{scanner, {Name: "syft", Version: SyftVersion()}}}
	if bom.Components != nil {
		result.Components = slices.DeleteFunc(*bom.Components, func(c cyclonedx.Component) bool {
			return c.Type == cyclonedx.ComponentTypeFile
		})
	}
	if bom.Dependencies != nil {
		result.Dependencies = *bom.Dependencies
	}
	return result
}

func unknowns(inventory *syftsbom.SBOM) (listed []sbom.Unknown, total int) {
	for place, reasons := range inventory.Artifacts.Unknowns {
		for _, reason := range reasons {
			listed = append(listed, sbom.Unknown{Path: place.RealPath, Reason: reason})
		}
	}
	slices.SortFunc(listed, func(a, b sbom.Unknown) int {
		return strings.Compare(a.Path+"\x00"+a.Reason, b.Path+"\x00"+b.Reason)
	})
	return listed[:min(len(listed), sbom.MaxUnknowns)], len(listed)
}

// SyftVersion returns the version of syft that this program is linked with,
// "unknown" if its build information is gone.
func SyftVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, module := range info.Deps {
		if module.Path == "github.com/anchore/syft" {
			if module.Replace != nil {
				module = module.Replace
			}
			return module.Version
		}
	}
	return "unknown"
}

// Command packhof-scan makes the SBOM of one artifact. It is a child process
// of packhof and packhof-gate, not a tool for people, and has no other
// interface than this:
//
//	packhof-scan          reads one sbom.Request from standard input and
//	                      writes one sbom.Response to standard output
//	packhof-scan version  writes its version and syft's as JSON
//
// The exit code is 0, or 1 with one line "packhof-scan: <code>: <text>" on
// standard error and nothing on standard output. It sets itself no limits and
// opens no network connection; its parent bounds it (see internal/child) and
// names the directory for temporary data in TMPDIR.
package main

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/packhof/packhof/sbom"
	"github.com/packhof/packhof/sbom/scan"
)

// name is what documents call this program.
const name = "packhof-scan"

// version is set when a release is built.
var version = "dev"

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s: %q\n", name, code(err), err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	var answer []byte
	var err error
	switch {
	case len(args) == 0:
		answer, err = answerRequest(ctx, in)
	case len(args) == 1 && args[0] == "version":
		answer, err = json.Marshal(versions{Version: ownVersion(), Syft: scan.SyftVersion(), Go: runtime.Version()})
		answer = append(answer, '\n')
	default:
		return &sbom.Error{Kind: "scan/request", Text: "takes one scan request on standard input, or the one argument version"}
	}
	if err != nil {
		return err
	}
	_, err = out.Write(answer)
	return err
}

func answerRequest(ctx context.Context, in io.Reader) ([]byte, error) {
	request, err := sbom.ReadRequest(in)
	if err != nil {
		return nil, err
	}
	response, err := scan.Run(ctx, request, sbom.Tool{Name: name, Version: ownVersion()})
	if err != nil {
		return nil, err
	}
	return response.Encode()
}

// versions is everything besides the artifact that decides a document's bytes.
type versions struct {
	Version string `json:"version"`
	Syft    string `json:"syft"`
	Go      string `json:"go"`
}

func ownVersion() string {
	if version != "dev" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return version
}

func code(err error) string {
	if coded, ok := errors.AsType[interface {
		error
		Code() string
	}](err); ok {
		return coded.Code()
	}
	return "scan/failed"
}

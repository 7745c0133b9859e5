package facts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/policy"
	"github.com/packhof/packhof/sbom/inspect"
)

// Inspector knows what the inspection of content found.
type Inspector interface {
	// Report gives the report of a blob under one of its paths. An error
	// says that the blob was not inspected.
	Report(ctx context.Context, d bundle.Digest, path string) (inspect.Report, error)
}

// Reports are the reports of all content files of a bundle, by digest. They
// are an Inspector.
type Reports map[bundle.Digest]inspect.Report

var errNotInspected = errors.New("it was not inspected")

// Report implements Inspector.
func (r Reports) Report(_ context.Context, d bundle.Digest, path string) (inspect.Report, error) {
	report, ok := r[d]
	if !ok {
		return inspect.Report{}, fmt.Errorf("%s: %w", d, errNotInspected)
	}
	return report.Named(path), nil
}

// ReadAtCloser is opened content.
type ReadAtCloser interface {
	io.ReaderAt
	io.Closer
}

// Opener opens a content blob and says how many bytes it has.
type Opener func(d bundle.Digest) (ReadAtCloser, int64, error)

// mostInspected is how much is read and unpacked of the files of one bundle
// together: minutes of work, however many files try to take more.
const mostInspected = 64 << 30

// Limits are the bounds for the files of one bundle. What lies behind them is
// stated as not looked into.
func Limits() inspect.Limits { return inspect.Limits{Total: inspect.NewTotal(mostInspected)} }

// Inspect inspects every file of the models, data sets, file sets and package
// sets of a bundle, their configs, and everything in the referrers of any
// artifact, each digest once. The layers of images and charts are not looked
// into here: their SBOMs describe them. Any failure to read ends it, since a
// partial result would look like a whole one. What it opens is not verified
// against its digest again; the caller's store has done so. An artifact whose
// manifests cannot be read has no reports of its files, and State says so.
func Inspect(ctx context.Context, b *bundle.Bundle, open Opener, limits inspect.Limits) (Reports, error) {
	reports := Reports{}
	m := b.Manifest()
	for i := range m.Artifacts {
		a := &m.Artifacts[i]
		files, err := allFilesOf(ctx, b, a)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if _, done := reports[f.digest]; done {
				continue
			}
			report, err := inspectBlob(ctx, f, open, limits)
			if err != nil {
				return nil, fmt.Errorf("%s %q, file %q: %w", a.Kind, a.Name, f.path, err)
			}
			reports[f.digest] = report
		}
	}
	return reports, nil
}

// allFilesOf lists what is to be inspected of an artifact. What cannot be
// listed is missing here; State says so.
func allFilesOf(ctx context.Context, b *bundle.Bundle, a *bundle.Artifact) ([]file, error) {
	var all []file
	if a.Kind.IsTree() {
		parts, err := manifestsOf(ctx, b, a.Root)
		if err != nil {
			return nil, err
		}
		all, _ = filesOf(parts)
	}
	attached, err := referrersOf(ctx, b, a)
	if err != nil {
		return nil, err
	}
	for _, r := range attached {
		files, _ := filesOf(r.parts)
		all = append(all, files...)
	}
	return all, nil
}

func inspectBlob(ctx context.Context, f file, open Opener, limits inspect.Limits) (report inspect.Report, err error) {
	r, size, err := open(f.digest)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if size != f.size {
		return report, problem.New("facts/wrong-size", "the content %s in the store is not as large as the manifest says", f.digest).
			With(fmt.Sprintf("want:  %d bytes", f.size), fmt.Sprintf("got:   %d bytes", size)).Hint("receive the bundle again")
	}
	return inspect.File(ctx, r, size, f.path, limits)
}

// file is one file of an artifact.
type file struct {
	path    string
	digest  bundle.Digest
	size    int64
	badPath string // what the manifest has instead of a path that could travel
}

// filesOf lists the files of an artifact by the titles of its layers, and its
// configs. A layer without a title that could be a path goes by its digest; a
// config has a path that no title can have. why says that the list is not
// whole.
func filesOf(parts []part) (files []file, why string) {
	var configs []file
	for _, p := range parts {
		if p.doc == nil {
			why = p.why
			continue
		}
		for _, l := range p.doc.Layers {
			f := file{path: l.Annotations[bundle.TitleAnnotation], digest: l.Digest, size: l.Size}
			if bundle.CheckPath(f.path) != nil {
				f.path, f.badPath = l.Digest.String(), f.path
			}
			files = append(files, f)
		}
		if c := p.doc.Config; c != nil && !isEmptyConfig(c.Digest) && !slices.ContainsFunc(configs, func(f file) bool { return f.digest == c.Digest }) {
			configs = append(configs, file{path: "/config/" + c.Digest.Short(), digest: c.Digest, size: c.Size})
		}
	}
	if len(files) == 0 && why == "" {
		why = "it has no files"
	}
	return append(files, configs...), why
}

// isEmptyConfig tells the config that says nothing, by its content: a media
// type is only what a manifest says.
func isEmptyConfig(d bundle.Digest) bool { return d == cas.DigestOf([]byte("{}")) }

// Words of an inspection's status.
const (
	inspectionDone    = "done"
	inspectionPending = "pending"
	inspectionFailed  = "failed"
	notApplicable     = "not-applicable"
)

func (a *artifact) inspection(ctx context.Context) (policy.Inspection, error) {
	if !a.Kind.IsTree() {
		return policy.Inspection{Status: notApplicable, Reason: "it is not made of plain files; its SBOM describes it", Files: []policy.InspectedFile{}}, nil
	}
	return a.inspectionOf(ctx, a.parts)
}

// inspectionOf states what inspection found in the files of some manifests.
func (a *artifact) inspectionOf(ctx context.Context, parts []part) (policy.Inspection, error) {
	stated := policy.Inspection{Status: inspectionDone, Files: []policy.InspectedFile{}}
	files, why := filesOf(parts)
	switch {
	case why != "":
		stated.Status, stated.Reason = inspectionFailed, why
	case a.Inspection == nil:
		stated.Status, stated.Reason = inspectionPending, "the content has not been looked into yet"
	}
	for _, f := range files {
		one, err := a.inspected(ctx, f)
		if err != nil {
			return stated, err
		}
		if a.Inspection != nil && one.Format == "" && stated.Status == inspectionDone {
			stated.Status, stated.Reason = inspectionFailed, one.Reason
		}
		stated.Files = append(stated.Files, one)
	}
	return stated, nil
}

// inspected states one file. That it was not inspected is a fact; only the end
// of ctx is an error.
func (a *artifact) inspected(ctx context.Context, f file) (policy.InspectedFile, error) {
	one := policy.InspectedFile{Path: f.path, Digest: f.digest.String(), Size: f.size, Findings: []policy.FileFinding{}}
	if f.badPath != "" {
		one.Findings = append(one.Findings, finding(inspect.Finding{Code: inspect.CodeArchivePath, Path: f.badPath}))
	}
	if err := ctx.Err(); err != nil {
		return one, err
	}
	if a.Inspection == nil {
		return one, nil
	}
	report, err := a.Inspection.Report(ctx, f.digest, f.path)
	if err != nil {
		one.Unreadable, one.Reason = true, "the file "+f.digest.Short()+" was not inspected"
		return one, ctx.Err()
	}
	one.Format, one.NameSays, one.Mismatch = string(report.Format), string(report.NameSays), report.Mismatch
	one.Unreadable, one.Reason = report.Unreadable, unreadable(report)
	for _, found := range report.Findings {
		one.Findings = append(one.Findings, finding(found))
	}
	return one, nil
}

// unreadable says why a file could not be looked into wholly, by the codes of
// its findings: the report's own reason quotes the file.
func unreadable(r inspect.Report) string {
	if !r.Unreadable {
		return ""
	}
	var codes []string
	for _, f := range r.Findings {
		if inspect.Hinders(f.Code) && !slices.Contains(codes, f.Code) {
			codes = append(codes, f.Code)
		}
	}
	if len(codes) == 0 {
		return "it could not be looked into wholly"
	}
	return fmt.Sprintf("it could not be looked into wholly: %v", codes)
}

func finding(f inspect.Finding) policy.FileFinding {
	return policy.FileFinding{Code: f.Code, Untrusted: policy.FileFindingUntrusted{Path: f.Path, Detail: f.Detail}}
}

package facts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/policy"
	"github.com/packhof/packhof/sbom/inspect"
)

// Inspector knows what the inspection of content found.
type Inspector interface {
	// Report gives the report of a blob under one of its paths. An error
	// says that the blob was not inspected.
	Report(ctx context.Context, d bundle.Digest, path string) (inspect.Report, error)
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
// partial result would look like a whole one; so do more files than can be
// judged (policy/too-large), before any of them is opened. What it opens is not verified
// against its digest again; the caller's store has done so. An artifact whose
// manifests cannot be read has no reports of its files, and State says so. A pack
// that is not what its index says ends it as well (bundle/bad-pack).
func Inspect(ctx context.Context, b *bundle.Bundle, open Opener, limits inspect.Limits) (*Reports, error) {
	files, err := toInspect(ctx, b)
	if err != nil {
		return nil, err
	}
	reports := newReports(len(files))
	look := &looker{ctx: ctx, bundle: b, open: open, limits: limits}
	for _, f := range files {
		report, err := look.into(f.file)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s %q, file %q: %w", f.of.Kind, f.of.Name, f.path, err), look.close())
		}
		reports.add(f.digest, report)
	}
	return reports, look.close()
}

// inspectable is a file that is to be inspected, under the first of its names.
type inspectable struct {
	file
	of *bundle.Artifact
}

// toInspect lists what is to be inspected, each digest once. It ends where State
// would have more facts about the files than can be judged. What cannot be
// listed is missing here; State says so.
func toInspect(ctx context.Context, b *bundle.Bundle) ([]inspectable, error) {
	var all []inspectable
	meter, seen, m := newMeter(b), map[bundle.Digest]bool{}, b.Manifest()
	for i := range m.Artifacts {
		a := &m.Artifacts[i]
		for _, root := range inspectedRoots(a) {
			stated := 0
			_, err := filesOf(ctx, b, a, root, func(f file) error {
				if !seen[f.digest] {
					seen[f.digest] = true
					all = append(all, inspectable{f, a})
				}
				if f.mayCount(a, stated) {
					return nil
				}
				stated++
				meter.files++
				return meter.add(f.state())
			})
			if err != nil {
				return nil, err
			}
		}
		meter.artifacts++
	}
	return all, nil
}

// inspectedRoots are the manifests whose files are looked into.
func inspectedRoots(a *bundle.Artifact) []bundle.Descriptor {
	var roots []bundle.Descriptor
	if a.Kind.IsTree() {
		roots = append(roots, a.Root)
	}
	for _, r := range a.Referrers {
		roots = append(roots, r.Descriptor)
	}
	return roots
}

// file is one file of an artifact.
type file struct {
	path    string
	digest  bundle.Digest
	size    int64
	badPath string       // what the manifest has instead of a path that could travel
	in      *bundle.Pack // nil for a blob of its own
	offset  int64        // within the pack
}

// state is what can be stated of a file from its manifest alone.
func (f file) state() policy.InspectedFile {
	one := policy.InspectedFile{Path: f.path, Digest: f.digest.String(), Size: f.size, Findings: []policy.FileFinding{}}
	if f.badPath != "" {
		one.Findings = append(one.Findings, finding(inspect.Finding{Code: inspect.CodeArchivePath, Path: f.badPath}))
	}
	return one
}

// filesOf visits the files below a manifest by the titles of its layers, then
// its configs, then those that lie in packs. A layer without a title that could be a path goes by its
// digest; a config has a path that no title can have. why says that these are
// not all. A failure of visit, or the end of ctx, ends it.
func filesOf(ctx context.Context, b *bundle.Bundle, a *bundle.Artifact, root bundle.Descriptor, visit func(file) error) (why string, err error) {
	var configs []file
	seen, layers, packed := map[bundle.Digest]bool{}, 0, false
	isTree := a.Kind.IsTree() && root.Digest == a.Root.Digest
	err = eachManifest(ctx, b, root, func(_ bundle.OCIDescriptor, doc *bundle.OCI, unread string) error {
		if doc == nil {
			why = unread
			return nil
		}
		for _, l := range doc.Layers {
			if isTree && (l.MediaType == bundle.TypePack || bundle.IsPackIndex(l)) {
				packed = true
				continue
			}
			if err := visit(fileOf(l)); err != nil {
				return err
			}
		}
		layers += len(doc.Layers)
		if c := doc.Config; c != nil && !isEmptyConfig(c.Digest) && !seen[c.Digest] {
			seen[c.Digest] = true
			configs = append(configs, file{path: "/config/" + c.Digest.Short(), digest: c.Digest, size: c.Size})
		}
		return nil
	})
	if err != nil {
		return why, err
	}
	if layers == 0 && why == "" {
		why = "it has no files"
	}
	for _, c := range configs {
		if err := visit(c); err != nil {
			return why, err
		}
	}
	if packed && why == "" {
		return packedFilesOf(ctx, b, root, visit)
	}
	return why, nil
}

func fileOf(layer bundle.OCIDescriptor) file {
	f := file{path: layer.Annotations[bundle.TitleAnnotation], digest: layer.Digest, size: layer.Size}
	if bundle.CheckPath(f.path) != nil {
		f.path, f.badPath = layer.Digest.String(), f.path
	}
	return f
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
		return policy.Inspection{Status: notApplicable, Reason: "it is not made of plain files; its SBOM describes it", Files: []policy.InspectedFile{}, Counted: []policy.CountedFiles{}}, nil
	}
	return a.inspectionOf(ctx, a.Artifact.Root)
}

// inspectionOf states what inspection found in the files below a manifest.
func (a *artifact) inspectionOf(ctx context.Context, root bundle.Descriptor) (policy.Inspection, error) {
	stated := policy.Inspection{Status: inspectionDone, Files: []policy.InspectedFile{}}
	unread := "" // why the first of its files was not inspected
	counted := counter{}
	why, err := filesOf(ctx, a.Bundle, a.Artifact, root, func(f file) error {
		one, err := a.inspected(ctx, f)
		if err != nil {
			return err
		}
		if one.Format == "" && unread == "" {
			unread = one.Reason
		}
		if f.mayCount(a.Artifact, len(stated.Files)) && unremarkable(one) {
			return counted.add(one, a.meter)
		}
		a.meter.files++
		stated.Files = append(stated.Files, one)
		return a.meter.add(one)
	})
	stated.Counted = counted.sorted()
	switch {
	case err != nil:
		return stated, err
	case why != "":
		stated.Status, stated.Reason = inspectionFailed, why
	case a.Inspection == nil:
		stated.Status, stated.Reason = inspectionPending, "the content has not been looked into yet"
	case unread != "":
		stated.Status, stated.Reason = inspectionFailed, unread
	}
	return stated, nil
}

// inspected states one file. That it was not inspected is a fact; only the end
// of ctx is an error.
func (a *artifact) inspected(ctx context.Context, f file) (policy.InspectedFile, error) {
	one := f.state()
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
	return "it could not be looked into wholly: " + strings.Join(codes, ", ")
}

func finding(f inspect.Finding) policy.FileFinding {
	return policy.FileFinding{Code: f.Code, Untrusted: policy.FileFindingUntrusted{Path: f.Path, Detail: f.Detail}}
}

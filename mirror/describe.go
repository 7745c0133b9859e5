package mirror

import (
	"context"
	"errors"
	"fmt"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/child"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/sbom"
)

// describer makes the SBOMs of artifacts that are in the store, as referrers.
type describer struct {
	store    *cas.Store
	scanner  *ScanProgram // nil: not asked to
	absent   string       // why not, when scanner is nil
	version  string
	failed   error // why the scanner cannot even say its version
	progress Progress
	warn     func(what string, evidence []string)
}

func newDescriber(ctx context.Context, e *Exporter) (*describer, error) {
	d := &describer{store: e.Store, scanner: e.Scanner, absent: e.NoScan, progress: e.Progress, warn: e.Warn}
	if d.scanner == nil {
		return d, nil
	}
	var isolated bool
	d.version, isolated, d.failed = d.scanner.Version(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if d.failed == nil && !isolated && d.warn != nil {
		d.warn("the kernel does not keep the network from the scanner", nil)
	}
	return d, nil
}

// describe gives one entry for every subject of the artifact and the
// referrers that bind the documents.
func (d *describer) describe(ctx context.Context, p Pinned, manifests map[cas.Digest]bundle.OCIDescriptor) ([]bundle.SBOM, []bundle.Referrer, error) {
	var entries []bundle.SBOM
	var referrers []bundle.Referrer
	for _, subject := range p.Subjects {
		manifest, ok := manifests[subject.Digest]
		if !ok {
			return nil, nil, fmt.Errorf("%s %s: the subject %s is not below its root", p.Kind, p.Name, subject.Digest)
		}
		entry, referrer, err := d.describeOne(ctx, p, subject, manifest)
		if err != nil {
			return nil, nil, err
		}
		entries = append(entries, entry)
		if referrer != nil {
			referrers = append(referrers, *referrer)
		}
	}
	return entries, referrers, nil
}

func (d *describer) describeOne(ctx context.Context, p Pinned, s Subject, manifest bundle.OCIDescriptor) (bundle.SBOM, *bundle.Referrer, error) {
	entry := bundle.SBOM{Subject: s.Digest, Tool: d.version}
	if d.scanner == nil {
		entry.Status, entry.Reason = bundle.SBOMAbsent, d.absent
		return entry, nil, nil
	}
	document, unknowns, err := d.document(ctx, p, s, manifest)
	if ctx.Err() != nil {
		return entry, nil, context.Cause(ctx)
	}
	if err != nil {
		if local := d.local(ctx, err, manifest); local != nil {
			return entry, nil, local
		}
		entry.Status, entry.Reason = bundle.SBOMFailed, reason(err)
		d.tell(p, err)
		return entry, nil, nil
	}
	referrer, err := d.attach(ctx, document, manifest)
	if err != nil {
		return entry, nil, err
	}
	digest := cas.DigestOf(document)
	entry.Status, entry.Document, entry.Referrer, entry.Format, entry.Unknowns = bundle.SBOMPresent, &digest, &referrer.Digest, scanFormat, unknowns
	return entry, &bundle.Referrer{Subject: s.Digest, Descriptor: referrer}, nil
}

// local tells trouble of this machine (a full disk, a rotten store) from what
// a scan says about an artifact, for which it gives nil: only the latter is a
// fact for the manifest.
func (d *describer) local(ctx context.Context, err error, manifest bundle.OCIDescriptor) error {
	var failure *child.Error
	var document *sbom.Error
	if errors.As(err, &document) {
		return nil
	}
	if !errors.As(err, &failure) {
		return err
	}
	switch scannerCode(failure) {
	case "scan/disk":
		return problem.New("disk/full", "the scanner found no space below %s: %w", d.store.Dir(), err).With(failure.Evidence()...)
	case "scan/damaged":
		return d.dropRotten(ctx, manifest, err)
	}
	return nil
}

// dropRotten looks for the blob of a subject that is not what its name says.
func (d *describer) dropRotten(ctx context.Context, manifest bundle.OCIDescriptor, cause error) error {
	var rotten []string
	look := func(blob bundle.OCIDescriptor, _ bundle.Role) error {
		dropped, err := d.store.DropIfRotten(ctx, blob.Digest)
		if dropped {
			rotten = append(rotten, "dropped:  "+blob.Digest.String())
		}
		return err
	}
	read := func(m bundle.OCIDescriptor) ([]byte, error) {
		return d.store.ReadAll(m.Digest, bundle.MaxOCIManifestSize)
	}
	if err := bundle.Walk(manifest, read, look); err != nil && !isMissing(err) {
		return err
	}
	if len(rotten) == 0 {
		return cause
	}
	return problem.New("store/rotten", "blobs in the store were damaged; they are dropped now").
		With(rotten...).Hint("run the same command again: they are fetched again; look after the disk of %s", d.store.Dir())
}

// tell gives the whole failure of a scan to whoever watches; the manifest
// holds only its reason.
func (d *describer) tell(p Pinned, err error) {
	if d.warn == nil {
		return
	}
	d.warn(fmt.Sprintf("no SBOM of the %s %s: %s", p.Kind, p.Name, reason(err)), problem.EvidenceOf(err))
}

// document gives the SBOM of one subject: kept from before, or made now.
func (d *describer) document(ctx context.Context, p Pinned, s Subject, manifest bundle.OCIDescriptor) ([]byte, int, error) {
	if d.failed != nil {
		return nil, 0, d.failed
	}
	subject := sbom.Subject{
		Kind: string(p.Kind), Name: p.Name, Version: p.Version, Digest: s.Digest.String(), MediaType: manifest.MediaType, Platform: s.Platform,
	}
	note := "sbom-" + cas.DigestOf(fmt.Appendf(nil, "%s\n%s\n%+v", d.version, s.Since, subject)).Hex()[:16]
	if document, unknowns, ok := d.kept(note, s, subject); ok {
		return document, unknowns, nil
	}
	item := d.progress.Start(fmt.Sprintf("scan %s %s %s", p.Name, p.Version, s.Platform), 0)
	response, err := d.scanner.Scan(ctx, subject, manifest, s.Since.Time)
	item.Done(err)
	if err != nil {
		return nil, 0, err
	}
	digest, err := d.store.PutBytes(ctx, response.Document)
	if err != nil {
		return nil, 0, err
	}
	err = d.store.SetNote(note, s.Digest, fmt.Appendf(nil, "%s %d", digest, response.UnknownsTotal))
	return response.Document, response.UnknownsTotal, err
}

// kept finds a document of the same scanner, subject and time. Anything odd
// about it means that it is made again.
func (d *describer) kept(note string, s Subject, subject sbom.Subject) ([]byte, int, bool) {
	text, ok, err := d.store.Note(note, s.Digest)
	if err != nil || !ok {
		return nil, 0, false
	}
	var name string
	var unknowns int
	if _, err := fmt.Sscanf(string(text), "%s %d", &name, &unknowns); err != nil {
		return nil, 0, false
	}
	digest, err := cas.ParseDigest(name)
	if err != nil {
		return nil, 0, false
	}
	document, err := d.store.ReadAll(digest, sbom.MaxDocument)
	if err != nil {
		return nil, 0, false
	}
	_, err = sbom.Check(document, sbom.Expect{Subject: subject, Time: s.Since.UTC()})
	return document, unknowns, err == nil
}

// attach stores the document and the manifest that binds it to its subject.
func (d *describer) attach(ctx context.Context, document []byte, manifest bundle.OCIDescriptor) (bundle.Descriptor, error) {
	subject := bundle.Descriptor{MediaType: manifest.MediaType, Digest: manifest.Digest, Size: manifest.Size}
	digest, err := d.store.PutBytes(ctx, document)
	if err != nil {
		return bundle.Descriptor{}, err
	}
	referrer, config, err := bundle.BuildReferrer(sbom.MediaType, digest, int64(len(document)), subject)
	if err != nil {
		return bundle.Descriptor{}, err
	}
	if _, err := d.store.PutBytes(ctx, config); err != nil {
		return bundle.Descriptor{}, err
	}
	name, err := d.store.PutBytes(ctx, referrer)
	return bundle.Descriptor{MediaType: bundle.TypeOCIManifest, Digest: name, Size: int64(len(referrer)), ArtifactType: sbom.MediaType}, err
}

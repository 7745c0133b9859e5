package facts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/policy"
	"github.com/packhof/packhof/sbom"
)

// maxLicence bounds what is quoted of the name of a licence, in bytes.
const maxLicence = 1 << 10

// sboms states an entry for each subject: those of the manifest, and one that
// says absent for each platform, or for the root, that the manifest forgot.
func (a *artifact) sboms(ctx context.Context) (entries []policy.SBOM, licences []string, err error) {
	entries = []policy.SBOM{}
	found, said := map[string]bool{}, map[bundle.Digest]bool{}
	for _, s := range a.SBOM {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		said[s.Subject] = true
		entry, report := a.sbom(ctx, s)
		if err := a.meter.add(entry); err != nil {
			return nil, nil, err
		}
		for name := range report.Licences {
			licence := strings.ToValidUTF8(name[:min(len(name), maxLicence)], "?")
			if found[licence] {
				continue
			}
			if err := a.meter.add(licence); err != nil {
				return nil, nil, err
			}
			found[licence] = true
		}
		entries = append(entries, entry)
	}
	for _, subject := range a.subjects() {
		if said[subject] {
			continue
		}
		entry := policy.SBOM{Subject: subject.String(), Status: "absent", Reason: "the bundle says nothing about an SBOM of it"}
		if err := a.meter.add(entry); err != nil {
			return nil, nil, err
		}
		entries = append(entries, entry)
	}
	return entries, append([]string{}, slices.Sorted(maps.Keys(found))...), nil
}

// subjects are what must have an SBOM: each platform's manifest of an image,
// the root of anything else, and of an image that shows no platform.
func (a *artifact) subjects() []bundle.Digest {
	var subjects []bundle.Digest
	for _, p := range a.parts {
		if p.runnable {
			subjects = append(subjects, p.Digest)
		}
	}
	if len(subjects) == 0 {
		subjects = []bundle.Digest{a.Artifact.Root.Digest}
	}
	return subjects
}

func (a *artifact) sbom(ctx context.Context, s bundle.SBOM) (policy.SBOM, sbom.Report) {
	entry := policy.SBOM{Subject: s.Subject.String(), Status: string(s.Status), Reason: s.Reason}
	if s.Status != bundle.SBOMPresent {
		return entry, sbom.Report{}
	}
	bom, report, err := sbom.Skim(func() (io.ReadCloser, error) { return a.Bundle.Open(ctx, *s.Document) })
	var refused *sbom.Error
	if errors.As(err, &refused) && refused.Code() != "sbom/too-large" {
		return failed(entry, fmt.Sprintf("the SBOM %s is malformed", s.Document.Short())), sbom.Report{}
	}
	if err != nil {
		return failed(entry, missing("the SBOM", *s.Document, err)), sbom.Report{}
	}
	entry.Format, entry.Tool, entry.Unknowns = s.Format, s.Tool, int64(s.Unknowns)
	entry.Components, entry.Packages, entry.Unlicensed = int64(report.Components), int64(report.Packages), int64(report.Unlicensed)
	entry.Reason = a.unbound(s)
	if entry.Reason == "" && !names(bom, s.Subject) {
		entry.Reason = "the SBOM describes another subject"
	}
	entry.Bound = entry.Reason == ""
	if !entry.Bound {
		return entry, sbom.Report{} // licences of something else would say nothing
	}
	return entry, report
}

func failed(entry policy.SBOM, why string) policy.SBOM {
	entry.Status, entry.Reason = "failed", why
	return entry
}

// unbound says why the referrer does not tie the document to its subject; ""
// if it does.
func (a *artifact) unbound(s bundle.SBOM) string {
	i := slices.IndexFunc(a.Referrers, func(r bundle.Referrer) bool { return r.Subject == s.Subject && r.Descriptor.Digest == *s.Referrer })
	if i < 0 {
		return "no referrer ties the SBOM to its subject"
	}
	d := a.Referrers[i].Descriptor
	doc, why := readManifest(a.Bundle, bundle.OCIDescriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size})
	switch {
	case doc == nil:
		return why
	case doc.Subject == nil || doc.Subject.Digest != s.Subject:
		return "the referrer of the SBOM names another subject"
	case len(doc.Layers) != 1 || doc.Layers[0].Digest != *s.Document:
		return "the referrer of the SBOM holds another document"
	case !isEmptyConfig(doc.Config.Digest):
		return "the referrer of the SBOM holds more than the document"
	}
	return ""
}

// names tells whether a document says that it describes the subject, by the
// reference of ours or by the digest among its hashes.
func names(bom *cyclonedx.BOM, subject bundle.Digest) bool {
	if bom.Metadata == nil || bom.Metadata.Component == nil {
		return false
	}
	c := bom.Metadata.Component
	if c.BOMRef == subject.String() {
		return true
	}
	return c.Hashes != nil && slices.ContainsFunc(*c.Hashes, func(h cyclonedx.Hash) bool {
		return h.Algorithm == cyclonedx.HashAlgoSHA256 && strings.EqualFold(h.Value, subject.Hex())
	})
}

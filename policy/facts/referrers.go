package facts

import (
	"context"
	"slices"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/policy"
)

// Types of referrers that sign or attest.
const (
	typeCosign  = "application/vnd.dev.cosign.artifact.sig.v1+json"
	typeBundle  = "application/vnd.dev.sigstore.bundle.v0.3+json"
	typeNotary  = "application/vnd.cncf.notary.signature"
	typeInToto  = "application/vnd.in-toto+json"
	notVerified = "signatures of others are not verified here"
)

// What a referrer is for.
const (
	forSBOM        = "sbom" // named by the bundle's manifest as that of an SBOM
	forSignature   = "signature"
	forAttestation = "attestation"
	forOther       = "other" // nobody here knows what
)

// referrer is a referrer of an artifact.
type referrer struct {
	bundle.Referrer
	kind string
}

// referrersOf reads the referrers of an artifact.
func referrersOf(ctx context.Context, b *bundle.Bundle, a *bundle.Artifact) ([]referrer, error) {
	var all []referrer
	for _, r := range a.Referrers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		doc, _ := readManifest(b, bundle.OCIDescriptor{MediaType: r.Descriptor.MediaType, Digest: r.Descriptor.Digest, Size: r.Descriptor.Size})
		all = append(all, referrer{r, kindOf(a, r, doc)})
	}
	return all, nil
}

// kindOf says what a referrer is for. Its manifest and the bundle's must give
// it the same type: destinations show the one that it gives itself.
func kindOf(a *bundle.Artifact, r bundle.Referrer, doc *bundle.OCI) string {
	ofSBOM := func(s bundle.SBOM) bool {
		return s.Referrer != nil && *s.Referrer == r.Descriptor.Digest && s.Subject == r.Subject
	}
	switch {
	case slices.ContainsFunc(a.SBOM, ofSBOM):
		return forSBOM
	case doc == nil || typeOf(doc) != r.Descriptor.ArtifactType:
		return forOther
	}
	switch r.Descriptor.ArtifactType {
	case typeCosign, typeBundle, typeNotary:
		return forSignature
	case typeInToto:
		return forAttestation
	}
	return forOther
}

// typeOf is the type of an artifact as OCI 1.1 has it: without one of its own
// the config's counts.
func typeOf(doc *bundle.OCI) string {
	if doc.ArtifactType == "" && doc.Config != nil {
		return doc.Config.MediaType
	}
	return doc.ArtifactType
}

// referrers states what came along with the artifact, and what inspection
// found in it.
func (a *artifact) referrers(ctx context.Context) ([]policy.Referrer, error) {
	all := []policy.Referrer{}
	for _, r := range a.attached {
		one := policy.Referrer{
			Digest: r.Descriptor.Digest.String(), Subject: r.Subject.String(), Kind: r.kind,
			Untrusted: policy.ReferrerUntrusted{ArtifactType: r.Descriptor.ArtifactType},
		}
		err := a.meter.add(one)
		if err != nil {
			return nil, err
		}
		if one.Inspection, err = a.inspectionOf(ctx, r.Descriptor); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// signatures lists what signs or attests; that none of it has been verified is
// said of each.
func (a *artifact) signatures() ([]policy.Signature, error) {
	all := []policy.Signature{}
	for _, r := range a.attached {
		if r.kind != forSignature && r.kind != forAttestation {
			continue
		}
		one := policy.Signature{Subject: r.Subject.String(), Kind: r.kind, MediaType: r.Descriptor.ArtifactType, Reason: notVerified}
		if err := a.meter.add(one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

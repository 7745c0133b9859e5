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

// referrer is a referrer of an artifact, with the manifests below it.
type referrer struct {
	bundle.Referrer
	kind  string
	parts []part
}

// referrersOf reads the referrers of an artifact.
func referrersOf(ctx context.Context, b *bundle.Bundle, a *bundle.Artifact) ([]referrer, error) {
	var all []referrer
	for _, r := range a.Referrers {
		parts, err := manifestsOf(ctx, b, r.Descriptor)
		if err != nil {
			return nil, err
		}
		all = append(all, referrer{r, kindOf(a, r, parts[0].doc), parts})
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
		inspection, err := a.inspectionOf(ctx, r.parts)
		if err != nil {
			return nil, err
		}
		all = append(all, policy.Referrer{
			Digest: r.Descriptor.Digest.String(), Subject: r.Subject.String(), Kind: r.kind, Inspection: inspection,
			Untrusted: policy.ReferrerUntrusted{ArtifactType: r.Descriptor.ArtifactType},
		})
	}
	return all, nil
}

// signatures lists what signs or attests; that none of it has been verified is
// said of each.
func signatures(attached []referrer) []policy.Signature {
	all := []policy.Signature{}
	for _, r := range attached {
		if r.kind == forSignature || r.kind == forAttestation {
			all = append(all, policy.Signature{Subject: r.Subject.String(), Kind: r.kind, MediaType: r.Descriptor.ArtifactType, Reason: notVerified})
		}
	}
	return all
}

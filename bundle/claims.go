package bundle

import "github.com/packhof/packhof/signing"

// Claims is what a sealed bundle says of itself, for display only. It is no
// Manifest and cannot be passed on as one.
type Claims struct {
	Digest    Digest            `json:"digest"`
	Kind      ManifestKind      `json:"manifestKind"`
	Channel   string            `json:"channel"`
	Epoch     int64             `json:"epoch"`
	Serial    int64             `json:"serial"`
	Previous  *Digest           `json:"previous,omitempty"`
	Created   Instant           `json:"created"`
	Expires   Instant           `json:"expires"`
	Audience  []string          `json:"audience"`
	Artifacts []ClaimedArtifact `json:"artifacts"`
	SignedBy  []string          `json:"signedBy"` // key ids that the signatures claim
	Totals    Totals            `json:"totals"`
	Note      string            `json:"note,omitempty"`

	Documents  []Document   `json:"documents,omitempty"` // of a control bundle
	Answers    []Answer     `json:"answers,omitempty"`
	Withdraws  []Withdrawal `json:"withdraws,omitempty"`
	Extensions []string     `json:"extensions,omitempty"` // names of those that this program ignores
}

// ClaimedArtifact is an artifact as the bundle claims it.
type ClaimedArtifact struct {
	Kind      Kind      `json:"kind"`
	Name      string    `json:"name"`
	Version   string    `json:"version"`
	Digest    Digest    `json:"digest"`
	From      string    `json:"from"`
	Size      int64     `json:"size"`
	Platforms []string  `json:"platforms,omitempty"`
	SBOM      []SBOM    `json:"sbom"`
	Reference string    `json:"reference"` // its name in the OCI layout
	Transport Transport `json:"transport"`
	Verified  Verified  `json:"verified"`
}

// Claims parses the manifest for display, proving nothing.
func (s *Sealed) Claims() (*Claims, error) {
	m, err := parseManifest(s.head.Manifest)
	if err != nil {
		return nil, err
	}
	c := &Claims{
		Digest: s.head.Digest(), Kind: m.Kind, Channel: m.Channel, Epoch: m.Epoch, Serial: m.Serial, Previous: m.Previous,
		Created: m.Created, Expires: m.Expires, Audience: m.Audience, Totals: m.Totals, Note: m.Note,
		Documents: m.Documents, Answers: m.Answers, Withdraws: m.Withdraws, Extensions: m.Unknown(),
	}
	names := RefNames(m)
	for i, a := range m.Artifacts {
		c.Artifacts = append(c.Artifacts, ClaimedArtifact{
			Kind: a.Kind, Name: a.Name, Version: a.Version, Digest: a.Root.Digest, From: a.Origin.From, Size: a.Size, Platforms: a.Platforms,
			SBOM: a.SBOM, Reference: names[i], Transport: a.Origin.Transport, Verified: a.Origin.Verified,
		})
	}
	for _, raw := range s.head.raw() {
		if sig, err := signing.ParseBundle(raw); err == nil {
			c.SignedBy = append(c.SignedBy, sig.Claims().String())
		}
	}
	return c, nil
}

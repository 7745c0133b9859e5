package bundle

import (
	"encoding/json/jsontext"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// FormatV1 is the value of Manifest.Format that this package reads and writes.
const FormatV1 = "packhof.bundle/v1"

// Limits of a manifest.
const (
	MaxManifestSize = 16 << 20
	MaxBlobs        = 100_000
	maxText         = 64 << 10 // bytes of one text field
	maxName         = 255      // bytes
	maxVersion      = 128      // bytes
	maxBlobSize     = 1 << 50  // keeps every sum exact in a JSON number
)

// Digest names a blob.
type Digest = cas.Digest

// ManifestKind says what a bundle is for, and so which role must sign it.
type ManifestKind string

const (
	KindContent ManifestKind = "content" // artifacts
	KindControl ManifestKind = "control" // trust, revocations, policy, data; no artifacts
)

// Kind is the kind of an artifact.
type Kind string

const (
	Image    Kind = "image"
	Chart    Kind = "chart"
	Model    Kind = "model"
	Dataset  Kind = "dataset"
	Files    Kind = "files"
	Packages Kind = "packages"
)

// IsTree reports whether artifacts of the kind are files with paths: each layer
// is one, and TitleAnnotation of its descriptor is the path.
func (k Kind) IsTree() bool {
	switch k {
	case Model, Dataset, Files, Packages:
		return true
	}
	return false
}

// Kinds lists every kind of artifact that the format knows.
func Kinds() []Kind { return []Kind{Image, Chart, Model, Dataset, Files, Packages} }

// Manifest says what a serial of a channel is: the same bytes for every gate
// and every shipment. docs/bundle-format.md describes each field.
type Manifest struct {
	Format      string               `json:"format"`
	Kind        ManifestKind         `json:"kind"`
	Channel     string               `json:"channel"`
	Epoch       int64                `json:"epoch"`
	Serial      int64                `json:"serial"`
	Previous    *Digest              `json:"previous,omitempty"`
	Audience    []string             `json:"audience"`
	Created     Instant              `json:"created"`
	Expires     Instant              `json:"expires"`
	TrustRoot   Versioned            `json:"trustRoot"`
	Revocations Versioned            `json:"revocations"`
	Artifacts   []Artifact           `json:"artifacts"`
	Documents   []Document           `json:"documents,omitempty"`
	Incomplete  []Omission           `json:"incomplete,omitempty"`
	Blobs       []Blob               `json:"blobs"`
	Answers     []Answer             `json:"answers,omitempty"`
	Withdraws   []Withdrawal         `json:"withdraws,omitempty"`
	Note        string               `json:"note,omitempty"`
	Extensions  map[string]Extension `json:"extensions,omitempty"`
	Totals      Totals               `json:"totals"`
}

// Versioned names one version of a trust document.
type Versioned struct {
	Version int64  `json:"version"`
	Digest  Digest `json:"digest"`
}

// Artifact is one image, chart, model, dataset, file set or package set.
type Artifact struct {
	Kind      Kind              `json:"kind"`
	Name      string            `json:"name"`
	Version   string            `json:"version"`
	Origin    Origin            `json:"origin"`
	Root      Descriptor        `json:"root"`
	Referrers []Referrer        `json:"referrers"`
	Platforms []string          `json:"platforms,omitempty"`
	Size      int64             `json:"size"` // bytes of all its blobs, referrers included, each once
	Labels    map[string]string `json:"labels,omitempty"`
	SBOM      []SBOM            `json:"sbom"`
}

// Origin says where an artifact came from and how sure that is.
type Origin struct {
	From      string    `json:"from"`              // reference or URL without credentials
	At        Instant   `json:"at"`                // when it was resolved
	Transport Transport `json:"transport"`         // how the bytes travelled
	Verified  Verified  `json:"verified"`          // what the bytes were checked against
	Derived   *Derived  `json:"derived,omitempty"` // set when the root is not upstream's own
}

// Transport is how bytes reached the connected side.
type Transport string

const (
	TransportTLS   Transport = "tls"
	TransportPlain Transport = "plain" // http without TLS, where the configuration allowed it
	TransportLocal Transport = "local" // from a disk of the connected side
)

// Verified is what an artifact's bytes were checked against at fetch.
type Verified string

const (
	VerifiedDigest Verified = "digest"        // a digest the configuration named
	VerifiedLock   Verified = "first-resolve" // the digest the upstream gave when the lock was made
)

// Derived names the upstream index that a chosen part was taken from.
type Derived struct {
	From      Digest   `json:"from"`
	Platforms []string `json:"platforms"`
}

// Descriptor names an OCI manifest or index.
type Descriptor struct {
	MediaType    string `json:"mediaType"`
	Digest       Digest `json:"digest"`
	Size         int64  `json:"size"`
	ArtifactType string `json:"artifactType,omitempty"`
}

// Referrer is a manifest that refers to a part of an artifact.
type Referrer struct {
	Subject    Digest     `json:"subject"`
	Descriptor Descriptor `json:"descriptor"`
}

// SBOMStatus says whether there is an SBOM. Absence is a fact, never a gap.
type SBOMStatus string

const (
	SBOMPresent SBOMStatus = "present"
	SBOMAbsent  SBOMStatus = "absent" // nobody tried, and Reason says why
	SBOMFailed  SBOMStatus = "failed" // somebody tried, and Reason says what happened
)

// SBOM says what is known of the bill of materials of one subject.
type SBOM struct {
	Subject  Digest     `json:"subject"`
	Status   SBOMStatus `json:"status"`
	Document *Digest    `json:"document,omitempty"` // present: the document's blob
	Referrer *Digest    `json:"referrer,omitempty"` // present: the manifest that binds it to its subject
	Format   string     `json:"format,omitempty"`
	Tool     string     `json:"tool,omitempty"`
	Unknowns int        `json:"unknowns,omitempty"` // places that the tool could not look into
	Reason   string     `json:"reason,omitempty"`
}

// Document is what a control bundle carries.
type Document struct {
	Type     string `json:"type"` // such as policy; see DocumentTypes
	Version  string `json:"version"`
	Blob     Digest `json:"blob"`
	Critical bool   `json:"critical,omitempty"` // a gate that cannot apply it refuses the bundle
}

// Omission is what an export left out on request, and why.
type Omission struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Role says where in a volume a blob stands, and whether the head brings it.
type Role string

const (
	RoleMetadata Role = "metadata"
	RoleContent  Role = "content"
)

// Blob is one blob of the bundle.
type Blob struct {
	Digest Digest  `json:"digest"`
	Size   int64   `json:"size"`
	Role   Role    `json:"role"`
	Chunks *Digest `json:"chunks,omitempty"` // metadata blob with the digests of its 64 MiB chunks
}

// Extension is a named addition; only an unknown critical one refuses.
type Extension struct {
	Critical bool           `json:"critical"`
	Value    jsontext.Value `json:"value"`
}

// Totals repeats what the blobs add up to.
type Totals struct {
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
}

// EncodeManifest gives the canonical bytes of a valid manifest.
func EncodeManifest(m *Manifest) ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	b, err := encodeCanonical(m)
	if err == nil && len(b) > MaxManifestSize {
		return nil, problem.New("format/too-large", "the manifest would have %d bytes, more than the %d allowed", len(b), MaxManifestSize).
			Hint("split the artifacts over two channels or two serials")
	}
	return b, err
}

// ParseManifestUnsafe parses a manifest that nobody has vouched for here: one
// that the exporter itself has sealed and kept.
func ParseManifestUnsafe(b []byte) (*Manifest, error) { return parseManifest(b) }

// parseManifest parses strictly. A reader calls it inside Verify, on the bytes
// whose signatures were just checked, and for Claims, which are for display; a
// writer on bytes of its own.
func parseManifest(b []byte) (*Manifest, error) {
	var m Manifest
	if err := decodeStrict("the manifest packhof.json", b, MaxManifestSize, &m); err != nil {
		return nil, err
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return &m, nil
}

var (
	channelForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)
	gateIDForm  = regexp.MustCompile(`^gate-[a-z2-7]{16}$`)
)

// ValidChannel reports whether s can name a channel: 1 to 40 of a-z, 0-9 and
// inner hyphens, since it becomes part of file names.
func ValidChannel(s string) bool { return channelForm.MatchString(s) }

// ValidGateID reports whether s can be a gate's id.
func ValidGateID(s string) bool { return gateIDForm.MatchString(s) }

func invalid(format string, args ...any) error {
	return problem.New("format/invalid", "the manifest is not valid: "+format, args...)
}

// Validate checks everything that the manifest alone can show.
func (m *Manifest) Validate() error {
	checks := []func() error{m.validatePosition, m.validateKind, m.validateBlobs, m.validateArtifacts, m.validateRest}
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manifest) validatePosition() error {
	switch {
	case m.Format != FormatV1:
		return problem.New("format/unknown", "the manifest has format %.60q, this program reads %s", m.Format, FormatV1).
			Hint("use a version of packhof that reads it")
	case !ValidChannel(m.Channel):
		return invalid("%.60q cannot name a channel", m.Channel)
	case m.Epoch < 1 || m.Epoch > 1<<31 || m.Serial < 1 || m.Serial > 1<<31:
		return invalid("epoch %d, serial %d", m.Epoch, m.Serial)
	case m.Serial == 1 && m.Epoch == 1 && m.Previous != nil:
		return invalid("the first serial has no previous one")
	case len(m.Audience) == 0 || len(m.Audience) > 1000:
		return invalid("it is meant for %d gates", len(m.Audience))
	case !m.Created.Before(m.Expires.Time):
		return invalid("created %s, expires %s", m.Created, m.Expires)
	case m.TrustRoot.Version < 1 || m.Revocations.Version < 1:
		return invalid("trust root version %d, revocations version %d", m.TrustRoot.Version, m.Revocations.Version)
	}
	for i, id := range m.Audience {
		if !ValidGateID(id) || i > 0 && m.Audience[i-1] >= id {
			return invalid("audience: %.60q is no gate id, or the list is not sorted", id)
		}
	}
	return nil
}

func (m *Manifest) validateKind() error {
	switch m.Kind {
	case KindContent:
		if len(m.Documents) > 0 || len(m.Artifacts) == 0 {
			return invalid("a content bundle has artifacts and no documents; this has %d and %d", len(m.Artifacts), len(m.Documents))
		}
	case KindControl:
		if len(m.Artifacts) > 0 || len(m.Documents) == 0 {
			return invalid("a control bundle has documents and no artifacts; this has %d and %d", len(m.Documents), len(m.Artifacts))
		}
	default:
		return invalid("kind %.60q", m.Kind)
	}
	return nil
}

func (m *Manifest) validateBlobs() error {
	if len(m.Blobs) == 0 || len(m.Blobs) > MaxBlobs {
		return invalid("%d blobs, 1 to %d are possible", len(m.Blobs), MaxBlobs)
	}
	var bytes int64
	for i, b := range m.Blobs {
		if i > 0 && m.Blobs[i-1].Digest.Compare(b.Digest) >= 0 {
			return invalid("blobs are not sorted, or %s is there twice", b.Digest)
		}
		if err := m.validateBlob(b); err != nil {
			return err
		}
		if bytes += b.Size; bytes > maxBlobSize {
			return invalid("more than %d bytes in all", int64(maxBlobSize))
		}
	}
	if m.Totals.Files != int64(len(m.Blobs)) || m.Totals.Bytes != bytes {
		return invalid("totals say %d files, %d bytes; the blobs add up to %d files, %d bytes", m.Totals.Files, m.Totals.Bytes, len(m.Blobs), bytes)
	}
	return nil
}

func (m *Manifest) validateBlob(b Blob) error {
	if b.Size < 0 || b.Size > maxBlobSize {
		return invalid("blob %s has size %d", b.Digest, b.Size)
	}
	if b.Role != RoleMetadata && b.Role != RoleContent {
		return invalid("blob %s has role %.60q", b.Digest, b.Role)
	}
	needsChunks := b.Role == RoleContent && b.Size > ChunkSize
	if needsChunks != (b.Chunks != nil) {
		return invalid("blob %s of %d bytes and role %s: a chunk list is for content over %d bytes, and only that", b.Digest, b.Size, b.Role, ChunkSize)
	}
	if b.Chunks != nil {
		if list, ok := m.Blob(*b.Chunks); !ok || list.Role != RoleMetadata {
			return invalid("chunk list %s of blob %s is not a metadata blob of this bundle", b.Chunks, b.Digest)
		}
	}
	return nil
}

// Blob finds a blob by its digest.
func (m *Manifest) Blob(d Digest) (Blob, bool) {
	i, ok := slices.BinarySearchFunc(m.Blobs, d, func(b Blob, d Digest) int { return b.Digest.Compare(d) })
	if !ok {
		return Blob{}, false
	}
	return m.Blobs[i], true
}

func (m *Manifest) validateArtifacts() error {
	seen := map[string]bool{}
	for i := range m.Artifacts {
		a := &m.Artifacts[i]
		if err := m.validateArtifact(a); err != nil {
			return fmt.Errorf("artifact %.200q: %w", a.Name, err)
		}
		key := fmt.Sprintf("%s\x00%s\x00%s", a.Kind, a.Name, a.Version)
		if seen[key] {
			return invalid("the %s %.200q, version %.200q, is there twice", a.Kind, a.Name, a.Version)
		}
		seen[key] = true
	}
	return nil
}

func (m *Manifest) validateArtifact(a *Artifact) error {
	if !slices.Contains(Kinds(), a.Kind) {
		return invalid("kind %.60q", a.Kind)
	}
	if err := CheckArtifactName(a.Name, a.Version); err != nil {
		return invalid("%w", err)
	}
	if err := validateOrigin(a.Origin); err != nil {
		return err
	}
	if err := validateWords(a); err != nil {
		return err
	}
	if err := m.validateDescriptor(a.Root); err != nil {
		return err
	}
	for _, r := range a.Referrers {
		if err := m.validateDescriptor(r.Descriptor); err != nil {
			return err
		}
		if _, ok := m.Blob(r.Subject); !ok {
			return invalid("referrer %s names the subject %s, which is not in the bundle", r.Descriptor.Digest, r.Subject)
		}
	}
	return m.validateSBOMs(a)
}

// validateWords bounds the small texts of an artifact, all of which people get
// to see.
func validateWords(a *Artifact) error {
	texts := append([]string{a.Root.ArtifactType}, a.Platforms...)
	if a.Origin.Derived != nil {
		texts = append(texts, a.Origin.Derived.Platforms...)
	}
	for key, value := range a.Labels {
		texts = append(texts, key, value)
	}
	for _, r := range a.Referrers {
		texts = append(texts, r.Descriptor.ArtifactType)
	}
	for _, s := range a.SBOM {
		texts = append(texts, s.Format, s.Tool, s.Reason)
		if s.Unknowns < 0 {
			return invalid("an SBOM has %d unknown places", s.Unknowns)
		}
	}
	for _, text := range texts {
		if len(text) > maxWord || !printable(text) {
			return invalid("%.60q is longer than %d bytes or not printable", text, maxWord)
		}
	}
	return nil
}

// maxWord bounds platforms, labels, tools, reasons and types, in bytes.
const maxWord = 1024

func validateOrigin(o Origin) error {
	if o.From == "" || len(o.From) > maxText || !printable(o.From) {
		return invalid("origin: from is empty, too long or not printable")
	}
	if err := seen("origin: from", o.From); err != nil {
		return invalid("%w", err)
	}
	if !slices.Contains([]Transport{TransportTLS, TransportPlain, TransportLocal}, o.Transport) {
		return invalid("origin: transport %.60q", o.Transport)
	}
	if !slices.Contains([]Verified{VerifiedDigest, VerifiedLock}, o.Verified) {
		return invalid("origin: verified %.60q", o.Verified)
	}
	return nil
}

func (m *Manifest) validateDescriptor(d Descriptor) error {
	b, ok := m.Blob(d.Digest)
	switch {
	case !ok:
		return invalid("%s is named and not in the list of blobs", d.Digest)
	case b.Size != d.Size:
		return invalid("%s has %d bytes here and %d in the list of blobs", d.Digest, d.Size, b.Size)
	case b.Role != RoleMetadata:
		return invalid("the manifest %s is not listed as metadata", d.Digest)
	case !slices.Contains(manifestTypes(), d.MediaType):
		return invalid("%s has media type %.100q, which is no manifest and no index", d.Digest, d.MediaType)
	}
	return nil
}

// validateSBOMs is part of the floor that no policy can lower: every artifact
// says of its SBOM whether it is there.
func (m *Manifest) validateSBOMs(a *Artifact) error {
	if len(a.SBOM) == 0 {
		return invalid("nothing is said about an SBOM")
	}
	for _, s := range a.SBOM {
		if _, ok := m.Blob(s.Subject); !ok {
			return invalid("the SBOM's subject %s is not in the bundle", s.Subject)
		}
		switch s.Status {
		case SBOMPresent:
			if s.Document == nil || s.Referrer == nil || s.Format == "" || s.Reason != "" {
				return invalid("an SBOM that is present names document, referrer and format, and no reason")
			}
			bound := slices.ContainsFunc(a.Referrers, func(r Referrer) bool {
				return r.Subject == s.Subject && r.Descriptor.Digest == *s.Referrer
			})
			if _, ok := m.Blob(*s.Document); !ok || !bound {
				return invalid("the SBOM of %s is not bound to it", s.Subject)
			}
		case SBOMAbsent, SBOMFailed:
			if s.Document != nil || s.Referrer != nil || s.Reason == "" {
				return invalid("an SBOM that is %s has a reason, and no document", s.Status)
			}
		default:
			return invalid("SBOM status %.60q", s.Status)
		}
	}
	return nil
}

func (m *Manifest) validateRest() error {
	if err := m.validateDocuments(); err != nil {
		return err
	}
	if err := m.validateNotices(); err != nil {
		return err
	}
	for _, o := range m.Incomplete {
		if !isWord(o.Name) || !isWord(o.Reason) {
			return invalid("what was left out has a name and a reason of 1 to %d printable bytes each", maxWord)
		}
	}
	if len(m.Note) > maxText || !utf8.ValidString(m.Note) {
		return invalid("the note has more than %d bytes", maxText)
	}
	return m.validateExtensions()
}

func unknownExtension(name string) error {
	return problem.New("format/critical-extension", "the manifest needs the extension %.100q, which this program does not know", name).
		Hint("use a version of packhof that knows it")
}

func isWord(s string) bool { return s != "" && len(s) <= maxWord && printable(s) }

// CheckWord says what is wrong with a small text that people get to see, such as
// a reason; nil if nothing is.
func CheckWord(s string) error {
	if !isWord(s) {
		return invalidWord("%.60q is empty, longer than 1024 bytes or not printable", s)
	}
	return nil
}

func invalidWord(format, s string) error { return fmt.Errorf(format, s) }

// CheckArtifactName says what is wrong with a name and version that an
// artifact is to have in a bundle; nil if nothing is.
func CheckArtifactName(name, version string) error {
	switch {
	case name == "" || len(name) > maxName || !printable(name):
		return fmt.Errorf("the name %.60q is empty, longer than %d bytes or not printable", name, maxName)
	case version == "" || len(version) > maxVersion || !printable(version):
		return fmt.Errorf("the version %.60q is empty, longer than %d bytes or not printable", version, maxVersion)
	}
	if err := seen("the name", name); err != nil {
		return err
	}
	return seen("the version", version)
}

// CheckText says what is wrong with a note; nil if nothing is.
func CheckText(s string) error {
	if len(s) > maxText || !utf8.ValidString(s) {
		return fmt.Errorf("it has more than %d bytes, or is not UTF-8", maxText)
	}
	return nil
}

// printable refuses control and formatting characters (bidi marks among
// them), which have no place in a name that people read and compare.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) || r == '\u2028' || r == '\u2029' })
}

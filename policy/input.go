package policy

import "time"

// FormatV1 is the value of Input.Format that this package judges.
const FormatV1 = "packhof.policy-input/v1"

// Input is the one document that rules see. Its schema is closed: every
// property is required, none may be added, no list is null. What is not there
// is said by a value ("", an empty list, "absent"), never by leaving it out.
// docs/policy.md describes each property; the tags bound their values.
//
// Digests are "sha256:" and 64 hexadecimal digits. Sizes are bytes.
type Input struct {
	Format    string     `json:"format" jsonschema:"enum=packhof.policy-input/v1"`
	Bundle    Bundle     `json:"bundle"`
	Time      Time       `json:"time"`
	Preview   bool       `json:"preview"` // stated from the metadata alone: content has not been looked into
	Artifacts []Artifact `json:"artifacts"`
	Removed   []Removed  `json:"removed"`
}

// Instant is a time as "2026-11-30T12:00:00Z": UTC, whole seconds, so that
// text order is time order. "" where there is none.
type Instant string

// At is the instant of a time; "" for the zero time.
func At(t time.Time) Instant {
	if t.IsZero() {
		return ""
	}
	return Instant(t.UTC().Format(instantForm))
}

const instantForm = "2006-01-02T15:04:05Z"

// Bundle is what the signed manifest says of itself, and who vouched for it.
type Bundle struct {
	Digest    string          `json:"digest" jsonschema:"pattern=^sha256:[0-9a-f]{64}$"` // of the manifest
	Kind      string          `json:"kind" jsonschema:"enum=content,enum=control"`
	Channel   string          `json:"channel" jsonschema:"minLength=1"`
	Epoch     int64           `json:"epoch" jsonschema:"minimum=0"`
	Serial    int64           `json:"serial" jsonschema:"minimum=0"`
	Previous  string          `json:"previous" jsonschema:"pattern=^(sha256:[0-9a-f]{64})?$"` // "" for the first of a channel
	Gap       []int64         `json:"gap"`                                                    // serials between the last accepted one and this that never arrived
	Created   Instant         `json:"created"`
	Expires   Instant         `json:"expires"`
	Audience  []string        `json:"audience"`
	Role      string          `json:"role"`                             // that had to vouch, such as "bundle:plant-7"
	Threshold int64           `json:"threshold" jsonschema:"minimum=0"` // how many of the role had to
	Signers   []Signer        `json:"signers"`                          // who did
	Blobs     int64           `json:"blobs" jsonschema:"minimum=0"`
	Bytes     int64           `json:"bytes" jsonschema:"minimum=0"`
	Omitted   []Omission      `json:"omitted"` // what the export left out on request
	Untrusted BundleUntrusted `json:"untrusted"`
}

// Signer is a key that vouched for the manifest, as the trust root knows it.
type Signer struct {
	KeyID     string  `json:"keyId" jsonschema:"minLength=1"`
	Owner     string  `json:"owner"`
	Role      string  `json:"role"`
	NotBefore Instant `json:"notBefore"`
	NotAfter  Instant `json:"notAfter"`
}

// Omission is something that the manifest says is not in the bundle.
type Omission struct {
	Name      string            `json:"name"`
	Untrusted OmissionUntrusted `json:"untrusted"`
}

// OmissionUntrusted is free text of the sender.
type OmissionUntrusted struct {
	Reason string `json:"reason"`
}

// BundleUntrusted is free text of the sender.
type BundleUntrusted struct {
	Note string `json:"note"`
}

// Time is all that rules know of time; they have no clock.
type Time struct {
	Floor       Instant `json:"floor"`       // it is certainly not earlier
	Wall        Instant `json:"wall"`        // what the clock on the wall says
	SkewSeconds int64   `json:"skewSeconds"` // wall minus floor
}

// Artifact is one artifact of the bundle.
type Artifact struct {
	Kind         string            `json:"kind" jsonschema:"enum=image,enum=chart,enum=model,enum=dataset,enum=files,enum=packages"`
	Name         string            `json:"name" jsonschema:"minLength=1"`
	Version      string            `json:"version"`
	Digest       string            `json:"digest" jsonschema:"pattern=^sha256:[0-9a-f]{64}$"` // of its root
	Origin       Origin            `json:"origin"`
	Platforms    []string          `json:"platforms"`
	Size         int64             `json:"size" jsonschema:"minimum=0"`
	Licences     []string          `json:"licences"`     // SPDX ids, expressions or names, from its SBOMs, sorted
	Destinations []string          `json:"destinations"` // names of the destinations it is planned for
	Change       Change            `json:"change"`
	Image        Image             `json:"image"`
	Inspection   Inspection        `json:"inspection"`
	SBOM         []SBOM            `json:"sbom"`       // one entry for each subject
	Signatures   []Signature       `json:"signatures"` // signatures and attestations of others that came along
	Referrers    []Referrer        `json:"referrers"`  // everything attached to it, its SBOMs included
	Untrusted    ArtifactUntrusted `json:"untrusted"`
}

// Origin says where an artifact was fetched and how sure that is.
type Origin struct {
	Host      string `json:"host"` // lower case, with the port if one was named; "" for a local disk
	From      string `json:"from" jsonschema:"minLength=1"`
	Transport string `json:"transport" jsonschema:"enum=tls,enum=plain,enum=local"`
	Verified  string `json:"verified" jsonschema:"enum=digest,enum=first-resolve"`
	Pinned    bool   `json:"pinned"` // the bytes are those of a digest written down before the fetch
}

// Change compares with the last release of the channel.
type Change struct {
	State       string `json:"state" jsonschema:"enum=new,enum=updated,enum=unchanged"`
	FromVersion string `json:"fromVersion"` // "" if new
	FromDigest  string `json:"fromDigest" jsonschema:"pattern=^(sha256:[0-9a-f]{64})?$"`
}

// Removed is an artifact of the channel's last release that this bundle no
// longer has.
type Removed struct {
	Kind    string `json:"kind" jsonschema:"enum=image,enum=chart,enum=model,enum=dataset,enum=files,enum=packages"`
	Name    string `json:"name" jsonschema:"minLength=1"`
	Version string `json:"version"`
	Digest  string `json:"digest" jsonschema:"pattern=^sha256:[0-9a-f]{64}$"`
}

// Image is what the configs of an image say.
type Image struct {
	Status  string        `json:"status" jsonschema:"enum=read,enum=not-applicable,enum=unread"`
	Reason  string        `json:"reason"`  // why unread; otherwise ""
	Configs []ImageConfig `json:"configs"` // one for each platform manifest
}

// ImageConfig is the config of one platform.
type ImageConfig struct {
	Platform     string               `json:"platform"`                                          // "linux/amd64"
	Digest       string               `json:"digest" jsonschema:"pattern=^sha256:[0-9a-f]{64}$"` // of the platform manifest
	Status       string               `json:"status" jsonschema:"enum=read,enum=unread"`
	Reason       string               `json:"reason"` // why unread; otherwise ""
	User         string               `json:"user"`   // as written; "" means root
	Entrypoint   []string             `json:"entrypoint"`
	Command      []string             `json:"command"`
	EnvNames     []string             `json:"envNames"`     // names only: values may be secrets
	ExposedPorts []string             `json:"exposedPorts"` // "8080/tcp"
	Untrusted    ImageConfigUntrusted `json:"untrusted"`
}

// ImageConfigUntrusted is free text of the image's maker.
type ImageConfigUntrusted struct {
	Labels []Label `json:"labels"`
}

// Label is one label, sorted by name in its list.
type Label struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Inspection is what looking into the content found.
type Inspection struct {
	Status string          `json:"status" jsonschema:"enum=done,enum=pending,enum=failed,enum=not-applicable"`
	Reason string          `json:"reason"` // why pending, failed or not applicable; otherwise ""
	Files  []InspectedFile `json:"files"`
	// Counted are files of packs that are not among Files: of very many, those
	// that there is nothing to say about beyond what stands here.
	Counted []CountedFiles `json:"counted"`
}

// CountedFiles are files of one format whose names end alike. They have neither
// findings nor a name that contradicts their content, and all of each was read.
type CountedFiles struct {
	Format string `json:"format"`
	Ending string `json:"ending"` // of the names, such as ".txt"; "" for none, or one that is not short
	Files  int64  `json:"files" jsonschema:"minimum=0"`
	Bytes  int64  `json:"bytes" jsonschema:"minimum=0"`
}

// InspectedFile is one file of an artifact. Its format comes from its content,
// never from its name.
type InspectedFile struct {
	Path       string        `json:"path" jsonschema:"minLength=1"`
	Digest     string        `json:"digest" jsonschema:"pattern=^sha256:[0-9a-f]{64}$"`
	Size       int64         `json:"size" jsonschema:"minimum=0"`
	Format     string        `json:"format"`   // "unknown" if nothing fits, "" if not looked into
	NameSays   string        `json:"nameSays"` // the format that the name suggests, "" if none
	Mismatch   bool          `json:"mismatch"` // name and content contradict each other
	Findings   []FileFinding `json:"findings"`
	Unreadable bool          `json:"unreadable"` // something in it could not be looked into
	Reason     string        `json:"reason"`     // why unreadable; otherwise ""
}

// FileFinding is something noteworthy in a file, or in a file within it.
type FileFinding struct {
	Code      string               `json:"code" jsonschema:"minLength=1"` // such as "pickle.content"
	Untrusted FileFindingUntrusted `json:"untrusted"`
}

// FileFindingUntrusted quotes the file.
type FileFindingUntrusted struct {
	Path   string `json:"path"` // within the file; "" for the file itself
	Detail string `json:"detail"`
}

// SBOM is what is known of the bill of materials of one subject: for an image
// each platform manifest, otherwise the root.
type SBOM struct {
	Subject    string `json:"subject" jsonschema:"pattern=^sha256:[0-9a-f]{64}$"`
	Status     string `json:"status" jsonschema:"enum=present,enum=absent,enum=failed"`
	Bound      bool   `json:"bound"`  // a referrer ties the document to the subject, and the document names it
	Format     string `json:"format"` // "" unless present
	Tool       string `json:"tool"`   // "" unless present
	Components int64  `json:"components" jsonschema:"minimum=0"`
	Packages   int64  `json:"packages" jsonschema:"minimum=0"`
	Unlicensed int64  `json:"unlicensed" jsonschema:"minimum=0"` // packages without a licence
	Unknowns   int64  `json:"unknowns" jsonschema:"minimum=0"`   // places the tool could not look into
	Reason     string `json:"reason"`                            // why absent, failed or not bound; otherwise ""
}

// Signature is a signature or attestation by someone else than the bundle's
// signers, such as an image's publisher.
type Signature struct {
	Subject       string `json:"subject" jsonschema:"pattern=^sha256:[0-9a-f]{64}$"`
	Kind          string `json:"kind" jsonschema:"enum=signature,enum=attestation"`
	MediaType     string `json:"mediaType"`
	PredicateType string `json:"predicateType"` // "" for a signature
	Verified      bool   `json:"verified"`
	By            string `json:"by"`     // who, if verified; otherwise ""
	Reason        string `json:"reason"` // why not verified; otherwise ""
}

// Referrer is something attached to an artifact, or to a part of it.
type Referrer struct {
	Digest     string            `json:"digest" jsonschema:"pattern=^sha256:[0-9a-f]{64}$"` // of its manifest
	Subject    string            `json:"subject" jsonschema:"pattern=^sha256:[0-9a-f]{64}$"`
	Kind       string            `json:"kind" jsonschema:"enum=sbom,enum=signature,enum=attestation,enum=other"` // sbom: one that sbom is about; other: nobody knows
	Inspection Inspection        `json:"inspection"`                                                             // of what it holds
	Untrusted  ReferrerUntrusted `json:"untrusted"`
}

// ReferrerUntrusted is what whoever attached it calls it.
type ReferrerUntrusted struct {
	ArtifactType string `json:"artifactType"`
}

// ArtifactUntrusted is free text of whoever made the artifact.
type ArtifactUntrusted struct {
	Labels []Label `json:"labels"`
}

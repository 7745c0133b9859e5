package gate

import (
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/policy"
)

// Review is what people decide on: the same for every language and screen. An
// approval is bound to its Digest, so that any change of the bundle, the
// policy, the findings or the destinations voids it.
type Review struct {
	Case      CaseID         `json:"case"`
	Manifest  bundle.Digest  `json:"manifest"`
	Kind      string         `json:"kind"` // content or control
	Channel   string         `json:"channel"`
	Epoch     int64          `json:"epoch"`
	Serial    int64          `json:"serial"`
	Previous  *bundle.Digest `json:"previous"`
	Missing   []int64        `json:"missing"`        // serials before it that never arrived
	Later     *ReviewLater   `json:"later,omitzero"` // of the channel, loaded already; nil if there is none
	Created   bundle.Instant `json:"created"`
	Expires   bundle.Instant `json:"expires"`
	Note      string         `json:"note"` // of the sender; untrusted text
	Submitter string         `json:"submitter"`

	Signers            []ReviewSigner    `json:"signers"`
	Threshold          int               `json:"threshold"`
	RootVersion        int               `json:"rootVersion"`
	RevocationsVersion int               `json:"revocationsVersion"`
	BlobsChecked       int64             `json:"blobsChecked"`
	BytesChecked       int64             `json:"bytesChecked"`
	OmittedByTheSender []bundle.Omission `json:"omitted"`

	Verdict        policy.Verdict   `json:"verdict"`
	PolicyDigest   string           `json:"policyDigest"`
	FindingsDigest string           `json:"findingsDigest"`
	Findings       []policy.Finding `json:"findings"`
	Errors         []policy.Failure `json:"errors"`

	Artifacts []ReviewArtifact `json:"artifacts"`
	Removed   []ReviewRemoved  `json:"removed"` // in the last release of the channel, and not in this

	// Of a control bundle its documents; of either kind what else the sender
	// says. Nothing where there is nothing: reviews of before have none of it.
	Documents []ReviewDocument   `json:"documents,omitempty"`
	Answers   []bundle.Answer    `json:"answers,omitempty"`
	Withdraws []ReviewWithdrawal `json:"withdraws,omitempty"`
	Ignored   []string           `json:"ignored,omitempty"`   // extensions that this version does not know
	Abandoned []int64            `json:"abandoned,omitempty"` // serials just before it that the sender gave up

	Unfinished []int64 `json:"unfinished,omitempty"` // serials before it of which not all has arrived

	Needed  int      `json:"needed"`  // people who have to approve
	Waivers []string `json:"waivers"` // none yet
}

// ReviewLater is the latest delivery of a channel that was loaded.
type ReviewLater struct {
	Case   CaseID `json:"case"`
	Epoch  int64  `json:"epoch"`
	Serial int64  `json:"serial"`
}

// ReviewSigner is one key that vouched.
type ReviewSigner struct {
	Owner string `json:"owner"`
	Key   string `json:"key"` // id, hex
}

// ReviewArtifact is an artifact with what becomes of it.
type ReviewArtifact struct {
	Kind        bundle.Kind      `json:"kind"`
	Name        string           `json:"name"`
	Version     string           `json:"version"`
	Digest      bundle.Digest    `json:"digest"`
	From        string           `json:"from"`
	Transport   bundle.Transport `json:"transport"`
	Verified    bundle.Verified  `json:"verified"`
	Platforms   []string         `json:"platforms"`
	Size        int64            `json:"size"`
	SBOM        []ReviewSBOM     `json:"sbom"`
	Files       []ReviewFile     `json:"files"` // of trees; the first 1,000
	FilesTotal  int              `json:"filesTotal"`
	Referrers   []ReviewReferrer `json:"referrers"`           // what is attached to it
	Change      string           `json:"change"`              // new, updated or unchanged, against what the plant holds
	FromVersion string           `json:"fromVersion"`         // of an update
	Plan        []ReviewPlan     `json:"plan"`                // one entry a destination that accepts it
	Withdrawn   string           `json:"withdrawn,omitempty"` // why its channel withdrew it; "" where it did not
}

// ReviewSBOM is what is known of one subject's bill of materials.
type ReviewSBOM struct {
	Subject    bundle.Digest     `json:"subject"`
	Status     bundle.SBOMStatus `json:"status"`
	Format     string            `json:"format"`
	Tool       string            `json:"tool"`
	Components int               `json:"components"`
	Reason     string            `json:"reason"`
}

// ReviewFile is a file of a tree, with what inspection says it is.
type ReviewFile struct {
	Path   string        `json:"path"`
	Size   int64         `json:"size"`
	Digest bundle.Digest `json:"digest"`
	Format string        `json:"format"`
}

// ReviewReferrer is a manifest that is attached to an artifact.
type ReviewReferrer struct {
	Digest  bundle.Digest `json:"digest"`
	Subject bundle.Digest `json:"subject"`
	Kind    string        `json:"kind"` // sbom, signature, attestation or other
	Type    string        `json:"type"` // as it calls itself; untrusted text
}

// ReviewPlan is the name that an artifact gets at a destination, and what the
// gate published there under it before.
type ReviewPlan struct {
	Destination string         `json:"destination"`
	Location    string         `json:"location"` // where the destination is: a host and path, or a URL
	Name        string         `json:"name"`
	Replaces    *bundle.Digest `json:"replaces"`
	Owner       string         `json:"owner"` // channel that has the name, if it is another one: this case cannot be released
	Kept        bool           `json:"kept"`  // a later serial has the name, and keeps it
	Same        bool           `json:"same"`  // the very content stands under the name already
}

// ReviewRemoved is an artifact that the channel carried last and does not now.
// Its names stay as they are.
type ReviewRemoved struct {
	Kind    bundle.Kind   `json:"kind"`
	Name    string        `json:"name"`
	Version string        `json:"version"`
	Digest  bundle.Digest `json:"digest"`
}

// Decision is what a person decided on a case.
type Decision struct {
	Actor  string    `json:"actor"`
	Choice Choice    `json:"choice"`
	Reason string    `json:"reason"`
	Bound  string    `json:"boundTo"` // digest of the review document that was on the page
	At     time.Time `json:"at"`
	Counts bool      `json:"counts"` // false once something changed after it
}

// Choice is yes or no.
type Choice string

const (
	Approve Choice = "approve"
	Reject  Choice = "reject"
)

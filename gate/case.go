package gate

import (
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/policy"
)

// State is where a case stands. Each has one noun in each language.
type State string

const (
	Received     State = "received"          // its head is genuine and fresh; content is being copied
	Verified     State = "verified"          // every byte is here and is the promised one
	Inspected    State = "inspected"         // every file was looked into
	Awaiting     State = "awaiting approval" // judged; people have to decide
	Approved     State = "approved"          // enough people have; or none are needed
	Loading      State = "loading"           // being written to the destinations
	Loaded       State = "loaded"            // it is there, and was read back
	PartlyLoaded State = "partly loaded"     // some of it is; release goes on
	CheckFailed  State = "check failed"      // no verdict could be reached, so nothing is let in
	NotGenuine   State = "not genuine"       // end: nobody whom the gate trusts vouches for it
	Damaged      State = "damaged"           // the medium does not hold what was signed; receive again
	Blocked      State = "blocked"           // end: the policy, or the floor below it, denies
	Rejected     State = "rejected"          // end: a person said no
	Expired      State = "expired"           // end: too old

	// Unreadable is no state of a case but of its row, which cannot be right:
	// nothing is done with it.
	Unreadable State = "unreadable"
)

// States lists every state.
func States() []State {
	return []State{Received, Verified, Inspected, Awaiting, Approved, Loading, Loaded, PartlyLoaded, CheckFailed, NotGenuine, Damaged, Blocked, Rejected, Expired, Unreadable}
}

// Final reports whether nothing can follow.
func (s State) Final() bool {
	switch s {
	case Loaded, NotGenuine, Blocked, Rejected, Expired, Unreadable:
		return true
	}
	return false
}

// CaseID numbers cases from 1, in the order of their arrival.
type CaseID = int64

// Summary is a case as a list shows it.
type Summary struct {
	ID        CaseID         `json:"id"`
	State     State          `json:"state"`
	Verdict   policy.Verdict `json:"verdict,omitempty"` // "" before the policy has judged
	Channel   string         `json:"channel"`           // as claimed while State is "not genuine"
	Epoch     int64          `json:"epoch"`
	Serial    int64          `json:"serial"`
	Manifest  bundle.Digest  `json:"manifest,omitzero"`
	Size      int64          `json:"size"` // bytes
	Artifacts int            `json:"artifacts"`
	Submitter string         `json:"submitter"`
	Arrived   time.Time      `json:"arrived"`
	Changed   time.Time      `json:"changed"`
	Deny      int            `json:"deny"` // findings of each level
	Review    int            `json:"review"`
	Warn      int            `json:"warn"`
	Approvals int            `json:"approvals"`           // that count
	Needed    int            `json:"needed"`              // approvals
	Withdrawn int            `json:"withdrawn,omitempty"` // names of it that stand for what its channel has withdrawn

	// Waiting says that the case is received, and that nobody is bringing more
	// of it at this moment.
	Waiting bool `json:"waiting,omitempty"`

	// Later is the later delivery of its channel that is loaded already, while
	// the case is not at its end; nil if there is none.
	Later *ReviewLater `json:"later,omitempty"`
}

// Lacking is what a case still waits for.
type Lacking struct {
	Bytes   int64 `json:"bytes"`
	Volumes []int `json:"volumes"` // numbers of the volumes that have it, of the set that the last one belongs to
	Of      int   `json:"of"`      // how many volumes that set has
}

// Case is everything that is known of a case, without what the people who
// decide are bound to: that is Review.
type Case struct {
	Summary
	// Known says, in the answer to Receive alone, that all of the bundle was
	// here already, so that nothing of the medium but its head was read.
	Known bool `json:"known,omitempty"`
	// KnownVolume says the same of one volume, while others are lacking.
	KnownVolume bool `json:"knownVolume,omitempty"`
	// Lacks says what other volumes have to bring before the case goes on; nil
	// when nothing, and outside of the answer to Receive also where the numbers
	// of the volumes are not known.
	Lacks    *Lacking `json:"lacks,omitempty"`
	File     string   `json:"file"`              // name of the file it came in
	Problem  *Problem `json:"problem,omitempty"` // why it stands where it stands
	Progress int64    `json:"progress"`          // bytes of its content that are here
	History  []Event  `json:"history"`           // oldest first
	Loads    []Load   `json:"loads"`             // what was done at each destination
}

// Problem is an error as it is kept: what a person met, and can read again.
type Problem struct {
	Code     string   `json:"code"`
	What     string   `json:"what"`
	Evidence []string `json:"evidence"`
	Remedy   string   `json:"remedy"`
}

// Event is something that happened to a case, from the audit log.
type Event struct {
	Leaf    int64     `json:"leaf"` // its number in the audit log
	At      time.Time `json:"at"`
	Actor   string    `json:"actor"`
	Type    string    `json:"type"`    // such as case.received, case.approved, load.intent
	Outcome string    `json:"outcome"` // ok, refused or failed
	Detail  string    `json:"detail"`  // for people; English

	Said Sentence `json:"said,omitzero"` // Detail, where the gate itself says it
	Code string   `json:"code,omitzero"` // of the problem, where Detail tells of one
}

// Load is one artifact at one destination.
type Load struct {
	Destination string        `json:"destination"`
	Artifact    bundle.Digest `json:"artifact"`
	Name        string        `json:"name"` // repository:tag
	State       string        `json:"state"`
	Location    string        `json:"location"`
	Blobs       int           `json:"blobs"`
	Bytes       int64         `json:"bytes"`
	Kept        int           `json:"kept"`
	Withdrawn   string        `json:"withdrawn,omitempty"` // why its channel withdrew it
}

// States of a Load.
const (
	LoadPut       = "put"       // its content is there, no name yet
	LoadPublished = "published" // its name is
	LoadVerified  = "verified"  // and was read back
)

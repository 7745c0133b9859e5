package web

import (
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/policy"
)

// What the API takes. Unknown keys are refused.
type (
	pathBody struct {
		Path string `json:"path"` // of a file on the gate's machine
	}
	decisionBody struct {
		Choice gate.Choice `json:"choice"`
		Review string      `json:"review"` // digest of the review that was looked at
		Reason string      `json:"reason"`
	}
	// trustBody brings a root on the first day, with or without revocations,
	// or one later document: as bytes in base64, since signatures are over
	// bytes.
	trustBody struct {
		Root        []byte `json:"root,omitempty"`
		Revocations []byte `json:"revocations,omitempty"`
		Document    []byte `json:"document,omitempty"`
	}
	accountBody struct {
		Name     string      `json:"name"`
		Roles    []gate.Role `json:"roles"`
		Password string      `json:"password"`
	}
	passwordBody struct {
		Password string `json:"password"`
	}
	loginBody struct {
		Account  string `json:"account"`
		Password string `json:"password"`
	}
)

// What the API gives, besides the gate's own types.
type (
	casesAnswer struct {
		Cases []gate.Summary `json:"cases"`
	}
	findingsAnswer struct {
		Findings []policy.Worded `json:"findings"`
	}
	decisionsAnswer struct {
		Decisions []gate.Decision `json:"decisions"`
	}
	planAnswer struct {
		Destinations []gate.PlannedDestination `json:"destinations"`
	}
	previewAnswer struct {
		*gate.Preview
		Words []policy.Worded `json:"words"` // the findings of the decision in words
	}
	usersAnswer struct {
		Users []gate.Account `json:"users"`
	}
	doctorAnswer struct {
		Checks []gate.Check `json:"checks"`
	}
	versionAnswer struct {
		Program string `json:"program"`
		Gate    string `json:"gate"`
		Address string `json:"address"` // of the screens; "" where nothing serves them
	}
	sessionAnswer struct {
		Account string      `json:"account"`
		Roles   []gate.Role `json:"roles"`
	}
	// depotListing is a part of what plant clients see.
	depotListing struct {
		Repositories []depotRepository `json:"repositories"`
		Next         string            `json:"next"` // what to ask for after this; "" at the end
	}
	depotRepository struct {
		Name string          `json:"name"`
		Tags []gate.DepotTag `json:"tags"`
	}
)

// line is one line of a stream: progress any number of times, and then the
// outcome once. A refusal may come together with its case.
type line struct {
	Progress     *gate.Progress     `json:"progress,omitzero"`
	Problem      *problemDocument   `json:"problem,omitzero"`
	Case         *gate.Case         `json:"case,omitzero"`
	Verification *gate.Verification `json:"verification,omitzero"`
}

package facts

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/sbom/inspect"
)

// Reports are the reports of all content files of a bundle, by digest. They are
// an Inspector. Of most files there is nothing to report but their format, so
// that very many take little memory.
type Reports struct {
	plain map[bundle.Digest]inspect.Format
	noted map[bundle.Digest]inspect.Report
}

func newReports(n int) *Reports {
	return &Reports{plain: make(map[bundle.Digest]inspect.Format, n), noted: map[bundle.Digest]inspect.Report{}}
}

func (r *Reports) add(d bundle.Digest, report inspect.Report) {
	if len(report.Findings) > 0 || report.Mismatch || report.Unreadable || report.Reason != "" || report.AsTemplate != "" {
		r.noted[d] = report
		return
	}
	r.plain[d] = report.Format
}

// Len is how many files there are reports of.
func (r *Reports) Len() int { return len(r.plain) + len(r.noted) }

var errNotInspected = errors.New("it was not inspected")

// Report implements Inspector.
func (r *Reports) Report(_ context.Context, d bundle.Digest, path string) (inspect.Report, error) {
	if report, ok := r.noted[d]; ok {
		return report.Named(path), nil
	}
	if format, ok := r.plain[d]; ok {
		return inspect.Report{Format: format, Findings: []inspect.Finding{}}.Named(path), nil
	}
	return inspect.Report{}, fmt.Errorf("%s: %w", d, errNotInspected)
}

// keptReports is the form in which reports are kept: of those files that are
// only of a format the digests, sorted, one behind the other.
type keptReports struct {
	Noted map[bundle.Digest]inspect.Report `json:"noted"`
	Plain map[inspect.Format][]byte        `json:"plain"`
}

// MarshalJSON gives the same bytes for the same reports.
func (r *Reports) MarshalJSON() ([]byte, error) {
	sorted := make([]bundle.Digest, 0, len(r.plain))
	for d := range r.plain {
		sorted = append(sorted, d)
	}
	slices.SortFunc(sorted, bundle.Digest.Compare)
	kept := keptReports{Noted: r.noted, Plain: map[inspect.Format][]byte{}}
	for _, d := range sorted {
		kept.Plain[r.plain[d]] = append(kept.Plain[r.plain[d]], d[:]...)
	}
	return json.Marshal(kept, json.Deterministic(true))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Reports) UnmarshalJSON(b []byte) error {
	var kept keptReports
	if err := json.Unmarshal(b, &kept, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	*r = *newReports(len(b) / 48)
	r.noted = kept.Noted
	for format, digests := range kept.Plain {
		if len(digests)%len(bundle.Digest{}) != 0 {
			return fmt.Errorf("the digests of the format %s are cut off", format)
		}
		for d := range slices.Chunk(digests, len(bundle.Digest{})) {
			r.plain[bundle.Digest(d)] = format
		}
	}
	return nil
}

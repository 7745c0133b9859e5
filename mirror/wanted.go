package mirror

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/config"
	"github.com/packhof/packhof/internal/problem"
)

// Wanted is what packhof.yaml said when the lock was made: all that decides
// what the bundle says and that the rest of the lock does not show. It is
// there so that an export notices that packhof.yaml was edited since.
type Wanted struct {
	Audience  []string       `json:"audience,omitempty"` // empty: every gate of the trust root
	ValidFor  config.Span    `json:"validFor"`
	PlainHTTP []string       `json:"plainHTTP,omitempty"` // hosts that may be reached without TLS, sorted
	Artifacts []ArtifactSpec `json:"artifacts"`
	Documents []DocumentSpec `json:"documents,omitempty"` // where the lock is for a control bundle
}

// wanted takes from a Spec, with its defaults, what a lock remembers of it.
func (s *Spec) wanted(control bool) Wanted {
	w := Wanted{Audience: slices.Sorted(slices.Values(s.Audience)), ValidFor: s.ValidFor, Artifacts: s.Artifacts}
	if control {
		w.Artifacts, w.Documents = []ArtifactSpec{}, s.Documents
	}
	w.Audience = slices.Compact(w.Audience)
	for _, host := range slices.Sorted(maps.Keys(s.Hosts)) {
		if s.Hosts[host].PlainHTTP {
			w.PlainHTTP = append(w.PlainHTTP, host)
		}
	}
	return w
}

// ReadLockOf reads packhof.lock and makes sure that it is what the Spec, with
// its defaults, asks for: one that was edited and not planned again is the
// error lock/stale. The order of artifacts does not matter.
func ReadLockOf(path string, s *Spec) (*Lock, error) {
	l, err := ReadLock(path)
	if err != nil {
		return nil, err
	}
	changes, err := l.changesTo(s)
	if err != nil {
		return nil, err
	}
	if len(changes) == 0 {
		return l, nil
	}
	return nil, problem.New("lock/stale", "%s (serial %d) does not fit packhof.yaml, which was edited since", path, l.Serial).
		With(shortened(changes)...).Hint("packhof plan")
}

const maxChanges = 12

// shortened keeps evidence readable where a whole file was rewritten.
func shortened(lines []string) []string {
	if len(lines) <= maxChanges {
		return lines
	}
	return append(slices.Clone(lines[:maxChanges-1]), fmt.Sprintf("and %d more", len(lines)-maxChanges+1))
}

// changesTo lists what a Spec asks for and the lock has otherwise, a line each.
func (l *Lock) changesTo(s *Spec) ([]string, error) {
	var lines []string
	changed := func(key string, was, is any) {
		if was, is := fmt.Sprint(was), fmt.Sprint(is); was != is {
			lines = append(lines, fmt.Sprintf("changed:  %s, from %s to %s", key, was, is))
		}
	}
	now := s.wanted(l.kind() == bundle.KindControl)
	withdraws, err := s.withdraws()
	if err != nil {
		return nil, err
	}
	changed("answers", l.Answers, s.answers())
	changed("withdraws", withdrawsText(l.Withdraws), withdrawsText(withdraws))
	changed("documents", l.Wanted.Documents, now.Documents)
	changed("note", quoted(l.Note), quoted(s.Note))
	changed("validFor", l.Wanted.ValidFor, now.ValidFor)
	changed("audience", listed(l.Wanted.Audience, "every gate"), listed(now.Audience, "every gate"))
	changed("hosts with plainHTTP", listed(l.Wanted.PlainHTTP, "none"), listed(now.PlainHTTP, "none"))
	artifacts, err := compareWanted(l.Wanted.Artifacts, now.Artifacts)
	return append(lines, artifacts...), err
}

func quoted(text string) string {
	if text == "" {
		return "none"
	}
	return fmt.Sprintf("%.60q", text)
}

func listed(names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	return strings.Join(names, ", ")
}

// compareWanted compares two lists of artifacts. Those of one place to come
// from and one name belong together, in the order in which they stand.
func compareWanted(before, after []ArtifactSpec) ([]string, error) {
	old := map[string][]ArtifactSpec{}
	for _, a := range before {
		old[a.label()] = append(old[a.label()], a)
	}
	var lines []string
	for _, a := range after {
		label := a.label()
		if len(old[label]) == 0 {
			lines = append(lines, "added:    "+label)
			continue
		}
		keys, err := differing(old[label][0], a)
		if err != nil {
			return nil, err
		}
		if len(keys) > 0 {
			lines = append(lines, fmt.Sprintf("changed:  %s of %s", strings.Join(keys, ", "), label))
		}
		old[label] = old[label][1:]
	}
	for _, a := range before {
		if label := a.label(); len(old[label]) > 0 {
			lines = append(lines, "removed:  "+label)
			old[label] = old[label][1:]
		}
	}
	return lines, nil
}

// label is what people call the artifact.
func (a *ArtifactSpec) label() string {
	if a.Image != "" {
		return "image " + a.Image
	}
	return fmt.Sprintf("%s %s %s", a.Kind, a.Name, a.Version)
}

// differing names the keys in which two artifacts differ, sorted.
func differing(a, b ArtifactSpec) ([]string, error) {
	before, err := members(a)
	if err != nil {
		return nil, err
	}
	after, err := members(b)
	if err != nil {
		return nil, err
	}
	keys := map[string]bool{}
	for _, m := range []map[string]string{before, after} {
		for key := range m {
			if before[key] != after[key] {
				keys[key] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(keys)), nil
}

// members gives the keys of an artifact as they stand in YAML, each with its
// value written in one way only.
func members(a ArtifactSpec) (map[string]string, error) {
	b, err := json.Marshal(a, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	var values map[string]jsontext.Value
	if err := json.Unmarshal(b, &values); err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for key, value := range values {
		texts[key] = string(value)
	}
	return texts, nil
}

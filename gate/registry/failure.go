package registry

import (
	"errors"
	"net/http"
	"slices"

	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/registry"
)

// unreachable are the codes of internal/registry that mean that the registry
// gave no answer of its own; of its other codes each is a refusal.
func unreachable(code string) bool {
	return slices.Contains([]string{
		"registry/unreachable", "registry/tls", "registry/tls-unknown-authority", "registry/plain-http", "registry/failed",
		"registry/rate-limited", "registry/interrupted", "registry/protocol",
	}, code)
}

// explain says of an error of the transport what it means for a destination.
// Errors of the content, and our own, stay as they are.
func (s *Sink) explain(err error) error {
	if refused, ok := errors.AsType[*registry.RefusedError](err); ok {
		code := "destination/refused"
		if refused.Temporary() {
			code = "destination/unreachable"
		}
		return problem.New(code, "%w", err).With(refused.Evidence()...).Hint("%s", s.remedy(refused.Status))
	}
	p, ok := errors.AsType[*problem.Problem](err)
	if !ok || len(p.Code()) < len(group) || p.Code()[:len(group)] != group {
		return err
	}
	if !unreachable(p.Code()) {
		return problem.New("destination/refused", "%w", err).With(p.Evidence()...).Hint("check the credentials of this destination and what they allow at %s", s.host)
	}
	hint := "check that " + s.host + " runs and can be reached from here, then release the case again"
	switch p.Code() {
	case "registry/tls-unknown-authority", "registry/tls":
		hint = "give this destination the PEM file of the authority that signed the certificate of " + s.host
	case "registry/plain-http":
		hint = "give " + s.host + " a certificate, or set plain: true for this destination if the network between is trusted"
	}
	return problem.New("destination/unreachable", "%w", err).With(p.Evidence()...).Hint("%s", hint)
}

const group = "registry/"

// remedy is what helps against an answer.
func (s *Sink) remedy(status int) string {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "check the credentials of this destination, that they may push, and the project's quota at " + s.host
	case http.StatusNotFound:
		return "check that the project, the first part of the repository, exists at " + s.host
	case http.StatusPreconditionFailed, http.StatusConflict:
		return "the tag may not change there: release under another version, or lift the rule at " + s.host
	case http.StatusRequestEntityTooLarge:
		return "raise the limit of what " + s.host + ", or the proxy in front of it, takes at once"
	}
	return "look at the log of " + s.host + ", then release the case again"
}

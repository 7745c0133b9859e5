package registry

import (
	"errors"
	"net/http"
	"strings"

	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/registry"
)

const (
	codeRefused     = "destination/refused"
	codeUnreachable = "destination/unreachable"
	group           = "registry/" // of the codes of the transport
)

// explain says of an error of the transport what it means for a destination.
// Errors of the content, and our own, stay as they are.
func (s *Sink) explain(err error) error {
	if refused, ok := errors.AsType[*registry.RefusedError](err); ok {
		code := codeRefused
		if refused.Temporary() {
			code = codeUnreachable
		}
		return problem.New(code, "%w", err).With(refused.Evidence()...).Hint("%s", s.remedy(refused.Status))
	}
	p, ok := errors.AsType[*problem.Problem](err)
	if !ok || !strings.HasPrefix(p.Code(), group) {
		return err
	}
	code, remedy := s.meaning(p.Code())
	return problem.New(code, "%w", err).With(p.Evidence()...).Hint("%s", remedy)
}

// meaning is what a code of internal/registry says of a destination, and what
// helps against it. Unreachable is what gave no answer of its own.
func (s *Sink) meaning(code string) (ours, remedy string) {
	switch code {
	case "registry/unreachable", "registry/interrupted":
		return codeUnreachable, "check that " + s.host + " runs and can be reached from here, then release the case again"
	case "registry/tls-unknown-authority":
		return codeUnreachable, "give this destination the PEM file of the authority that signed the certificate of " + s.host
	case "registry/tls":
		return codeUnreachable, "give " + s.host + " a certificate that is valid today and for this name"
	case "registry/plain-http":
		return codeUnreachable, "give " + s.host + " a certificate, or set plain: true for this destination if the network between is trusted"
	case "registry/protocol", "registry/not-found": // of all requests only a log-in gives the latter
		return codeUnreachable, "check that " + s.host + " is the address of a registry, with its port"
	case "registry/rate-limited":
		return codeUnreachable, "wait until " + s.host + " takes requests again, then release the case again"
	case "registry/failed":
		return codeUnreachable, "look at the log of " + s.host + ", then release the case again"
	case "registry/auth-required", "registry/forbidden", "registry/credentials":
		return codeRefused, "check the credentials of this destination and what they allow at " + s.host
	case "registry/redirect-refused":
		return codeRefused, "have " + s.host + " give out its own address by the name that this destination has for it: nothing is sent to another"
	case "registry/too-large":
		return codeRefused, "have somebody look at that manifest at " + s.host + ", and take it away if nothing needs it"
	}
	return codeRefused, "look at the log of " + s.host + ", then release the case again"
}

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

package facts

import (
	"net/url"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/policy"
)

// unknownHost stands for a host that the origin's text does not show. No list
// of allowed hosts has it, other than one that allows all.
const unknownHost = "?"

// stateOrigin says where an artifact came from. Both values that a manifest
// can have for what was verified name a digest that was written down before
// the fetch, by hand or in the lock; a third would not count as pinned.
func stateOrigin(o bundle.Origin) policy.Origin {
	return policy.Origin{
		Host: host(o), From: o.From, Transport: string(o.Transport), Verified: string(o.Verified),
		Pinned: o.Verified == bundle.VerifiedDigest || o.Verified == bundle.VerifiedLock,
	}
}

// host takes the host from a URL or an image reference, in lower case.
func host(o bundle.Origin) string {
	if o.Transport == bundle.TransportLocal {
		return ""
	}
	name := ""
	if strings.Contains(o.From, "://") {
		if u, err := url.Parse(o.From); err == nil {
			name = u.Host
		}
	} else if first, _, found := strings.Cut(o.From, "/"); found && (strings.ContainsAny(first, ".:") || first == "localhost") {
		name = first
	}
	if name == "" || strings.ContainsAny(name, "@ \t") {
		return unknownHost
	}
	return strings.ToLower(name)
}

package problem

import "strings"

// Address is an address for a message: without what may be secret in it, the
// user and the password before its host, and its query. What is no address at
// all may hold them, too; of a reference the digest stays.
func Address(s string) string {
	scheme, rest, found := strings.Cut(s, "://")
	if found {
		scheme += "://"
	} else {
		scheme, rest = "", s
	}
	// A password may have any character, so that only the last @ is certain.
	if i := strings.LastIndexByte(rest, '@'); i >= 0 && (scheme != "" || !isDigest(rest[i+1:]) || strings.Contains(rest[:i], "@")) {
		rest = hiddenPart + rest[i:]
	}
	if before, _, found := strings.Cut(rest, "?"); found {
		rest = before + "?" + hiddenPart
	}
	return scheme + rest
}

// hiddenPart stands for what is not shown.
const hiddenPart = "…"

func isDigest(s string) bool {
	return strings.HasPrefix(s, "sha256:") || strings.HasPrefix(s, "sha512:")
}

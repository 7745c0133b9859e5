package s3

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/packhof/packhof/internal/problem"
)

const (
	maxKey       = 1024 // bytes, with the prefix
	maxComponent = 255  // bytes; servers that keep objects as files take no more
)

// checkKey accepts what every server takes and means the same by: some map
// keys to paths and resolve "..", some refuse "a//b", and listings are XML,
// which has no control characters.
func checkKey(key string) error {
	bad := ""
	switch {
	case key == "":
		bad = "is empty"
	case len(key) > maxKey:
		bad = "is longer than 1024 bytes"
	case !utf8.ValidString(key):
		bad = "is not UTF-8"
	case strings.ContainsFunc(key, unfit):
		bad = "has a control character, or one that XML cannot carry"
	}
	for component := range strings.SplitSeq(key, "/") {
		switch {
		case bad != "":
		case component == "" || component == "." || component == "..":
			bad = "has an empty part, or one that is . or .."
		case len(component) > maxComponent:
			bad = "has a part longer than 255 bytes"
		}
	}
	if bad != "" {
		return problem.New("s3/key", "%.200q cannot be the name of an object: it %s", key, bad)
	}
	return nil
}

func unfit(r rune) bool { return unicode.IsControl(r) || r == '\uFFFE' || r == '\uFFFF' }

// checkPrefix gives the prefix its slash.
func checkPrefix(prefix string) (string, error) {
	prefix = strings.TrimSuffix(prefix, "/")
	if prefix == "" {
		return "", nil
	}
	if err := checkKey(prefix); err != nil {
		return "", badConfig("the prefix: %w", err)
	}
	return prefix + "/", nil
}

// full is the name of an object as the server knows it.
func (c *Client) full(key string) (string, error) {
	// The parts of the prefix were checked by New.
	if err := checkKey(key); err != nil {
		return "", err
	}
	if len(c.prefix)+len(key) > maxKey {
		return "", checkKey(c.prefix + key)
	}
	return c.prefix + key, nil
}

// CheckKey says, without asking the server, whether an object can be called so.
func (c *Client) CheckKey(key string) error {
	_, err := c.full(key)
	return err
}

// Location says for people where an object, or what is below a prefix, is:
// "s3://bucket/key at host".
func (c *Client) Location(key string) string { return c.named(c.prefix + key) }

// named is an object for messages.
func (c *Client) named(full string) string {
	return "s3://" + c.config.Bucket + "/" + problem.Line(full) + " at " + c.host
}

package files

import (
	"errors"
	"net/url"
	"strings"
)

// bare is an address without what may be secret: its query, which may be a
// signature, and a user. A path stays as it is.
func bare(address string) string {
	if !isURL(address) {
		return address
	}
	u, err := url.Parse(address)
	if err != nil {
		address, _, _ = strings.Cut(address, "?")
		return address
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath, Opaque: u.Opaque}).String()
}

// withoutAddress is an error of net/http or net/url without the address that
// they repeat in it.
func withoutAddress(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return unasked{err}
}

// unasked is an error whose text may quote another address, such as one that a
// server sent us on to: it is given up to the query.
type unasked struct{ err error }

func (u unasked) Error() string {
	before, query, found := strings.Cut(u.err.Error(), "?")
	if !found {
		return before
	}
	_, after, quoted := strings.Cut(query, `"`)
	if !quoted {
		return before
	}
	return before + `"` + unasked{errors.New(after)}.Error()
}

func (u unasked) Unwrap() error { return u.err }

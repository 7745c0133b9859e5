package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/agefile"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/mirror"
	"github.com/packhof/packhof/signing"
)

// encryptOptions say whom volumes are encrypted to.
type encryptOptions struct {
	all bool     // every gate that the bundle is meant for
	to  []string // gates and age recipients
	set *pflag.FlagSet
}

func (o *encryptOptions) flags(flags *pflag.FlagSet) {
	o.set = flags
	flags.BoolVar(&o.all, "encrypt", false, "encrypt to every gate that the bundle is meant for")
	flags.StringArrayVar(&o.to, "encrypt-to", nil, "encrypt to this `gate`, or age recipient (age1…); repeatable")
}

// isAsked tells whether somebody said anything about encryption.
func (o *encryptOptions) isAsked() bool { return o.set.Changed("encrypt") || len(o.to) > 0 }

// names are whom to encrypt to, of a bundle for this audience.
func (o *encryptOptions) names(audience []string) []string {
	names := append([]string{}, o.to...)
	if o.all {
		names = append(names, audience...)
	}
	return names
}

// needsRoot tells whether the trust root has to say what a name stands for.
func needsRoot(names []string) bool {
	for _, name := range names {
		if bundle.ValidGateID(name) {
			return true
		}
	}
	return false
}

// recipients finds whom the volumes of a bundle are encrypted to, which lies
// here and says itself whom it is meant for. A trust root is needed only for
// gates that are named.
func (o *encryptOptions) recipients(p *project, sealed *bundle.Sealed) ([]agefile.Recipient, error) {
	if !o.isAsked() {
		return nil, nil
	}
	claims, err := sealed.Claims()
	if err != nil {
		return nil, err
	}
	names := o.names(claims.Audience)
	var root *signing.Root
	if needsRoot(names) {
		folder, err := p.trustFor("")
		if err != nil {
			return nil, err
		}
		root = folder.Trust.Root()
	}
	return mirror.Recipients(names, claims.Audience, root)
}

// identityFlag adds --identity, with which encrypted volumes are opened.
func identityFlag(flags *pflag.FlagSet, files *[]string) {
	flags.StringArrayVar(files, "identity", nil, "`file` with a private age key, for encrypted volumes; repeatable")
}

// openerOf opens encrypted volumes with the identities in files.
func openerOf(files []string) (bundle.Opener, error) {
	var list []*agefile.Identity
	for _, path := range files {
		read, err := readIdentities(path)
		if err != nil {
			return bundle.Opener{}, err
		}
		list = append(list, read...)
	}
	return bundle.OpenerWith(list...), nil
}

func readIdentities(path string) ([]*agefile.Identity, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > agefile.MaxIdentityFile {
		return nil, notIdentity(path, fmt.Errorf("it is not a file of at most %d bytes", agefile.MaxIdentityFile))
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	list, err := agefile.ParseIdentities(b)
	var wrong *agefile.KeyError
	if errors.As(err, &wrong) {
		return nil, notIdentity(path, wrong)
	}
	return list, err
}

func notIdentity(path string, err error) error {
	return problem.New("encrypt/identity", "%s is no file of age identities: %w", path, err).
		Hint("name a file as  age-keygen  writes it; keys with a passphrase or of another kind are not read")
}

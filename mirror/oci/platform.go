package oci

import (
	"regexp"
	"slices"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
)

// platform is what a manifest runs on, in the one spelling in which two are
// the same when they compare equal: linux/arm64, linux/arm/v7, linux/amd64/v3.
type platform struct{ os, architecture, variant string }

func (p platform) String() string {
	return (&bundle.OCIPlatform{OS: p.os, Architecture: p.architecture, Variant: p.variant}).String()
}

// runs reports whether anything could run there. BuildKit marks attestations
// as unknown/unknown.
func (p platform) runs() bool {
	return p.os != "" && p.architecture != "" && p.os != "unknown" && p.architecture != "unknown"
}

var platformForm = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,32}/[A-Za-z0-9_.-]{1,32}(/[A-Za-z0-9_.-]{1,32})?$`)

// parsePlatforms reads what a specification wants, each once.
func parsePlatforms(wanted []string) ([]platform, error) {
	var platforms []platform
	for _, s := range wanted {
		if !platformForm.MatchString(s) {
			return nil, problem.New("source/platform-malformed", "%.60q is no platform", s).
				Hint("write os/architecture, such as linux/amd64 or linux/arm/v7")
		}
		parts := append(strings.Split(s, "/"), "")
		p := normalise(platform{os: parts[0], architecture: parts[1], variant: parts[2]})
		if !slices.Contains(platforms, p) {
			platforms = append(platforms, p)
		}
	}
	return platforms, nil
}

// normalise maps the names in use to those of Go, and takes the variant away
// that everything of an architecture has, as containerd does.
func normalise(p platform) platform {
	p.os, p.architecture, p.variant = strings.ToLower(p.os), strings.ToLower(p.architecture), strings.ToLower(p.variant)
	if p.os == "macos" {
		p.os = "darwin"
	}
	switch p.architecture {
	case "x86_64", "x86-64":
		p.architecture = "amd64"
	case "i386", "i486", "i586", "i686":
		p.architecture = "386"
	case "aarch64":
		p.architecture = "arm64"
	case "armhf":
		p.architecture, p.variant = "arm", "v7"
	case "armel":
		p.architecture, p.variant = "arm", "v6"
	}
	switch {
	case p.architecture == "arm64" && (p.variant == "v8" || p.variant == "8"), p.architecture == "amd64" && p.variant == "v1":
		p.variant = ""
	case p.architecture == "arm" && p.variant == "":
		p.variant = "v7"
	case p.architecture == "arm" && !strings.HasPrefix(p.variant, "v"):
		p.variant = "v" + p.variant
	}
	return p
}

// platformOf is what an index says of one of its manifests; the zero platform
// when it says nothing.
func platformOf(d bundle.OCIDescriptor) platform {
	if d.Platform == nil {
		return platform{}
	}
	return normalise(platform{os: d.Platform.OS, architecture: d.Platform.Architecture, variant: d.Platform.Variant})
}

// checkPresent makes sure that every platform wanted is among those there.
func checkPresent(wanted, there []platform, what string) error {
	var missing []string
	for _, p := range wanted {
		if !slices.Contains(there, p) {
			missing = append(missing, p.String())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return problem.New("source/platform-missing", "%s is not made for %s", what, strings.Join(missing, ", ")).
		With("there: " + strings.Join(names(there), ", ")).
		Hint("choose from these under platforms in packhof.yaml")
}

func names(platforms []platform) []string {
	var all []string
	for _, p := range platforms {
		if !slices.Contains(all, p.String()) {
			all = append(all, p.String())
		}
	}
	if len(all) == 0 {
		return []string{"nothing that names a platform"}
	}
	return all
}

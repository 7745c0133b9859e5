package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
)

// Naming maps an artifact to a Name at a destination, by two templates in
// which {kind}, {name} and {version} stand for what the artifact says.
type Naming struct {
	Repository string
	Tag        string
}

// DefaultNaming keeps what upstream calls it.
func DefaultNaming() Naming { return Naming{Repository: "{name}", Tag: "{version}"} }

const (
	maxRepository = 255
	maxTag        = 128
)

// Check says what is wrong with the templates.
func (n Naming) Check() error {
	for _, template := range []string{n.Repository, n.Tag} {
		rest := template
		for _, known := range []string{"{kind}", "{name}", "{version}"} {
			rest = strings.ReplaceAll(rest, known, "")
		}
		if strings.ContainsAny(rest, "{}") {
			return fmt.Errorf("%q has a placeholder that is none of {kind}, {name}, {version}", template)
		}
		if template == "" {
			return fmt.Errorf("a template is empty")
		}
	}
	if !strings.Contains(n.Repository, "{name}") {
		return fmt.Errorf("%q leaves out {name}, so that all artifacts would be called the same", n.Repository)
	}
	return nil
}

// Name gives the name of an artifact, in the characters of the OCI
// distribution specification, which every destination can take: repositories
// in lower case, other characters become hyphens.
func (n Naming) Name(a bundle.Artifact) Name {
	fill := strings.NewReplacer("{kind}", string(a.Kind), "{name}", a.Name, "{version}", a.Version)
	return Name{
		Repository: repositoryOf(fill.Replace(n.Repository)), Tag: tagOf(fill.Replace(n.Tag)),
		Kind: a.Kind, Digest: a.Root.Digest,
	}
}

// repositoryOf makes path components of [a-z0-9]+ with single separators.
func repositoryOf(s string) string {
	var parts []string
	for part := range strings.SplitSeq(strings.ToLower(s), "/") {
		if part = component(part); part != "" {
			parts = append(parts, part)
		}
	}
	name := strings.Join(parts, "/")
	if len(name) > maxRepository {
		name = strings.TrimRight(name[:maxRepository], "/._-")
	}
	if name == "" {
		return stranger(s)
	}
	return name
}

// stranger is a name for what has no letter that a name may have: one of its
// own for each text.
func stranger(s string) string { return "x" + digestOf([]byte(s)).Short() }

// component keeps letters and digits; anything between them becomes one
// separator, the one that stood there if it may stand in a name.
func component(s string) string {
	var b strings.Builder
	pending := byte(0)
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			if pending != 0 && b.Len() > 0 {
				b.WriteByte(pending)
			}
			pending = 0
			b.WriteRune(r)
		case pending != 0:
			pending = '-'
		case r == '.' || r == '_':
			pending = byte(r)
		default:
			pending = '-'
		}
	}
	return b.String()
}

// tagOf keeps what a tag may hold: [A-Za-z0-9_][A-Za-z0-9._-]{0,127}.
func tagOf(s string) string {
	tag := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, s)
	tag = strings.TrimLeft(tag, ".-")
	if len(tag) > maxTag {
		tag = tag[:maxTag]
	}
	if strings.Trim(tag, "._-") == "" {
		return stranger(s)
	}
	return tag
}

// folder is the path that a tree has wherever files have paths.
func (n Name) folder() string { return n.Repository + "/" + n.Tag + "/" }

// noneInside refuses trees of which one would lie inside the other: under one
// path there would be two files.
func (d *Destination) noneInside(names map[int]Name) error {
	var trees []Name
	for _, n := range names {
		if n.Kind.IsTree() {
			trees = append(trees, n)
		}
	}
	slices.SortFunc(trees, func(a, b Name) int { return strings.Compare(a.folder(), b.folder()) })
	for i := 1; i < len(trees); i++ {
		if strings.HasPrefix(trees[i].folder(), trees[i-1].folder()) {
			return problem.New("destination/collision", "the files of %s at %s would lie inside those of %s", trees[i], d.Name, trees[i-1]).
				Hint("tell them apart in the destination's naming, with {kind} for example")
		}
	}
	return nil
}

// names gives the name of each artifact that a destination accepts. Two that
// would be called the same are a destination/collision.
func (d *Destination) names(artifacts []bundle.Artifact) (map[int]Name, error) {
	names := map[int]Name{}
	taken := map[string]bundle.Artifact{}
	for i, a := range artifacts {
		if !slices.Contains(d.Accepts, a.Kind) {
			continue
		}
		name := d.Naming.Name(a)
		if other, ok := taken[name.String()]; ok {
			return nil, problem.New("destination/collision", "two artifacts would have the name %s at %s", name, d.Name).
				With(fmt.Sprintf("first:   %s %s %s", other.Kind, other.Name, other.Version), fmt.Sprintf("second:  %s %s %s", a.Kind, a.Name, a.Version)).
				Hint("tell them apart in the destination's naming, with {kind} for example")
		}
		taken[name.String()] = a
		names[i] = name
	}
	return names, d.noneInside(names)
}

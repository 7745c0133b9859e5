package bundle

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/packhof/packhof/internal/problem"
)

// MaxChoices is how many choices between volumes that claim one place in their
// set are tried.
const MaxChoices = 16

// Choices are what can be left out so that of rivals one claim of each place
// remains: the paths of the others. There is at least one choice, and the first
// one keeps the first claim everywhere.
func Choices(rivals [][][]string) [][]string {
	all := 1
	for _, claims := range rivals {
		all = min(MaxChoices, all*len(claims))
	}
	choices := make([][]string, all)
	for i := range choices {
		rest := i
		for _, claims := range rivals {
			kept := rest % len(claims)
			rest /= len(claims)
			choices[i] = append(choices[i], slices.Concat(slices.Delete(slices.Clone(claims), kept, kept+1)...)...)
		}
	}
	return choices
}

// Suspected adds to a failure the volumes that cannot all be from the exporter,
// by place, and what helps when there are any.
func Suspected(failure error, rivals [][][]string) error {
	if failure == nil || len(rivals) == 0 {
		return failure
	}
	var lines []string
	for _, claims := range rivals {
		var names []string
		for _, path := range slices.Concat(claims...) {
			names = append(names, filepath.Base(path))
		}
		lines = append(lines, "suspects:  "+strings.Join(problem.SomeOf(names), ", "))
	}
	return problem.New(problem.CodeOf(failure), "%w", failure).With(problem.EvidenceOf(failure)...).With(problem.SomeOf(lines)...).
		Hint("put only the files of the set into a folder of their own")
}

// Without is the bundle without the volumes at these paths. It is closed with
// the whole.
func (b *Bundle) Without(paths []string) *Bundle {
	if len(paths) == 0 {
		return b
	}
	sealed := *b.sealed
	sealed.volumes = withoutPaths(sealed.volumes, paths)
	return &Bundle{sealed: &sealed, manifest: b.manifest, voucher: b.voucher, content: contentOf(sealed.volumes, b.manifest)}
}

func withoutPaths(volumes []*volume, paths []string) []*volume {
	return slices.DeleteFunc(slices.Clone(volumes), func(v *volume) bool { return slices.Contains(paths, v.path) })
}

// CheckPieces proves of volumes what none of them proves alone: that the pieces
// of cut blobs make the blobs, as far as they are here. It is for somebody to
// whom the holder of the trust has vouched for the manifest, and has proven each
// volume; another manifest is an error. The volumes at the paths aside are left
// out. It only reads.
func (s *Sealed) CheckPieces(ctx context.Context, vouched Digest, aside []string) error {
	if s.head.Digest() != vouched {
		return errors.New("the volumes have changed since they were proven")
	}
	m, err := parseManifest(s.head.Manifest)
	if err != nil {
		return err
	}
	if err := s.checkVolumes(m); err != nil {
		return err
	}
	c := checker{manifest: m, content: contentOf(withoutPaths(s.volumes, aside), m)}
	if err := c.planAcross((*pieced).covered); err != nil {
		return err
	}
	return runInOrder(ctx, 0, c.steps)
}

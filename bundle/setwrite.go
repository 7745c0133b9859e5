package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/packhof/packhof/internal/problem"
)

// Written is a volume on a medium.
type Written struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

// SetWriteOptions says how a set is written to a medium.
type SetWriteOptions struct {
	NoReadback bool  // do not read the volumes back from the medium
	Only       []int // numbers of the volumes to write; none for all
	// Begin is told of each step before it begins ("write x.tar", "read back
	// x.tar"), with its bytes, and gives whom to tell of them and of the end;
	// nil tells nobody.
	Begin func(what string, bytes int64) (observe func(n int64), done func(error))

	medium medium // nil: the real one
}

// WriteTo writes every volume of the set into dir, as VolumePlan.WriteTo does,
// after it has made sure that all of them have room and that nothing else
// stands under their names.
func (p *SetPlan) WriteTo(ctx context.Context, dir string, content Content, o SetWriteOptions) ([]Written, error) {
	numbers, err := p.Numbers(o.Only)
	if err != nil {
		return nil, err
	}
	if p.isEncrypted() {
		if err := dropInterrupted(dir); err != nil {
			return nil, err
		}
	}
	p = p.named()
	opts := WriteOptions{NoReadback: o.NoReadback, medium: o.medium, begin: o.Begin}
	if err := p.checkRoom(opts.onto(), dir, numbers); err != nil {
		return nil, err
	}
	var written []Written
	for _, n := range numbers {
		v, err := p.Volume(n)
		if err != nil {
			return written, err
		}
		path, err := v.WriteTo(ctx, dir, content, opts)
		if err != nil {
			return written, err
		}
		written = append(written, Written{Path: path, Size: v.Size()})
	}
	return written, nil
}

// CheckRoom finds before any work that the medium cannot take the volumes, all
// of the set or only some: too little space, files or names that are too large
// for it, or something else in their place.
func (p *SetPlan) CheckRoom(dir string, only []int) error {
	numbers, err := p.Numbers(only)
	if err != nil {
		return err
	}
	return p.checkRoom(realMedium{}, dir, numbers)
}

// checkRoom plans no volume that is not begun already: each has all segments.
func (p *SetPlan) checkRoom(m medium, dir string, numbers []int) error {
	r, err := m.room(dir)
	if err != nil {
		return err
	}
	var need int64
	for _, n := range numbers {
		path, size := filepath.Join(dir, p.fileName(n, p.complete)), p.VolumeSize(n)
		if err := r.checkFile(path, size); err != nil {
			return err
		}
		if err := p.CheckTarget(path); err != nil {
			return err
		}
		missing, err := p.missing(n, path, size)
		if err != nil {
			return err
		}
		need += missing
	}
	return r.checkSpace(dir, need)
}

// Numbers are the volumes to write, all of them when none are asked for. One
// that the set has not is the problem volume/no-such.
func (p *SetPlan) Numbers(only []int) ([]int, error) {
	if len(only) == 0 {
		for n := 1; n <= p.Count(); n++ {
			only = append(only, n)
		}
	}
	for _, n := range only {
		if n < 1 || n > p.Count() {
			return nil, problem.New("volume/no-such", "the set has no volume %d", n).With(fmt.Sprintf("volumes:  %d", p.Count()))
		}
	}
	return only, nil
}

// missing is how many bytes of a volume of this size are not at its place yet:
// an earlier export may have written it, or begun to.
func (p *SetPlan) missing(number int, path string, size int64) (int64, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.Size() == size {
		return 0, nil
	}
	u := unfinished{path: path}
	info, err := os.Lstat(u.partial())
	if err != nil {
		return size, nil
	}
	v, err := p.Volume(number)
	if err != nil {
		return 0, err
	}
	return size - u.remembered(v, info.Size()).Position, nil
}

// Paths are where the volumes of the set would lie in dir; names of encrypted
// ones as VolumePlan.FileName has them before they are written.
func (p *SetPlan) Paths(dir string) []string {
	paths := make([]string, p.Count())
	for i := range paths {
		paths[i] = filepath.Join(dir, p.fileName(i+1, p.complete))
	}
	return paths
}

// TakenError says that a volume of another bundle stands under the name of one
// of ours.
type TakenError struct {
	Path      string
	Want, Got Digest // of the manifests
}

func (e *TakenError) Error() string {
	return e.Path + " is there and is no volume of this bundle"
}

// Code is the stable code of this error.
func (e *TakenError) Code() string { return codeTaken }

// Evidence are the manifests of both.
func (e *TakenError) Evidence() []string {
	return []string{"want:  " + e.Want.String(), "got:   " + e.Got.String()}
}

// Remedy says what to do.
func (e *TakenError) Remedy() string { return makeRoom }

const (
	codeTaken = "medium/taken"
	makeRoom  = "remove it, or write to another folder with --to"
)

// taken says that something else stands where a volume would.
func taken(format string, args ...any) error {
	return problem.New(codeTaken, format, args...).Hint(makeRoom)
}

// CheckTarget refuses to replace what is no volume of the set: of another set of
// this bundle, since somebody may have carried it away already or need it beside
// its siblings; of another bundle, which is a *TakenError; anything else. A
// volume of the set that was cut off may be replaced.
func (p *SetPlan) CheckTarget(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return taken("%s is there and is no file", path)
	}
	there, err := OpenFile(path)
	if there == nil {
		return taken("%s is there and is no bundle: %w", path, err)
	}
	digest, set := there.head.Digest(), there.setUnsafe(p.manifest)
	if err := there.Close(); err != nil {
		return err
	}
	if want := p.head.Digest(); digest != want {
		return &TakenError{Path: path, Want: want, Got: digest}
	}
	if set != p.ID() {
		return problem.New(codeTaken, "%s is there and belongs to another volume set of serial %d", path, p.manifest.Serial).
			With("want:  set "+p.ID().Short(), "got:   set "+set.Short()).Hint("write to another folder with --to, or remove the volumes of that set")
	}
	return nil
}

// setUnsafe is the set that the first volume says it belongs to, zero when it
// does not say it in our form. Nobody has vouched for it.
func (s *Sealed) setUnsafe(m *Manifest) Digest {
	info, err := s.volumes[0].readInfo(m)
	if err != nil {
		return Digest{}
	}
	return info.Set
}

package bundle

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/packhof/packhof/internal/problem"
)

// A pack is a plain ustar file that holds small files of a tree under their own
// paths, so that "tar xf" restores them.
const (
	TypePack      = "application/vnd.packhof.pack.v1.tar"
	TypePackIndex = "application/vnd.packhof.pack-index.v1+jsonl"
)

const (
	// PackBelow is the size in bytes from which a file stays a layer of its own.
	PackBelow = 1 << 20
	// packFrom is how many files a tree has at most of which none is packed.
	packFrom = 500
	// A pack begins anew where the hash of a path says so, at the earliest after
	// leastPack bytes and at the latest before mostPack: 256 MiB on average.
	leastPack = 128 << 20
	meanRest  = 128 << 20
	mostPack  = 512 << 20
	// leastCost is what each file counts, so that a pack of tiny files has no
	// more than mostPack / leastCost of them and its index stays small.
	leastCost = 16 << 10
	// maxPackFiles is what a reader accepts in one pack.
	maxPackFiles = 65_536
)

// Pack is a pack of a tree and its index.
type Pack struct {
	Title     string // such as packs/0001.tar
	Digest    Digest
	Size      int64
	Index     Digest
	IndexSize int64
}

// PlanPacks says which files of a tree travel together in packs, in the order
// of their paths, and which stay blobs of their own. It needs paths and sizes
// only, and depends on nothing else: a file that comes, goes or grows moves the
// pack that it is in, and rarely the next one.
func PlanPacks(kind Kind, files []File) (own []File, packs [][]File) {
	if kind != Dataset && kind != Files || len(files) <= packFrom {
		return files, nil
	}
	sorted := slices.Clone(files)
	slices.SortFunc(sorted, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	var pack []File
	var cost int64
	for _, f := range sorted {
		if _, _, ok := splitName(f.Path); !ok || f.Size >= PackBelow {
			own = append(own, f)
			continue
		}
		if len(pack) > 0 && cutsBefore(f, cost) {
			packs = append(packs, pack)
			pack, cost = nil, 0
		}
		pack = append(pack, f)
		cost += packCost(f)
	}
	if len(pack) > 0 {
		packs = append(packs, pack)
	}
	return own, packs
}

func packCost(f File) int64 { return max(entrySpan(f.Size), leastCost) }

// cutsBefore tells whether a pack that has cost so far ends before f. The more
// a file brings, the more likely it is, so that packs of large and of small
// files become equally large.
func cutsBefore(f File, cost int64) bool {
	if cost+packCost(f) > mostPack {
		return true
	}
	sum := sha256.Sum256([]byte(f.Path))
	return cost >= leastPack && int64(binary.BigEndian.Uint32(sum[:4])) < packCost(f)*(1<<32/meanRest)
}

// PackTitles names so many packs. The folder has a number where the tree has
// something of its name.
func PackTitles(files []File, n int) []string {
	taken := map[string]bool{}
	for _, f := range files {
		first, _, _ := strings.Cut(f.Path, "/")
		taken[first] = true
	}
	folder := "packs"
	for i := 2; taken[folder]; i++ {
		folder = fmt.Sprintf("packs-%d", i)
	}
	titles := make([]string, n)
	for i := range titles {
		titles[i] = fmt.Sprintf("%s/%04d.tar", folder, i+1)
	}
	return titles
}

// splitName takes a path apart into the two fields that ustar has for a name,
// the first as short as can be. Not every path has such parts.
func splitName(path string) (prefix, name string, ok bool) {
	if len(path) <= 100 {
		return "", path, true
	}
	i := strings.IndexByte(path[len(path)-101:], '/')
	if i < 0 {
		return "", "", false
	}
	i += len(path) - 101
	return path[:i], path[i+1:], i <= 155
}

// packHeader is the one header that a file of a pack can have.
func packHeader(path string, size int64) [blockSize]byte {
	prefix, name, _ := splitName(path)
	return headerBelow(prefix, name, size)
}

// PackWriter writes a pack.
type PackWriter struct {
	w     *bufio.Writer
	at    int64
	zeros [endSize]byte
}

// NewPackWriter writes to w, in large pieces.
func NewPackWriter(w io.Writer) *PackWriter { return &PackWriter{w: bufio.NewWriterSize(w, 256<<10)} }

// Add appends a file and gives the offset of its first byte. Files come in the
// order of their paths.
func (p *PackWriter) Add(path string, content []byte) (offset int64, err error) {
	size := int64(len(content))
	h := packHeader(path, size)
	for _, part := range [][]byte{h[:], content, p.zeros[:padding(size)]} {
		if _, err := p.w.Write(part); err != nil {
			return 0, err
		}
	}
	offset = p.at + blockSize
	p.at += entrySpan(size)
	return offset, nil
}

// Close ends the pack and gives its size.
func (p *PackWriter) Close() (int64, error) {
	_, err := p.w.Write(p.zeros[:])
	p.at += endSize
	return p.at, cmp.Or(err, p.w.Flush())
}

// CheckPack reads a pack to its end and makes sure that it is exactly what its
// index says: every header, the digest of every file, nothing between them and
// nothing behind.
func CheckPack(ctx context.Context, r io.ReaderAt, x *PackIndex) error {
	return checkPackStream(ctx, io.NewSectionReader(r, 0, x.Size), x)
}

func checkPackStream(ctx context.Context, r io.Reader, x *PackIndex) error {
	in := bufio.NewReaderSize(r, 256<<10)
	buffer := make([]byte, PackBelow+2*blockSize)
	for i := range x.Files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f := &x.Files[i]
		span := buffer[:entrySpan(f.Size)]
		if _, err := io.ReadFull(in, span); err != nil {
			return fmt.Errorf("pack %s, file %q: %w", x.Pack.Short(), f.Path, err)
		}
		if err := f.check(x.Pack, span); err != nil {
			return err
		}
	}
	end := buffer[:endSize]
	if _, err := io.ReadFull(in, end); err != nil {
		return fmt.Errorf("pack %s, end: %w", x.Pack.Short(), err)
	}
	if !isZero(end) {
		return badPack(x.Pack, "it goes on behind the last file that its index names")
	}
	return nil
}

// check holds header, content and padding against the index.
func (f *PackedFile) check(pack Digest, span []byte) error {
	at := fmt.Sprintf("at byte %d the file %q ", f.Offset, f.Path)
	if h := packHeader(f.Path, f.Size); !slices.Equal(h[:], span[:blockSize]) {
		return badPack(pack, at+"has another header than its index says")
	}
	content, rest := span[blockSize:blockSize+f.Size], span[blockSize+f.Size:]
	if got := digestOf(content); got != f.Digest {
		return badPack(pack, at+"has another digest than its index says").With("want:  "+f.Digest.String(), "got:   "+got.String())
	}
	if !isZero(rest) {
		return badPack(pack, at+"is followed by bytes that nothing names")
	}
	return nil
}

func badPack(pack Digest, what string) *problem.Problem {
	return problem.New("bundle/bad-pack", "the pack %s is not what its index says: %s", pack.Short(), what).
		Hint("have the bundle exported again")
}

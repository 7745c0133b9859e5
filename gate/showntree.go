package gate

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/packhof/packhof/bundle"
)

// The files of a tree follow from its manifests and the indices of its packs, and
// those from the digest of its root. They are read once, and what is kept is
// little: in the order of paths, a digest over every so many files. The rows of
// the index that are needed are held against it each time, whole blocks of them:
// one that was changed, added or taken away is found wherever it is asked for.

// filesInBlock is how many files have one digest. Whoever asks for one file reads
// as many rows.
const filesInBlock = 64

// blocksAtOnce is how many blocks are read at once where all files are gone
// through.
const blocksAtOnce = 16

// mostShownBlocks bounds what is kept; beyond it all is read anew. One takes
// about 150 bytes.
const mostShownBlocks = 100_000

// shownTrees are the files of trees, by the digest of their root.
type shownTrees struct {
	reading sync.Mutex // one tree at a time: a large one takes memory
	mu      sync.Mutex
	blocks  map[bundle.Digest]treeBlocks
	kept    int
}

// treeBlocks are the files of a tree in the order of their paths.
type treeBlocks []fileBlock

type fileBlock struct {
	first string // path
	files int
	sum   [sha256.Size]byte
}

func (s *shownTrees) get(root bundle.Digest) (treeBlocks, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	blocks, ok := s.blocks[root]
	return blocks, ok
}

func (s *shownTrees) keep(root bundle.Digest, blocks treeBlocks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blocks == nil || s.kept > mostShownBlocks {
		s.blocks, s.kept = map[bundle.Digest]treeBlocks{}, 0
	}
	s.blocks[root] = blocks
	s.kept += len(blocks)
}

// treeShown gives the files of a tree that the gate published; ok is false where
// it is none.
func (g *Gate) treeShown(ctx context.Context, tree DepotTag) (blocks treeBlocks, ok bool, err error) {
	c, unlock, err := g.caseShown(ctx, tree.Case)
	if err != nil {
		return nil, false, err
	}
	a, ok := c.tree(publishedRoot{tree.Repository, tree.Digest})
	unlock()
	if !ok {
		return nil, false, nil
	}
	blocks, err = g.blocksOf(ctx, a)
	return blocks, err == nil, err
}

// tree is the artifact of a root, if it is a tree and was published there.
func (c *shownCase) tree(at publishedRoot) (bundle.Artifact, bool) {
	i := slices.IndexFunc(c.artifacts, func(a bundle.Artifact) bool { return a.Root.Digest == at.root && a.Kind.IsTree() })
	if i < 0 || !c.published[at] {
		return bundle.Artifact{}, false
	}
	return c.artifacts[i], true
}

// blocksOf gives what is kept of a tree, and reads it first where that is
// nothing.
func (g *Gate) blocksOf(ctx context.Context, a bundle.Artifact) (treeBlocks, error) {
	s := &g.depot.trees
	if blocks, ok := s.get(a.Root.Digest); ok {
		return blocks, nil
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	if blocks, ok := s.get(a.Root.Digest); ok {
		return blocks, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	blocks, err := g.readBlocks(a)
	if err != nil {
		return nil, err
	}
	s.keep(a.Root.Digest, blocks)
	return blocks, nil
}

// fileSum is a file of a tree and the digest of all that its row says.
type fileSum struct {
	path string
	sum  [sha256.Size]byte
}

func (g *Gate) readBlocks(a bundle.Artifact) (treeBlocks, error) {
	var files []fileSum
	_, err := bundle.EachTreeFile(a.Root, g.document, func(f bundle.TreeFile) error {
		if bundle.CheckPath(f.Path) == nil { // what has none has no row
			files = append(files, fileSum{f.Path, sumOfFile(DepotFile{Path: f.Path, Size: f.Size, Digest: f.Digest, Pack: f.Pack, Offset: f.Offset})})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// Of several files under one path the first has the row.
	slices.SortStableFunc(files, func(a, b fileSum) int { return strings.Compare(a.path, b.path) })
	files = slices.CompactFunc(files, func(a, b fileSum) bool { return a.path == b.path })
	blocks := treeBlocks{}
	for block := range slices.Chunk(files, filesInBlock) {
		h := sha256.New()
		for i := range block {
			h.Write(block[i].sum[:])
		}
		blocks = append(blocks, fileBlock{strings.Clone(block[0].path), len(block), [sha256.Size]byte(h.Sum(nil))})
	}
	return blocks, nil
}

// document reads a manifest or the index of a pack, which is what its digest
// says.
func (g *Gate) document(d bundle.OCIDescriptor) ([]byte, error) {
	return g.store.ReadAll(d.Digest, bundle.ReadLimit(d))
}

// sumOfFile is the digest of all that the row of a file says.
func sumOfFile(f DepotFile) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%s %d %s %d %s", f.Digest, f.Size, f.Pack, f.Offset, f.Path))
}

// from is the block in which the first file that comes after a path can be, or
// the file of that path is.
func (b treeBlocks) from(path string) int {
	i, exact := slices.BinarySearchFunc(b, path, func(b fileBlock, path string) int { return strings.Compare(b.first, path) })
	if exact || i == 0 {
		return i
	}
	return i - 1
}

// filesOf reads the rows of some blocks of a tree, which must be those that its
// manifests give.
func filesOf(ctx context.Context, q queryer, root bundle.Digest, all treeBlocks, from, to int) ([]DepotFile, error) {
	want, first := 0, ""
	for _, b := range all[from:to] {
		want += b.files
	}
	if from > 0 {
		first = all[from].first
	}
	query, args := `SELECT path, size, blob, pack, at FROM depot_file WHERE digest = ? AND path >= ?`, []any{root.String(), first}
	if to < len(all) {
		query, args = query+` AND path < ?`, append(args, all[to].first)
	}
	files, err := rowsOf(ctx, q, scanFile, query+` ORDER BY path LIMIT ?`, append(args, want+1)...)
	if err != nil {
		return nil, err
	}
	if len(files) != want {
		return nil, wrongFiles(root, fmt.Sprintf("it has other files from %.200q on", first))
	}
	rest := files
	for _, b := range all[from:to] {
		h := sha256.New()
		for _, f := range rest[:b.files] {
			sum := sumOfFile(f)
			h.Write(sum[:])
		}
		if [sha256.Size]byte(h.Sum(nil)) != b.sum {
			return nil, wrongFiles(root, fmt.Sprintf("it has other files from %.200q on", b.first))
		}
		rest = rest[b.files:]
	}
	return files, nil
}

func wrongFiles(root bundle.Digest, says string) error {
	of := subject("the files of " + root.Short())
	return contradiction(standing{Of: of}, standing{Of: of, Says: says})
}

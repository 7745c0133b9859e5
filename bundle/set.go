package bundle

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/packhof/packhof/internal/agefile"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/signing"
)

// Found is what lies in a folder or among files: volumes by bundle, recognised
// by what they hold and not by their names.
type Found struct {
	Bundles []*Sealed // each joined from all its volumes here, in the order they were met
	Damaged []error   // volumes that could not be read as far as their head
	Locked  []error   // encrypted files in folders that cannot be opened here; they may be for others
	Passed  []string  // names of files in folders that are called as volumes are, and are none
}

// maxBeside is how many signatures beside volumes are looked at.
const maxBeside = 256

// maxFolder is how many files of a folder are looked at.
const maxFolder = 10_000

// Find is Opener.Find for volumes in the clear.
func Find(paths ...string) (*Found, error) { return Opener{}.Find(paths...) }

// Find looks for volumes in files and folders. In folders every other file is
// passed over; a file named here that is no volume is an error. Signatures
// beside the volumes count as if they stood in them.
func (o Opener) Find(paths ...string) (_ *Found, err error) {
	f := &finder{opener: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	for _, path := range paths {
		if err := f.look(path); err != nil {
			return nil, err
		}
	}
	return f.found(), nil
}

type finder struct {
	opener     Opener
	bundles    []*Sealed
	place      map[Digest]int // of a manifest in bundles
	met        map[linked]bool
	kept       keeper
	signatures [][]byte
	damaged    []error
	locked     []error
	passed     []string
}

// add puts a volume to the others of its bundle as soon as it is met: a folder
// may hold thousands, and their heads are large and the same.
func (f *finder) add(v *Sealed) error {
	f.kept.share(v.volumes[0])
	digest := v.head.Digest()
	i, known := f.place[digest]
	if !known {
		if f.place == nil {
			f.place = map[Digest]int{}
		}
		f.place[digest] = len(f.bundles)
		f.bundles = append(f.bundles, v)
		return nil
	}
	if err := f.bundles[i].joins(v); err != nil {
		return errors.Join(err, v.Close())
	}
	f.bundles[i].take(v)
	return nil
}

func (f *finder) close() error {
	var errs []error
	for _, b := range f.bundles {
		errs = append(errs, b.Close())
	}
	return errors.Join(errs...)
}

// linked is a file that has several names.
type linked struct{ device, inode uint64 }

// again tells that a file was met under another name already: to read it once
// more would show nothing, and keep much. Only where a file has several names
// can its number be relied on.
func (f *finder) again(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Nlink < 2 {
		return false
	}
	file := linked{uint64(stat.Dev), stat.Ino}
	if f.met[file] {
		return true
	}
	if f.met == nil {
		f.met = map[linked]bool{}
	}
	f.met[file] = true
	return false
}

func (f *finder) look(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return f.folder(path)
	}
	if f.again(info) {
		return f.beside(path)
	}
	s, err := f.opener.OpenFile(path)
	if s == nil {
		return err
	}
	if err := f.add(s); err != nil { // what is wrong with it, Verify tells
		return err
	}
	return f.beside(path)
}

// LiesBeside tells by its name a file that an export writes, or a second signer
// puts, beside volumes: whoever names all files of a folder means the volumes.
// What counts of such files is found beside the volumes.
func LiesBeside(path string) bool {
	return strings.HasSuffix(path, manifestSuffix) || strings.HasSuffix(path, signatureSuffix)
}

// beside reads the signatures that lie beside a volume and begin as its name
// does.
func (f *finder) beside(path string) error {
	base, _, _ := strings.Cut(filepath.Base(path), ".")
	entries, err := readDir(filepath.Dir(path))
	var crowded *problem.Problem
	if errors.As(err, &crowded) {
		return nil // the volume itself was named, and is what counts
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), base+".") {
			if err := f.signature(filepath.Join(filepath.Dir(path), e.Name()), e); err != nil {
				return err
			}
		}
	}
	return nil
}

func readDir(dir string) ([]fs.DirEntry, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	entries, err := d.ReadDir(maxFolder + 1)
	if err = errors.Join(ignoreEOF(err), d.Close()); err != nil {
		return nil, err
	}
	if len(entries) > maxFolder {
		return nil, problem.New("volume/crowded", "%s holds more than %d files", dir, maxFolder).Hint("name the volumes themselves, or put them into a folder of their own")
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, nil
}

func ignoreEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

func (f *finder) folder(dir string) error {
	entries, err := readDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if err := f.signature(path, e); err != nil {
			return err
		}
		if !e.Type().IsRegular() || strings.HasSuffix(e.Name(), cas.PartialSuffix) {
			continue
		}
		if info, err := e.Info(); err == nil && f.again(info) {
			continue
		}
		if err := f.volume(path); err != nil {
			return err
		}
	}
	return nil
}

// volume looks at a file of a folder, which may be a volume.
func (f *finder) volume(path string) error {
	begins, err := beginsAsVolume(path)
	if err != nil {
		f.damaged = append(f.damaged, err)
	}
	if !begins {
		if err == nil && isCalledVolume(path) {
			f.passed = append(f.passed, filepath.Base(path))
		}
		return nil
	}
	s, err := f.opener.OpenFile(path)
	if s == nil {
		f.turnedAway(err)
		return nil
	}
	return f.add(s)
}

// isCalledVolume tells a file that has the name of a volume, and something in
// it: where a volume is missing, it may be this one.
func isCalledVolume(path string) bool {
	if !strings.HasSuffix(path, ".tar") && !strings.HasSuffix(path, EncryptedSuffix) {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0
}

// PassedOver are lines of evidence about those files, for whoever misses a volume.
func PassedOver(names []string) []string {
	lines := make([]string, len(names))
	for i, name := range names {
		lines[i] = fmt.Sprintf("passed over:  %s: is no volume", name)
	}
	return problem.SomeOf(lines)
}

// turnedAway keeps why a file of a folder could not be opened.
func (f *finder) turnedAway(err error) {
	if isLocked(err) {
		f.locked = append(f.locked, err)
		return
	}
	f.damaged = append(f.damaged, err)
}

// beginsAsVolume tells whether a file begins with the entry that every volume
// begins with, or is encrypted. A file that the medium does not give may be a
// volume; one that we may not read is somebody else's.
func beginsAsVolume(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		return false, nil
	}
	if err != nil {
		return false, &UnreadableError{Volume: filepath.Base(path), Err: err}
	}
	start := make([]byte, len(nameManifest)+1)
	_, err = io.ReadFull(f, start)
	begins := err == nil && string(start) == nameManifest+"\x00" || agefile.Begins(f)
	if closeErr := f.Close(); err == io.EOF || err == io.ErrUnexpectedEOF {
		return false, closeErr
	}
	if err != nil {
		return false, &UnreadableError{Volume: filepath.Base(path), Err: err}
	}
	return begins, nil
}

// signature reads a file that is named as a signature beside a volume. One that
// is none in our form is passed over: nothing counts but what verifies.
func (f *finder) signature(path string, e fs.DirEntry) error {
	if !e.Type().IsRegular() || !strings.HasSuffix(e.Name(), signatureSuffix) || len(f.signatures) >= maxBeside {
		return nil
	}
	// One that cannot be read counts for nothing, as any that does not verify.
	if b, err := readAtMost(path, signing.MaxBundle); err == nil && b != nil {
		f.signatures = append(f.signatures, b)
	}
	return nil
}

// readAtMost reads a file, or nothing when it is larger than limit.
func readAtMost(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err = errors.Join(err, f.Close()); err != nil || int64(len(b)) > limit {
		return nil, err
	}
	return b, nil
}

// found gives the bundles, with the signatures that lay beside them.
func (f *finder) found() *Found {
	for _, s := range f.bundles {
		for _, b := range f.signatures {
			s.AddSignature(b)
		}
	}
	return &Found{Bundles: f.bundles, Damaged: f.damaged, Locked: f.locked, Passed: f.passed}
}

// Join puts the volumes of two Sealed of the same bundle together, with the
// union of their signatures. Both stay open until the result is closed. What of
// their heads is the same, and large, they share from then on.
func (s *Sealed) Join(other *Sealed) (*Sealed, error) {
	if err := s.joins(other); err != nil {
		return nil, err
	}
	joined := &Sealed{name: s.name, head: s.head, volumes: slices.Clone(s.volumes), spare: slices.Clone(s.spare)}
	joined.head.Signatures = slices.Clone(s.head.Signatures)
	joined.take(other)
	return joined, nil
}

// joins tells whether the volumes of two Sealed can be put together.
func (s *Sealed) joins(other *Sealed) error {
	if s.head.Digest() != other.head.Digest() {
		return problem.New("volume/foreign", "%s belongs to another bundle than %s", other.name, s.name).
			With("want:  "+s.head.Digest().String(), "got:   "+other.head.Digest().String())
	}
	if !sameTrust(&s.head, &other.head) {
		return problem.New("volume/head-differs", "%s and %s are volumes of one bundle and bring different trust documents", s.name, other.name).
			Hint("leave out the one that is not from the exporter")
	}
	return nil
}

// take puts the volumes of another Sealed to these, which belong to nobody else.
func (s *Sealed) take(other *Sealed) {
	other.shareHead(&s.head)
	if len(s.volumes) > 0 { // their signatures are as they came, and stay so
		first := s.volumes[0].head.Signatures
		for _, v := range other.volumes {
			if slices.EqualFunc(v.head.Signatures, first, func(a, b Signature) bool { return a.Key == b.Key && bytes.Equal(a.Bytes, b.Bytes) }) {
				v.head.Signatures = first
			}
		}
	}
	s.volumes = append(s.volumes, other.volumes...)
	for _, sig := range other.head.Signatures {
		s.addSignature(sig)
	}
	for _, sig := range other.spare {
		s.keepSpare(sig)
	}
}

// shareHead lets go of a manifest and trust documents that are the same as
// those of another head.
func (s *Sealed) shareHead(h *Head) {
	share := func(mine *Head) { mine.Manifest, mine.Roots, mine.Revocations = h.Manifest, h.Roots, h.Revocations }
	share(&s.head)
	for _, v := range s.volumes {
		share(&v.head)
	}
}

func sameTrust(a, b *Head) bool {
	same := func(x, y TrustDocument) bool { return x.Version == y.Version && bytes.Equal(x.Bytes, y.Bytes) }
	return slices.EqualFunc(a.Roots, b.Roots, same) && same(a.Revocations, b.Revocations)
}

// AddSignature adds a signature that came beside the volumes. One that is about
// something else, or in no form of ours, is left out. Of several that name the
// same key Verify takes one that is good.
func (s *Sealed) AddSignature(b []byte) {
	parsed, err := signing.ParseBundle(b)
	if err != nil || parsed.Digest() != [32]byte(s.head.Digest()) {
		return
	}
	s.addSignature(Signature{Key: parsed.Claims().Short(), Bytes: b})
}

func (s *Sealed) addSignature(sig Signature) {
	for _, x := range s.head.Signatures {
		if x.Key != sig.Key {
			continue
		}
		if !bytes.Equal(x.Bytes, sig.Bytes) {
			s.keepSpare(sig)
		}
		return
	}
	if len(s.head.Signatures) >= signing.MaxSignatures {
		s.keepSpare(sig)
		return
	}
	s.head.Signatures = append(s.head.Signatures, sig)
	sortHead(&s.head)
}

func (s *Sealed) keepSpare(sig Signature) {
	if len(s.spare) < maxBeside {
		s.spare = append(s.spare, sig)
	}
}

// IsAmbiguous tells whether there is more than one signature by what names the
// same key, or more of them than there is room for: only a trust root tells
// which of them count.
func (s *Sealed) IsAmbiguous() bool { return len(s.spare) > 0 }

// settle chooses the signatures that count, for somebody who writes them down
// without judging the bundle. root may be nil where nothing is to be chosen.
func (s *Sealed) settle(root *signing.Root) error {
	unsettled := func(sig Signature) bool {
		parsed, err := signing.ParseBundle(sig.Bytes)
		if err != nil || root == nil {
			return true
		}
		_, known := root.Key(parsed.Claims())
		return !known && slices.ContainsFunc(s.head.Signatures, func(x Signature) bool { return x.Key == sig.Key })
	}
	if i := slices.IndexFunc(s.spare, unsettled); i >= 0 {
		return problem.New("volume/signatures-differ", "beside %s lie several signatures that name the same key, or more than there is room for", s.name).
			With("key:  " + s.spare[i].Key).Hint("name the trust root that knows the key: --trust FOLDER; or take the file away that is no signature of that key")
	}
	if root != nil && len(s.spare) > 0 {
		s.preferGood(root)
	}
	return nil
}

// preferGood puts signatures that verify in the place of others that only name
// the same key, or no key of the plant at all: what lies beside a volume is
// anybody's.
func (s *Sealed) preferGood(root *signing.Root) {
	good := func(sig Signature) bool {
		parsed, err := signing.ParseBundle(sig.Bytes)
		if err != nil {
			return false
		}
		key, known := root.Key(parsed.Claims())
		if !known {
			return false
		}
		_, err = parsed.Verify(s.head.Manifest, key.Public)
		return err == nil
	}
	for _, sig := range s.spare {
		if !good(sig) {
			continue
		}
		at := slices.IndexFunc(s.head.Signatures, func(x Signature) bool { return x.Key == sig.Key })
		if at < 0 {
			at = slices.IndexFunc(s.head.Signatures, func(x Signature) bool { return s.CameBeside(x.Key) && !good(x) })
		}
		if at >= 0 && !good(s.head.Signatures[at]) {
			s.head.Signatures[at] = sig
		}
	}
	s.spare = nil
	sortHead(&s.head)
}

// CameBeside tells whether a signature stands in no volume but lay beside them.
func (s *Sealed) CameBeside(key string) bool {
	return !slices.ContainsFunc(s.volumes, func(v *volume) bool {
		return slices.ContainsFunc(v.head.Signatures, func(sig Signature) bool { return sig.Key == key })
	})
}

// MissingVolumes lists the numbers of the volumes that are not here, of the sets
// of which others are.
func (b *Bundle) MissingVolumes() []int {
	missing := []int{}
	for _, numbers := range missingOf(b.sealed.volumes) {
		missing = append(missing, numbers...)
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// Volumes lists the volumes of a bundle that are here, in the order of their
// numbers; a Sealed that is not verified yet knows none.
func (b *Bundle) Volumes() []VolumeState {
	return statesOf(b.sealed.volumes, b.manifest, func(v *volume) (*VolumeInfo, error) { return v.info, nil })
}

// VolumesUnsafe is the same of volumes that nobody has vouched for, or that are
// damaged: as they say of themselves, as far as that can be read.
func (s *Sealed) VolumesUnsafe() []VolumeState {
	m, err := parseManifest(s.head.Manifest)
	if err != nil {
		return nil
	}
	return statesOf(s.volumes, m, func(v *volume) (*VolumeInfo, error) { return v.readInfo(m) })
}

func statesOf(volumes []*volume, m *Manifest, infoOf func(*volume) (*VolumeInfo, error)) []VolumeState {
	var list []VolumeState
	complete := map[Digest]bool{}
	for _, v := range volumes {
		info, err := infoOf(v)
		if err != nil {
			continue
		}
		if _, known := complete[info.Set]; !known {
			complete[info.Set] = info.isComplete(m)
		}
		list = append(list, VolumeState{Name: v.name, Path: v.path, Set: info.Set, Number: info.Number, Count: info.Count, Size: v.onMedium, Complete: complete[info.Set]})
	}
	slices.SortStableFunc(list, func(a, b VolumeState) int {
		return cmp.Or(a.Set.Compare(b.Set), cmp.Compare(a.Number, b.Number))
	})
	return list
}

// VolumeState is a volume and its place in its set.
type VolumeState struct {
	Name     string `json:"name"`
	Path     string `json:"-"` // as it was named or found
	Set      Digest `json:"set"`
	Number   int    `json:"number"`
	Count    int    `json:"count"`
	Size     int64  `json:"size"`
	Complete bool   `json:"complete"` // its set brings all content
}

// Needed lists the numbers of the volumes, of the sets that are here, that hold
// something of what is lacking.
func (b *Bundle) Needed(lacks []Piece) []int {
	of := map[Digest][]Piece{}
	numbers := map[int]bool{}
	for _, p := range lacks {
		of[p.Blob] = append(of[p.Blob], p)
		if blob, _ := b.manifest.Blob(p.Blob); standsInHead(blob) && len(b.sealed.volumes) > 0 {
			numbers[1] = true
		}
	}
	for _, v := range b.sealed.volumes {
		for _, s := range v.info.Segments {
			if !numbers[s.Volume] && anyOverlaps(of[s.Blob], s) {
				numbers[s.Volume] = true
			}
		}
	}
	list := make([]int, 0, len(numbers))
	for n := range numbers {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// Brings tells whether the volumes here hold anything of what is lacking.
func (b *Bundle) Brings(lacks []Piece) bool {
	c, inVolumes := b.content.(volumeContent)
	if !inVolumes {
		return true
	}
	of := map[Digest][]Piece{}
	for _, p := range lacks {
		of[p.Blob] = append(of[p.Blob], p)
	}
	for d, gaps := range of {
		s := c[d]
		if s != nil && slices.ContainsFunc(s.pieces, func(l located) bool {
			return anyOverlaps(gaps, Segment{Blob: d, Offset: l.offset, Length: l.entry.size})
		}) {
			return true
		}
	}
	return false
}

// anyOverlaps tells whether a segment brings something of gaps in its blob,
// which are ordered and do not overlap.
func anyOverlaps(gaps []Piece, s Segment) bool {
	i, _ := slices.BinarySearchFunc(gaps, s.Offset, func(p Piece, at int64) int {
		if p.Offset+p.Length > at || p.Length == 0 {
			return 1
		}
		return -1
	})
	return i < len(gaps) && gaps[i].overlaps(s)
}

func (p Piece) overlaps(s Segment) bool {
	if p.Blob != s.Blob {
		return false
	}
	return p.Length == 0 && s.Length == 0 || p.Offset < s.Offset+s.Length && s.Offset < p.Offset+p.Length
}

// NumbersText writes the numbers of volumes for people: "2, 5 to 7".
func NumbersText(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		switch j - i {
		case 0:
			parts = append(parts, fmt.Sprint(numbers[i]))
		case 1:
			parts = append(parts, fmt.Sprint(numbers[i]), fmt.Sprint(numbers[j]))
		default:
			parts = append(parts, fmt.Sprintf("%d to %d", numbers[i], numbers[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}

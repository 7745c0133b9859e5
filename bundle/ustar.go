package bundle

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// The container is the part of POSIX ustar that leaves nothing to choose: a
// header is a function of name and size alone, so the reader accepts exactly
// the bytes that the writer would have written.
const (
	blockSize    = 512
	maxEntrySize = 4<<30 - 1 // the largest file that FAT32 and every tar can hold
	maxEntries   = 250_000
	endSize      = 2 * blockSize
)

var entryNameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._/-]{0,99}$`)

// sumsName is the one entry whose name is not lower case: what
// "sha256sum -c" users look for.
const sumsName = "SHA256SUMS"

func validEntryName(name string) bool {
	if name == sumsName {
		return true
	}
	if !entryNameForm.MatchString(name) || len(name) > 99 {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}

// header is the one header that an entry of this name and size can have.
func header(name string, size int64) [blockSize]byte { return headerBelow("", name, size) }

// headerBelow is header with what ustar keeps of a long name in a second field.
func headerBelow(prefix, name string, size int64) [blockSize]byte {
	var h [blockSize]byte
	copy(h[0:100], name)
	copy(h[100:], "0000644\x00")                  // mode
	copy(h[108:], "0000000\x00")                  // uid
	copy(h[116:], "0000000\x00")                  // gid
	copy(h[124:], fmt.Sprintf("%011o\x00", size)) // size
	copy(h[136:], "00000000000\x00")              // mtime
	copy(h[148:], "        ")                     // checksum, as blanks while it is computed
	h[156] = '0'                                  // regular file
	copy(h[257:], "ustar\x0000")                  // magic and version
	copy(h[329:], "0000000\x00")                  // devmajor
	copy(h[337:], "0000000\x00")                  // devminor
	copy(h[345:500], prefix)
	var sum int
	for _, b := range h {
		sum += int(b)
	}
	copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
	return h
}

func padding(size int64) int64 { return (blockSize - size%blockSize) % blockSize }

// entrySpan is how much of a volume an entry of this size takes.
func entrySpan(size int64) int64 { return blockSize + size + padding(size) }

// DamagedError says where a volume is not what it should be.
type DamagedError struct {
	Volume    string // file name
	Entry     string // entry name; empty when it is not within one
	Offset    int64  // byte of the volume
	What      string
	Want, Got string // evidence; may be empty
}

func (e *DamagedError) Error() string {
	if e.Entry == "" {
		return fmt.Sprintf("%s is damaged at byte %d: %s", e.Volume, e.Offset, e.What)
	}
	return fmt.Sprintf("%s is damaged: entry %.120q at byte %d: %s", e.Volume, e.Entry, e.Offset, e.What)
}

// Code is the stable code of this error.
func (e *DamagedError) Code() string { return "volume/damaged" }

// Evidence gives what was expected and what was found.
func (e *DamagedError) Evidence() []string {
	if e.Want == "" && e.Got == "" {
		return nil
	}
	return []string{"want:  " + e.Want, "got:   " + e.Got}
}

// Remedy says what helps against damage.
func (e *DamagedError) Remedy() string {
	return "copy the volume from its original again, or have it exported again"
}

// entry is one file of a volume.
type entry struct {
	name   string
	size   int64
	offset int64 // of its first data byte
}

// listEntries reads every header of a volume and nothing else but padding,
// and accepts exactly the profile of docs/bundle-format.md.
func listEntries(r io.ReaderAt, size int64, volume string) ([]entry, error) {
	var entries []entry
	seen := map[string]bool{}
	var at int64
	for {
		h, err := readBlock(r, at, volume)
		if err != nil {
			return entries, err
		}
		if h == ([blockSize]byte{}) {
			return entries, checkEnd(r, at, size, volume)
		}
		e, err := parseHeader(h, at, volume)
		if err != nil {
			return entries, err
		}
		if seen[e.name] {
			return entries, &DamagedError{Volume: volume, Entry: e.name, Offset: at, What: "the name is there twice", Want: "each name once", Got: fmt.Sprintf("%.120q again", e.name)}
		}
		if len(entries) == maxEntries {
			return entries, &DamagedError{Volume: volume, Offset: at, What: fmt.Sprintf("more than %d entries", maxEntries), Want: fmt.Sprintf("at most %d", maxEntries), Got: "more"}
		}
		if at, err = checkPadding(r, e, size, volume); err != nil {
			return entries, err
		}
		seen[e.name] = true
		entries = append(entries, e)
	}
}

func readBlock(r io.ReaderAt, at int64, volume string) (h [blockSize]byte, err error) {
	n, err := r.ReadAt(h[:], at)
	if n == len(h) {
		return h, nil
	}
	if err == io.EOF {
		return h, &DamagedError{Volume: volume, Offset: at, What: "it ends without the two zero blocks of a complete volume",
			Want: fmt.Sprintf("%d bytes from byte %d on", len(h), at), Got: fmt.Sprintf("%d bytes", n)}
	}
	return h, err
}

func parseHeader(h [blockSize]byte, at int64, volume string) (entry, error) {
	name, _, _ := bytes.Cut(h[:100], []byte{0})
	damaged := func(what, want, got string) error {
		return &DamagedError{Volume: volume, Entry: string(name), Offset: at, What: what, Want: want, Got: got}
	}
	if !validEntryName(string(name)) {
		return entry{}, damaged("the name is outside the profile", "a name of a-z, 0-9, . _ / and -", fmt.Sprintf("%.120q", name))
	}
	size, err := strconv.ParseInt(string(h[124:135]), 8, 64)
	if err != nil || size < 0 || size > maxEntrySize {
		return entry{}, damaged("the size is outside the profile", fmt.Sprintf("eleven octal digits, at most %d bytes", int64(maxEntrySize)), fmt.Sprintf("%q", h[124:136]))
	}
	if want := header(string(name), size); h != want {
		return entry{}, damaged("the header is outside the profile: only plain files with mode 0644, owner 0 and time 0 are accepted",
			digestOf(want[:]).String(), digestOf(h[:]).String())
	}
	return entry{name: string(name), size: size, offset: at + blockSize}, nil
}

// checkPadding returns where the next header stands.
func checkPadding(r io.ReaderAt, e entry, size int64, volume string) (int64, error) {
	end, pad := e.offset+e.size, padding(e.size)
	if end+pad > size {
		return 0, endsWithin(volume, e, size)
	}
	buf := make([]byte, pad)
	if _, err := r.ReadAt(buf, end); err != nil && err != io.EOF {
		return 0, err
	}
	if !isZero(buf) {
		return 0, &DamagedError{Volume: volume, Entry: e.name, Offset: end, What: "its padding is not zero", Want: strings.Repeat("00", min(len(buf), 16)), Got: fmt.Sprintf("%x", firstNonzero(buf))}
	}
	return end + pad, nil
}

func checkEnd(r io.ReaderAt, at, size int64, volume string) error {
	second, err := readBlock(r, at+blockSize, volume)
	if err != nil {
		return err
	}
	if !isZero(second[:]) {
		return &DamagedError{Volume: volume, Offset: at + blockSize, What: "after its last entry there are not exactly two zero blocks",
			Want: strings.Repeat("00", 16), Got: fmt.Sprintf("%x", firstNonzero(second[:]))}
	}
	if at+endSize != size {
		return &DamagedError{Volume: volume, Offset: at, What: "after its last entry there are not exactly two zero blocks",
			Want: fmt.Sprintf("end of file at byte %d", at+endSize), Got: fmt.Sprintf("%d bytes", size)}
	}
	return nil
}

// firstNonzero gives the 16 bytes in which something else than zero begins.
func firstNonzero(b []byte) []byte {
	i := bytes.IndexFunc(b, func(r rune) bool { return r != 0 })
	return b[i:min(i+16, len(b))]
}

func endsWithin(volume string, e entry, size int64) error {
	return &DamagedError{Volume: volume, Entry: e.name, Offset: e.offset, What: "the volume ends within it",
		Want: fmt.Sprintf("%d bytes", e.size), Got: fmt.Sprintf("%d bytes", max(0, size-e.offset))}
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

package bundle

import (
	"bytes"
	"encoding/hex"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

const (
	packIndexFormat = "packhof.pack-index/v1"
	// MaxPackIndex bounds the index of one pack, in bytes.
	MaxPackIndex = 32 << 20
	// maxIndexLine is more than the longest path that fits ustar makes of a line.
	maxIndexLine = 2 << 10
)

// SHA512 is a SHA-512, kept for SBOMs.
type SHA512 [64]byte

// PackedFile is a file of a pack, as the index has it.
type PackedFile struct {
	File
	Offset int64 // of its first byte within the pack
	SHA512 SHA512
}

// PackIndex says what lies where in one pack. Files are in the order of their
// paths, which is the order in the pack.
type PackIndex struct {
	Pack  Digest
	Size  int64 // of the pack
	Files []PackedFile
}

// Encode writes an index: JSON, a line for the pack and one for each file, each
// in canonical form. A line at a time is all that a reader has to hold.
func (x *PackIndex) Encode() []byte {
	b := make([]byte, 0, 400*(len(x.Files)+1))
	b = x.appendHead(b)
	for i := range x.Files {
		b = x.Files[i].appendLine(b)
	}
	return b
}

func (x *PackIndex) appendHead(b []byte) []byte {
	return fmt.Appendf(b, `{"files":%d,"format":"%s","pack":"%s","size":%d}`+"\n", len(x.Files), packIndexFormat, x.Pack, x.Size)
}

func (f *PackedFile) appendLine(b []byte) []byte {
	b = append(b, `{"offset":`...)
	b = strconv.AppendInt(b, f.Offset, 10)
	b = append(b, `,"path":`...)
	b, _ = jsontext.AppendQuote(b, f.Path) // fails for what is not UTF-8: CheckPath has refused that
	b = append(b, `,"sha256":"`...)
	b = hex.AppendEncode(b, f.Digest[:])
	b = append(b, `","sha512":"`...)
	b = hex.AppendEncode(b, f.SHA512[:])
	b = append(b, `","size":`...)
	b = strconv.AppendInt(b, f.Size, 10)
	return append(b, "}\n"...)
}

// indexHead is the first line as JSON.
type indexHead struct {
	Files  int    `json:"files"`
	Format string `json:"format"`
	Pack   Digest `json:"pack"`
	Size   int64  `json:"size"`
}

// ParsePackIndex accepts exactly what Encode writes, of files that lie in the
// pack one behind the other and fill it.
func ParsePackIndex(b []byte) (*PackIndex, error) {
	if len(b) > MaxPackIndex {
		return nil, badIndex("it has %d bytes, more than the %d allowed", len(b), MaxPackIndex)
	}
	line, rest, err := cutLine(b)
	if err != nil {
		return nil, err
	}
	x, files, err := parseIndexHead(line)
	if err != nil {
		return nil, err
	}
	x.Files = make([]PackedFile, files)
	at, last, encoded := int64(0), "", []byte(nil)
	for i := range x.Files {
		if line, rest, err = cutLine(rest); err != nil {
			return nil, err
		}
		f := &x.Files[i]
		if err := f.parse(line); err != nil {
			return nil, badIndex("file %d: %w", i+1, err)
		}
		if encoded = f.appendLine(encoded[:0]); !bytes.Equal(encoded[:len(encoded)-1], line) {
			return nil, badIndex("file %d: the line is not in canonical form", i+1)
		}
		if f.Path <= last || f.Offset != at+blockSize {
			return nil, badIndex("file %d, %q, is out of order, there twice, or not behind the one before", i+1, f.Path)
		}
		at, last = at+entrySpan(f.Size), f.Path
	}
	if len(rest) > 0 || at+endSize != x.Size {
		return nil, badIndex("its files do not fill the pack of %d bytes, or something follows them", x.Size)
	}
	return x, nil
}

func badIndex(format string, args ...any) error {
	return problem.New("bundle/bad-pack", "the index of a pack is malformed: %w", fmt.Errorf(format, args...)).
		Hint("have the bundle exported again")
}

func cutLine(b []byte) (line, rest []byte, err error) {
	line, _, ended := bytes.Cut(b[:min(len(b), maxIndexLine)], []byte{'\n'})
	if !ended {
		return nil, nil, badIndex("a line is missing, does not end or has more than %d bytes", maxIndexLine)
	}
	return line, b[len(line)+1:], nil
}

func parseIndexHead(line []byte) (*PackIndex, int, error) {
	var head indexHead
	if err := json.Unmarshal(line, &head, json.RejectUnknownMembers(true)); err != nil {
		return nil, 0, badIndex("%w", problem.JSON(err))
	}
	if head.Format != packIndexFormat || head.Files < 1 || head.Files > maxPackFiles || head.Pack.IsZero() || head.Size > maxBlobSize {
		return nil, 0, badIndex("format %.60q with %d files and a pack of %d bytes", head.Format, head.Files, head.Size)
	}
	x := &PackIndex{Pack: head.Pack, Size: head.Size}
	canonical := fmt.Appendf(nil, `{"files":%d,"format":"%s","pack":"%s","size":%d}`, head.Files, packIndexFormat, x.Pack, x.Size)
	if !bytes.Equal(canonical, line) {
		return nil, 0, badIndex("the first line is not in canonical form")
	}
	return x, head.Files, nil
}

// parse reads a line; whether it is in canonical form shows when it is written
// again. It looks for the parts where they have to be: a large tree has hundreds
// of thousands of lines.
func (f *PackedFile) parse(line []byte) (err error) {
	rest := string(line)
	part := func(before, after string) (text string) {
		if err == nil && !strings.HasPrefix(rest, before) {
			err = fmt.Errorf("the line lacks %q where it has to be", before)
		}
		if err != nil {
			return ""
		}
		text, _, _ = strings.Cut(rest[len(before):], after)
		rest = rest[len(before)+len(text):]
		return text
	}
	offset := part(`{"offset":`, `,`)
	// No quote of the path itself stands there without a backslash.
	path := part(`,"path":`, `,"sha256":"`)
	sha256, sha512 := part(`,"sha256":"`, `"`), part(`","sha512":"`, `"`)
	size := part(`","size":`, `}`)
	if err != nil {
		return err
	}
	if f.Offset, err = strconv.ParseInt(offset, 10, 64); err != nil {
		return err
	}
	if f.Size, err = strconv.ParseInt(size, 10, 64); err != nil {
		return err
	}
	if f.Digest, err = cas.ParseHex(sha256); err != nil {
		return err
	}
	if len(sha512) != hex.EncodedLen(len(f.SHA512)) {
		return errors.New("a SHA-512 has 128 digits")
	}
	if _, err := hex.Decode(f.SHA512[:], []byte(sha512)); err != nil {
		return err
	}
	return f.parsePath(path)
}

func (f *PackedFile) parsePath(quoted string) error {
	path, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		return err
	}
	f.Path = string(path)
	if err := CheckPath(f.Path); err != nil {
		return err
	}
	if _, _, ok := splitName(f.Path); !ok || f.Size < 0 || f.Size >= PackBelow {
		return fmt.Errorf("%q of %d bytes does not belong into a pack", f.Path, f.Size)
	}
	return nil
}

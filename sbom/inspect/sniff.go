package inspect

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// magic is a format by the bytes at one place.
type magic struct {
	format Format
	off    int
	bytes  string
}

// magics are told apart by nothing but these bytes.
func magics() []magic {
	return []magic{
		{GGUF, 0, "GGUF"},
		{Zip, 0, "PK\x03\x04"},
		{Zip, 0, "PK\x05\x06"},
		{Zip, 0, "PK\x07\x08PK\x03\x04"},
		{Npy, 0, "\x93NUMPY"},
		{HDF5, 0, hdf5Magic},
		{HDF5, 512, hdf5Magic},
		{HDF5, 1024, hdf5Magic},
		{HDF5, 2048, hdf5Magic},
		{Gzip, 0, "\x1f\x8b"},
		{XZ, 0, xzMagic},
		{Zstd, 0, "\x28\xb5\x2f\xfd"},
		{Bzip2, 0, "BZh"},
		{LZ4, 0, "\x04\x22\x4d\x18"},
		{SevenZip, 0, "7z\xbc\xaf\x27\x1c"},
		{RAR, 0, "Rar!\x1a\x07"},
		{Deb, 0, "!<arch>\n"},
		{RPM, 0, "\xed\xab\xee\xdb"},
		{ELF, 0, "\x7fELF"},
		{MachO, 0, "\xfe\xed\xfa\xce"},
		{MachO, 0, "\xfe\xed\xfa\xcf"},
		{MachO, 0, "\xce\xfa\xed\xfe"},
		{MachO, 0, "\xcf\xfa\xed\xfe"},
		{Wasm, 0, "\x00asm"},
		{PNG, 0, "\x89PNG\r\n\x1a\n"},
		{JPEG, 0, "\xff\xd8\xff"},
		{GIF, 0, "GIF8"},
		{RIFF, 0, "RIFF"},
		{PDF, 0, "%PDF-"},
		{Parquet, 0, "PAR1"},
		{Arrow, 0, "ARROW1\x00\x00"},
		{SQLite, 0, "SQLite format 3\x00"},
		{Script, 0, "#!"},
		{LFSStub, 0, "version https://git-lfs"},
	}
}

const (
	hdf5Magic = "\x89HDF\r\n\x1a\n"
	xzMagic   = "\xfd7zXZ\x00"
)

// sniff tells a format by the beginning of a source.
func sniff(f *source, head []byte) Format {
	if looksSafetensors(head, f.size) {
		return Safetensors
	}
	for _, m := range magics() {
		if len(head) >= m.off && bytes.HasPrefix(head[m.off:], []byte(m.bytes)) {
			if m.format == Bzip2 && !looksBzip2(head) {
				continue
			}
			return m.format
		}
	}
	switch {
	case looksTar(head):
		return Tar
	case len(head) >= 2 && head[0] == opProto && head[1] <= 5:
		return Pickle
	case bytes.HasPrefix(head, []byte("\xca\xfe\xba\xbe")) && len(head) >= 8:
		// The same four bytes begin a Mach-O file for several processors,
		// where their number follows, and a Java class, with its version.
		if binary.BigEndian.Uint32(head[4:]) < 40 {
			return MachO
		}
		return JavaClass
	case bytes.HasPrefix(head, []byte("MZ")) && (looksPE(f, head) || !isText(head)):
		return PE
	case len(head) >= 16 && head[1] >= 0x0c && head[1] <= 0x0f && head[2] == '\r' && head[3] == '\n':
		return PythonCode
	case looksZlib(f, head):
		return Zlib
	case isText(head):
		if text := strings.TrimLeft(string(head), " \t\r\n"); text != "" && (text[0] == '{' || text[0] == '[') {
			return JSON
		}
		return Text
	case looksONNX(f):
		return ONNX
	}
	return Unknown
}

func looksBzip2(head []byte) bool {
	return len(head) >= 10 && head[3] >= '1' && head[3] <= '9' && (string(head[4:10]) == "1AY&SY" || string(head[4:10]) == "\x17\x72\x45\x38\x50\x90")
}

// looksPE follows the one pointer in the old header of DOS.
func looksPE(f *source, head []byte) bool {
	if len(head) < 64 {
		return false
	}
	var sign [4]byte
	n, _ := f.ReadAt(sign[:], int64(binary.LittleEndian.Uint32(head[60:])))
	return n == 4 && string(sign[:]) == "PE\x00\x00"
}

// looksZlib needs more than the two bytes that begin a zlib stream, since
// other files have them as well: something must come out of it.
func looksZlib(f *source, head []byte) bool {
	if len(head) < 6 || head[0]&0x0f != 8 || head[0]>>4 > 7 || binary.BigEndian.Uint16(head)%31 != 0 || head[1]&0x20 != 0 {
		return false
	}
	r, err := zlib.NewReader(bytes.NewReader(head))
	if err != nil {
		return false
	}
	n, err := io.CopyN(io.Discard, r, 64)
	return n == 64 || n > 0 && err == io.EOF && f.size <= headSize
}

// looksTar goes by the checksum of the first header, as programs do that read
// archives older than the word "ustar".
func looksTar(head []byte) bool {
	if len(head) < 512 || head[0] == 0 {
		return false
	}
	var sum int64
	for i, b := range head[:512] {
		if i >= 148 && i < 156 {
			b = ' '
		}
		sum += int64(b)
	}
	var want int64
	for _, c := range strings.Trim(string(head[148:156]), " \x00") {
		if c < '0' || c > '7' {
			return false
		}
		want = want<<3 | int64(c-'0')
	}
	return sum == want
}

func validText(b []byte) bool {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n < 2 {
			return false
		}
		if unicode.IsControl(r) && !strings.ContainsRune("\t\n\r\f\v\x1b\x08", r) {
			return false
		}
		b = b[n:]
	}
	return true
}

package inspect_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"io"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// The files of these tests are put together here, piece by piece: none is
// taken from elsewhere, and none does harm when it is loaded by mistake.

// pickleCall is a pickle of protocol 4 that imports a name by STACK_GLOBAL and
// calls it without arguments.
func pickleCall(module, name string) []byte {
	b := []byte{0x80, 4, 0x95, 0, 0, 0, 0, 0, 0, 0, 0}
	b = append(append(b, 0x8c, byte(len(module))), module...)
	b = append(b, 0x94)
	b = append(append(b, 0x8c, byte(len(name))), name...)
	return append(b, 0x94, 0x93, ')', 'R', '.')
}

// pickleText is the same in protocol 0.
func pickleText(module, name string) []byte { return []byte("c" + module + "\n" + name + "\n(tR.") }

// pickleData is a pickle of protocol 2 of nothing but data.
func pickleData() []byte { return []byte("\x80\x02]q\x00(K\x01X\x01\x00\x00\x00ae.") }

func safetensors(header string, content int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, content)...)
}

const twoTensors = `{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"b":{"dtype":"BF16","shape":[3],"data_offsets":[16,22]}}`

// gguf puts a file of one string, one list of strings and one tensor together.
type gguf struct {
	version           uint32
	keys, tensors     uint64
	template          string
	tensorOffset      uint64
	firstKey, another string
}

func plainGGUF() gguf {
	return gguf{version: 3, keys: 4, tensors: 1, template: "{{ messages[0].content }}", firstKey: "general.name", another: "tokenizer.ggml.tokens"}
}

func (g gguf) bytes() []byte {
	le := binary.LittleEndian
	text := func(b []byte, s string) []byte { return append(le.AppendUint64(b, uint64(len(s))), s...) }
	b := le.AppendUint32([]byte("GGUF"), g.version)
	b = le.AppendUint64(le.AppendUint64(b, g.tensors), g.keys)
	b = text(le.AppendUint32(text(b, g.firstKey), 8), "small")
	b = le.AppendUint32(le.AppendUint32(text(b, g.another), 9), 8)
	b = text(text(le.AppendUint64(b, 2), "<s>"), "</s>")
	b = text(le.AppendUint32(text(b, "tokenizer.chat_template"), 8), g.template)
	b = le.AppendUint32(le.AppendUint32(text(b, "general.alignment"), 4), 32)
	b = le.AppendUint64(le.AppendUint32(text(b, "w"), 1), 8)   // one dimension of 8
	b = le.AppendUint64(le.AppendUint32(b, 0), g.tensorOffset) // F32
	for len(b)%32 != 0 {
		b = append(b, 0)
	}
	return append(b, make([]byte, 32)...)
}

func npy(header string, content []byte) []byte {
	b := append([]byte("\x93NUMPY\x01\x00"), binary.LittleEndian.AppendUint16(nil, uint16(len(header)))...)
	return append(append(b, header...), content...)
}

type member struct {
	name string
	data []byte
}

// zipped is an ordinary zip archive, deflated or stored.
func zipped(t testing.TB, method uint16, members ...member) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, m := range members {
		f, err := w.CreateHeader(&zip.FileHeader{Name: m.name, Method: method})
		if err == nil {
			_, err = f.Write(m.data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// rawZip is a stored archive of which every field can be wrong.
type rawZip struct {
	localName, centralName string
	localFlags, flags      uint16
	localMethod, method    uint16
	crc                    uint32
	size                   uint32 // unpacked, as the directory says
	gap                    []byte // between content and directory
	data                   []byte // as it lies there
	twice                  bool   // the directory lists it twice
}

func plainZip(name string, data []byte) rawZip {
	return rawZip{localName: name, centralName: name, data: data, crc: crc32.ChecksumIEEE(data), size: uint32(len(data))}
}

func (z rawZip) bytes() []byte {
	le := binary.LittleEndian
	b := append([]byte("PK\x03\x04"), 20, 0)
	b = le.AppendUint16(le.AppendUint16(b, z.localFlags), z.localMethod)
	b = le.AppendUint32(append(b, 0, 0, 0, 0), z.crc)
	b = le.AppendUint32(le.AppendUint32(b, uint32(len(z.data))), z.size)
	b = append(le.AppendUint16(le.AppendUint16(b, uint16(len(z.localName))), 0), z.localName...)
	b = append(append(b, z.data...), z.gap...)
	begin, entries := len(b), 1
	b = append(b, z.central()...)
	if z.twice {
		b, entries = append(b, z.central()...), 2
	}
	size := len(b) - begin
	b = append(append(b, "PK\x05\x06"...), 0, 0, 0, 0)
	b = le.AppendUint16(le.AppendUint16(b, uint16(entries)), uint16(entries))
	return le.AppendUint16(le.AppendUint32(le.AppendUint32(b, uint32(size)), uint32(begin)), 0)
}

func (z rawZip) central() []byte {
	le := binary.LittleEndian
	b := append([]byte("PK\x01\x02"), 20, 0, 20, 0)
	b = le.AppendUint16(le.AppendUint16(b, z.flags), z.method)
	b = le.AppendUint32(append(b, 0, 0, 0, 0), z.crc)
	b = le.AppendUint32(le.AppendUint32(b, uint32(len(z.data))), z.size)
	b = le.AppendUint16(b, uint16(len(z.centralName)))
	return append(append(b, make([]byte, 16)...), z.centralName...)
}

func deflated(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	return written(t, &out, w, data)
}

func written(t testing.TB, out *bytes.Buffer, w io.WriteCloser, data []byte) []byte {
	t.Helper()
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func gzipped(t testing.TB, data []byte) []byte {
	var out bytes.Buffer
	return written(t, &out, gzip.NewWriter(&out), data)
}

func zstded(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	return written(t, &out, w, data)
}

func xzed(t testing.TB, data []byte, dictionary int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := xz.WriterConfig{DictCap: dictionary, BlockSize: 1000}.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	return written(t, &out, w, data)
}

func tarred(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		data := []byte(h.Uname) // content travels in a field that the tests do not need
		h.Uname, h.Size, h.Mode = "", int64(len(data)), 0o644
		if h.Typeflag != tar.TypeReg && h.Typeflag != 0 {
			h.Size, data = 0, nil
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// protobuf writes one field of bytes.
func protobuf(number byte, data []byte) []byte {
	b := binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(data)))
	return append(b, data...)
}

// onnx is a model of one operator set and one tensor with external content.
func onnx(domain, location string) []byte {
	opset := append(protobuf(1, []byte(domain)), 0x10, 17)
	pair := append(protobuf(1, []byte("location")), protobuf(2, []byte(location))...)
	tensor := append([]byte{0x08, 4}, protobuf(13, pair)...)
	return append(append([]byte{0x08, 8}, protobuf(7, protobuf(5, tensor))...), protobuf(8, opset)...)
}

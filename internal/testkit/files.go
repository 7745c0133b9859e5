package testkit

import (
	"bytes"
	"encoding/binary"
	"encoding/json/v2"
	"fmt"
	"io"
	"math"
	"testing/fstest"
)

// Tensor is the shape of one tensor of a model file; its content is random.
type Tensor struct {
	Name  string
	DType string  // as safetensors spells it: F32, BF16, I64, …
	Shape []int64 // empty for a scalar
}

// bytes returns the size of the tensor's content.
func (t Tensor) bytes() (int64, error) {
	width := map[string]int64{
		"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2,
		"U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8,
	}[t.DType]
	if width == 0 {
		return 0, fmt.Errorf("tensor %s: no data type called %q", t.Name, t.DType)
	}
	size := width
	for _, n := range t.Shape {
		if n < 0 || (n > 0 && size > math.MaxInt64/n) {
			return 0, fmt.Errorf("tensor %s: shape %v is out of range", t.Name, t.Shape)
		}
		size *= n
	}
	return size, nil
}

// safetensorsEntry is one tensor in the header of a safetensors file.
type safetensorsEntry struct {
	DType   string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// WriteSafetensors writes a valid model file in the safetensors format with
// random content, a tensor after the other without gaps, and returns its size
// in bytes. It needs no memory for the content.
func WriteSafetensors(w io.Writer, seed string, tensors ...Tensor) (int64, error) {
	header := map[string]any{"__metadata__": map[string]string{"format": "pt"}}
	var end int64
	for _, t := range tensors {
		size, err := t.bytes()
		if err != nil {
			return 0, err
		}
		if _, twice := header[t.Name]; twice {
			return 0, fmt.Errorf("tensor %s: named twice", t.Name)
		}
		shape := append([]int64{}, t.Shape...) // never null
		header[t.Name] = safetensorsEntry{DType: t.DType, Shape: shape, Offsets: [2]int64{end, end + size}}
		end += size
	}
	text, err := json.Marshal(header, json.Deterministic(true))
	if err != nil {
		return 0, fmt.Errorf("encode safetensors header: %w", err)
	}
	// The format wants the content aligned to eight bytes, by spaces.
	text = append(text, bytes.Repeat([]byte(" "), (8-len(text)%8)%8)...)

	head := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	if _, err := w.Write(head); err != nil {
		return 0, fmt.Errorf("write safetensors header: %w", err)
	}
	if _, err := io.CopyN(w, Random(seed), end); err != nil {
		return 0, fmt.Errorf("write safetensors content: %w", err)
	}
	return int64(len(head)) + end, nil
}

// Model returns the files of a small model as a hub would hold them:
// config.json, tokenizer.json, README.md with a licence, and model.safetensors
// with the given tensors, or with two small ones if none is given.
func Model(seed string, tensors ...Tensor) (fstest.MapFS, error) {
	if len(tensors) == 0 {
		tensors = []Tensor{
			{Name: "embed.weight", DType: "BF16", Shape: []int64{64, 16}},
			{Name: "head.bias", DType: "F32", Shape: []int64{64}},
		}
	}
	var weights bytes.Buffer
	if _, err := WriteSafetensors(&weights, seed, tensors...); err != nil {
		return nil, err
	}
	return mapFS(map[string][]byte{
		"README.md":         []byte("---\nlicense: apache-2.0\ntags:\n- packhof-test\n---\n\n# A model of random numbers\n"),
		"config.json":       []byte("{\n  \"architectures\": [\"PackhofTest\"],\n  \"hidden_size\": 16,\n  \"vocab_size\": 64\n}\n"),
		"tokenizer.json":    []byte("{\"version\":\"1.0\",\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"<unk>\":0},\"unk_token\":\"<unk>\"}}\n"),
		"model.safetensors": weights.Bytes(),
	}), nil
}

// Dataset returns a small data set of measurements: train.csv and test.jsonl
// with the given number of rows each, and README.md with a licence.
func Dataset(seed string, rows int) fstest.MapFS {
	table, lines := bytes.NewBufferString("part,temperature,ok\n"), new(bytes.Buffer)
	for i, b := range Bytes(seed, rows) {
		fmt.Fprintf(table, "part-%06d,%d.%d,%t\n", i, 20+b%60, b%10, b < 240)
		fmt.Fprintf(lines, `{"part":"part-%06d","temperature":%d.%d,"ok":%t}`+"\n", i, 20+b%60, b%10, b < 240)
	}
	return mapFS(map[string][]byte{
		"README.md":  []byte("---\nlicense: cc-by-4.0\n---\n\n# Measurements that nobody took\n"),
		"train.csv":  table.Bytes(),
		"test.jsonl": lines.Bytes(),
	})
}

func mapFS(files map[string][]byte) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, data := range files {
		fsys[name] = &fstest.MapFile{Data: data, Mode: 0o644, ModTime: Noon()}
	}
	return fsys
}

package testkit

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWriteSafetensors(t *testing.T) {
	var file bytes.Buffer
	size, err := WriteSafetensors(&file, "weights",
		Tensor{"a", "F32", []int64{2, 3}}, Tensor{"b", "BF16", []int64{5}}, Tensor{"scalar", "I64", nil})
	if err != nil {
		t.Fatal(err)
	}
	if size != int64(file.Len()) {
		t.Errorf("said %d bytes, wrote %d", size, file.Len())
	}
	headerSize := binary.LittleEndian.Uint64(file.Bytes())
	if headerSize%8 != 0 {
		t.Errorf("the content begins at %d, which is not aligned to eight bytes", 8+headerSize)
	}
	var header map[string]struct {
		DType   string   `json:"dtype"`
		Shape   []int64  `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
		Format  string   `json:"format"`
	}
	if err := json.Unmarshal(file.Bytes()[8:8+headerSize], &header); err != nil {
		t.Fatal(err)
	}
	offsets := [][2]int64{header["a"].Offsets, header["b"].Offsets, header["scalar"].Offsets}
	if diff := cmp.Diff([][2]int64{{0, 24}, {24, 34}, {34, 42}}, offsets); diff != "" {
		t.Errorf("offsets (-want +got):\n%s", diff)
	}
	if header["scalar"].Shape == nil {
		t.Error("the shape of a scalar is null, want []")
	}
	content := file.Bytes()[8+headerSize:]
	if !bytes.Equal(content, Bytes("weights", 42)) {
		t.Errorf("content of %d bytes is not that of its seed", len(content))
	}
}

func TestWriteSafetensorsRefuses(t *testing.T) {
	for name, tensors := range map[string][]Tensor{
		"unknown type":   {{"a", "F33", []int64{1}}},
		"negative shape": {{"a", "F32", []int64{-1}}},
		"overflow":       {{"a", "F32", []int64{1 << 40, 1 << 40}}},
		"same name":      {{"a", "F32", nil}, {"a", "F32", nil}},
	} {
		var file bytes.Buffer
		if _, err := WriteSafetensors(&file, "", tensors...); err == nil || file.Len() > 0 {
			t.Errorf("%s: error %v after %d bytes, want one before the first byte", name, err, file.Len())
		}
	}
}

func TestModelAndDatasetDependOnTheirSeedOnly(t *testing.T) {
	one, err := Model("x")
	if err != nil {
		t.Fatal(err)
	}
	two, err := Model("x")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(one, two); diff != "" {
		t.Errorf("model made twice:\n%s", diff)
	}
	if diff := cmp.Diff(Dataset("x", 100), Dataset("x", 100)); diff != "" {
		t.Errorf("data set made twice:\n%s", diff)
	}
	if bytes.Equal(Dataset("x", 100)["train.csv"].Data, Dataset("y", 100)["train.csv"].Data) {
		t.Error("two seeds, one data set")
	}
}

func TestDatasetParses(t *testing.T) {
	files := Dataset("rows", 50)
	table, err := csv.NewReader(bytes.NewReader(files["train.csv"].Data)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(table) != 51 {
		t.Errorf("train.csv has %d lines, want a header and 50 rows", len(table))
	}
	var rows int
	for line := range bytes.Lines(files["test.jsonl"].Data) {
		if !json.Valid(line) {
			t.Errorf("no JSON: %s", line)
		}
		rows++
	}
	if rows != 50 {
		t.Errorf("test.jsonl has %d rows, want 50", rows)
	}
}

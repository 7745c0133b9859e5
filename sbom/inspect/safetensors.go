package inspect

import (
	"cmp"
	"encoding/binary"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
)

// Safetensors: a length of eight bytes, a JSON header of that length, and the
// content of the tensors without a gap.

const mostSafetensorsHeader = 100_000_000 // what the reference implementation takes

func looksSafetensors(head []byte, size int64) bool {
	if len(head) < 10 || head[8] != '{' {
		return false
	}
	n := binary.LittleEndian.Uint64(head)
	return n >= 2 && n <= mostSafetensorsHeader && (n <= uint64(size)-8 || head[9] == '"' || head[9] == '}')
}

// span is where one tensor lies.
type span struct{ begin, end int64 }

func (s *scan) safetensors(f *source) error {
	length, err := f.cursor(0).little(8)
	if err != nil {
		return err
	}
	n := int64(length)
	if n > f.size-8 {
		return errTooFar
	}
	if n > s.limits.Header {
		return fmt.Errorf("a header of %d bytes: %w", n, errTooMany)
	}
	header, err := f.part(8, n)
	if err != nil {
		return err
	}
	dec := jsontext.NewDecoder(header.stream(0))
	spans, err := s.tensorSpans(dec)
	if err != nil {
		return err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return orElse(err, "its header goes on behind the JSON")
	}
	return checkSpans(spans, f.size-8-n, f.size != unknownSize)
}

func orElse(err error, what string) error {
	if err != nil {
		return err
	}
	return errors.New(what)
}

// Tensors and keys of the metadata are each bounded, since the names of both
// are kept to see which come twice.
const (
	mostTensors  = 200_000
	mostMetadata = 200_000
)

func (s *scan) tensorSpans(dec *jsontext.Decoder) ([]span, error) {
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, orElse(err, "its header is no JSON object")
	}
	var spans []span
	for dec.PeekKind() == '"' {
		t, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		if t.String() == "__metadata__" {
			if err := passMetadata(dec); err != nil {
				return nil, err
			}
			continue
		}
		place, err := readTensor(dec)
		if err != nil {
			return nil, err
		}
		if spans = append(spans, place); len(spans) > mostTensors {
			return nil, fmt.Errorf("%w: %d tensors", errTooMany, mostTensors)
		}
	}
	_, err := dec.ReadToken()
	return spans, err
}

// passMetadata checks that there are only strings, and keeps none.
func passMetadata(dec *jsontext.Decoder) error {
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return orElse(err, "its metadata are no JSON object")
	}
	for n := 0; dec.PeekKind() == '"'; n++ {
		if n == mostMetadata {
			return fmt.Errorf("%w: more than %d keys of metadata", errTooMany, mostMetadata)
		}
		if err := dec.SkipValue(); err != nil {
			return err
		}
		if t, err := dec.ReadToken(); err != nil || t.Kind() != '"' {
			return orElse(err, "its metadata have something else than strings")
		}
	}
	_, err := dec.ReadToken()
	return err
}

func readTensor(dec *jsontext.Decoder) (span, error) {
	var t struct {
		DType   string  `json:"dtype"`
		Shape   numbers `json:"shape"`
		Offsets numbers `json:"data_offsets"`
	}
	if err := json.UnmarshalDecode(dec, &t, json.RejectUnknownMembers(true)); errors.Is(err, errTooMany) {
		return span{}, fmt.Errorf("%w: %d dimensions of a tensor", errTooMany, mostDimensions)
	} else if err != nil {
		return span{}, err
	}
	if len(t.Offsets) != 2 || t.Offsets[0] < 0 || t.Offsets[0] > t.Offsets[1] {
		return span{}, errors.New("a tensor whose offsets are no range")
	}
	place := span{t.Offsets[0], t.Offsets[1]}
	width := dtypeBits(t.DType)
	if width == 0 {
		return span{}, fmt.Errorf("a tensor of the unknown type %.40q", t.DType)
	}
	size := width
	for _, n := range t.Shape {
		high, low := bits.Mul64(size, uint64(n))
		if n < 0 || high != 0 {
			return span{}, errors.New("a tensor whose shape is out of range")
		}
		size = low
	}
	if size%8 != 0 || size/8 != uint64(place.end-place.begin) {
		return span{}, errors.New("a tensor whose shape needs another size than its offsets give")
	}
	return place, nil
}

// mostDimensions is what frameworks take of a tensor.
const mostDimensions = 64

// numbers is a list of few numbers: a header holds millions of them, and they
// would take many times its size.
type numbers []int64

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (n *numbers) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '[' {
		return orElse(err, "a tensor whose shape or offsets are no list")
	}
	for dec.PeekKind() != ']' {
		var one int64
		if err := json.UnmarshalDecode(dec, &one); err != nil {
			return err
		}
		if *n = append(*n, one); len(*n) > mostDimensions {
			return errTooMany
		}
	}
	_, err := dec.ReadToken()
	return err
}

// dtypeBits is the width of one element; 0 for an unknown type.
func dtypeBits(dtype string) uint64 {
	switch dtype {
	case "F4":
		return 4
	case "F6_E2M3", "F6_E3M2":
		return 6
	case "BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ":
		return 8
	case "I16", "U16", "F16", "BF16":
		return 16
	case "I32", "U32", "F32":
		return 32
	case "C64", "F64", "I64", "U64":
		return 64
	}
	return 0
}

func checkSpans(spans []span, content int64, sized bool) error {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end)) })
	end := int64(0)
	for _, s := range spans {
		if s.begin != end {
			return fmt.Errorf("its tensors overlap or leave a gap at byte %d of the content", min(s.begin, end))
		}
		end = s.end
	}
	if sized && end != content {
		return fmt.Errorf("its tensors take %d bytes, and its content has %d", end, content)
	}
	return nil
}

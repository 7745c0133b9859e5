package inspect

import (
	"errors"
	"fmt"
	"slices"
)

// ONNX is a protobuf message without a magic number. Of it are followed: the
// operator sets, and where the graph's tensors have their content.

// Wire types of protobuf.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// field is one field of a message.
type field struct {
	number uint64
	wire   uint64
	varint uint64
	span   span // of bytes
}

// fields visits the fields of the message that lies at a span, and passes over
// their content.
func fields(f *source, at span, visit func(field) error) error {
	c := f.cursor(at.begin)
	for c.off < at.end {
		v, err := readField(c, at.end)
		if err != nil {
			return err
		}
		if err := visit(v); err != nil {
			return err
		}
	}
	return nil
}

func readField(c *cursor, end int64) (v field, err error) {
	tag, err := c.varint()
	if err != nil {
		return v, err
	}
	v.number, v.wire = tag>>3, tag&7
	switch v.wire {
	case wireVarint:
		v.varint, err = c.varint()
	case wireFixed64:
		err = c.skip(8)
	case wireFixed32:
		err = c.skip(4)
	case wireBytes:
		var n uint64
		if n, err = c.varint(); err != nil {
			return v, err
		}
		v.span.begin = c.off
		err = c.skip(n)
		v.span.end = c.off
	default:
		err = errors.New("a field of no known form")
	}
	if err == nil && (v.number == 0 || c.off > end) {
		err = errTooFar
	}
	return v, err
}

// Fields of a model that ONNX defines; anything else is another message.
const (
	onnxVersion = 1
	onnxGraph   = 7
	onnxOpset   = 8
)

// looksONNX takes for a model what has its version, its graph and its operator
// sets, and consists of known fields of the right form to its last byte.
func looksONNX(f *source) bool {
	if f.size == unknownSize || f.size < 8 {
		return false
	}
	seen := map[uint64]bool{}
	err := fields(f, span{0, f.size}, func(v field) error {
		want := uint64(wireBytes)
		if v.number == onnxVersion || v.number == 5 {
			want = wireVarint
		}
		known := v.number <= 8 || slices.Contains([]uint64{14, 20, 25, 26}, v.number)
		if !known || v.wire != want || v.number == onnxVersion && v.varint > 1000 {
			return errors.New("not a model")
		}
		seen[v.number] = true
		return nil
	})
	return err == nil && seen[onnxVersion] && seen[onnxGraph] && seen[onnxOpset]
}

func (s *scan) onnx(f *source, at place) error {
	return fields(f, span{0, f.size}, func(v field) error {
		switch v.number {
		case onnxOpset:
			return s.onnxOpset(f, v.span, at)
		case onnxGraph:
			return s.onnxGraph(f, v.span, at, 0)
		}
		return nil
	})
}

func (s *scan) onnxOpset(f *source, where span, at place) error {
	return fields(f, where, func(v field) error {
		if v.number != 1 || v.wire != wireBytes {
			return nil
		}
		domain, err := readText(f, v.span)
		if err != nil {
			return err
		}
		if !slices.Contains([]string{"", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview", "ai.onnx.preview.training"}, domain) {
			s.find(at, CodeCustomDomain, "%.100q", domain)
		}
		return nil
	})
}

func readText(f *source, where span) (string, error) {
	n := uint64(where.end - where.begin)
	return f.cursor(where.begin).text(n, 4096)
}

const mostGraphs = 16 // graphs in the attributes of nodes of graphs

// onnxGraph follows the tensors of a graph, and those in its nodes.
func (s *scan) onnxGraph(f *source, where span, at place, depth int) error {
	if depth > mostGraphs {
		return fmt.Errorf("%w: graphs in graphs, deeper than %d", errTooMany, mostGraphs)
	}
	return fields(f, where, func(v field) error {
		switch {
		case v.wire != wireBytes:
			return nil
		case v.number == 1: // a node
			return s.onnxNode(f, v.span, at, depth)
		case v.number == 5: // an initial value
			return s.onnxTensor(f, v.span, at)
		}
		return nil
	})
}

func (s *scan) onnxNode(f *source, where span, at place, depth int) error {
	return fields(f, where, func(node field) error {
		if node.number != 5 || node.wire != wireBytes { // an attribute
			return nil
		}
		return fields(f, node.span, func(v field) error {
			switch {
			case v.wire != wireBytes:
				return nil
			case v.number == 5 || v.number == 10: // tensors
				return s.onnxTensor(f, v.span, at)
			case v.number == 6 || v.number == 11: // graphs
				return s.onnxGraph(f, v.span, at, depth+1)
			}
			return nil
		})
	})
}

// onnxTensor finds content that lies in another file, outside of the folder.
func (s *scan) onnxTensor(f *source, where span, at place) error {
	return fields(f, where, func(v field) error {
		if v.number != 13 || v.wire != wireBytes { // a pair about external data
			return nil
		}
		var key, value string
		err := fields(f, v.span, func(part field) (err error) {
			if part.number == 1 && part.wire == wireBytes {
				key, err = readText(f, part.span)
			} else if part.number == 2 && part.wire == wireBytes {
				value, err = readText(f, part.span)
			}
			return err
		})
		if err == nil && key == "location" && leadsOut(value) {
			s.find(at, CodeExternalPath, "%.200q", value)
		}
		return err
	})
}

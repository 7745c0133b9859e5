package inspect

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// GGUF: a magic number, counts, keys with values, a list of tensors, content.

const (
	mostGGUFKeys    = 100_000
	mostGGUFTensors = 200_000
	ggufString      = 8
	ggufArray       = 9
	ggufUint32      = 4
)

// gguf reads the header; it goes no further than Limits.Header.
func (s *scan) gguf(f *source, at place) error {
	g := &ggufReader{c: f.cursor(4), most: s.limits.Header, names: map[string]bool{}, align: 32}
	version, err := g.c.little(4)
	if err != nil {
		return err
	}
	if version != 2 && version != 3 {
		return fmt.Errorf("version %d, 2 and 3 are known", version)
	}
	tensors, err := g.c.little(8)
	if err != nil {
		return err
	}
	keys, err := g.c.little(8)
	if err != nil {
		return err
	}
	if tensors > mostGGUFTensors || keys > mostGGUFKeys {
		return fmt.Errorf("%w: %d tensors, %d keys", errTooMany, tensors, keys)
	}
	for range keys {
		if err := s.ggufKey(g, at); err != nil {
			return err
		}
	}
	clear(g.names)
	offsets := make([]uint64, 0, min(tensors, 4096))
	for range tensors {
		offset, err := g.tensor()
		if err != nil {
			return err
		}
		offsets = append(offsets, offset)
	}
	return g.checkOffsets(offsets)
}

type ggufReader struct {
	c     *cursor
	most  int64
	names map[string]bool
	align uint64
}

// name reads a name that must not be there twice.
func (g *ggufReader) name(most uint64) (string, error) {
	if g.c.off > g.most {
		return "", fmt.Errorf("%w: a header of more than %d bytes", errTooMany, g.most)
	}
	n, err := g.c.little(8)
	if err != nil {
		return "", err
	}
	if n == 0 || n > most {
		return "", fmt.Errorf("a name of %d bytes", n)
	}
	name, err := g.c.text(n, int(n))
	if err != nil {
		return "", err
	}
	if g.names[name] {
		return "", fmt.Errorf("the name %.100q is there twice", name)
	}
	g.names[name] = true
	return name, nil
}

func (s *scan) ggufKey(g *ggufReader, at place) error {
	key, err := g.name(65535)
	if err != nil {
		return err
	}
	kind, err := g.c.little(4)
	if err != nil {
		return err
	}
	switch {
	case kind == ggufString && strings.HasPrefix(key, "tokenizer.chat_template"):
		n, err := g.c.little(8)
		if err != nil {
			return err
		}
		text, err := g.c.text(n, templateKeep)
		if err != nil {
			return err
		}
		if n > templateKeep {
			s.unread(at, CodeFileLimit, "a chat template of %d bytes", n)
		}
		s.template(key, text, at)
		return nil
	case kind == ggufUint32 && key == "general.alignment":
		g.align, err = g.c.little(4)
		if err == nil && (g.align == 0 || g.align&(g.align-1) != 0) {
			err = fmt.Errorf("an alignment of %d", g.align)
		}
		return err
	}
	return g.value(kind)
}

func (g *ggufReader) value(kind uint64) error {
	switch kind {
	case ggufString:
		return g.skipString()
	case ggufArray:
		element, err := g.c.little(4)
		if err != nil {
			return err
		}
		n, err := g.c.little(8)
		if err != nil {
			return err
		}
		return g.array(element, n)
	}
	width := ggufWidth(kind)
	if width == 0 {
		return fmt.Errorf("a value of the unknown type %d", kind)
	}
	return g.c.skip(width)
}

func (g *ggufReader) array(element, n uint64) error {
	if n > uint64(max(g.c.left(), 0)) {
		return errTooFar
	}
	if element == ggufString {
		for range n {
			if err := g.skipString(); err != nil {
				return err
			}
		}
		return nil
	}
	width := ggufWidth(element)
	if width == 0 {
		return fmt.Errorf("a list of the type %d", element)
	}
	return g.c.skip(n * width) // both are bounded: no overflow
}

func (g *ggufReader) skipString() error {
	n, err := g.c.little(8)
	if err != nil {
		return err
	}
	return g.c.skip(n)
}

func ggufWidth(kind uint64) uint64 {
	switch kind {
	case 0, 1, 7:
		return 1
	case 2, 3:
		return 2
	case 4, 5, 6:
		return 4
	case 10, 11, 12:
		return 8
	}
	return 0
}

func (g *ggufReader) tensor() (offset uint64, err error) {
	if _, err := g.name(63); err != nil {
		return 0, err
	}
	dims, err := g.c.little(4)
	if err != nil {
		return 0, err
	}
	if dims > 4 {
		return 0, fmt.Errorf("a tensor of %d dimensions", dims)
	}
	if err := g.c.skip(dims*8 + 4); err != nil {
		return 0, err
	}
	return g.c.little(8)
}

func (g *ggufReader) checkOffsets(offsets []uint64) error {
	begin := (uint64(g.c.off) + g.align - 1) / g.align * g.align
	for _, offset := range offsets {
		if offset%g.align != 0 {
			return errors.New("a tensor that is not aligned")
		}
		if begin > uint64(g.c.f.size) || offset > uint64(g.c.f.size)-begin {
			return fmt.Errorf("a tensor behind its end: %w", io.ErrUnexpectedEOF)
		}
	}
	return nil
}

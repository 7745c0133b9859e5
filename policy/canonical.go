package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json/jsontext"
	"hash"
	"reflect"
	"strconv"
)

// place is where in the facts a value stands; written only when it is wrong.
type place struct {
	in    *place
	name  string
	index int // in a list, where name is ""
}

func (p *place) String() string {
	switch {
	case p.in == nil:
		return ""
	case p.name != "":
		return p.in.String() + "/" + p.name
	}
	return p.in.String() + "/" + strconv.Itoa(p.index)
}

// canonical writes values in canonical form (RFC 8785) and holds them against
// their schema as it goes. With a sum it hashes the bytes and forgets them:
// facts may have tens of MiB, and often no more than their digest is asked for.
type canonical struct {
	buf  []byte
	sum  hash.Hash // nil: all stays in buf
	size int64     // hashed
}

// flushed is how much is hashed at once, in bytes.
const flushed = 64 << 10

func (c *canonical) flush() error {
	c.size += int64(len(c.buf))
	c.sum.Write(c.buf)
	c.buf = c.buf[:0]
	if c.size > MaxInput {
		return fault(codeTooLarge, "the facts have more than the %d bytes allowed", MaxInput)
	}
	return nil
}

func (c *canonical) write(s *schema, v reflect.Value, at *place) error {
	switch s.kind {
	case '{':
		return c.object(s, v, at)
	case '[':
		return c.list(s, v, at)
	case '0':
		if want := s.misfitNumber(v.Int()); want != "" {
			return misfit(at.String(), want, strconv.FormatInt(v.Int(), 10))
		}
		c.buf = strconv.AppendInt(c.buf, v.Int(), 10)
	case 't':
		c.buf = strconv.AppendBool(c.buf, v.Bool())
	default:
		return c.text(s, v.String(), at)
	}
	return nil
}

func (c *canonical) object(s *schema, v reflect.Value, at *place) error {
	for i, f := range s.sorted {
		if c.buf = append(c.buf, ','); i == 0 {
			c.buf[len(c.buf)-1] = '{'
		}
		c.buf = append(append(append(c.buf, '"'), f.name...), '"', ':')
		if err := c.write(f.value, v.Field(f.index), &place{in: at, name: f.name}); err != nil {
			return err
		}
	}
	c.buf = append(c.buf, '}')
	return nil
}

func (c *canonical) list(s *schema, v reflect.Value, at *place) error {
	c.buf = append(c.buf, '[')
	for i := range v.Len() {
		if i > 0 {
			c.buf = append(c.buf, ',')
		}
		if err := c.write(s.items, v.Index(i), &place{in: at, index: i}); err != nil {
			return err
		}
		if c.sum == nil || len(c.buf) < flushed {
			continue
		}
		if err := c.flush(); err != nil {
			return err
		}
	}
	c.buf = append(c.buf, ']')
	return nil
}

func (c *canonical) text(s *schema, text string, at *place) error {
	if want := s.misfitText(text); want != "" {
		return misfit(at.String(), want, strconv.Quote(text))
	}
	quoted, err := jsontext.AppendQuote(c.buf, text)
	if err != nil {
		return fault(codeInvalidInput, "the facts cannot be written").with("at:  " + Visible(at.String())).because(err)
	}
	c.buf = quoted
	return nil
}

// measure checks an input and gives the size and digest of its canonical bytes.
func (in *Input) measure() (size int64, digest string, err error) {
	c := canonical{sum: sha256.New(), buf: make([]byte, 0, 2*flushed)}
	if err := c.write(inputSchema(), reflect.ValueOf(in).Elem(), &place{}); err != nil {
		return 0, "", err
	}
	if err := c.flush(); err != nil {
		return 0, "", err
	}
	if err := in.consistent(); err != nil {
		return 0, "", err
	}
	return c.size, "sha256:" + hex.EncodeToString(c.sum.Sum(nil)), nil
}

// Digest gives what Encode gives, without the bytes.
func (in *Input) Digest() (string, error) {
	_, digest, err := in.measure()
	return digest, err
}

// Encode gives the canonical bytes (RFC 8785) of an input and their digest,
// after the same checks as DecodeInput.
func (in *Input) Encode() (document []byte, digest string, err error) { return in.Append(nil) }

// Append is Encode behind other bytes, which are in the document and not in
// the digest.
func (in *Input) Append(before []byte) (document []byte, digest string, err error) {
	size, digest, err := in.measure()
	if err != nil {
		return nil, "", err
	}
	c := canonical{buf: append(make([]byte, 0, int64(len(before))+size), before...)}
	if err := c.write(inputSchema(), reflect.ValueOf(in).Elem(), &place{}); err != nil {
		return nil, "", err
	}
	return c.buf, digest, nil
}

package child

import (
	"bytes"
	"io"
)

// whole collects standard output up to a limit. Past it, it reports once and
// refuses everything: truncated output is not output.
type whole struct {
	buf      bytes.Buffer
	limit    int64
	exceeded func()
}

func (w *whole) Write(p []byte) (int, error) {
	if int64(w.buf.Len())+int64(len(p)) > w.limit {
		w.exceeded()
		return 0, io.ErrShortWrite
	}
	return w.buf.Write(p)
}

// ends keeps the beginning and the end of standard error: a crash of the Go
// runtime says what happened first, then prints stacks without end.
type ends struct {
	head, tail []byte
	dropped    bool
}

const (
	headSize = 8 << 10
	tailSize = 24 << 10
)

func (e *ends) Write(p []byte) (int, error) {
	n := len(p)
	if room := headSize - len(e.head); room > 0 {
		k := min(room, len(p))
		e.head = append(e.head, p[:k]...)
		p = p[k:]
	}
	if len(p) > tailSize {
		p, e.dropped = p[len(p)-tailSize:], true
	}
	e.tail = append(e.tail, p...)
	if over := len(e.tail) - tailSize; over > 0 {
		e.tail, e.dropped = append(e.tail[:0], e.tail[over:]...), true
	}
	return n, nil
}

func (e *ends) bytes() []byte {
	kept := append([]byte{}, e.head...)
	if e.dropped {
		kept = append(kept, "\n…\n"...)
	}
	return append(kept, e.tail...)
}

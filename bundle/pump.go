package bundle

import (
	"context"
	"io"
)

const (
	smallPiece  = 16 << 10
	pumpBuffer  = 1 << 20
	pumpBuffers = 4
)

// pump copies src to dst with reading and writing at the same time, in
// memory that does not grow with the size. observe, when given, is told of
// every piece written. Only an io.EOF of src ends it well.
func pump(ctx context.Context, dst io.Writer, src io.Reader, observe func(n int64)) (int64, error) {
	out := &drain{ctx: ctx, dst: dst, observe: observe}
	// Most entries are small: not worth a second goroutine and its buffers.
	first := make([]byte, smallPiece)
	n, err := fill(src, first)
	if last, err := out.take(piece{first[:n], err}); last {
		return out.total, err
	}
	p := startPump(src)
	defer p.stop()
	for next := range p.full {
		if last, err := out.take(next); last {
			return out.total, err
		}
		p.free <- next.data[:cap(next.data)]
	}
	return out.total, nil
}

// drain is the writing end.
type drain struct {
	ctx     context.Context
	dst     io.Writer
	observe func(n int64)
	total   int64
}

// take writes a piece and tells whether it was the last one.
func (d *drain) take(p piece) (last bool, err error) {
	if d.ctx.Err() != nil {
		return true, context.Cause(d.ctx)
	}
	n, err := d.dst.Write(p.data)
	d.total += int64(n)
	if err != nil {
		return true, err
	}
	if d.observe != nil {
		d.observe(int64(n))
	}
	if p.err == io.EOF {
		return true, nil
	}
	return p.err != nil, p.err
}

// fill reads until buf is full or the reader returns an error. Unlike
// io.ReadFull it keeps a reader's own io.ErrUnexpectedEOF apart from the end.
func fill(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var m int
		m, err = r.Read(buf[n:])
		n += m
	}
	return n, err
}

type piece struct {
	data []byte
	err  error // what the reader returned with this piece; io.EOF at the end
}

type reader struct {
	full chan piece
	free chan []byte
	quit chan struct{}
	done chan struct{}
}

func startPump(src io.Reader) *reader {
	p := &reader{full: make(chan piece), free: make(chan []byte, pumpBuffers), quit: make(chan struct{}), done: make(chan struct{})}
	for range pumpBuffers {
		p.free <- make([]byte, pumpBuffer)
	}
	go p.read(src)
	return p
}

func (p *reader) read(src io.Reader) {
	defer close(p.done)
	defer close(p.full)
	for {
		var buf []byte
		select {
		case buf = <-p.free:
		case <-p.quit:
			return
		}
		n, err := fill(src, buf)
		select {
		case p.full <- piece{buf[:n], err}:
		case <-p.quit:
			return
		}
		if err != nil {
			return
		}
	}
}

// stop waits until the reader no longer touches src.
func (p *reader) stop() {
	close(p.quit)
	<-p.done
}

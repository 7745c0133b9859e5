package bundle

import (
	"context"
	"io"
)

const (
	pumpBuffer  = 1 << 20
	pumpBuffers = 4
)

// pump copies src to dst with reading and writing at the same time, in
// memory that does not grow with the size. observe, when given, is told of
// every piece written.
func pump(ctx context.Context, dst io.Writer, src io.Reader, observe func(n int64)) (int64, error) {
	p := startPump(src)
	defer p.stop()
	var total int64
	for piece := range p.full {
		if ctx.Err() != nil {
			return total, context.Cause(ctx)
		}
		n, err := dst.Write(piece.data)
		total += int64(n)
		if err != nil {
			return total, err
		}
		if observe != nil {
			observe(int64(n))
		}
		if piece.err != nil {
			return total, readResult(piece.err)
		}
		p.free <- piece.data[:cap(piece.data)]
	}
	return total, nil
}

func readResult(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
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
		n, err := io.ReadFull(src, buf)
		if err == io.ErrUnexpectedEOF {
			err = io.EOF
		}
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

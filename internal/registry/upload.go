package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

var (
	// errTokenRenewed says that the token was over when an upload began.
	errTokenRenewed = errors.New("the token was over and has been renewed")
	errBodyClosed   = errors.New("the upload has ended")
)

// stalledError says that a registry took nothing for too long.
type stalledError struct{ silence time.Duration }

func (e *stalledError) Error() string {
	return fmt.Sprintf("the upload stands still: nothing was taken for %s", e.silence)
}

// sourceError is an error of the content that is uploaded, not of the way.
type sourceError struct{ err error }

func (e *sourceError) Error() string { return e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }

// PutBlob uploads a blob in one piece. open gives its bytes, from the
// beginning each time, and must end with io.EOF only after exactly the right
// ones; any other error of it is returned as it is, and then the registry was
// never sent the last bytes of the blob. Nothing of an upload that failed is
// in the repository.
func (w *Writer) PutBlob(ctx context.Context, d cas.Digest, size int64, open func(context.Context) (io.ReadCloser, error)) error {
	doing := "upload the blob " + w.ref.At(d).String()
	return w.again(ctx, doing, func() error { return w.upload(ctx, doing, d, size, open) })
}

func (w *Writer) upload(ctx context.Context, doing string, d cas.Digest, size int64, open func(context.Context) (io.ReadCloser, error)) error {
	location, err := w.beginUpload(ctx, doing)
	if err != nil {
		return err
	}
	content, err := open(ctx)
	if err != nil {
		return &sourceError{err}
	}
	return w.send(ctx, doing, finishAt(location, d), size, content)
}

// beginUpload asks for a place to upload to.
func (w *Writer) beginUpload(ctx context.Context, doing string) (*url.URL, error) {
	req, err := w.request(ctx, http.MethodPost, "blobs/uploads/", http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := w.exchange(ctx, doing, req, http.StatusAccepted)
	if err != nil {
		return nil, err
	}
	discard(resp)
	location, err := resp.Location() // relative ones resolved
	if err != nil {
		return nil, w.protocol("it does not say where to upload to: %w", problem.Foreign(err))
	}
	// Registries behind a proxy often have the scheme wrong.
	location.Scheme = req.URL.Scheme
	if origin(location) != origin(req.URL) {
		return nil, problem.New("registry/redirect-refused", "%s wants an upload to be sent to %s", w.ref.Host, problem.Line(location.Host)).
			With("from:  "+bare(req.URL), "to:    "+problem.Line(bare(location)))
	}
	return location, nil
}

// finishAt is the address that takes the whole blob d. What the registry
// signed in the query stays as it is.
func finishAt(location *url.URL, d cas.Digest) *url.URL {
	at := *location
	if at.RawQuery != "" {
		at.RawQuery += "&"
	}
	at.RawQuery += "digest=" + url.QueryEscape(d.String())
	return &at
}

// send sends the content, which it closes.
func (w *Writer) send(ctx context.Context, doing string, to *url.URL, size int64, content io.ReadCloser) error {
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	b := newUploadBody(content, size, watchdog(w.c.config.Stall, cancel))
	defer b.Close() // it was read only
	req, err := http.NewRequestWithContext(watched, http.MethodPut, to.String(), b)
	if err != nil {
		return err
	}
	if req.ContentLength = size; size == 0 {
		if err := b.drain(); err != nil {
			return err
		}
		req.Body = http.NoBody
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := w.exchange(watched, doing, req, http.StatusCreated)
	if source := b.failed(); source != nil {
		return &sourceError{source}
	}
	if stalled, ok := errors.AsType[*stalledError](context.Cause(watched)); ok && err != nil {
		return &url.Error{Op: "Put", URL: bare(to), Err: stalled}
	}
	if err != nil {
		return err
	}
	discard(resp)
	return nil
}

// watchdog gives a timer, not running yet, that ends an upload.
func watchdog(stall time.Duration, cancel context.CancelCauseFunc) *stallTimer {
	t := &stallTimer{stall: stall, timer: time.AfterFunc(stall, func() { cancel(&stalledError{stall}) })}
	t.timer.Stop()
	return t
}

type stallTimer struct {
	stall time.Duration
	timer *time.Timer
}

func (t *stallTimer) start() { t.timer.Reset(t.stall) }
func (t *stallTimer) stop()  { t.timer.Stop() }

const (
	pieceSize = 256 << 10
	maxPieces = 3 // one being sent, one held back, one being read
)

// uploadBody is a request's body that is read, and so hashed, ahead of the
// network by a goroutine. A piece is given out only when what follows it has
// been read as well, so that the last one leaves us only after the content
// was proven.
type uploadBody struct {
	watch *stallTimer
	full  chan []byte
	spare chan []byte
	stop  chan struct{} // closed by Close
	done  chan struct{} // closed when the goroutine has ended; err is set then
	err   error         // io.EOF after the right end

	close   sync.Once
	mu      sync.Mutex // of what follows
	started bool
	piece   []byte // being given out
	left    []byte // of piece
}

func newUploadBody(content io.ReadCloser, size int64, watch *stallTimer) *uploadBody {
	b := &uploadBody{
		watch: watch, full: make(chan []byte, maxPieces), spare: make(chan []byte, maxPieces),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	for range maxPieces {
		b.spare <- nil // made when needed: small blobs need one
	}
	go b.readAhead(content, size)
	return b
}

func (b *uploadBody) readAhead(content io.ReadCloser, size int64) {
	defer close(b.done)
	defer close(b.full)
	err := b.pass(content, size)
	if closeErr := content.Close(); err == io.EOF && closeErr != nil {
		err = closeErr
	}
	b.err = err
}

// pass hands on pieces until the content ends; io.EOF is its right end.
func (b *uploadBody) pass(content io.Reader, size int64) error {
	var held []byte
	var seen int64
	for {
		var piece []byte
		select {
		case piece = <-b.spare:
		case <-b.stop:
			return errBodyClosed
		}
		if piece == nil {
			piece = make([]byte, min(pieceSize, size+1))
		}
		n, err := fill(content, piece[:cap(piece)])
		seen += int64(n)
		if err == io.EOF && seen != size {
			return &cas.CorruptError{What: "the content of an upload", WantSize: size, GotSize: seen}
		}
		if err != nil && err != io.EOF {
			return err
		}
		if held != nil {
			b.full <- held // never waits: there are no more pieces than places
		}
		if held = piece[:n]; err == io.EOF {
			b.full <- held
			return io.EOF
		}
	}
}

// fill reads until p is full or reading ends.
func fill(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var m int
		m, err = r.Read(p[n:])
		n += m
	}
	return n, err
}

// begin says that the body is about to be sent. It can be only once.
func (b *uploadBody) begin() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.started {
		return errTokenRenewed
	}
	b.started = true
	return nil
}

// Read implements io.Reader.
func (b *uploadBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watch.stop()
	for len(b.left) == 0 {
		if b.piece != nil {
			b.spare <- b.piece // never waits, as above
			b.piece = nil
		}
		select {
		case piece, ok := <-b.full:
			if !ok {
				<-b.done
				return 0, b.err
			}
			b.piece, b.left = piece, piece
		case <-b.stop:
			return 0, errBodyClosed
		}
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	b.watch.start()
	return n, nil
}

// drain reads to the end what is to be empty.
func (b *uploadBody) drain() error {
	if _, err := io.Copy(io.Discard, b); err != nil {
		return &sourceError{err}
	}
	return nil
}

// Close ends reading; it waits until the content is closed.
func (b *uploadBody) Close() error {
	b.close.Do(func() { close(b.stop) })
	b.watch.stop()
	<-b.done
	return nil
}

// failed is why the content could not be read to its right end; nil if it
// could, or was not.
func (b *uploadBody) failed() error {
	_ = b.Close() // always nil
	if b.err == io.EOF || b.err == errBodyClosed {
		return nil
	}
	return b.err
}

package web

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/packhof/packhof/internal/problem"
)

// What is said about a case can be as large as its bundle has artifacts, and
// many may ask at once. So documents about cases are made in turn, and large
// ones that are on their way share an allowance: whoever would exceed it is
// asked to come again. No client, however slow, holds a turn.

const (
	turnPatience = 20 * time.Second // for a turn
	largeBody    = 1 << 20          // bytes; below it a body needs no allowance
	mostSending  = 64 << 20         // bytes of large bodies on their way; one body of any size always fits
	pieceOfBody  = 256 << 10        // bytes
	sendPatience = 30 * time.Second // for a client to take a piece
	retryAfter   = "5"              // seconds
)

// errBusy is what whoever comes too late is told.
func errBusy() error {
	return problem.New("request/busy", "the gate is answering others with large documents").Hint("ask again in a few seconds")
}

// turn is held while a document is made, by one at a time.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for a turn. leave gives it back; it may be called again.
func (t turn) take(ctx context.Context, most time.Duration) (leave func(), err error) {
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case t <- struct{}{}:
		return sync.OnceFunc(func() { <-t }), nil
	case <-late.C:
		return nil, errBusy()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

const turnKey = "turn"

// inTurn makes a route wait for its turn. It ends when the answer is whole, and
// before it is sent.
func inTurn(handle func(*server, echo.Context) error) func(*server, echo.Context) error {
	return taking(func(s *server) turn { return s.cases }, handle)
}

// inTurnOfPlans is inTurn for what asks every destination, which can take long:
// it keeps nobody from looking at a case.
func inTurnOfPlans(handle func(*server, echo.Context) error) func(*server, echo.Context) error {
	return taking(func(s *server) turn { return s.plans }, handle)
}

func taking(which func(*server) turn, handle func(*server, echo.Context) error) func(*server, echo.Context) error {
	return func(s *server, c echo.Context) error {
		leave, err := which(s).take(c.Request().Context(), turnPatience)
		if err != nil {
			return err
		}
		defer leave()
		c.Set(turnKey, leave)
		return handle(s, c)
	}
}

// allowance is how many bytes of large bodies are on their way.
type allowance struct {
	mu   sync.Mutex
	used int64
}

func newAllowance() *allowance { return new(allowance) }

// take takes the bytes of a body, unless others have too many already.
func (a *allowance) take(n int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.used > 0 && a.used+n > mostSending {
		return false
	}
	a.used += n
	return true
}

func (a *allowance) give(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used -= n
}

// send answers with a body that is whole.
func (s *server) send(c echo.Context, status int, contentType string, body []byte) error {
	if n := int64(len(body)); n > largeBody {
		if !s.sending.take(n) {
			return errBusy()
		}
		defer s.sending.give(n)
	}
	if leave, ok := c.Get(turnKey).(func()); ok {
		leave()
	}
	c.Response().Header().Set(echo.HeaderContentType, contentType)
	c.Response().WriteHeader(status)
	for len(body) > 0 {
		piece := body[:min(len(body), pieceOfBody)]
		if err := writePatiently(c.Response(), piece); err != nil {
			return err
		}
		body = body[len(piece):]
	}
	return nil
}

// writePatiently gives a client some time for a piece of an answer.
func writePatiently(w *echo.Response, piece []byte) error {
	control := http.NewResponseController(w)
	// What ends the write is a deadline that has passed. Where the connection
	// has none, as in memory, nothing blocks either.
	impatience := time.AfterFunc(sendPatience, func() { _ = control.SetWriteDeadline(time.Unix(1, 0)) })
	defer impatience.Stop()
	_, err := w.Write(piece)
	return err
}

// isBusy tells whether an error asks to come again.
func isBusy(err error) bool {
	var p *problem.Problem
	return errors.As(err, &p) && p.Code() == "request/busy"
}

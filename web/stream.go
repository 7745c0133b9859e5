package web

import (
	"encoding/json/v2"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/packhof/packhof/gate"
)

// progressPause is the least time between two lines about the same phase.
const progressPause = 200 * time.Millisecond

// stream is an answer that grows while something is done. The gate may report
// progress from several goroutines.
type stream struct {
	mu       sync.Mutex
	response *echo.Response
	clock    func() time.Time
	phase    string
	last     time.Time
	err      error
}

// streamed answers 200 and runs a task that reports as it goes. The error of
// the task is the last line; that of the connection is returned.
func (s *server) streamed(c echo.Context, task func(observe func(gate.Progress)) (line, error)) error {
	out := &stream{response: c.Response(), clock: s.options.Clock}
	// Bounds for a whole answer are not for one that takes as long as it takes.
	err := http.NewResponseController(c.Response()).SetWriteDeadline(time.Time{})
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	c.Response().Header().Set(echo.HeaderContentType, "application/x-ndjson")
	c.Response().WriteHeader(http.StatusOK)
	last, err := task(out.progress)
	if err != nil {
		p := documentOf(err)
		last.Problem = &p
	}
	out.write(last)
	return out.err
}

func (s *stream) progress(p gate.Progress) {
	s.mu.Lock()
	now := s.clock()
	due := p.Phase != s.phase || p.Done == p.Total || now.Sub(s.last) >= progressPause
	if due {
		s.phase, s.last = p.Phase, now
	}
	s.mu.Unlock()
	if due {
		s.write(line{Progress: &p})
	}
}

// write sends a line at once. After the first failure nothing more is sent.
func (s *stream) write(l line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	b, err := json.Marshal(l)
	if err == nil {
		_, err = s.response.Write(append(b, '\n'))
	}
	if err == nil {
		err = http.NewResponseController(s.response).Flush()
	}
	if !errors.Is(err, http.ErrNotSupported) {
		s.err = err
	}
}

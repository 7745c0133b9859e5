package web

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
)

func TestTurn(t *testing.T) {
	turn := newTurn()
	leave, err := turn.take(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := turn.take(t.Context(), time.Millisecond); !isBusy(err) {
		t.Errorf("a second one: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := turn.take(gone, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("one who is gone: %v", err)
	}
	leave()
	leave() // gives back no more than was taken
	if _, err := turn.take(t.Context(), time.Minute); err != nil {
		t.Errorf("after it was given back: %v", err)
	}
	if _, err := turn.take(t.Context(), time.Millisecond); !isBusy(err) {
		t.Errorf("it was given back twice: %v", err)
	}
}

func TestAllowance(t *testing.T) {
	a := newAllowance()
	if !a.take(2*mostSending) || a.take(1) {
		t.Error("one body of any size fits, and nothing beside too large a one")
	}
	a.give(2 * mostSending)
	if !a.take(mostSending-1) || !a.take(1) || a.take(1) {
		t.Error("bodies fit as long as all of them do")
	}
}

// Who asks for a case while others are at it too long is told when to come
// again, on a page and by the API; what costs nothing is answered.
func TestBusy(t *testing.T) {
	l := newLab(t)
	l.waiting()
	l.account(reviewer)
	s := newServer(l.gate, l.options())
	s.user = func(*http.Request) string { return "root" }
	if _, err := s.cases.take(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	handler := s.handler(apiRoutes())
	for path, want := range map[string]int{"/cases": http.StatusOK, "/cases/1/plan": http.StatusOK} {
		out := httptest.NewRecorder()
		handler.ServeHTTP(out, httptest.NewRequestWithContext(t.Context(), http.MethodGet, apiRoot+path, nil))
		if out.Code != want {
			t.Errorf("%s: %d %s", path, out.Code, out.Body)
		}
	}
	reached := false
	busy := inTurn(func(*server, echo.Context) error { reached = true; return nil })
	request := httptest.NewRequestWithContext(gone, http.MethodGet, apiRoot+"/cases/1", nil)
	if err := busy(s, echo.New().NewContext(request, httptest.NewRecorder())); err == nil || reached {
		t.Errorf("a second one was let in: %v", err)
	}
	out := httptest.NewRecorder()
	s.answerError(echo.New().NewContext(httptest.NewRequest(http.MethodGet, apiRoot+"/cases/1", nil), out), errBusy())
	if p := refused(t, out, http.StatusServiceUnavailable, "request/busy"); p.Remedy == "" || out.Header().Get("Retry-After") != retryAfter {
		t.Errorf("%+v, %v", p, out.Header())
	}
}

// A turn ends before the answer is sent, so that no client can hold it.
func TestNoClientHoldsATurn(t *testing.T) {
	l := newLab(t)
	s := newServer(l.gate, l.options())
	w := &writing{ResponseRecorder: httptest.NewRecorder(), at: func() {
		leave, err := s.cases.take(t.Context(), time.Millisecond)
		if err != nil {
			t.Errorf("the turn is held while the answer is sent: %v", err)
			return
		}
		leave()
	}}
	handle := inTurn(func(s *server, c echo.Context) error {
		return s.send(c, http.StatusOK, "text/plain", make([]byte, 2*largeBody))
	})
	if err := handle(s, echo.New().NewContext(httptest.NewRequest(http.MethodGet, "/", nil), w)); err != nil {
		t.Error(err)
	}
	if w.Body.Len() != 2*largeBody || s.sending.used != 0 {
		t.Errorf("%d bytes, %d held", w.Body.Len(), s.sending.used)
	}
	s.sending.used = mostSending
	if err := handle(s, echo.New().NewContext(httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder())); !isBusy(err) {
		t.Errorf("more than the allowance: %v", err)
	}
}

// writing is an answer that does something at each write.
type writing struct {
	*httptest.ResponseRecorder
	at func()
}

func (w *writing) Write(b []byte) (int, error) {
	w.at()
	return w.ResponseRecorder.Write(b)
}

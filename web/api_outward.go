package web

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// apiReceipt issues a receipt: the file, as it is carried out.
func (s *server) apiReceipt(c echo.Context) error {
	if err := readNothing(c); err != nil {
		return err
	}
	b, err := s.gate.IssueReceipt(c.Request().Context(), actorOf(c))
	if err != nil {
		return err
	}
	return s.send(c, http.StatusOK, "application/json", b)
}

// apiWant gives the want list of a case: the file, as it is carried out.
func (s *server) apiWant(c echo.Context) error {
	id, err := caseID(c)
	if err != nil {
		return err
	}
	b, err := s.gate.WantList(c.Request().Context(), actorOf(c), id)
	if err != nil {
		return err
	}
	return s.send(c, http.StatusOK, "application/json", b)
}

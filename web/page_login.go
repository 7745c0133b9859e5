package web

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// loginView is the form to log in.
type loginView struct {
	To      string // where to go afterwards
	Account string
	Code    string // of what went wrong, "" before a try
}

func (s *server) pageStart(c echo.Context) error { return c.Redirect(http.StatusSeeOther, "/cases") }

func (s *server) pageLogin(c echo.Context) error {
	return s.show(c, http.StatusOK, "login", page{Body: loginView{To: localPath(c.QueryParam("to"))}})
}

// login answers the same to a wrong name and to a wrong password.
func (s *server) login(c echo.Context) error {
	form, err := readForm(c)
	if err != nil {
		return err
	}
	to := localPath(form.Get("to"))
	who, err := s.gate.Authenticate(c.Request().Context(), s.address(c.Request()), form.Get("account"), []byte(form.Get("password")))
	if err != nil {
		p := documentOf(err)
		if p.Code != "login/failed" && p.Code != "login/wait" {
			return err
		}
		return s.show(c, statusOf(p.Code), "login", page{Path: "/login", Failed: true, Body: loginView{To: to, Account: form.Get("account"), Code: p.Code}})
	}
	if err := s.startSession(c, who); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, to)
}

func (s *server) logout(c echo.Context) error {
	if _, err := readForm(c); err != nil {
		return err
	}
	if err := s.endSession(c); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, "/login")
}

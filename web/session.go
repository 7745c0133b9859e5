package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/packhof/packhof/gate"
)

// cookieName is the name of the session's cookie. Browsers take the prefix
// from nobody but this host, over TLS.
func (s *server) cookieName() string {
	if s.options.Secure {
		return "__Host-packhof"
	}
	return "packhof"
}

func (s *server) setCookie(c echo.Context, value string, age int) {
	http.SetCookie(c.Response(), &http.Cookie{
		Name: s.cookieName(), Value: value, Path: "/", MaxAge: age,
		HttpOnly: true, Secure: s.options.Secure, SameSite: http.SameSiteStrictMode,
	})
}

// startSession gives somebody who just proved who they are a new session, and
// ends the one that the browser came with, whoever's it was.
func (s *server) startSession(c echo.Context, who gate.Actor) error {
	if err := s.dropSession(c); err != nil {
		return err
	}
	token, err := s.gate.StartSession(c.Request().Context(), who)
	if err != nil {
		return err
	}
	s.setCookie(c, token, 0)
	return nil
}

// dropSession ends the session that the browser came with, if there is one.
func (s *server) dropSession(c echo.Context) error {
	cookie, err := c.Cookie(s.cookieName())
	if err != nil {
		return nil // there is none
	}
	return s.gate.EndSession(c.Request().Context(), cookie.Value)
}

// endSession logs out.
func (s *server) endSession(c echo.Context) error {
	if err := s.dropSession(c); err != nil {
		return err
	}
	s.setCookie(c, "", -1)
	return nil
}

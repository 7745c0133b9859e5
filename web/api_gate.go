package web

import (
	_ "embed"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
)

//go:embed openapi.json
var description []byte

func (s *server) apiDescription(c echo.Context) error {
	return s.send(c, http.StatusOK, "application/json", description)
}

func (s *server) apiTrust(c echo.Context) error {
	status, err := s.gate.TrustStatus(c.Request().Context(), actorOf(c))
	if err != nil {
		return err
	}
	return s.answer(c, status)
}

func (s *server) apiChangeTrust(c echo.Context) error {
	if err := s.withPassword(c, "a change of trust"); err != nil {
		return err
	}
	var body trustBody
	if err := readJSON(c, &body); err != nil {
		return err
	}
	first, later := len(body.Root) > 0, len(body.Document) > 0
	if first == later || later && len(body.Revocations) > 0 {
		return problem.New("request/invalid", "the request brings either a root, with or without revocations, or one later document")
	}
	if !first {
		status, err := s.gate.UpdateTrust(c.Request().Context(), actorOf(c), body.Document)
		if err != nil {
			return err
		}
		return s.answer(c, status)
	}
	var revocations []byte // nil when there are none
	if len(body.Revocations) > 0 {
		revocations = body.Revocations
	}
	status, err := s.gate.InitTrust(c.Request().Context(), actorOf(c), body.Root, revocations)
	if err != nil {
		return err
	}
	return s.answer(c, status)
}

func (s *server) apiUsers(c echo.Context) error {
	users, err := s.gate.Users(c.Request().Context(), actorOf(c))
	if err != nil {
		return err
	}
	return s.answer(c, usersAnswer{users})
}

func (s *server) apiAddUser(c echo.Context) error {
	if err := s.withPassword(c, "a new account"); err != nil {
		return err
	}
	var body accountBody
	if err := readJSON(c, &body); err != nil {
		return err
	}
	if err := s.gate.AddUser(c.Request().Context(), actorOf(c), body.Name, body.Roles, []byte(body.Password)); err != nil {
		return err
	}
	return s.writeJSON(c, http.StatusCreated, "application/json", struct{}{})
}

func (s *server) apiSetPassword(c echo.Context) error {
	if err := s.withPassword(c, "a new password"); err != nil {
		return err
	}
	var body passwordBody
	if err := readJSON(c, &body); err != nil {
		return err
	}
	if err := s.gate.SetPassword(c.Request().Context(), actorOf(c), c.Param("name"), []byte(body.Password)); err != nil {
		return err
	}
	return s.answer(c, struct{}{})
}

func (s *server) apiDoctor(c echo.Context) error {
	checks, err := s.gate.Doctor(c.Request().Context(), actorOf(c))
	if err != nil {
		return err
	}
	return s.answer(c, doctorAnswer{checks})
}

// mayRead refuses those who may not read: the depot has no doorkeeper of its
// own, since plant clients need no account.
func mayRead(who gate.Actor) error {
	if !who.May(gate.MayRead) {
		return problem.New("login/forbidden", "the account %s may not do this", who.Name()).With("needed:  the permission to read")
	}
	return nil
}

func (s *server) apiVersion(c echo.Context) error {
	return s.answer(c, versionAnswer{s.options.Version, s.gate.ID(), s.options.Address})
}

func (s *server) apiEnrolment(c echo.Context) error {
	b, err := s.gate.EnrolmentFile()
	if err != nil {
		return err
	}
	return s.send(c, http.StatusOK, "application/json", b)
}

func (s *server) apiDepot(c echo.Context) error {
	if err := mayRead(actorOf(c)); err != nil {
		return err
	}
	limit := depotPage
	if text := c.QueryParam("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > depotPage {
			return problem.New("request/invalid", "limit is a number from 1 to %d", depotPage)
		}
		limit = n
	}
	listing, err := s.depot(c, c.QueryParam("after"), limit, depotTags)
	if err != nil {
		return err
	}
	return s.answer(c, listing)
}

const (
	depotPage = 100  // repositories in one listing
	depotTags = 1000 // in one listing
)

// depot lists some repositories with their tags, at most so many of each. after
// is a repository, or a repository and a tag with a colon between: the listing
// goes on in the middle of one that has more tags than a listing.
func (s *server) depot(c echo.Context, after string, limit, room int) (*depotListing, error) {
	ctx, depot := c.Request().Context(), s.gate.Depot()
	repository, tag, inside := strings.Cut(after, ":")
	names, err := depot.Repositories(ctx, repository, limit+1)
	if err != nil {
		return nil, err
	}
	if inside {
		names = append([]string{repository}, names...)
	}
	listing := &depotListing{Repositories: []depotRepository{}}
	for i, name := range names {
		if i == limit || room == 0 {
			listing.Next = names[i-1]
			return listing, nil
		}
		tags, err := depot.Tags(ctx, name, tag, room+1)
		tag = "" // the others from their beginning
		if inside && i == 0 && codeOf(err) == "depot/not-found" {
			continue // it is gone since
		}
		if err != nil {
			return nil, err
		}
		if len(tags) > room {
			tags = tags[:room]
			listing.Next = name + ":" + tags[room-1].Tag
		}
		listing.Repositories = append(listing.Repositories, depotRepository{name, tags})
		if listing.Next != "" {
			return listing, nil
		}
		room -= len(tags)
	}
	return listing, nil
}

func (s *server) apiLogin(c echo.Context) error {
	var body loginBody
	if err := readJSON(c, &body); err != nil {
		return err
	}
	who, err := s.gate.Authenticate(c.Request().Context(), s.address(c.Request()), body.Account, []byte(body.Password))
	if err != nil {
		return err
	}
	if err := s.startSession(c, who); err != nil {
		return err
	}
	return s.answer(c, sessionAnswer{who.Name(), who.Roles()})
}

func (s *server) apiLogout(c echo.Context) error {
	if err := readNothing(c); err != nil {
		return err
	}
	if err := s.endSession(c); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

package web

import (
	"net/http"
	"regexp"

	"github.com/labstack/echo/v4"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
)

// depotView is what plant clients see, and how they get it.
type depotView struct {
	Repositories []depotRepository
	Next         string
	Host         string // as the reader's browser calls this gate
	Image, Tree  *gate.DepotTag
}

var hostForm = regexp.MustCompile(`^[A-Za-z0-9.\-]+(:[0-9]{1,5})?$|^\[[0-9A-Fa-f:]+\](:[0-9]{1,5})?$`)

func (s *server) pageDepot(c echo.Context) error {
	if err := mayRead(actorOf(c)); err != nil {
		return err
	}
	listing, err := s.depot(c, c.QueryParam("after"), depotPage, rowsShown)
	if err != nil {
		return err
	}
	return s.show(c, http.StatusOK, "depot", page{Nav: "depot", Body: depotOf(listing, c.Request().Host)})
}

// depotOf picks the newest image and the newest tree of a listing as examples for
// the commands, and none that was withdrawn.
func depotOf(listing *depotListing, host string) depotView {
	view := depotView{Repositories: listing.Repositories, Next: listing.Next, Host: host}
	if !hostForm.MatchString(host) {
		view.Host = "gate.example"
	}
	for _, r := range listing.Repositories {
		for _, tag := range r.Tags {
			example := &view.Tree
			if tag.Kind == bundle.Image || tag.Kind == bundle.Chart {
				example = &view.Image
			}
			if tag.Withdrawn == "" && (*example == nil || !tag.Since.Before((*example).Since)) {
				*example = &tag
			}
		}
	}
	return view
}

// systemView is how the gate is, and what it believes.
type systemView struct {
	Gate   string
	Checks []gate.Check
	Trust  *gate.TrustStatus
}

func (s *server) pageSystem(c echo.Context) error {
	who := actorOf(c)
	trust, err := s.gate.TrustStatus(c.Request().Context(), who)
	if err != nil {
		return err
	}
	checks, err := s.gate.Doctor(c.Request().Context(), who)
	if err != nil {
		return err
	}
	view := systemView{Gate: s.gate.ID(), Checks: checks, Trust: trust}
	return s.show(c, http.StatusOK, "system", page{Nav: "system", Body: view})
}

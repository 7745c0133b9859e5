package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
)

// releaseDocument is what "release" prints.
type releaseDocument struct {
	gate.Case
	Reachable []reachable `json:"reachable"`
}

// reachable is where plant clients get an artifact from now on.
type reachable struct {
	Destination string   `json:"destination"`
	Name        string   `json:"name"`
	Pull        []string `json:"pull"` // what a client types, or where it finds the artifact
}

func (s *site) release(c *cobra.Command, api *client, id string) error {
	released, err := s.work(c, api, "cases/"+id+"/release", nil)
	if released == nil {
		return err
	}
	doc := releaseDocument{Case: *released, Reachable: []reachable{}}
	host, hostErr := s.depotHost(c.Context(), api)
	review, reviewErr := reviewIfAny(c.Context(), api, id, s.lang)
	if failed := errors.Join(err, hostErr, reviewErr); failed == nil && review != nil {
		doc.Reachable = reachables(released.Loads, review.Artifacts, host)
	}
	printed := s.app.Print("GateRelease", doc, func(w io.Writer) {
		s.caseSummary(w, released)
		s.printReachable(w, doc.Reachable)
	})
	return errors.Join(err, printed, hostErr, reviewErr)
}

// depotHost is the address at which clients find the depot: the one that a
// serve has, or will have by the configuration.
func (s *site) depotHost(ctx context.Context, api *client) (string, error) {
	var running struct {
		Address string `json:"address"`
	}
	if _, err := api.call(ctx, http.MethodGet, "version", nil, &running); err != nil {
		return "", err
	}
	listen := strings.TrimPrefix(running.Address, "https://")
	if listen == "" {
		if err := s.load(); err != nil {
			return "", err
		}
		listen = s.config.Listen
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("the address of serve, %s: %w", listen, err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			return "", err
		}
	}
	return net.JoinHostPort(host, port), nil
}

// reachables lists what was loaded, in the order in which it was.
func reachables(loads []gate.Load, artifacts []gate.ReviewArtifact, host string) []reachable {
	kinds := map[bundle.Digest]bundle.Kind{}
	for _, a := range artifacts {
		kinds[a.Digest] = a.Kind
	}
	list := []reachable{}
	for _, l := range loads {
		if l.State == gate.LoadPut {
			continue // no name yet
		}
		pull := []string{l.Location}
		if l.Destination == gate.DepotName {
			pull = depotPull(l, kinds[l.Artifact], host)
		}
		list = append(list, reachable{l.Destination, l.Name, pull})
	}
	return list
}

// depotPull is what a client types to get an artifact from the depot.
func depotPull(l gate.Load, kind bundle.Kind, host string) []string {
	repository, tag, _ := strings.Cut(l.Name, ":")
	byDigest := host + "/" + repository + "@" + l.Artifact.String()
	switch {
	case kind == bundle.Image:
		return []string{"docker pull " + byDigest}
	case kind.IsTree():
		files := url.URL{Scheme: "https", Host: host, Path: "/files/" + repository + "/" + tag + "/"}
		return []string{files.String(), "oras pull --ca-file gate.pem " + byDigest}
	}
	return []string{"oras pull --ca-file gate.pem " + byDigest}
}

func (s *site) printReachable(w io.Writer, list []reachable) {
	if len(list) == 0 {
		return
	}
	rows := [][]string{{}, s.heads("DESTINATION", "NAME", "CLIENTS GET IT BY")}
	depot := false
	for _, r := range list {
		depot = depot || r.Destination == gate.DepotName
		for i, line := range r.Pull {
			row := []string{"", "", line}
			if i == 0 {
				row = []string{r.Destination, r.Name, line}
			}
			rows = append(rows, row)
		}
	}
	cli.Table(w, rows)
	if depot {
		certificate := filepath.Join(s.dir, cmp.Or(s.config.TLS.Certificate, "tls/cert.pem"))
		fmt.Fprintln(w, "\n"+s.say("next:  {command}", "command", s.say("have the clients trust {file}, as gate.pem", "file", certificate)))
	}
}

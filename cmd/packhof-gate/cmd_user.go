package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
)

func newUser(s *site) *cobra.Command {
	c := &cobra.Command{Use: "user", Short: "Say who can log in, and as what"}
	var roles []string
	add := &cobra.Command{
		Use:   "add NAME",
		Short: "Make an account",
		Long: `Make an account. What the roles may do:

  operator   receive and release
  reviewer   decide
  officer    decide, and release
  auditor    read everything
  admin      trust and accounts

All of them may read. Nobody decides on what they have received themselves.`,
		Args: cli.Needs("the name of the account"),
		RunE: func(c *cobra.Command, args []string) error { return runUserAdd(s, c, args[0], roles) },
	}
	add.Flags().StringSliceVar(&roles, "role", nil, "`role` of the account; several with commas")
	if err := add.MarkFlagRequired("role"); err != nil {
		panic(err) // only if the flag above had another name
	}
	passwd := &cobra.Command{
		Use:   "passwd NAME",
		Short: "Change a password, and end the account's sessions",
		Args:  cli.Needs("the name of the account"),
		RunE:  func(c *cobra.Command, args []string) error { return runUserPasswd(s, c, args[0]) },
	}
	list := &cobra.Command{
		Use: "list", Short: "Show the accounts", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runUserList(s, c) },
	}
	addPasswordFile(add)
	addPasswordFile(passwd)
	c.AddCommand(add, passwd, list)
	return c
}

// userDocument is what "user add" and "user passwd" print.
type userDocument struct {
	Name  string   `json:"name"`
	Roles []string `json:"roles,omitempty"`
}

func runUserAdd(s *site, c *cobra.Command, name string, roles []string) error {
	password, err := s.newPassword(c, name)
	if err != nil {
		return err
	}
	body := struct {
		Name     string   `json:"name"`
		Roles    []string `json:"roles"`
		Password string   `json:"password"`
	}{name, roles, string(password)}
	return s.with(c.Context(), func(api *client) error {
		if _, err := api.call(c.Context(), http.MethodPost, "users", body, nil); err != nil {
			return err
		}
		return s.app.Print("User", userDocument{name, roles}, func(w io.Writer) {
			fmt.Fprintln(w, s.say("made the account {name}: {roles}", "name", name, "roles", strings.Join(roles, ", ")))
		})
	})
}

func runUserPasswd(s *site, c *cobra.Command, name string) error {
	password, err := s.newPassword(c, name)
	if err != nil {
		return err
	}
	body := struct {
		Password string `json:"password"`
	}{string(password)}
	return s.with(c.Context(), func(api *client) error {
		if _, err := api.call(c.Context(), http.MethodPost, "users/"+url.PathEscape(name)+"/password", body, nil); err != nil {
			return err
		}
		return s.app.Print("User", userDocument{Name: name}, func(w io.Writer) {
			fmt.Fprintln(w, s.say("changed the password of {name}; its sessions have ended", "name", name))
		})
	})
}

func runUserList(s *site, c *cobra.Command) error {
	var doc struct {
		Users []gate.Account `json:"users"`
	}
	return s.with(c.Context(), func(api *client) error {
		if _, err := api.call(c.Context(), http.MethodGet, "users", nil, &doc); err != nil {
			return err
		}
		return s.app.Print("Users", doc, func(w io.Writer) {
			rows := [][]string{s.heads("NAME", "ROLES", "SINCE", "CHANGED")}
			for _, u := range doc.Users {
				roles := make([]string, len(u.Roles))
				for i, r := range u.Roles {
					roles[i] = string(r)
				}
				rows = append(rows, []string{u.Name, strings.Join(roles, ", "), u.Created.Format(time.DateOnly), u.Changed.Format(time.DateOnly)})
			}
			cli.Table(w, rows)
		})
	})
}

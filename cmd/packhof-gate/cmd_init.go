package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/signing"
)

type initOptions struct {
	owner   string
	account string
	hosts   []string
}

func newInit(s *site) *cobra.Command {
	var o initOptions
	c := &cobra.Command{
		Use:   "init",
		Short: "Make the data directory of a new gate",
		Long: `Make the data directory: keys, TLS certificate, database, store, a commented
gate.yaml, an empty folder for rules of your own, the first account, and
enrol.json, which the connected side needs. A folder that holds anything else is refused.

The first account has the roles officer and admin. Its password comes from
the terminal, or see  packhof-gate help environment.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runInit(s, c, o) },
	}
	c.Flags().StringVar(&o.owner, "owner", "", "`who` answers for the gate, such as \"Plant 7, hall B\"")
	c.Flags().StringVar(&o.account, "account", "admin", "`name` of the first account")
	c.Flags().StringSliceVar(&o.hosts, "host", nil, "`name` or address that the TLS certificate is for, beside localhost; several with commas")
	addPasswordFile(c)
	if err := c.MarkFlagRequired("owner"); err != nil {
		panic(err) // only if the flag above had another name
	}
	return c
}

// initDocument is what "init" prints.
type initDocument struct {
	Gate        string   `json:"gate"`
	Data        string   `json:"data"`
	Config      string   `json:"config"`
	Enrolment   string   `json:"enrolment"`
	Fingerprint string   `json:"fingerprint"` // of enrol.json
	Words       []string `json:"words"`       // the same
	Account     string   `json:"account"`
	Recipient   string   `json:"recipient"` // whom volumes for the gate are encrypted to
}

func runInit(s *site, c *cobra.Command, o initOptions) error {
	password, err := s.newPassword(c, o.account)
	if err != nil {
		return err
	}
	enrolment, err := gate.Init(c.Context(), s.dir, gate.InitParams{
		Owner: o.owner, Hosts: o.hosts, Account: o.account, Password: password, Program: program(), Now: s.app.Now(),
	})
	if err != nil {
		return err
	}
	if err := cas.WriteBytes(s.configPath(), 0o600, []byte(template)); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(s.dir, "policy"), 0o700); err != nil {
		return err
	}
	enrol := filepath.Join(s.dir, "enrol.json")
	raw, err := os.ReadFile(enrol)
	if err != nil {
		return err
	}
	print := signing.FingerprintOf(raw)
	doc := initDocument{Gate: enrolment.Gate, Data: s.dir, Config: s.configPath(), Enrolment: enrol, Fingerprint: print.String(), Words: print.Words(), Account: o.account, Recipient: enrolment.Recipient}
	return s.app.Print("GateInit", doc, func(w io.Writer) { doc.table(w, s) })
}

func (d *initDocument) table(w io.Writer, s *site) {
	cli.Table(w, [][]string{
		{s.say("gate"), d.Gate},
		{s.say("data"), d.Data},
		{s.say("config"), d.Config},
		{s.say("account"), s.say("{account}, with the roles officer and admin", "account", d.Account)},
		{s.say("enrolment"), d.Enrolment},
		{s.say("recipient"), d.Recipient},
		{s.say("fingerprint"), d.Fingerprint},
	})
	fmt.Fprintln(w, s.say("in words:"))
	printWords(w, d.Words)
	fmt.Fprintln(w, s.say("next:  carry {file} to the connected side and compare the fingerprint there:", "file", filepath.Base(d.Enrolment)))
	fmt.Fprintln(w, "         packhof trust add-gate enrol.json")
	fmt.Fprintln(w, s.say("       bring the trust root back, and compare its fingerprint here:"))
	fmt.Fprintln(w, "         packhof-gate trust init root-1.json")
}

// printWords prints a fingerprint's words eight a line, to be read aloud.
func printWords(w io.Writer, words []string) {
	for line := range slices.Chunk(words, 8) {
		fmt.Fprintf(w, "  %s\n", strings.Join(line, " "))
	}
}

const template = `# The schema for your editor:  packhof-gate schema gate > gate.schema.json
apiVersion: packhof/v1
kind: Gate

# Address and port of  packhof-gate serve : screens, API and depot.
# ":8443" is every address of this machine.
# listen: 127.0.0.1:8443

# The certificate of serve. The one that init made vouches for itself: clients
# take tls/cert.pem as their authority.
# tls:
#   certificate: tls/cert.pem
#   key: tls/key.pem

# How many people have to approve, by what the policy says. allow may be 0.
# approvals:
#   allow: 1
#   review: 1

# Rules of your own (*.rego) and parameters of the rules that ship
# (config.json): docs/policy.md. The folder may be empty and has to be there.
# policy: policy

# Bounds of the process that evaluates the policy.
# judge:
#   timeout: 10s
#   memory: 512MiB

# Where released artifacts are loaded, beside the depot, which is built in.
# destinations:
#   - name: harbor
#     type: registry
#     registry: registry.example/plant
#     accepts: [image, chart]
#     caFile: harbor-ca.pem
#     credentials: {user: robot, passwordFile: harbor.password}
#   - name: weights
#     type: s3
#     endpoint: https://s3.example:9000
#     bucket: plant
#     accepts: [model, dataset]
#     naming: {repository: "{kind}/{name}", tag: "{version}"}
#     credentials: {user: packhof, passwordFile: s3.password}
`

package cli

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// topics makes the help topics that are inside every program: what is not in
// the binary cannot be read in an air gap.
func topics(a *App, root *cobra.Command) []*cobra.Command {
	topic := func(name, short string, text func() string) *cobra.Command {
		c := &cobra.Command{Use: name, Short: short}
		c.SetHelpFunc(func(*cobra.Command, []string) { fmt.Fprint(a.Stdout, text()) })
		return c
	}
	return []*cobra.Command{
		topic("environment", "Environment variables", func() string { return environmentText(root) }),
		topic("exit-codes", "Exit codes", exitCodesText),
		topic("errors", "Error codes and what helps", func() string { return errorsText("") }),
		topic("json", "Documents that -o json prints", func() string { return jsonText }),
		topic("formats", "File formats", func() string { return formatsText }),
	}
}

// helpCommand is cobra's, and knows "help errors CODE" besides.
func helpCommand(a *App) *cobra.Command {
	return &cobra.Command{
		Use:   "help [command | topic | errors CODE]",
		Short: "Help about a command, a topic or an error code",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 2 && args[0] == "errors" {
				text := errorsText(args[1])
				if text == "" {
					return usage(c, fmt.Sprintf("there is no error code %q", args[1]))
				}
				fmt.Fprint(a.Stdout, text)
				return nil
			}
			about, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usage(c, fmt.Sprintf("there is no help about %q", strings.Join(args, " ")))
			}
			return about.Help()
		},
	}
}

func exitCodesText() string {
	var b strings.Builder
	b.WriteString("Exit codes\n\n")
	for _, e := range ExitCodes() {
		fmt.Fprintf(&b, "  %3d  %s\n", e.Code, e.Meaning)
	}
	b.WriteString("\nA code that is not listed means failure.\n")
	return b.String()
}

// errorsText explains one code, all codes of a group, or with "" all of them.
func errorsText(code string) string {
	var b strings.Builder
	for _, e := range Catalog() {
		if code != "" && e.Code != code && !strings.HasPrefix(e.Code, code+"/") {
			continue
		}
		fmt.Fprintf(&b, "%s   exit %d\n%s", e.Code, e.Exit, indented(e.Meaning))
		if e.Remedy != "" {
			b.WriteString(indented("What helps: " + e.Remedy))
		}
	}
	return b.String()
}

// indented breaks text into lines of at most 80 columns, four of them blank. A
// command, which two blanks set off, may be broken as any text.
func indented(text string) string {
	const columns = 80
	var b strings.Builder
	at := columns
	for word := range strings.SplitSeq(text, " ") {
		width := 1 + utf8.RuneCountInString(word)
		if at+width > columns {
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString("   ")
			at = 3
		}
		b.WriteString(" " + word)
		at += width
	}
	return b.String() + "\n"
}

func environmentText(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(environmentHead)
	seen := map[string]bool{}
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if name := EnvName(f.Name); !seen[name] && f.Name != "help" {
				seen[name] = true
				fmt.Fprintf(&b, "  %-28s  --%s\n", name, f.Name)
			}
		})
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(root)
	return b.String()
}

const environmentHead = `Environment variables

A flag on the command line comes before the environment, the environment
before the configuration file, and that before the built-in default.

  PACKHOF_PASSPHRASE_FILE       file whose first line is the passphrase of the key
  PACKHOF_PASSPHRASE            the passphrase itself
  PACKHOF_PASSPHRASE_COMMAND    shell command that prints it
  PACKHOF_PASSWORD              password of an account of packhof-gate
  PACKHOF_PASSWORD_COMMAND      shell command that prints it
  DOCKER_CONFIG                 folder of docker's config.json with credentials
  HTTPS_PROXY, NO_PROXY         proxy, and hosts to reach without it
  TERM=dumb                     lines instead of bars

Every flag can be given as PACKHOF_ and its name:

`

const jsonText = `Documents that -o json prints

Results are one JSON object on stdout with apiVersion "packhof/v1" and a kind:
of packhof Init, Key, Trust, Plan, Export, ExportDryRun, Bundle, Verification,
CosignCommands, Diff, PolicyCheck, Version; of packhof-gate GateInit, GateTrust,
User, Users, Serve, GatePreview, GateVerification, GateReceive, GateReceiveAll,
Cases, GateCase, GateDecision, GatePlan, GateRelease, Doctor, Version. Errors
are one JSON object in a line on stderr, kind Error:

  error     what went wrong, with which object
  evidence  list of lines
  hint      one remedy
  code      stable code, see  help errors
  exit      exit code

Members are only ever added. Ignore members that you do not know. Sizes are
bytes, times are RFC 3339 in UTC, digests are "sha256:" and 64 hex digits.
`

const formatsText = `File formats

  packhof.yaml              packhof/v1, kind Export; schema: schema export
  packhof.lock              packhof.lock/v1, JSON; schema: schema lock
  packhof.ledger            packhof.ledger/v1, a JSON object a line
  gate.yaml                 packhof/v1, kind Gate; schema: packhof-gate schema gate
  enrol.json                packhof.enrolment/v1; schema: schema enrolment
  <channel>-<serial>.tar    packhof.bundle/v1: a strict USTAR archive that is
                            also an OCI image layout
  packhof.json in it        the manifest; schema: schema manifest
  volume.json in it         packhof.volume/v1
  chunk lists               packhof.chunks/v1
  SBOMs                     CycloneDX 1.6 JSON
  signatures                Sigstore bundles v0.3
  keys                      encrypted sigstore key files, as cosign makes them
`

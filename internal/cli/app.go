// Package cli is what all our programs have in common at the terminal: how
// errors look and which exit code they give, output formats, progress,
// passphrases and help topics.
//
// It is the only package besides cmd that touches the terminal, the clock and
// the process. It knows nothing of bundles, sources or gates.
package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// App is a program at a terminal.
type App struct {
	Name      string
	Stdin     io.Reader
	Stdout    io.Writer
	Stderr    io.Writer
	LookupEnv func(string) (string, bool)
	Now       func() time.Time

	Format string // of -o: table, json, yaml
	Quiet  bool
	German bool // errors and prompts are in German
}

// Getenv gives an environment variable, or "".
func (a *App) Getenv(name string) string {
	value, _ := a.LookupEnv(name)
	return value
}

// Run runs a program of the operating system's: it builds the command tree,
// executes it with a context that ends on SIGINT and SIGTERM, prints the error
// and returns the exit code.
func Run(name string, args []string, build func(*App) *cobra.Command) int {
	app := &App{Name: name, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, LookupEnv: os.LookupEnv, Now: time.Now}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return app.Execute(ctx, args, build(app))
}

// Execute runs a command tree and returns the exit code.
func (a *App) Execute(ctx context.Context, args []string, root *cobra.Command) int {
	root.SetArgs(args)
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SilenceErrors, root.SilenceUsage = true, true
	a.addGlobals(root)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	if said, ok := err.(Outcome); ok {
		return int(said)
	}
	if _, stands := errors.AsType[*standing](err); ctx.Err() != nil && !stands && !errors.Is(err, context.Canceled) {
		err = errors.Join(context.Canceled, err)
	}
	a.report(err)
	return ExitOf(err)
}

// addGlobals adds what every command has: -o, --quiet, the environment as a
// source of flags, help topics, and usage errors with code and exit 2.
func (a *App) addGlobals(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVarP(&a.Format, "output", "o", "table", "output `format`: table, json or yaml")
	flags.BoolVarP(&a.Quiet, "quiet", "q", false, "no progress on stderr")
	if err := root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // only if the flag above had another name
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return a.early(c, err) })
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if err := a.flagsFromEnvironment(c); err != nil {
			return err
		}
		if missing := missingFlags(c); len(missing) > 0 {
			return usage(c, c.Name()+" needs "+strings.Join(missing, " and "))
		}
		switch a.Format {
		case "table", "json", "yaml":
			return nil
		}
		return usage(c, fmt.Sprintf("unknown output format %q", a.Format))
	}
	root.SetUsageFunc(plainUsage(root.UsageFunc()))
	root.AddCommand(topics(a, root)...)
	root.SetHelpCommand(helpCommand(a))
	a.tidyUsageErrors(root)
}

// missingFlags are the flags that a command needs and did not get.
func missingFlags(c *cobra.Command) []string {
	var missing []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if needed := f.Annotations[cobra.BashCompOneRequiredFlag]; len(needed) > 0 && needed[0] == "true" && !f.Changed {
			missing = append(missing, "--"+f.Name)
		}
	})
	return missing
}

// flagsFromEnvironment fills flags that were not given from PACKHOF_<FLAG>.
func (a *App) flagsFromEnvironment(c *cobra.Command) error {
	var failed error
	c.Flags().VisitAll(func(f *pflag.Flag) {
		value, ok := a.LookupEnv(EnvName(f.Name))
		if f.Changed || !ok || f.Name == "help" {
			return
		}
		if err := f.Value.Set(value); err != nil {
			failed = errors.Join(failed, usage(c, fmt.Sprintf("%s: %s", EnvName(f.Name), err)))
		}
		f.Changed = true
	})
	return failed
}

// plainUsage leaves out what nobody types: that a switch can be given a value.
func plainUsage(usage func(*cobra.Command) error) func(*cobra.Command) error {
	const noise = "[=true|false]"
	return func(c *cobra.Command) error {
		out := c.OutOrStderr()
		var text bytes.Buffer
		c.SetOut(&text)
		err := usage(c)
		c.SetOut(out)
		fmt.Fprint(out, strings.ReplaceAll(text.String(), noise, strings.Repeat(" ", len(noise))))
		return err
	}
}

// EnvName is the environment variable of a flag.
func EnvName(flag string) string {
	return "PACKHOF_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// UsageError is a wrong command line.
type UsageError struct {
	What    string
	Command string // the command whose --help explains
}

func (e *UsageError) Error() string { return e.What }

// Code is the stable code of this error.
func (e *UsageError) Code() string { return "usage" }

// Remedy names the help that explains.
func (e *UsageError) Remedy() string { return e.Command + " --help" }

func usage(c *cobra.Command, what string) error {
	return &UsageError{What: what, Command: c.CommandPath()}
}

// early makes a usage error of one that comes before flags are taken from the
// environment, where the language may stand in which it is told.
func (a *App) early(c *cobra.Command, err error) error {
	_ = a.flagsFromEnvironment(c) // what else is wrong comes when this is mended
	return usage(c, err.Error())
}

// tidyUsageErrors gives wrong arguments and unknown sub-commands the form of
// usage errors.
func (a *App) tidyUsageErrors(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return a.early(c, err)
			}
			return nil
		}
	}
	if c.HasSubCommands() && c.RunE == nil && c.Run == nil {
		c.Args = cobra.ArbitraryArgs
		c.SuggestionsMinimumDistance = 2
		c.RunE = func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			what := fmt.Sprintf("unknown command %q", args[0])
			if near := c.SuggestionsFor(args[0]); len(near) > 0 {
				what += fmt.Sprintf(", did you mean %q?", near[0])
			}
			return usage(c, what)
		}
	}
	for _, sub := range c.Commands() {
		a.tidyUsageErrors(sub)
	}
}

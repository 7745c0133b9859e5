package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/signing"
)

func newKey(p *project) *cobra.Command {
	c := &cobra.Command{Use: "key", Short: "Make and show signing keys"}
	c.AddCommand(&cobra.Command{
		Use:   "generate [FILE]",
		Short: "Make a signing key, encrypted with a passphrase",
		Long: `Make an ECDSA P-256 key in an encrypted sigstore key file, the form that
cosign makes and reads, and its public key beside it as .pub.

FILE is where packhof.yaml says (key), or keys/packhof.key. The passphrase
comes from the terminal, or see  packhof help environment.`,
		Example: `  packhof key generate
  packhof key generate keys/backup.key`,
		Args: atMostOneFile,
		RunE: func(c *cobra.Command, args []string) error { return runKeyGenerate(p, c, args) },
	}, &cobra.Command{
		Use:     "show FILE",
		Short:   "Show the id of a public key",
		Example: "  packhof key show keys/packhof.pub",
		Args:    cli.Needs("the public key"),
		RunE:    func(_ *cobra.Command, args []string) error { return runKeyShow(p, args[0]) },
	})
	return c
}

func atMostOneFile(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("generate makes one key, and %q is too much:  packhof key generate keys/backup.key", args[1])
	}
	return nil
}

// keyDocument is what the key commands print.
type keyDocument struct {
	ID      string `json:"id"`
	Private string `json:"private,omitempty"`
	Public  string `json:"public"`
}

func runKeyGenerate(p *project, c *cobra.Command, args []string) error {
	path := p.path("keys/packhof.key")
	if len(args) == 1 {
		path = args[0]
	} else if _, err := os.Stat(p.file); err == nil {
		if err := p.load(); err != nil {
			return err
		}
		path = p.path(p.spec.Key)
	}
	public := strings.TrimSuffix(path, ".key") + ".pub"
	for _, file := range []string{path, public} {
		if _, err := os.Lstat(file); err == nil {
			return problem.New("config/exists", "%s exists already, and keys are never overwritten", file).Hint("give another name: packhof key generate other.key")
		}
	}
	phrase, err := p.app.Passphrase(c.Context(), path, true)
	if err != nil {
		return err
	}
	privatePEM, publicPEM, err := signing.GenerateKey(phrase)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := cas.WriteBytes(path, 0o600, privatePEM); err != nil {
		return err
	}
	if err := cas.WriteBytes(public, 0o644, publicPEM); err != nil {
		return err
	}
	return printKey(p, publicPEM, keyDocument{Private: path, Public: public})
}

func runKeyShow(p *project, path string) error {
	b, err := readKeyFile(path)
	if err != nil {
		return err
	}
	return printKey(p, b, keyDocument{Public: path})
}

func printKey(p *project, publicPEM []byte, doc keyDocument) error {
	key, err := signing.ParsePublicKey(publicPEM)
	if err != nil {
		return fmt.Errorf("%s: %w", doc.Public, err)
	}
	doc.ID = key.ID().String()
	return p.app.Print("Key", doc, func(w io.Writer) {
		if doc.Private != "" {
			fmt.Fprintf(w, "private key  %s   (keep it and its passphrase safe)\n", doc.Private)
		}
		fmt.Fprintf(w, "public key   %s\nkey id       %s\n", doc.Public, doc.ID)
		if doc.Private != "" {
			fmt.Fprintf(w, "next:  packhof trust init --owner you@example\n")
		}
	})
}

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/mirror"
)

func newInit(p *project) *cobra.Command {
	channel, ledgerOnly := "", false
	c := &cobra.Command{
		Use:   "init",
		Short: "Write a commented packhof.yaml and an empty ledger",
		Long: `Write a commented packhof.yaml, the empty ledger packhof.ledger, and the lines
that a .gitignore needs. Nothing that exists is overwritten.

packhof.yaml, packhof.lock, packhof.ledger and the trust folder belong into
version control; the store and private keys do not.`,
		Example: `  packhof init --channel plant-7
  packhof init --file plant-7/packhof.yaml --channel plant-7`,
		Args: cli.Needs(),
		RunE: func(*cobra.Command, []string) error {
			if ledgerOnly {
				return runInitLedger(p)
			}
			return runInit(p, channel)
		},
	}
	c.Flags().BoolVar(&ledgerOnly, "ledger-only", false, "make only the ledger, for a channel that never sent anything")
	c.Flags().StringVar(&channel, "channel", "plant-1", "`name` of the channel")
	return c
}

func runInit(p *project, channel string) error {
	if !bundle.ValidChannel(channel) {
		return &cli.UsageError{What: fmt.Sprintf("%q cannot name a channel: up to 40 of a-z, 0-9 and hyphens", channel), Command: "packhof init"}
	}
	dir := filepath.Dir(p.file)
	for _, path := range []string{p.file, p.ledgerPath()} {
		if err := mustNotExist(path); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := mirror.CreateLedger(p.ledgerPath(), channel); err != nil {
		return err
	}
	if err := cas.WriteBytes(p.file, 0o644, []byte(strings.ReplaceAll(template, "CHANNEL", channel))); err != nil {
		return err
	}
	if err := ignoreSecrets(filepath.Join(dir, ".gitignore")); err != nil {
		return err
	}
	return p.app.Print("Init", map[string]string{"config": p.file, "ledger": p.ledgerPath(), "channel": channel}, func(w io.Writer) {
		fmt.Fprintf(w, "wrote %s and %s for the channel %s\nnext:  edit %s, then  packhof key generate\n", p.file, p.ledgerPath(), channel, p.file)
	})
}

// ignoreSecrets keeps private keys, content and bundles out of version control:
// it adds to a .gitignore what is not there.
func ignoreSecrets(path string) error {
	there, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text := string(there)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	for _, line := range []string{"/.packhof/", "/keys/*.key", "*.tar", "*.packhof.json"} {
		if !slices.Contains(strings.Split(text, "\n"), line) {
			text += line + "\n"
		}
	}
	if text == string(there) {
		return nil
	}
	return cas.WriteBytes(path, 0o644, []byte(text))
}

// runInitLedger makes the ledger of a channel that has a configuration and has
// never sent anything.
func runInitLedger(p *project) error {
	if err := p.load(); err != nil {
		return err
	}
	if err := mirror.CreateLedger(p.ledgerPath(), p.spec.Channel); err != nil {
		return err
	}
	return p.app.Print("Init", map[string]string{"config": p.file, "ledger": p.ledgerPath(), "channel": p.spec.Channel}, func(w io.Writer) {
		fmt.Fprintf(w, "wrote %s for the channel %s\n", p.ledgerPath(), p.spec.Channel)
	})
}

func mustNotExist(path string) error {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return problem.New("config/exists", "%s exists already, and nothing is overwritten", path).
		Hint("use another folder: packhof init --file other/packhof.yaml")
}

const template = `# yaml-language-server: $schema=packhof.schema.json
# The schema for your editor:  packhof schema export > packhof.schema.json
apiVersion: packhof/v1
kind: Export

# The ordered stream of bundles that a plant follows. It is part of file names,
# and the ledger beside this file is made for it: do not change it here alone.
channel: CHANNEL

# What comes and why, for the person who reviews it at the plant.
# note: Driver update and the new inspection model

# How long a bundle may be accepted after it was planned.
validFor: 30d

# The key that signs (packhof key generate), and the folder with the trust root
# (packhof trust init).
key: keys/packhof.key
trust: trust

# Where fetched content is kept, so that it is fetched once.
store: .packhof

# Hosts that need settings of their own. Credentials come from docker's
# configuration:  docker login registry.example
# hosts:
#   registry.example:5000:
#     ca: company-ca.pem    # a private certificate authority
#     plainHTTP: false      # true allows http without TLS; the bundle says so

# Bounds of packhof-scan, the program that makes the SBOMs.
# scan:
#   timeout: 15m
#   memory: 4GiB

# Everything that the channel carries. Exactly one of image, dir, file and url
# says where an artifact comes from.
artifacts:
  - image: docker.io/library/debian:12
    platforms: [linux/amd64]   # default: all that the image has

  # - image: registry.example:5000/line/inspector@sha256:0123…   # by digest

  # - kind: model              # model, dataset or files
  #   name: inspector-weights
  #   version: "1.4"
  #   dir: models/inspector

  # - kind: files
  #   name: license-server
  #   version: "2.1"
  #   url: https://downloads.example/license-server-2.1.run
  #   sha256: 0123…
`

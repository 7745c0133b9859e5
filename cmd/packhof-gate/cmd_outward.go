package main

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/signing"
)

func newReceipt(s *site) *cobra.Command {
	return &cobra.Command{
		Use:   "receipt FILE",
		Short: "Write which content is here, signed, to be carried back out",
		Long: `Write the gate's receipt: of which bundles the content is here, signed with the
key that enrol.json names. Outside,  packhof export --since FILE  sends only
what is not here yet. A bundle that was blocked or rejected, or that nobody has
decided on, is listed too: its content is here all the same. The receipt names
bundles by channel, serial and digest; what was decided on them, their content
and names of people are not in it. In a folder the file is named after the
gate; - is standard output.`,
		Example: `  packhof-gate receipt /media/usb/receipt.json`,
		Args:    cli.Needs("the file to write"),
		RunE: func(c *cobra.Command, args []string) error {
			return s.writeOutward(c.Context(), outward{
				method: http.MethodPost, resource: "receipts", kind: "ReceiptFile", next: "packhof export --since ", name: receiptName, about: s.listed,
			}, args[0])
		},
	}
}

func newWant(s *site) *cobra.Command {
	return &cobra.Command{
		Use:   "want CASE FILE",
		Short: "Write what is lacking of a bundle, to be carried back out",
		Long: `Write the want list of a case: which bytes of its bundle are not here.
Outside,  packhof resend --want FILE  writes a set with just these. In a folder
the file is named after the bundle; - is standard output.`,
		Example: `  packhof-gate want 7 /media/usb/want.json`,
		Args:    cli.Needs("the number of the case", "the file to write"),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := caseArgument(c, args[0])
			if err != nil {
				return err
			}
			return s.writeOutward(c.Context(), outward{
				method: http.MethodGet, resource: "cases/" + id + "/want", kind: "WantFile", next: "packhof resend --want ", name: wantName,
			}, args[1])
		},
	}
}

// outwardDocument says what was written.
type outwardDocument struct {
	File   string        `json:"file"`
	Digest bundle.Digest `json:"digest"`
	Bytes  int           `json:"bytes"`
}

// outward is a document that is carried back out.
type outward struct {
	method, resource string
	kind             string
	next             string // the command that takes it, outside
	name             func(ctx context.Context, api *client, b []byte) (string, error)
	about            func(ctx context.Context, api *client, b []byte) (string, error) // a line for people, who are warned without it; may be nil
}

// writeOutward asks the gate for a document and writes it: to standard output,
// or into a folder under a name that says what it is.
func (s *site) writeOutward(ctx context.Context, o outward, file string) error {
	return s.with(ctx, func(api *client) error {
		var b []byte
		if _, err := api.call(ctx, o.method, o.resource, nil, &b); err != nil {
			return err
		}
		if file == "-" {
			_, err := s.app.Stdout.Write(b)
			return err
		}
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			name, err := o.name(ctx, api, b)
			if err != nil {
				return err
			}
			file = filepath.Join(file, name)
		}
		if err := cas.WriteBytes(file, 0o644, b); err != nil {
			return err
		}
		doc := outwardDocument{File: file, Digest: cas.DigestOf(b), Bytes: len(b)}
		return s.app.Print(o.kind, doc, func(w io.Writer) {
			fmt.Fprintln(w, s.say("wrote {file}  ({bytes} bytes, {digest})", "file", file, "bytes", len(b), "digest", doc.Digest.String()))
			if o.about != nil {
				about, err := o.about(ctx, api, b)
				if err != nil {
					s.warn([]error{err})
				} else if about != "" {
					fmt.Fprintln(w, about)
				}
			}
			fmt.Fprintln(w, s.say("next:  {command}", "command", o.next+signing.ShellQuote(file)))
		})
	})
}

// listed says what the bundles of a receipt are to the gate: the receipt itself
// tells only how much of their content is here. The list of cases has an end: what is
// behind it is not counted.
func (s *site) listed(ctx context.Context, api *client, b []byte) (string, error) {
	var file struct {
		Receipt struct {
			Channels []bundle.ReceiptChannel `json:"channels"`
		} `json:"receipt"`
	}
	if err := json.Unmarshal(b, &file); err != nil {
		return "", err
	}
	var all struct {
		Cases []gate.Summary `json:"cases"`
	}
	if _, err := api.call(ctx, http.MethodGet, "cases", nil, &all); err != nil {
		return "", err
	}
	return s.listing(file.Receipt.Channels, all.Cases), nil
}

// listing counts the bundles of a receipt by the states of their cases.
func (s *site) listing(channels []bundle.ReceiptChannel, cases []gate.Summary) string {
	n, counted, counts := 0, 0, map[gate.State]int{}
	for _, c := range channels {
		for _, listed := range c.Bundles {
			n++
			i := slices.IndexFunc(cases, func(k gate.Summary) bool {
				return k.Channel == c.Channel && k.Manifest == listed.Manifest && k.State != gate.NotGenuine
			})
			if i >= 0 {
				counted++
				counts[cases[i].State]++
			}
		}
	}
	if n == 0 {
		return ""
	}
	var states []string
	for _, state := range gate.States() {
		if counts[state] > 0 {
			states = append(states, fmt.Sprintf("%s: %d", s.word("state", state), counts[state]))
		}
	}
	if n > counted {
		states = append(states, fmt.Sprintf("%s: %d", s.say("not counted"), n-counted))
	}
	return s.many(n, "{n} bundle is listed by what of its content is here, whatever was decided on it: {states}",
		"{n} bundles are listed by what of their content is here, whatever was decided on them: {states}", "states", strings.Join(states, ", "))
}

// receiptName names a receipt after its gate.
func receiptName(ctx context.Context, api *client, _ []byte) (string, error) {
	var from struct {
		Gate string `json:"gate"`
	}
	_, err := api.call(ctx, http.MethodGet, "version", nil, &from)
	return from.Gate + "-receipt.json", err
}

// wantName names a want list after its bundle.
func wantName(_ context.Context, _ *client, b []byte) (string, error) {
	w, err := bundle.ParseWant(b)
	if err != nil {
		return "", err
	}
	return bundle.BaseName(&bundle.Manifest{Channel: w.Channel, Epoch: w.Epoch, Serial: w.Serial}) + "-want.json", nil
}

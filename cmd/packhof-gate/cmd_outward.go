package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/cli"
)

func newReceipt(s *site) *cobra.Command {
	return &cobra.Command{
		Use:   "receipt FILE",
		Short: "Write what the gate holds, signed, to be carried back out",
		Long: `Write the gate's receipt: which bundles it holds, signed with the key that
enrol.json names. Outside,  packhof export --since FILE  sends only what is
not here yet. The receipt names bundles by channel, serial and digest; nothing
of their content and nobody's name is in it.`,
		Example: `  packhof-gate receipt /media/usb/receipt.json`,
		Args:    cli.Needs("the file to write"),
		RunE: func(c *cobra.Command, args []string) error {
			return s.writeOutward(c.Context(), http.MethodPost, "receipts", args[0], "ReceiptFile",
				s.say("next:  {command}", "command", "packhof export --since "+args[0]))
		},
	}
}

func newWant(s *site) *cobra.Command {
	return &cobra.Command{
		Use:   "want CASE FILE",
		Short: "Write what is lacking of a bundle, to be carried back out",
		Long: `Write the want list of a case: which bytes of its bundle are not here.
Outside,  packhof resend --want FILE  writes a set with just these.`,
		Example: `  packhof-gate want 7 /media/usb/want.json`,
		Args:    cli.Needs("the number of the case", "the file to write"),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := caseArgument(c, args[0])
			if err != nil {
				return err
			}
			return s.writeOutward(c.Context(), http.MethodGet, "cases/"+id+"/want", args[1], "WantFile",
				s.say("next:  {command}", "command", "packhof resend --want "+args[1]))
		},
	}
}

// outwardDocument says what was written.
type outwardDocument struct {
	File   string        `json:"file"`
	Digest bundle.Digest `json:"digest"`
	Bytes  int           `json:"bytes"`
}

// writeOutward asks the gate for a document and writes it.
func (s *site) writeOutward(ctx context.Context, method, resource, file, kind, next string) error {
	return s.with(ctx, func(api *client) error {
		var b []byte
		if _, err := api.call(ctx, method, resource, nil, &b); err != nil {
			return err
		}
		if err := cas.WriteBytes(file, 0o644, b); err != nil {
			return err
		}
		doc := outwardDocument{File: file, Digest: cas.DigestOf(b), Bytes: len(b)}
		return s.app.Print(kind, doc, func(w io.Writer) {
			fmt.Fprintln(w, s.say("wrote {file}  ({bytes} bytes, {digest})", "file", file, "bytes", len(b), "digest", doc.Digest.String()))
			fmt.Fprintln(w, next)
		})
	})
}

// Command packhof is the connected side: it plans, packs and signs bundles.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cli"
)

// version is set at build time.
var version = "dev"

func main() { os.Exit(cli.Run("packhof", os.Args[1:], newRoot)) }

func newRoot(app *cli.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "packhof",
		Short: "Pack images, models and data into signed bundles for an air-gapped plant",
		Long: `Packhof packs container images, model weights, datasets and files into signed
bundles with SBOMs, and packhof-gate clears them at the plant.

The way of a first bundle:

  packhof init                     writes packhof.yaml, to be edited
  packhof key generate             makes the signing key
  packhof trust init               makes the trust root
  packhof trust add-gate FILE      enrols the plant's gate
  packhof plan                     pins everything in packhof.lock
  packhof export --to /media/usb   fetches, describes, signs and writes`,
	}
	root.Version = version
	p := &project{app: app}
	root.PersistentFlags().StringVarP(&p.file, "file", "f", "packhof.yaml", "configuration `file`; paths start beside it")
	root.AddCommand(
		newInit(p), newKey(p), newTrust(p), newPlan(p), newExport(p), newResend(p), newReceipt(p), newSerial(p), newCache(p), newInspect(p), newVerify(p), newSplit(p), newJoin(p), newDiff(p), newPolicy(p), newSchema(p),
		cli.VersionCommand(app, version, cli.Formats{Reads: bundle.Reads(), Writes: bundle.FormatV1}), cli.ManCommand(app, version), newJudge(p),
	)
	return root
}

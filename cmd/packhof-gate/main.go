// Command packhof-gate is the air-gapped side: it takes bundles in, shows them
// to the people who decide, and lets through what they approved.
//
// It is wiring: each command speaks with the gate that owns the data
// directory, over a socket or in this process, through the same API.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cli"
)

// version is set at build time.
var version = "dev"

func main() { os.Exit(cli.Run("packhof-gate", os.Args[1:], newRoot)) }

// program is how this program names itself in documents.
func program() string { return "packhof-gate " + version }

const defaultData = "/var/lib/packhof"

func newRoot(app *cli.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "packhof-gate",
		Short: "Clear signed bundles at an air-gapped plant",
		Long: `packhof-gate takes in bundles that packhof made, proves and inspects them, has
them judged by the plant's policy, waits for the people who decide, loads what
they approved, and serves it to the plant.

The first day:

  packhof-gate init --owner "Plant 7, hall B"   makes the data directory
  packhof-gate trust init root-1.json           whose signatures count
  packhof-gate serve                            screens and depot

A bundle:

  packhof-gate receive /media/usb               copies, proves, inspects, judges
  packhof-gate show 1                           what is in it, and the verdict
  packhof-gate approve 1 --as anna              a person decides
  packhof-gate release 1                        loads it to the destinations`,
	}
	root.Version = version
	s := &site{app: app}
	s.addLang(root)
	root.PersistentFlags().StringVar(&s.dir, "data", defaultData, "data directory of the gate, a `folder`")
	root.AddCommand(
		newInit(s), newTrust(s), newUser(s), newServe(s),
		newInspect(s), newVerify(s), newReceive(s), newList(s), newShow(s), newApprove(s), newReject(s), newRelease(s), newReceipt(s), newWant(s),
		newDoctor(s), newSchema(s), newJudge(s),
		cli.VersionCommand(app, version, cli.Formats{Reads: bundle.Reads()}), cli.ManCommand(app, version),
	)
	return root
}

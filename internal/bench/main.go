// Command bench measures Packhof against public tools on this machine, as
// ratios within one run. It is run by "make bench".
//
// With -write it puts the table into docs/performance.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	b := &bench{ctx: ctx}
	flag.StringVar(&b.dir, "dir", "build/bench", "folder to work in; it is emptied first and afterwards")
	flag.StringVar(&b.write, "write", "", "Markdown `file` whose table is replaced")
	flag.IntVar(&b.rounds, "rounds", 3, "how often each thing is done; the median counts")
	flag.StringVar(&b.only, "only", "", "measure only images, volumes or packs; not with -write")
	flag.Parse()
	if b.only != "" && b.write != "" {
		fmt.Fprintln(os.Stderr, "bench: -only measures a part, and -write replaces the whole table: give one of them")
		os.Exit(2)
	}
	if err := b.run(); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

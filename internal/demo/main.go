// Command demo shows the way of real artifacts through Packhof on this
// machine: nothing in it is pretended, and it needs no network.
//
// It is run by "make demo", after the programs are built.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	d := &demo{ctx: ctx, begun: time.Now()}
	flag.BoolVar(&d.verbose, "v", false, "show what every command prints")
	flag.StringVar(&d.dir, "dir", "build/demo", "folder to play in; it is emptied first")
	flag.Parse()
	err := d.run()
	d.close()
	if err != nil {
		fmt.Fprintf(os.Stderr, "\nthe demo failed: %v\n", err)
		os.Exit(1)
	}
}

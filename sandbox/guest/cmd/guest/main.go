package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/millwright-dev/millwright/sandbox/guest"
)

func main() { os.Exit(run()) }

func run() int {
	flags := flag.NewFlagSet("guest run", flag.ContinueOnError)
	path := flags.String("config", "", "guest.json of the machine")
	if len(os.Args) < 2 || os.Args[1] != "run" {
		fmt.Fprintln(os.Stderr, "usage: guest run --config FILE")
		return 2
	}
	if flags.Parse(os.Args[2:]) != nil {
		return 2
	}
	config, err := guest.LoadConfig(*path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		return 2
	}
	// client-go names the field manager of a write after the program. What kubeadm's
	// code writes must say so, as on a machine: add-ons take that over in place.
	os.Args[0] = "kubeadm"
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	go func() {
		// The daemon holds the other end: its end is the machine's.
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	if err := guest.Run(ctx, config, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		return 1
	}
	return 0
}

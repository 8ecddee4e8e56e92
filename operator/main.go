package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/millwright-dev/millwright/operator/app"
)

func main() {
	// SIGTERM and Ctrl-C let running reconciles end and give the Lease back; a second one ends at once.
	if err := app.NewCommand().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// Package cli is what both plugins share: the root command with kubectl's flags
// and help, the client, the output formats, progress and waiting, and errors
// with their exit codes.
//
// In come the commands of a plugin (cobra) and the user's kubeconfig; out go data
// on stdout, everything else on stderr, and an exit code of 0 (done), 1 (failed),
// 2 (usage) or 124 (timed out). The commands themselves, and what they know of
// clusters or add-ons, do not belong here.
//
// Reading order: root.go, options.go, main.go, errors.go, print.go, wait.go.
package cli

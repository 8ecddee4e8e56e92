package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Exit codes of the plugins. 124 is that of timeout(1), 130 that of a shell for
// a command ended by SIGINT.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitTimedOut    = 124
	ExitInterrupted = 130
)

// Error is an error that ends the command with a certain exit code.
type Error struct {
	Code int
	// Err is what to tell the user; nil tells nothing more, for commands that
	// have already said what is wrong.
	Err error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns what is told to the user.
func (e *Error) Unwrap() error { return e.Err }

// UsageErrorf returns an error of the command line: exit code 2.
func UsageErrorf(format string, args ...any) error {
	return &Error{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// ExitCode returns the exit code for the outcome of a command.
func ExitCode(err error) int {
	var coded *Error
	var timeout *TimeoutError
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &coded):
		return coded.Code
	case errors.As(err, &timeout):
		return ExitTimedOut
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	}
	return ExitFailed
}

// message is what the user reads on stderr about err; empty for nothing.
func (o *Options) message(err error) string {
	var coded *Error
	if errors.As(err, &coded) && coded.Err == nil {
		return ""
	}
	if message, ok := o.connectionMessage(err); ok {
		return "error: " + message
	}
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, context.Canceled):
		return "error: interrupted"
	// An error of the server that nobody gave a context is shown as kubectl shows it.
	case errors.As(err, &status) && errors.Unwrap(err) == nil && status.Status().Reason != "":
		return fmt.Sprintf("Error from server (%s): %s", status.Status().Reason, err)
	}
	return "error: " + strings.TrimPrefix(err.Error(), "error: ")
}

// usageMessage adds to an error of the command line where to read more.
func usageMessage(cmd *cobra.Command, err error) string {
	text := strings.TrimSpace(strings.TrimPrefix(err.Error(), "error: "))
	return fmt.Sprintf("error: %s\nSee '%s --help'", text, cmd.CommandPath())
}

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"
)

// runPlugin runs a plugin that has one command, "do NAME", which returns outcome.
func runPlugin(t *testing.T, outcome error, argv ...string) (code int, stdout, stderr string) {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	root := NewRoot(Plugin{
		Name:  "things",
		Short: "Look after things",
		Groups: func(*Options) templates.CommandGroups {
			do := &cobra.Command{
				Use: "do NAME", Short: "Do something", Args: OneArg("NAME"),
				Long:    templates.LongDesc("Do something with {{kubectl}}."),
				Example: templates.Examples("{{kubectl}} do it"),
				RunE:    func(*cobra.Command, []string) error { return outcome },
			}
			do.Flags().Int("replicas", 0, "How many.")
			return templates.CommandGroups{{Message: "Work:", Commands: []*cobra.Command{do}}}
		},
	}, streams)
	code = Run(context.Background(), root, argv)
	return code, out.String(), errOut.String()
}

func TestExitCodeAndMessage(t *testing.T) {
	things := schema.GroupResource{Resource: "things"}
	cases := map[string]struct {
		outcome error
		args    []string
		code    int
		stderr  string
	}{
		"success says nothing": {
			args: []string{"do", "it"},
		},
		"failure is 1": {
			args: []string{"do", "it"}, outcome: errors.New("thing \"it\": broken: mend it"),
			code: ExitFailed, stderr: "error: thing \"it\": broken: mend it\n",
		},
		"timeout is 124": {
			args: []string{"do", "it"}, outcome: fmt.Errorf("do it: %w", &TimeoutError{After: time.Minute, Missing: "2 to go"}),
			code: ExitTimedOut, stderr: "error: do it: timed out after 1m0s: 2 to go\n",
		},
		"timeout of a watch that waits for nothing is told without a cause": {
			args: []string{"do", "it"}, outcome: &TimeoutError{After: time.Minute},
			code: ExitTimedOut, stderr: "error: timed out after 1m0s\n",
		},
		"a found difference says no more": {
			args: []string{"do", "it"}, outcome: &Error{Code: 1},
			code: 1,
		},
		"an error of the server is shown as kubectl does": {
			args: []string{"do", "it"}, outcome: apierrors.NewNotFound(things, "it"),
			code: ExitFailed, stderr: "Error from server (NotFound): things \"it\" not found\n",
		},
		"usage found by the command is 2": {
			args: []string{"do", "it"}, outcome: UsageErrorf("--replicas must not be negative"),
			code: ExitUsage, stderr: "error: --replicas must not be negative\nSee 'kubectl things do --help'\n",
		},
		"an unknown command is usage and suggests one": {
			args: []string{"doo"},
			code: ExitUsage, stderr: "error: unknown command \"doo\" for \"kubectl things\"\n\nDid you mean this?\n\tdo\nSee 'kubectl things --help'\n",
		},
		"an unknown flag is usage and suggests one": {
			args: []string{"do", "it", "--replcas", "3"},
			code: ExitUsage, stderr: "error: unknown flag: --replcas\n\nDid you mean this?\n\t--replicas\nSee 'kubectl things do --help'\n",
		},
		"a flag unlike any other suggests none": {
			args: []string{"do", "it", "--colour"},
			code: ExitUsage, stderr: "error: unknown flag: --colour\nSee 'kubectl things do --help'\n",
		},
		"a missing argument is usage": {
			args: []string{"do"},
			code: ExitUsage, stderr: "error: NAME is missing\nSee 'kubectl things do --help'\n",
		},
		"an interruption is 130": {
			args: []string{"do", "it"}, outcome: fmt.Errorf("watch: %w", context.Canceled),
			code: ExitInterrupted, stderr: "error: interrupted\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := runPlugin(t, tc.outcome, append([]string{"kubectl-things"}, tc.args...)...)
			if code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			if diff := cmp.Diff(tc.stderr, stderr); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
			if stdout != "" {
				t.Errorf("stdout %q, want nothing", stdout)
			}
		})
	}
}

func TestCompletionIsToldByTheNameOfTheBinary(t *testing.T) {
	code, stdout, _ := runPlugin(t, nil, "/usr/bin/kubectl_complete-things", "d")
	if code != 0 || !strings.HasPrefix(stdout, "do\tDo something\n") {
		t.Errorf("exit code %d, stdout %q, want the command do", code, stdout)
	}
}

func TestDisplayName(t *testing.T) {
	cases := map[string]string{
		"/usr/local/bin/kubectl-machines": "kubectl machines",
		"kubectl-machines.exe":            "kubectl machines",
		"kubectl-capi-fleet":              "kubectl capi fleet",
		"kubectl-my_fleet":                "kubectl my-fleet",
		"kubectl_complete-my_fleet":       "kubectl my-fleet",
		"cli.test":                        "kubectl machines",
	}
	for arg0, want := range cases {
		if got := displayName("machines", arg0); got != want {
			t.Errorf("called as %s: got %q, want %q", arg0, got, want)
		}
	}
}

func TestHelpSpeaksOfThePluginAsTheUserTypesIt(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"do", "--help"}, {"help", "do"}, {}} {
		_, stdout, stderr := runPlugin(t, nil, append([]string{"kubectl-things"}, args...)...)
		if !strings.Contains(stdout, "kubectl things") {
			t.Errorf("%v: help does not say kubectl things:\n%s", args, stdout)
		}
		for _, wrong := range []string{"kubectl-things", "{{", "[flags]"} {
			if strings.Contains(stdout, wrong) {
				t.Errorf("%v: help says %q:\n%s", args, wrong, stdout)
			}
		}
		if stderr != "" {
			t.Errorf("%v: stderr %q, want nothing", args, stderr)
		}
	}
}

func TestProgressOffATerminalIsALineAChange(t *testing.T) {
	var out bytes.Buffer
	progress := NewProgress(&out)
	progress.Show(View{Screen: []string{"screen"}, Changes: []string{"a: 1", "b: 1"}})
	progress.Show(View{Screen: []string{"screen"}, Changes: []string{"b: 1"}})
	progress.Show(View{Screen: []string{"screen"}, Changes: []string{"a: 2"}})
	progress.Close()
	if want := "a: 1\nb: 1\na: 2\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestWait(t *testing.T) {
	steps := func(n int) (func() (State, error), *int) {
		seen := 0
		return func() (State, error) {
			seen++
			return State{Done: seen == n, Missing: "more"}, nil
		}, &seen
	}
	t.Run("looks again at each change until done", func(t *testing.T) {
		changed := make(chan struct{}, 5)
		for range 5 {
			changed <- struct{}{}
		}
		check, seen := steps(3)
		if err := Wait(t.Context(), time.Minute, changed, NewProgress(&bytes.Buffer{}), check); err != nil {
			t.Fatal(err)
		}
		if *seen != 3 {
			t.Errorf("looked %d times, want 3", *seen)
		}
	})
	t.Run("tells what is missing when the time is up", func(t *testing.T) {
		check, _ := steps(99)
		err := Wait(t.Context(), time.Millisecond, nil, NewProgress(&bytes.Buffer{}), check)
		var timeout *TimeoutError
		if !errors.As(err, &timeout) || timeout.Missing != "more" {
			t.Errorf("got %v, want a timeout that misses more", err)
		}
	})
	t.Run("ends with the error of the check", func(t *testing.T) {
		broken := errors.New("broken")
		err := Wait(t.Context(), 0, nil, NewProgress(&bytes.Buffer{}), func() (State, error) { return State{}, broken })
		if !errors.Is(err, broken) {
			t.Errorf("got %v, want %v", err, broken)
		}
	})
	t.Run("ends when it is interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		check, _ := steps(99)
		if err := Wait(ctx, time.Minute, nil, NewProgress(&bytes.Buffer{}), check); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that it was cancelled", err)
		}
	})
}

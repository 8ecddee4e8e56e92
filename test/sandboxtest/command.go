package sandboxtest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Result is what a command left behind.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// Try runs a command in the root of the repository, with env added to the environment, and returns what it left,
// whatever its exit code.
func (s *Sandbox) Try(t *testing.T, env []string, stdin string, name string, args ...string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = s.Root
	command.Env = append(os.Environ(), env...)
	if stdin != "" {
		command.Stdin = strings.NewReader(stdin)
	}
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	if command.ProcessState == nil {
		t.Fatalf("%s: %v", name, err)
	}
	return Result{stdout.String(), stderr.String(), command.ProcessState.ExitCode()}
}

// Run runs a command that must succeed and returns its standard output.
func (s *Sandbox) Run(t *testing.T, name string, args ...string) string {
	t.Helper()
	got := s.Try(t, nil, "", name, args...)
	if got.Code != 0 {
		t.Fatalf("%s %s: exit code %d\n%s%s", name, strings.Join(args, " "), got.Code, got.Stdout, got.Stderr)
	}
	return got.Stdout
}

// Apply fills a template with env and applies it.
func (s *Sandbox) Apply(t *testing.T, template string, env ...string) {
	t.Helper()
	filled := s.Try(t, env, "", "sandbox", "fill", template)
	if filled.Code != 0 {
		t.Fatalf("sandbox fill %s: %s", template, filled.Stderr)
	}
	if got := s.Try(t, nil, filled.Stdout, "kubectl", "apply", "-f", "-"); got.Code != 0 {
		t.Fatalf("kubectl apply: %s%s", got.Stdout, got.Stderr)
	}
}

// Endpoint returns a control-plane address that no cluster has.
func (s *Sandbox) Endpoint(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(s.Run(t, "sandbox", "address", "--dir", s.Dir))
}

// Eventually calls check once a second until it returns an empty string, and fails with its last answer after the
// deadline.
func Eventually(t *testing.T, deadline time.Duration, check func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		last := check()
		if last == "" {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("after %s: %s", deadline, last)
		case <-tick.C:
		}
	}
}

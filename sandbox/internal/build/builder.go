package build

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// progressEvery is the time between two lines about a build that goes on.
const progressEvery = 15 * time.Second

// compile describes one go build.
type compile struct {
	what    string   // for people: "kube-apiserver v1.37.2"
	why     string   // why it is needed, where that may surprise
	dir     string   // the module
	flags   []string // before the package
	pkg     string
	output  string
	quietly bool // no line at all while it takes less than progressEvery
}

// run builds into a file beside the output and moves it there when it is
// whole, so that nobody ever starts half a program or overwrites a running
// one. The caller holds a lock on the output.
func (c compile) run(ctx context.Context, progress io.Writer) error {
	if err := os.MkdirAll(filepath.Dir(c.output), 0o755); err != nil {
		return err
	}
	next := c.output + ".next"
	defer os.Remove(next)

	args := append([]string{"build", "-v", "-trimpath", "-o", next}, c.flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, c.pkg)...)
	cmd.Dir = c.dir
	// A go.work of the user's would hide the module's own requirements.
	cmd.Env = append(os.Environ(), "GOWORK=off")
	// go build starts compilers: all of them go when it is called off.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	output := &packages{}
	cmd.Stdout, cmd.Stderr = output, output

	began := time.Now()
	if !c.quietly {
		because := ""
		if c.why != "" {
			because = " (" + c.why + ")"
		}
		fmt.Fprintf(progress, "building %s%s\n", c.what, because)
	}
	stop := c.report(progress, began, output)
	err := cmd.Run()
	stop()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("build %s: %w", c.what, context.Cause(ctx))
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("build %s: Go is not on PATH: install Go 1.26 or newer", c.what)
	case err != nil:
		return fmt.Errorf("build %s: go build -o %s %s: %w\n%s", c.what, c.output, c.pkg, err, output.complaints())
	}
	if err := os.Rename(next, c.output); err != nil {
		return err
	}
	if took := time.Since(began); !c.quietly || took > progressEvery {
		fmt.Fprintf(progress, "built %s in %s\n", c.what, took.Round(100*time.Millisecond))
	}
	return nil
}

// report prints a line every progressEvery until the function it returns is called.
func (c compile) report(progress io.Writer, began time.Time, output *packages) func() {
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				fmt.Fprintf(progress, "building %s: %s, %d packages so far\n",
					c.what, time.Since(began).Round(time.Second), output.count.Load())
			}
		}
	}()
	return func() { close(done); <-stopped }
}

// packages takes the output of `go build -v`: it counts the lines that are
// import paths and keeps the others, which are what went wrong.
type packages struct {
	count atomic.Int64
	text  bytes.Buffer
}

func (p *packages) Write(b []byte) (int, error) {
	p.count.Add(int64(bytes.Count(b, []byte("\n"))))
	return p.text.Write(b)
}

// complaints returns the last lines that are not import paths.
func (p *packages) complaints() string {
	var lines []string
	for scanner := bufio.NewScanner(&p.text); scanner.Scan(); {
		if line := scanner.Text(); strings.ContainsAny(line, " \t") {
			lines = append(lines, line)
		}
	}
	const most = 30
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}

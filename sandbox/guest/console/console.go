package console

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// Console serialises lines of several units onto one writer.
type Console struct {
	mu    sync.Mutex
	out   io.Writer
	start time.Time
	// clean rewrites a line before it is written.
	clean func(string) string
	// copies get a unit's lines too, without the console's prefix, as a log
	// file on the guest does.
	copies map[string]io.Writer
}

// New starts a console at time zero.
func New(out io.Writer, clean func(string) string) *Console {
	if clean == nil {
		clean = func(line string) string { return line }
	}
	return &Console{out: out, start: time.Now(), clean: clean, copies: map[string]io.Writer{}}
}

// Copy sends the lines of a unit to w as well; a nil w ends that.
func (c *Console) Copy(unit string, w io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w == nil {
		delete(c.copies, unit)
		return
	}
	c.copies[unit] = w
}

// Printf writes one message of a unit, a line each.
func (c *Console) Printf(unit, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.mu.Lock()
	defer c.mu.Unlock()
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		line = c.clean(strings.TrimRight(line, "\r"))
		// The console is a log of last resort: there is nobody to tell that it failed.
		_, _ = fmt.Fprintf(c.out, "[%12.6f] %s: %s\n", time.Since(c.start).Seconds(), unit, line)
		if w := c.copies[unit]; w != nil {
			_, _ = fmt.Fprintln(w, line)
		}
	}
}

// Writer returns a writer whose lines appear as messages of the unit. A last
// line without a newline is written with the next one.
func (c *Console) Writer(unit string) io.Writer {
	return &lineWriter{console: c, unit: unit}
}

type lineWriter struct {
	mu      sync.Mutex
	console *Console
	unit    string
	rest    []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, p...)
	for {
		end := bytes.IndexByte(w.rest, '\n')
		if end < 0 {
			return len(p), nil
		}
		w.console.Printf(w.unit, "%s", w.rest[:end])
		w.rest = w.rest[end+1:]
	}
}

// Capture points os.Stdout and os.Stderr at the console until the function
// returned is called, which waits for what was printed to arrive. Code that runs
// meanwhile and holds the former files is not affected. Lines keep their order
// among each other, not with those of Printf.
func (c *Console) Capture(unit string) (restore func(), err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("capture output: %w", err)
	}
	stdout, stderr := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = write, write
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewReader(read)
		for {
			line, err := lines.ReadString('\n')
			if line != "" {
				c.Printf(unit, "%s", line)
			}
			if err != nil {
				return
			}
		}
	}()
	return func() {
		os.Stdout, os.Stderr = stdout, stderr
		_ = write.Close()
		<-done
		_ = read.Close()
	}, nil
}

package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// View is one state of a long command, for both kinds of reader.
type View struct {
	// Screen is drawn over the previous one on a terminal.
	Screen []string
	// Changes are written one a line elsewhere; a repetition of the last line is left out.
	Changes []string
}

// Progress shows how a long command advances: a live view on a terminal, lines
// elsewhere.
type Progress struct {
	out   io.Writer
	live  bool
	drawn int
	last  string
	tick  *time.Ticker
}

// NewProgress returns a progress on stderr.
func (o *Options) NewProgress() *Progress { return NewProgress(o.ErrOut) }

// NewProgress returns a progress on out. It draws only on a terminal that can
// move the cursor: not with TERM=dumb.
func NewProgress(out io.Writer) *Progress {
	p := &Progress{out: out}
	if width, _ := terminalSize(out); width > 0 && os.Getenv("TERM") != "dumb" {
		p.live = true
		// Durations on the screen advance even when nothing happens.
		p.tick = time.NewTicker(time.Second)
	}
	return p
}

// Width returns the columns of the terminal that out is, or 0 where it is none.
func Width(out io.Writer) int {
	width, _ := terminalSize(out)
	return width
}

// terminalSize returns 0 and 0 where out is no terminal. One that does not tell
// its size, such as a serial console, has that of a VT100.
func terminalSize(out io.Writer) (width, height int) {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0, 0
	}
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// Live tells whether the view is drawn on a terminal.
func (p *Progress) Live() bool { return p.live }

// Tick fires when a live view should be drawn anew though nothing changed; it
// never fires elsewhere.
func (p *Progress) Tick() <-chan time.Time {
	if p.tick == nil {
		return nil
	}
	return p.tick.C
}

// Show shows the view.
func (p *Progress) Show(view View) {
	if p.live {
		p.draw(view.Screen)
		return
	}
	for _, line := range view.Changes {
		if line != p.last {
			fmt.Fprintln(p.out, line)
			p.last = line
		}
	}
}

// Close leaves the last view on the screen and gives the cursor back.
func (p *Progress) Close() {
	if !p.live {
		return
	}
	p.tick.Stop()
	if p.drawn > 0 {
		fmt.Fprint(p.out, showCursor)
	}
	p.drawn = 0
}

// Control sequences of ECMA-48 and of DEC: a drawing between the synchronised
// marks appears at once, without flicker, where the terminal knows them.
const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	beginSync  = "\x1b[?2026h"
	endSync    = "\x1b[?2026l"
	clearRest  = "\x1b[K"
	clearBelow = "\x1b[J"
)

// draw replaces the previous screen. Lines are cut to the width, the screen to
// the height, or the cursor could not come back to its first line.
func (p *Progress) draw(lines []string) {
	width, height := terminalSize(p.out)
	if hidden := len(lines) - (height - 1); hidden > 0 && height > 2 {
		lines = append(lines[:height-2:height-2], fmt.Sprintf("... %d more lines", hidden+1))
	}
	var b strings.Builder
	b.WriteString(beginSync + hideCursor)
	if p.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r", p.drawn)
	}
	for _, line := range lines {
		b.WriteString(cut(line, width) + clearRest + "\n")
	}
	b.WriteString(clearBelow + endSync)
	_, _ = io.WriteString(p.out, b.String())
	p.drawn = len(lines)
}

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

// plainInterval is how often progress is printed where lines can't be replaced.
const plainInterval = 15 * time.Second

// console prints one line for each step, with a tick or a cross. On a terminal the line of the
// running step is replaced as it goes on.
type console struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	// width is the terminal's, in characters.
	width int
	// open tells that a line that will be replaced is on the screen.
	open bool
	last time.Time
}

func newConsole(out io.Writer) *console {
	c := &console{out: out}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		c.terminal = true
		c.width = 80
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 20 {
			c.width = width
		}
	}
	return c
}

func (c *console) TaskStarted(task string) { c.running(task, "") }

func (c *console) TaskProgress(task, text string) { c.running(task, text) }

func (c *console) TaskEnded(task string, took time.Duration, err error) {
	mark := "✓"
	if err != nil {
		mark = "✗"
	}
	c.ended("%s %s (%s)", mark, task, round(took))
}

func (c *console) StepStarted(cell string, step evidence.Step) {
	c.running(short(cell)+": "+step.ID, "")
}

func (c *console) StepProgress(cell string, step evidence.Step, text string) {
	c.running(short(cell)+": "+step.ID, text)
}

// short names a cell where the candidate and the provider are clear: "0.9.0 on 1.37.2".
func short(cell string) string {
	row, rest, _ := strings.Cut(cell, "--checkout--")
	if version, found := strings.CutPrefix(rest, "k8s-"); found {
		version, _, _ = strings.Cut(version, "--")
		return row + " on " + version
	}
	return row
}

func (c *console) StepEnded(cell string, step evidence.Step) {
	took := round(time.Duration(step.Seconds * float64(time.Second)))
	step.ID = short(cell) + ": " + step.ID
	switch step.Outcome {
	case evidence.Passed:
		c.ended("  ✓ %s (%s)", step.ID, took)
	case evidence.Skipped:
		c.ended("  - %s: %s", step.ID, step.Reason)
	default:
		c.ended("  ✗ %s (%s): %s", step.ID, took, step.Reason)
		for _, seen := range step.Seen {
			c.ended("      %s", seen)
		}
	}
}

func (c *console) CellEnded(cell *evidence.Cell, reused bool) {
	text := string(cell.Verdict)
	if reused {
		text += fmt.Sprintf(" (unchanged since the run of %s; --fresh runs it again)", cell.Started.UTC().Format("2006-01-02 15:04 UTC"))
	}
	if cell.Reason != "" {
		text += ": " + cell.Reason
	}
	mark := "✓"
	if !cell.Verdict.Green() {
		mark = "✗"
	}
	c.ended("%s %s: %s", mark, cell.ID, text)
}

// summary prints what a person needs for the cells that are not green.
func (c *console) summary(cells []*evidence.Cell) {
	for _, cell := range cells {
		if cell == nil || cell.Verdict.Green() || cell.Verdict == evidence.Unfinished {
			continue
		}
		c.ended("\n%s is %s", cell.ID, cell.Verdict)
		c.ended("  why:   %s", cell.Reason)
		c.ended("  again: %s", cell.Reproduce)
	}
}

// running shows what is being done now.
func (c *console) running(what, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	line := what
	if text != "" {
		line += ": " + text
	}
	if c.terminal {
		runes := []rune("… " + line)
		fmt.Fprintf(c.out, "\r\033[K%s", string(runes[:min(len(runes), c.width-1)]))
		c.open = true
		return
	}
	if text == "" || time.Since(c.last) < plainInterval {
		return
	}
	c.last = time.Now()
	fmt.Fprintf(c.out, "    %s\n", line)
}

// ended prints a line that stays.
func (c *console) ended(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open {
		fmt.Fprint(c.out, "\r\033[K")
		c.open = false
	}
	fmt.Fprintf(c.out, format+"\n", args...)
}

func round(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

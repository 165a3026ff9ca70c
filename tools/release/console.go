package main

import (
	"fmt"
	"io"
	"time"
)

// progressInterval is how often the progress of a step is printed.
const progressInterval = 15 * time.Second

// console prints one line for each step, with a tick or a cross.
type console struct {
	out io.Writer
}

// step runs one step, which may tell its progress.
func (c *console) step(name string, run func(progress func(string)) error) error {
	start := time.Now()
	last := start
	err := run(func(text string) {
		if time.Since(last) >= progressInterval {
			last = time.Now()
			c.print("    %s", text)
		}
	})
	mark := "✓"
	if err != nil {
		mark = "✗"
	}
	c.print("%s %s (%s)", mark, name, time.Since(start).Round(100*time.Millisecond))
	return err
}

func (c *console) print(format string, args ...any) {
	fmt.Fprintf(c.out, format+"\n", args...)
}

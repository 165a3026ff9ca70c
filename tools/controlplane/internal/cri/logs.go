//go:build linux

package cri

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// maxLine is the longest part of a line that gets a line of its own in the log, as with
// other container runtimes.
const maxLine = 16 << 10

// logFile is a container's log in the format of the Container Runtime Interface.
type logFile struct {
	path    string
	streams sync.WaitGroup

	mu   sync.Mutex
	file *os.File
}

// openLog opens a log; without a path there is none, and what is written is dropped.
func openLog(path string) (*logFile, error) {
	l := &logFile{path: path}
	return l, l.reopen()
}

// reopen goes on in a new file after the old one was renamed.
func (l *logFile) reopen() error {
	if l.path == "" {
		return nil
	}
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		err = l.file.Close()
	}
	l.file = file
	return err
}

// stream returns a file for a process to write to; its lines go to the log.
func (l *logFile) stream(name string) (*os.File, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open a log stream: %w", err)
	}
	l.streams.Go(func() {
		defer reader.Close()
		lines := bufio.NewReaderSize(reader, maxLine)
		for {
			line, partial, err := lines.ReadLine()
			if err != nil {
				return
			}
			l.write(name, line, partial)
		}
	})
	return writer, nil
}

func (l *logFile) write(stream string, line []byte, partial bool) {
	tag := "F"
	if partial {
		tag = "P"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		// A full disk must not stop the container.
		_, _ = fmt.Fprintf(l.file, "%s %s %s %s\n", time.Now().Format(time.RFC3339Nano), stream, tag, line)
	}
}

// drain returns when everything that was written to the streams is in the log.
func (l *logFile) drain() { l.streams.Wait() }

func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		if err := l.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			fmt.Fprintf(os.Stderr, "close %s: %v\n", l.path, err)
		}
		l.file = nil
	}
}

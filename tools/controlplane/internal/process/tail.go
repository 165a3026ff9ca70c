package process

import (
	"io"
	"os"
	"strings"
)

// tailBytes is how much of a log is read for an error message.
const tailBytes = 4096

// Tail returns the last lines of a log, at most count, for an error message.
func Tail(path string, count int) string {
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > tailBytes {
		_, _ = file.Seek(-tailBytes, io.SeekEnd)
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) > count {
		lines = lines[len(lines)-count:]
	}
	return strings.Join(lines, "\n")
}

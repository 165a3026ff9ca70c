package manager_test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// marker is a random text that is nowhere by chance.
func marker() string {
	return "marker" + rand.Text() + rand.Text()
}

// forms are what a text looks like, as it is and in base64, whatever bytes are around it.
func forms(text string) []string {
	result := []string{text}
	for before := range 3 {
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + text))
		// The characters at both ends hold bits of the neighbours too.
		first := (before*8 + 5) / 6
		last := (before + len(text)) * 8 / 6
		result = append(result, encoded[first:last])
	}
	return result
}

// formsIn are those forms of a text that content holds.
func formsIn(content []byte, text string) []string {
	return slices.DeleteFunc(forms(text), func(form string) bool { return !bytes.Contains(content, []byte(form)) })
}

func TestFormsAreFoundWhateverIsAroundThem(t *testing.T) {
	text := marker()
	for before := range 7 {
		for after := range 7 {
			neighbours := strings.Repeat("a", before) + text + strings.Repeat("z", after)
			encoded := base64.StdEncoding.EncodeToString([]byte(neighbours))
			if found := formsIn([]byte(encoded), text); len(found) != 1 {
				t.Errorf("%d bytes before and %d after: %d forms found in %s", before, after, len(found), encoded)
			}
		}
	}
	if found := formsIn([]byte("..."+text+"..."), text); !slices.Equal(found, []string{text}) {
		t.Errorf("found %v, want the text itself", found)
	}
	if found := formsIn([]byte(marker()), text); len(found) > 0 {
		t.Errorf("another marker was taken for this one: %v", found)
	}
}

// inMemory finds, for each text, the forms of it that a process has in its memory:
// everything that is mapped and readable, garbage included. The process stands still
// meanwhile.
func inMemory(t *testing.T, process *os.Process, texts ...string) map[string][]string {
	t.Helper()
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := process.Signal(syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	}()
	found := map[string][]string{}
	err := readMemory(process.Pid, func(part []byte) {
		for _, text := range texts {
			for _, form := range formsIn(part, text) {
				if !slices.Contains(found[text], form) {
					found[text] = append(found[text], form)
				}
			}
		}
	})
	if err != nil {
		t.Fatalf("read the memory of process %d: %v", process.Pid, err)
	}
	return found
}

// readMemory hands the memory of a process to use in parts, which overlap by more
// than any text that is searched.
func readMemory(pid int, use func([]byte)) error {
	const size, overlap = 1 << 20, 256
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return err
	}
	defer maps.Close()
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return err
	}
	defer memory.Close()

	buffer := make([]byte, size)
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		var start, end uint64
		var permissions string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &start, &end, &permissions); err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		// The kernel's own pages, [vvar] and the like, can't be read and hold nothing of the process.
		if permissions[0] != 'r' || strings.Contains(lines.Text(), "[v") {
			continue
		}
		for at := start; ; at += size - overlap {
			part := buffer[:min(size, end-at)]
			if _, err := memory.ReadAt(part, int64(at)); err != nil {
				return fmt.Errorf("%q: %w", lines.Text(), err)
			}
			use(part)
			if at+size >= end {
				break
			}
		}
	}
	return lines.Err()
}

package compat

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxFileSize bounds what Load reads, in bytes. A thousand rows take a tenth of it.
const maxFileSize = 4 << 20

// Load reads and checks the compatibility file at path. If the content is wrong, the error is
// an *Error with every problem; if the file can't be read, it wraps the error of the
// operating system.
func Load(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the compatibility file: %w: name another file with -f", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err != nil {
		return nil, fmt.Errorf("read the compatibility file: %w", err)
	}
	return Parse(path, data)
}

// Parse is Load for content that is already in memory. The path is only named in problems.
func Parse(path string, data []byte) (*File, error) {
	r := &reader{file: path}
	r.lines = lineCount(data)
	root := r.document(data)
	if root == nil {
		return nil, asError(r.problems)
	}
	file := r.compatibilityFile(root)
	if err := asError(r.problems); err != nil {
		return nil, err
	}
	file.Path = path
	return file, nil
}

// document returns the root node of the only YAML document in data, or nil after a problem.
func (r *reader) document(data []byte) *yaml.Node {
	start := Position{Line: 1, Column: 1}
	if len(data) > maxFileSize {
		r.problemAt(start, "name a compatibility file", "the file is larger than %d MiB", maxFileSize>>20)
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		r.problemAt(start, "start it with apiVersion: "+APIVersion, "the file is empty")
		return nil
	case err != nil:
		r.syntaxProblem(err, data)
		return nil
	}
	var second yaml.Node
	switch err := decoder.Decode(&second); {
	case err == nil:
		r.problem(&second, "keep one document in the file", "the file holds a second YAML document")
		return nil
	case !errors.Is(err, io.EOF):
		r.syntaxProblem(err, data)
		return nil
	}
	return document.Content[0]
}

var syntaxErrorLine = regexp.MustCompile(`^yaml: line (\d+): `)

// syntaxProblem reports an error of the YAML parser, which knows the line at most.
func (r *reader) syntaxProblem(err error, data []byte) {
	text := err.Error()
	line := 1
	if match := syntaxErrorLine.FindStringSubmatch(text); match != nil {
		text = text[len(match[0]):]
		if n, err := strconv.Atoi(match[1]); err == nil {
			line = min(max(n, 1), r.lines)
		}
	}
	r.problemAt(Position{Line: line, Column: 1}, "correct the YAML in this line or the one before",
		"not valid YAML: %s", strings.TrimPrefix(text, "yaml: "))
}

// lineCount counts lines as YAML 1.1 does, for which a lone carriage return and three Unicode
// characters break lines too.
func lineCount(data []byte) int {
	breaks := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")
	return strings.Count(breaks.Replace(string(data)), "\n") + 1
}

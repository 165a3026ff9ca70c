package report

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
)

// withTables are the documents with tables between markers. One that a checkout does not have is not made.
var withTables = []string{"README.md", "docs/COMPATIBILITY.md"}

// Documents are the files that reports consist of, by their paths relative to the root of the checkout, with slashes:
// the upgrade matrix, the documents with tables, and, in the repository that publishes it, the JSON Schema of the
// compatibility file.
func Documents(root string, in Input) (map[string][]byte, error) {
	documents := map[string][]byte{in.MatrixFile: UpgradeMatrix(in)}
	if in.File.Operator.Image.Repository == compat.DefaultOperator().Image.Repository {
		schema, err := compat.JSONSchema()
		if err != nil {
			return nil, err
		}
		documents[compat.SchemaFile] = schema
	}
	for _, path := range withTables {
		content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the document with tables: %w", err)
		}
		if documents[path], err = fillTables(in, path, content); err != nil {
			return nil, err
		}
	}
	return documents, nil
}

// Stale are the documents that differ from what the input says, sorted.
func Stale(root string, documents map[string][]byte) ([]string, error) {
	var stale []string
	for _, path := range slices.Sorted(maps.Keys(documents)) {
		have, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read the generated document: %w", err)
		}
		if err != nil || !bytes.Equal(have, documents[path]) {
			stale = append(stale, path)
		}
	}
	return stale, nil
}

// Write writes the documents that differ, each in one step, and returns their paths.
func Write(root string, documents map[string][]byte) ([]string, error) {
	stale, err := Stale(root, documents)
	if err != nil {
		return nil, err
	}
	for _, path := range stale {
		if err := writeFile(filepath.Join(root, filepath.FromSlash(path)), documents[path]); err != nil {
			return nil, fmt.Errorf("write %s: %w", path, err)
		}
	}
	return stale, nil
}

func writeFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".report-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(content)
	if err := errors.Join(err, temp.Chmod(0o644), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

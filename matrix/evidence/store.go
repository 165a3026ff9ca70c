package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// Store is a folder of evidence documents, one file a cell.
type Store struct {
	Dir string
}

// Path is the file of the cell with that id.
func (s Store) Path(id string) string {
	return filepath.Join(s.Dir, id+".json")
}

// Save writes the document, replacing an earlier one of the same cell in one step.
func (s Store) Save(cell *Cell) error {
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return fmt.Errorf("save the evidence of %s: %w", cell.ID, err)
	}
	content, err := Marshal(cell)
	if err != nil {
		return fmt.Errorf("save the evidence of %s: %w", cell.ID, err)
	}
	temp, err := os.CreateTemp(s.Dir, ".evidence-*")
	if err != nil {
		return fmt.Errorf("save the evidence of %s: %w", cell.ID, err)
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(content)
	if err := errors.Join(err, temp.Chmod(0o644), temp.Close()); err != nil {
		return fmt.Errorf("save the evidence of %s: %w", cell.ID, err)
	}
	if err := os.Rename(temp.Name(), s.Path(cell.ID)); err != nil {
		return fmt.Errorf("save the evidence of %s: %w", cell.ID, err)
	}
	return nil
}

// Load reads the document of the cell with that id; fs.ErrNotExist if there is none.
func (s Store) Load(id string) (*Cell, error) {
	content, err := os.ReadFile(s.Path(id))
	if err != nil {
		return nil, fmt.Errorf("load the evidence of %s: %w", id, err)
	}
	cell, err := Unmarshal(content)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", s.Path(id), err)
	}
	return cell, nil
}

// All reads every document of the folder, sorted by id, without those of the cells that are
// excepted. A missing folder is an empty one.
func (s Store) All(except ...string) ([]*Cell, error) {
	files, err := filepath.Glob(filepath.Join(s.Dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list the evidence in %s: %w", s.Dir, err)
	}
	sort.Strings(files)
	var cells []*Cell
	for _, file := range files {
		if slices.Contains(except, strings.TrimSuffix(filepath.Base(file), ".json")) {
			continue
		}
		content, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the evidence %s: %w", file, err)
		}
		cell, err := Unmarshal(content)
		if err != nil {
			return nil, fmt.Errorf("%s:%w", file, err)
		}
		if s.Path(cell.ID) != file {
			return nil, fmt.Errorf("%s:1:1: the document is that of cell %q: give the file its name back", file, cell.ID)
		}
		cells = append(cells, cell)
	}
	return cells, nil
}

// Marshal gives the bytes of the document, the same for the same content.
func Marshal(cell *Cell) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(cell); err != nil {
		return nil, fmt.Errorf("encode the evidence of %s: %w", cell.ID, err)
	}
	return buffer.Bytes(), nil
}

package triage

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// planFile is the whole plan, for programs.
const planFile = "plan.json"

// written is what planFile holds.
type written struct {
	Plan
	// Files are those that were written beside it.
	Files []string `json:"files"`
}

// Write writes the plan into a folder: the text of each proposal as vX.Y.Z.md, the text of each
// closing comment as close-N.md, and all of it as plan.json. What an earlier Write left there is
// removed; other files are not touched. The paths of the new files are returned, in order.
func (p Plan) Write(dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create the folder for the proposals: %w", err)
	}
	if err := removeWritten(dir); err != nil {
		return nil, err
	}
	out := written{Plan: p, Files: []string{}}
	var paths []string
	write := func(name string, content []byte) error {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return fmt.Errorf("write the proposals: %w", err)
		}
		paths = append(paths, filepath.Join(dir, name))
		return nil
	}
	for _, step := range p.Steps {
		name, content := "", ""
		switch {
		case step.Proposal != nil:
			name, content = step.Version+".md", step.Proposal.Body
		case step.Closing != nil:
			name, content = fmt.Sprintf("close-%d.md", step.Issue), step.Closing.Comment+"\n"
		default:
			continue
		}
		if err := write(name, []byte(content)); err != nil {
			return nil, err
		}
		out.Files = append(out.Files, name)
	}
	content, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the plan: %w", err)
	}
	return paths, write(planFile, append(content, '\n'))
}

// removeWritten removes the files that the plan in the folder lists.
func removeWritten(dir string) error {
	content, err := os.ReadFile(filepath.Join(dir, planFile))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the earlier plan: %w", err)
	}
	var earlier written
	if err := json.Unmarshal(content, &earlier); err != nil {
		return fmt.Errorf("%s is not a plan of triage (%w): remove it or name another folder", filepath.Join(dir, planFile), err)
	}
	for _, name := range earlier.Files {
		if name != filepath.Base(name) || !filepath.IsLocal(name) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("remove the earlier proposals: %w", err)
		}
	}
	return nil
}

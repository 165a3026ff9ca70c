package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/report"
)

// onGitHub tells that the output is read by the runner of a GitHub workflow.
func onGitHub() bool { return os.Getenv("GITHUB_ACTIONS") == "true" }

// annotateProblems points a workflow run at places in files.
func annotateProblems(out io.Writer, problems []compat.Problem) {
	if !onGitHub() {
		return
	}
	for _, problem := range problems {
		for _, line := range report.ProblemAnnotations(workspacePath(problem.File), []compat.Problem{problem}) {
			fmt.Fprintln(out, line)
		}
	}
}

// workspacePath is how annotations name a file: from the root of the workspace, where that is known.
func workspacePath(path string) string {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	relative, err := filepath.Rel(os.Getenv("GITHUB_WORKSPACE"), absolute)
	if err != nil || strings.HasPrefix(relative, "..") {
		return path
	}
	return filepath.ToSlash(relative)
}

// holdCommands keeps the runner from taking what a cluster said for workflow commands, until release is called. It must
// be given the stream that this is printed to.
func holdCommands(out io.Writer) (release func()) {
	if !onGitHub() {
		return func() {}
	}
	token := rand.Text()
	fmt.Fprintf(out, "::stop-commands::%s\n", token)
	return func() { fmt.Fprintf(out, "::%s::\n", token) }
}

// appendSummary adds to the page of the workflow run, if there is one.
func appendSummary(content []byte) error {
	path := os.Getenv("GITHUB_STEP_SUMMARY")
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write the job summary: %w", err)
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write the job summary: %w", err)
	}
	return nil
}

package report

import (
	"fmt"
	"strings"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/plan"
)

// summaryLimit bounds a text in a job summary, in characters: all summaries of a step together may be a mebibyte.
const summaryLimit = 600

// summaryFailures bounds how many cells that are not green a job summary tells in full, summaryDisruptions how many
// changes it has numbers of.
const (
	summaryFailures    = 50
	summaryDisruptions = 500
)

// JobSummary is the result of a run in Markdown, for the page of a GitHub workflow run.
func JobSummary(results []*evidence.Cell) []byte {
	w := &writer{}
	w.line("## Upgrade matrix: %s", counts(results))
	w.line("")
	w.table([]string{"Result", "Cell", "Checks", "Time"}, rows(results, func(document *evidence.Cell) []string {
		return []string{documentStatus(document).String(), code(document.ID), checkCount(document), duration(document)}
	}))
	w.line("")
	w.disruptionsOf(results)
	told := 0
	for _, document := range results {
		if document.Verdict.Green() {
			continue
		}
		if told++; told > summaryFailures {
			w.line("More cells are not green; the table has all of them.")
			break
		}
		w.failure(document)
	}
	return w.Bytes()
}

// counts tells how many cells ended in which way, in the order in which the ways appear.
func counts(results []*evidence.Cell) string {
	var words []string
	count := map[string]int{}
	for _, document := range results {
		word := documentStatus(document).word
		if count[word] == 0 {
			words = append(words, word)
		}
		count[word]++
	}
	if words == nil {
		return "no cells"
	}
	for i, word := range words {
		words[i] = fmt.Sprintf("%d %s", count[word], word)
	}
	return strings.Join(words, ", ")
}

func (w *writer) disruptionsOf(results []*evidence.Cell) {
	var lines [][]string
	for _, document := range results {
		for _, d := range document.Disruptions {
			lines = append(lines, append([]string{code(document.ID), code(d.Step)}, disruption(d)...))
		}
	}
	if lines == nil {
		return
	}
	w.table(append([]string{"Cell", "Change"}, disruptionHead...), lines[:min(len(lines), summaryDisruptions)])
	w.line("")
	if len(lines) > summaryDisruptions {
		w.line("The evidence has the numbers of %d more changes.", len(lines)-summaryDisruptions)
		w.line("")
	}
}

func (w *writer) failure(document *evidence.Cell) {
	w.line("### %s %s", documentStatus(document).symbol, document.ID)
	w.line("")
	w.line("Why: %s", text(shorten(document.Reason, summaryLimit)))
	w.line("")
	for _, step := range document.Steps {
		if step.Outcome != evidence.Failed {
			continue
		}
		w.line("- %s: %s", code(step.ID), text(shorten(step.Reason, summaryLimit)))
		if seen := strings.Join(step.Seen, "; "); seen != "" {
			w.line("  - seen: %s", text(shorten(seen, summaryLimit)))
		}
	}
	w.line("- again: %s", code(document.Reproduce))
	w.line("")
}

// Annotations are GitHub workflow commands, one a line, for the results that are not green. Each points at the cell's
// row in the compatibility file, whose path is relative to the root of the checkout.
func Annotations(file string, planned []plan.Cell, results []*evidence.Cell) []string {
	position := map[string]compat.Position{}
	for _, cell := range planned {
		position[cell.ID] = cell.Row.Position
	}
	var lines []string
	for _, document := range results {
		if document.Verdict.Green() {
			continue
		}
		message := fmt.Sprintf("%s\nagain: %s", shorten(document.Reason, summaryLimit), document.Reproduce)
		at := position[document.ID]
		lines = append(lines, annotation(file, at.Line, at.Column, document.ID+" is "+documentStatus(document).word, message))
	}
	return lines
}

// ProblemAnnotations are GitHub workflow commands for mistakes in the compatibility file.
func ProblemAnnotations(file string, problems []compat.Problem) []string {
	var lines []string
	for _, p := range problems {
		message := p.Message
		if p.Advice != "" {
			message += "; " + p.Advice
		}
		lines = append(lines, annotation(file, p.Line, p.Column, "compatibility file", message))
	}
	return lines
}

// annotation is an error command. A line of 0 is left out.
func annotation(file string, line, column int, title, message string) string {
	place := ""
	if line > 0 {
		place = fmt.Sprintf(",line=%d,col=%d", line, column)
	}
	return fmt.Sprintf("::error file=%s%s,title=%s::%s", commandProperty.Replace(file), place, commandProperty.Replace(title), commandData.Replace(message))
}

// What ends a workflow command, or a property of it, is escaped as the runner's own toolkit does.
var (
	commandData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	commandProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

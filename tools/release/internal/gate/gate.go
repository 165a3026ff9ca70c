// Package gate decides whether a commit may be released. It is pure: it is told the facts, and says all that
// stands against a release and what to do about it.
package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/plan"
	"github.com/trussiumhq/trussium-operator/tools/release/internal/notes"
)

// Facts are what a release depends on.
type Facts struct {
	// Version is the version to release: X.Y.Z, or X.Y.Z-PRE.
	Version string
	// Changes are the files that differ from the commit, as git status lists them.
	Changes []string
	// Chart is what the chart says of itself.
	Chart Chart
	// Compatibility is the compatibility file.
	Compatibility *compat.File
	// Changelog is the changelog.
	Changelog []byte
	// OutOfSync are the generated files that are not as they would be generated now.
	OutOfSync []string
	// Planned are the cells of the matrix that a release needs.
	Planned []plan.Cell
	// Evidence is what the checkout has of evidence.
	Evidence []Evidence
}

// Chart is what the chart says of itself.
type Chart struct {
	// File is where it says it.
	File                string
	Version, AppVersion string
}

// Refusal is one thing that stands against a release.
type Refusal struct {
	// What is wrong, and what to Do about it.
	What, Do string
}

// ParseVersion reads the version to release: X.Y.Z, or X.Y.Z-PRE, with or without the v of its tag.
func ParseVersion(text string) (string, error) {
	version, err := semver.StrictNewVersion(strings.TrimPrefix(text, "v"))
	if err != nil || version.Metadata() != "" {
		return "", fmt.Errorf("%q is not a version to release: write it as X.Y.Z, as in 1.0.5", text)
	}
	return version.String(), nil
}

// Refusals are all that stands against the release; none if it may go out.
func Refusals(facts Facts) []Refusal {
	var refusals []Refusal
	refuse := func(do, what string, args ...any) {
		refusals = append(refusals, Refusal{What: fmt.Sprintf(what, args...), Do: do})
	}
	if len(facts.Changes) > 0 {
		refuse("commit them or take them away: a release is a commit", "the checkout differs from its commit: %s", list(facts.Changes))
	}
	for _, field := range []struct{ name, value string }{{"version", facts.Chart.Version}, {"appVersion", facts.Chart.AppVersion}} {
		if field.value != facts.Version {
			refuse(fmt.Sprintf("set %s to %s there, run the matrix, and commit", field.name, facts.Version),
				"%s has the %s %q, not %s", facts.Chart.File, field.name, field.value, facts.Version)
		}
	}
	refusals = append(refusals, compatibility(facts)...)
	if _, found := notes.Section(facts.Changelog, facts.Version); !found {
		refuse(fmt.Sprintf("write what changes for users under \"## [%s] - YYYY-MM-DD\", and commit", facts.Version),
			"CHANGELOG.md has no section for %s", facts.Version)
	}
	if len(facts.OutOfSync) > 0 {
		refuse("run `make generate` and `go run ./tools/matrix report`, and commit", "generated files are out of date: %s", list(facts.OutOfSync))
	}
	return append(refusals, proof(facts)...)
}

// compatibility is what the compatibility file has against the release.
func compatibility(facts Facts) []Refusal {
	var refusals []Refusal
	file := facts.Compatibility
	// The loader and ParseVersion made sure that both are versions.
	version := semver.MustParse(facts.Version)
	for _, release := range file.OperatorReleases {
		at := fmt.Sprintf("%s:%d:%d", file.Path, release.Line, release.Column)
		switch order := version.Compare(semver.MustParse(release.Version)); {
		case order == 0:
			refusals = append(refusals, Refusal{
				What: fmt.Sprintf("%s: %s was released from commit %s", at, release.Version, release.Commit),
				Do:   "choose a later version; to make the files of that release again, check its commit out",
			})
		case order < 0:
			refusals = append(refusals, Refusal{
				What: fmt.Sprintf("%s: %s was released already, which is later than %s", at, release.Version, facts.Version),
				Do:   "choose a later version, or release from a branch that does not have the later one",
			})
		}
	}
	claimed := slices.ContainsFunc(file.Combinations, func(c compat.Combination) bool {
		return c.Status == compat.StatusTested && c.Operator == facts.Version
	})
	if !claimed {
		refusals = append(refusals, Refusal{
			What: fmt.Sprintf("%s claims no combination of operator %s as tested", file.Path, facts.Version),
			Do:   "add what the release is tested with to combinations, and mark those of the version before as historical",
		})
	}
	return refusals
}

// listed is how many names a message holds.
const listed = 5

// list is the beginning of a list of names.
func list(names []string) string {
	var short []string
	for _, name := range names[:min(len(names), listed)] {
		short = append(short, strings.TrimSpace(name))
	}
	text := strings.Join(short, ", ")
	if more := len(names) - listed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

package triage

import (
	"fmt"
	"strings"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
)

// rows are what a validated release adds to the compatibility file.
type rows struct {
	// yaml has the new items under the names of their lists.
	yaml string
	// command tests them.
	command string
	// note says what is left to the maintainer; it is empty or ends in a space.
	note string
}

// validationRows makes the rows that test the release: the newest operator release is upgraded to
// the checkout, and the runtime rolled from the last validated release.
func validationRows(file *compat.File, candidate, baseline string, release compat.RuntimeRelease) rows {
	var out rows
	var text strings.Builder
	section := func(name string, lines []string) {
		fmt.Fprintf(&text, "%s:\n", name)
		for i, line := range lines {
			lead := "    "
			if i == 0 {
				lead = "  - "
			}
			text.WriteString(lead + line + "\n")
		}
	}
	if _, listed := file.RuntimeRelease(release.Version); listed {
		fmt.Fprintf(&text, "# in place of the row of %s\n", release.Version)
	}
	section("runtimeReleases", release.YAML())
	if chart := newestChart(file); chart != "" {
		section("combinations", []string{
			fmt.Sprintf("operator: %q", candidate), "runtime: " + release.Version, fmt.Sprintf("runtimeChart: %q", chart),
			fmt.Sprintf("kubernetes: %q", ">="+file.Kubernetes.Floor), "status: tested",
		})
	}
	row := upgradeRow(file, candidate, release.ImageTag)
	if baseline == "" {
		baseline = "vX.Y.Z"
		out.note = "No release is validated yet: put the one to roll from in place of vX.Y.Z. "
	}
	lines := []string{
		fmt.Sprintf("id: %q", row.ID), fmt.Sprintf("from: %q", row.From),
		"runtime:", "  baseline: " + baseline, "  target: " + release.Version, "rollback: " + string(row.Rollback),
	}
	if row.RollbackReason != "" {
		lines = append(lines, "rollbackReason: "+row.RollbackReason)
	}
	section("upgrades", append(lines, "crds: "+string(row.CRDs)))
	out.yaml = strings.TrimSuffix(text.String(), "\n")
	out.command = "go run ./tools/matrix run --row " + row.ID
	return out
}

// upgradeRow is a row from the newest operator release that is older than the candidate. It
// upgrades as an existing row from there does.
func upgradeRow(file *compat.File, candidate, tag string) compat.Upgrade {
	var from compat.OperatorRelease
	for _, release := range file.OperatorReleases {
		older := compareVersions("v"+release.Version, "v"+candidate) < 0
		if from.Version == "" || older && compareVersions("v"+release.Version, "v"+from.Version) > 0 {
			from = release
		}
	}
	row := compat.Upgrade{ID: from.Version + "-runtime-" + tag, From: from.Version, Rollback: compat.RollbackChart, CRDs: compat.CRDHook}
	if len(from.KnownDefects) > 0 {
		row.Rollback = compat.RollbackRuntimeImage
		row.RollbackReason = "The chart of " + from.Version + " is known to be defective, so nobody should go back to it."
	}
	for _, existing := range file.Upgrades {
		if existing.From == from.Version && existing.CRDs != compat.CRDNone {
			row.CRDs = existing.CRDs
		}
	}
	return row
}

func newestChart(file *compat.File) string {
	newest := ""
	for _, chart := range file.RuntimeCharts {
		if newest == "" || compareVersions("v"+chart.Version, "v"+newest) > 0 {
			newest = chart.Version
		}
	}
	return newest
}

package notes

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/git"
)

// source is where commits and documents are shown.
const source = "https://github.com/trussiumhq/trussium-operator"

// Release is what the notes tell.
type Release struct {
	// Version is the version that is released, and Previous the one before; empty for the first.
	Version, Previous string
	// Changes is the changelog's text.
	Changes string
	// Artifacts are what registries have of the release.
	Artifacts []Artifact
	// Cells is the evidence.
	Cells []*evidence.Cell
	// Commits are those since the release before, the newest first.
	Commits []git.Commit
}

// Artifact is what a registry has.
type Artifact struct {
	// Name is what readers call it.
	Name        string
	Ref, Digest string
}

// Markdown is the notes. The same release gives the same bytes.
func Markdown(release Release) []byte {
	var out bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	line("# Trussium operator %s\n", release.Version)
	line("%s\n", release.Changes)
	line("## Install or upgrade\n")
	line("```sh")
	line("helm upgrade --install trussium-operator oci://ghcr.io/trussiumhq/charts/trussium-operator \\")
	line("  --version %s --namespace trussium-operator-system --create-namespace", release.Version)
	line("# or, without Helm:")
	line("kubectl apply -f %s/releases/download/v%s/install.yaml", source, release.Version)
	line("```\n")
	line("Without a registry at hand, see [air-gapped installs](%s/blob/v%s/docs/air-gapped.md).\n", source, release.Version)
	line("## Artifacts\n")
	line("| | Reference | Digest |")
	line("| --- | --- | --- |")
	for _, artifact := range release.Artifacts {
		line("| %s | `%s` | `%s` |", artifact.Name, artifact.Ref, artifact.Digest)
	}
	line("\nThe images are for linux/amd64 and linux/arm64. A bill of materials (CycloneDX) of each is attached to it and among the files")
	line("of this release; `sha256sum --check SHA256SUMS` checks those.\n")
	line("## Proven upgrades\n")
	for _, cell := range release.Cells {
		if cell.Verdict == evidence.Proven {
			line("- %s → %s on Kubernetes %s (%s)%s", cell.From.Version, cell.To.Version, strings.TrimPrefix(cell.Cluster.Kubernetes, "v"), cell.Cluster.Provider, broken(cell))
		}
	}
	line("\nWhat was checked, and what was seen: UPGRADE-MATRIX.md.\n")
	if release.Previous == "" {
		line("## Commits\n")
	} else {
		line("## Commits since %s\n", release.Previous)
	}
	for _, commit := range release.Commits {
		line("- %s ([`%.7s`](%s/commit/%s))", escape(commit.Subject), commit.Hash, source, commit.Hash)
	}
	return out.Bytes()
}

func broken(cell *evidence.Cell) string {
	if len(cell.From.KnownDefects) == 0 {
		return ""
	}
	return ", from a release known to be broken"
}

// escape keeps what people write into the subject of a commit from being read as Markdown or HTML.
func escape(subject string) string {
	return strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "<", "&lt;").Replace(subject)
}

// Package plan turns the rows of compatibility.yaml into cells: one upgrade on one Kubernetes
// version of one provider. It decides which cells there are, which of them are not run and
// why, and what a result depends on. It is pure: the same input gives the same plan.
package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/contentkey"
)

// ProviderExisting is the provider whose clusters are there already, with whatever version.
const ProviderExisting = "existing"

// SkipCode says in one word why a cell is not run.
type SkipCode string

// The reasons for which a cell is not run.
const (
	// SkipSameVersion is a candidate of the version that the row starts from.
	SkipSameVersion SkipCode = "same-version"
	// SkipOlderCandidate is a candidate older than the release that the row starts from.
	SkipOlderCandidate SkipCode = "older-candidate"
	// SkipKubernetesUnavailable is a Kubernetes version that the provider can't run.
	SkipKubernetesUnavailable SkipCode = "kubernetes-unavailable"
)

// Skip is why a cell is not run. Its zero value is that of a cell that is run.
type Skip struct {
	Code SkipCode
	// Text is a sentence for readers.
	Text string
}

// Cell is one upgrade on one cluster.
type Cell struct {
	// ID names the cell and its files, as in 0.3.1--checkout--k8s-1.34.4--embedded. It stays
	// the same as long as the row, the Kubernetes version and the provider do.
	ID string
	// Row is the row of compatibility.yaml.
	Row compat.Upgrade
	// From is the release that the row starts from.
	From compat.OperatorRelease
	// Through are the releases that are upgraded to on the way.
	Through []compat.OperatorRelease
	// Baseline and Target are the runtime releases that the image is rolled from and to.
	Baseline compat.RuntimeRelease
	Target   compat.RuntimeRelease
	// Candidate is the operator version that the row upgrades to.
	Candidate string
	// Kubernetes is the exact version. It is empty for an existing cluster.
	Kubernetes string
	// Provider is the name of the cluster provider.
	Provider string
	// Skip is why the cell is not run.
	Skip Skip
}

// Sources are the releases that the cell upgrades from: its first, and those on the way.
func (c Cell) Sources() []compat.OperatorRelease {
	return append([]compat.OperatorRelease{c.From}, c.Through...)
}

// Options are what a plan depends on besides the compatibility file.
type Options struct {
	// Provider is the name of the cluster provider.
	Provider string
	// Available are the Kubernetes versions that the provider can run; nil if it can run any.
	Available []string
	// Candidate is the version of the checkout.
	Candidate string
	// Kubernetes are exact versions to plan for instead of those of the file.
	Kubernetes []string
	// Rows and Cells are the ids of the rows and cells to keep; nil keeps all.
	Rows  []string
	Cells []string
}

// Cells is the plan, in the order of the file. An error is a mistake in the options.
func Cells(file *compat.File, options Options) ([]Cell, error) {
	candidate, err := semver.StrictNewVersion(options.Candidate)
	if err != nil {
		return nil, fmt.Errorf("the checkout has the version %q, which is not X.Y.Z: correct the version of its chart", options.Candidate)
	}
	for _, version := range options.Kubernetes {
		if compat.CheckKubernetes(version) != nil {
			return nil, fmt.Errorf("the Kubernetes version %q: write the exact version without v, as in 1.34.4", version)
		}
	}
	if options.Provider == ProviderExisting && len(options.Kubernetes) > 0 {
		return nil, fmt.Errorf("the Kubernetes version %q: an existing cluster has the version that it has", options.Kubernetes[0])
	}
	var cells []Cell
	for _, row := range file.Upgrades {
		for _, version := range rowVersions(file, row, options) {
			cells = append(cells, newCell(file, row, version, candidate, options))
		}
	}
	return filter(cells, options)
}

// rowVersions are the Kubernetes versions of a row, the closest wish first: the options, the
// row, the file.
func rowVersions(file *compat.File, row compat.Upgrade, options Options) []string {
	switch {
	case options.Provider == ProviderExisting:
		return []string{""}
	case len(options.Kubernetes) > 0:
		var versions []string
		for _, version := range options.Kubernetes {
			if !slices.Contains(versions, version) {
				versions = append(versions, version)
			}
		}
		return versions
	case len(row.Kubernetes) > 0:
		return row.Kubernetes
	default:
		return file.Kubernetes.Versions(options.Provider)
	}
}

func newCell(file *compat.File, row compat.Upgrade, kubernetes string, candidate *semver.Version, options Options) Cell {
	// The loader made sure that what a row refers to is listed.
	from, _ := file.OperatorRelease(row.From)
	baseline, _ := file.RuntimeRelease(row.Baseline)
	target, _ := file.RuntimeRelease(row.Target)
	var through []compat.OperatorRelease
	for _, version := range row.Through {
		release, _ := file.OperatorRelease(version)
		through = append(through, release)
	}
	parts := []string{row.ID, "checkout"}
	if kubernetes != "" {
		parts = append(parts, "k8s-"+kubernetes)
	}
	cell := Cell{
		ID:         strings.Join(append(parts, options.Provider), "--"),
		Row:        row,
		From:       from,
		Through:    through,
		Baseline:   baseline,
		Target:     target,
		Candidate:  options.Candidate,
		Kubernetes: kubernetes,
		Provider:   options.Provider,
	}
	sources := cell.Sources()
	cell.Skip = skip(sources[len(sources)-1].Version, kubernetes, candidate, options)
	return cell
}

func skip(from, kubernetes string, candidate *semver.Version, options Options) Skip {
	if source, err := semver.StrictNewVersion(from); err == nil {
		switch order := candidate.Compare(source); {
		case order == 0:
			return Skip{SkipSameVersion, fmt.Sprintf("the checkout has the version %s too: there is nothing to upgrade to", from)}
		case order < 0:
			return Skip{SkipOlderCandidate, fmt.Sprintf("the checkout has the version %s, which is older than %s", candidate, from)}
		}
	}
	if kubernetes != "" && options.Available != nil && !slices.Contains(options.Available, kubernetes) {
		return Skip{SkipKubernetesUnavailable, fmt.Sprintf("the provider %s has no Kubernetes %s, only %s", options.Provider, kubernetes, strings.Join(options.Available, ", "))}
	}
	return Skip{}
}

// filter keeps the wanted cells. A wanted row or cell that there is not is an error.
func filter(cells []Cell, options Options) ([]Cell, error) {
	var rows, ids []string
	for _, cell := range cells {
		if !slices.Contains(rows, cell.Row.ID) {
			rows = append(rows, cell.Row.ID)
		}
		ids = append(ids, cell.ID)
	}
	if err := known("row", options.Rows, rows); err != nil {
		return nil, err
	}
	if err := known("cell", options.Cells, ids); err != nil {
		return nil, err
	}
	kept := slices.DeleteFunc(cells, func(cell Cell) bool {
		return options.Rows != nil && !slices.Contains(options.Rows, cell.Row.ID) ||
			options.Cells != nil && !slices.Contains(options.Cells, cell.ID)
	})
	if len(kept) == 0 {
		return nil, fmt.Errorf("none of the wanted cells belongs to a wanted row: cells %s, rows %s",
			strings.Join(options.Cells, ", "), strings.Join(options.Rows, ", "))
	}
	return kept, nil
}

func known(kind string, wanted, known []string) error {
	for _, name := range wanted {
		if !slices.Contains(known, name) {
			return fmt.Errorf("there is no %s %q: use one of %s", kind, name, strings.Join(known, ", "))
		}
	}
	return nil
}

// Key is the content key of the cell's result. It covers the cell itself and the inputs that
// the caller names: the digests of charts and images, the control plane, the scenarios, the
// checks, the tool. A finished result is valid as long as the key is the same.
func (c Cell) Key(inputs map[string]string) string {
	all := map[string]string{
		"cell.id":             c.ID,
		"cell.candidate":      c.Candidate,
		"cell.baseline":       c.Baseline.ImageTag,
		"cell.target":         c.Target.ImageTag,
		"cell.rollback":       string(c.Row.Rollback),
		"cell.rollbackReason": c.Row.RollbackReason,
		"cell.crds":           string(c.Row.CRDs),
		"cell.values":         string(c.Row.Values),
		"cell.kubernetes":     c.Kubernetes,
		"cell.provider":       c.Provider,
	}
	for i, release := range c.Sources() {
		all["cell.release."+strconv.Itoa(i)] = release.Version
		// Declared defects decide what is expected of the release, and reports quote them.
		for j, defect := range release.KnownDefects {
			prefix := fmt.Sprintf("cell.release.%d.defect.%d.", i, j)
			all[prefix+"id"] = defect.ID
			all[prefix+"summary"] = defect.Summary
			all[prefix+"fixedIn"] = defect.FixedIn
		}
	}
	for name, value := range inputs {
		all["input."+name] = value
	}
	return contentkey.Of(all)
}

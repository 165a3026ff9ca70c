package static

import (
	"context"
	"errors"
	"fmt"

	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/helm"
)

// Edge is an operator upgrade: from which release to which, and how.
type Edge struct {
	// Subject is the operator.
	Subject        check.Subject
	Source, Target Release
	// Name and Namespace are those of the Helm release.
	Name, Namespace string
	// Values is how the upgrade treats the values of the installed release.
	Values helm.Values
	// Kubernetes is the version of the cluster, like 1.37.2; empty for the newest that is known.
	Kubernetes string
	// Local is an image reference as the registry to ask has it.
	Local func(ref string) string
}

// Release is one end of an edge.
type Release struct {
	// Version is the version of the chart.
	Version string
	// Chart is the chart as it was pulled.
	Chart *helm.Chart
	// Tree is the source that the release was made from; nil if that is unknown.
	Tree *Tree
	// TemplateRevision is the declared revision of the runtimes' pod template. Releases of one
	// revision make the same template for the same runtime; those of two do not.
	TemplateRevision int
}

// Judge gathers what a check needs and judges it.
type Judge func(context.Context, Edge) (check.Result, error)

// Checks are the checks of this package in the order in which they are run.
var Checks = []struct {
	check.Check
	Judge Judge
}{
	{ValueModesRender, JudgeValueModes},
	{ImmutableFields, JudgeImmutableFields},
	{RBACCoversCode, JudgeRBAC},
	{CRDCompatible, JudgeCRDs},
	{StoredObjectsValid, JudgeStoredObjects},
	{TemplateGolden, JudgeTemplates},
	{ImagesExist, JudgeImages},
	{ReleaseRecordSize, JudgeReleaseRecord},
}

// upgraded is what Helm makes of an edge without a cluster.
type upgraded struct {
	before, after helm.Rendered
}

// renderUpgrade installs the source with values and upgrades to the target without naming any.
func (e Edge) renderUpgrade(ctx context.Context, mode helm.Values, values map[string]any) (upgraded, error) {
	var u upgraded
	offline, err := helm.NewOffline(e.Namespace, e.Kubernetes)
	if err != nil {
		return u, err
	}
	if u.before, err = offline.Install(ctx, e.Name, e.Source.Chart, values); err != nil {
		return u, fmt.Errorf("chart %s: %w", e.Source.Version, err)
	}
	if u.after, err = offline.Upgrade(ctx, e.Name, e.Target.Chart, mode, nil); err != nil {
		return u, refusedError{fmt.Errorf("chart %s: %w", e.Target.Version, err)}
	}
	return u, nil
}

// renderInstall is a fresh installation of the target.
func (e Edge) renderInstall(ctx context.Context, values map[string]any) (helm.Rendered, error) {
	offline, err := helm.NewOffline(e.Namespace, e.Kubernetes)
	if err != nil {
		return helm.Rendered{}, err
	}
	rendered, err := offline.Install(ctx, e.Name, e.Target.Chart, values)
	if err != nil {
		return rendered, refusedError{fmt.Errorf("chart %s: %w", e.Target.Version, err)}
	}
	return rendered, nil
}

// refusedError is a fault of the target's own files. A source that is at fault can't be looked at.
type refusedError struct{ error }

func (e refusedError) Unwrap() error { return e.error }

// refused tells a fault of the target, which fails the check, from one of the surroundings.
func refused(err error) (check.Result, error) {
	var r check.Result
	var fault refusedError
	if !errors.As(err, &fault) {
		return r, err
	}
	r.Fail("%v", err)
	return r, nil
}

package cell

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/check/static"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/helm"
)

// staticSteps judge the upgrade by its charts and sources, before there is a cluster.
func staticSteps() []step {
	var list []step
	for _, c := range static.Checks {
		list = append(list, step{
			id: c.ID, phase: phaseStatic, check: true, claim: c.Claim,
			run: func(ctx context.Context, r *run) (check.Result, error) {
				edge, err := r.edge()
				if err != nil {
					return check.Result{}, err
				}
				return c.Judge(ctx, edge)
			},
		})
	}
	return list
}

// edge is the cell's upgrade; that of a chain starts from its last release before the candidate.
func (r *run) edge() (static.Edge, error) {
	from := r.spec.From
	if len(r.spec.Through) > 0 {
		from = r.spec.Through[len(r.spec.Through)-1]
	}
	charts, err := helm.New("", r.env.Subject.Namespace(), filepath.Join(r.env.Dir, "helm"), true, appendTo(filepath.Join(r.env.Dir, "helm.log")))
	if err != nil {
		return static.Edge{}, err
	}
	end := func(release evidence.Release) (static.Release, error) {
		chart, err := r.pull(charts, release.Chart)
		return static.Release{Version: release.Version, Chart: chart, Tree: r.env.Trees[release.Version]}, err
	}
	edge := static.Edge{
		Subject: r.env.Subject, Name: r.env.Subject.Name, Namespace: r.env.Subject.Namespace(), Values: helm.Values(r.spec.Upgrade.Values),
		Kubernetes: r.spec.Kubernetes, Local: r.env.Local,
	}
	var sourceErr, targetErr error
	edge.Source, sourceErr = end(from)
	edge.Target, targetErr = end(r.spec.To)
	if err := errors.Join(sourceErr, targetErr); err != nil {
		return edge, fmt.Errorf("fetch the charts of the upgrade: %w", err)
	}
	return edge, nil
}

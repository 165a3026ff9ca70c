package cell

import (
	"context"
	"fmt"

	"github.com/trussiumhq/trussium-operator/matrix/check"
)

// contained makes a step of a check that only a cluster with real containers can answer.
func contained(look func(ctx context.Context, t check.Target, inside string) (check.Result, error)) func(context.Context, *run) (check.Result, error) {
	return func(ctx context.Context, r *run) (check.Result, error) {
		if info := r.cluster.Info(); !info.RealContainers {
			return check.Result{}, fmt.Errorf("%w: the containers of a cluster of the provider %s are not a container runtime's", check.ErrNotApplicable, info.Provider)
		}
		return look(ctx, r.candidate(), r.env.Inside)
	}
}

func drains(ctx context.Context, t check.Target, _ string) (check.Result, error) {
	return check.AwaitDrain(ctx, t)
}

func missingImage(ctx context.Context, t check.Target, _ string) (check.Result, error) {
	return check.AwaitMissingImage(ctx, t)
}

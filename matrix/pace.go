package matrix

import (
	"context"

	"github.com/trussiumhq/trussium-operator/matrix/cluster"
)

// paced starts few clusters at a time. A start takes whole processors, and would make the clients wait that cells whose
// clusters are running judge operators by.
type paced struct {
	cluster.Provider
	slots chan struct{}
}

// pace lets the provider start at most so many clusters at a time.
func pace(provider cluster.Provider, atOnce int) paced {
	return paced{provider, make(chan struct{}, max(atOnce, 1))}
}

// Start waits for its turn.
func (p paced) Start(ctx context.Context, spec cluster.Spec) (cluster.Cluster, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-p.slots }()
	return p.Provider.Start(ctx, spec)
}

package matrix

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/cluster"
)

// slowStart is a provider whose clusters take a second to start.
type slowStart struct {
	mu            sync.Mutex
	running, most int
}

func (s *slowStart) Name() string { return "slow" }

func (s *slowStart) Start(context.Context, cluster.Spec) (cluster.Cluster, error) {
	s.count(1)
	time.Sleep(time.Second)
	s.count(-1)
	return nil, nil
}

func (s *slowStart) count(change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running += change
	s.most = max(s.most, s.running)
}

func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowStart{}
		clusters := pace(slow, 2)
		begin := time.Now()
		var group sync.WaitGroup
		for range 5 {
			group.Go(func() {
				if _, err := clusters.Start(t.Context(), cluster.Spec{}); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if took := time.Since(begin); slow.most != 2 || took != 3*time.Second {
			t.Errorf("5 starts of a second took %s, %d at once: want 3s, 2 at once", took, slow.most)
		}
	})
}

func TestPaceEndsWithTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clusters := pace(&slowStart{}, 1)
		var other sync.WaitGroup
		other.Go(func() { _, _ = clusters.Start(t.Context(), cluster.Spec{}) })
		defer other.Wait()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := clusters.Start(ctx, cluster.Spec{}); !errors.Is(err, context.Canceled) {
			t.Errorf("a start that waits when the run ends gives %v", err)
		}
	})
}

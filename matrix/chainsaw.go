package matrix

import (
	"context"
	"path/filepath"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/gobuild"
	"github.com/trussiumhq/trussium-operator/matrix/scenario"
)

// chainsaw is compiled while cells run: they need it only after two minutes, in which they do
// little but wait.
type chainsaw struct {
	program gobuild.Program
	suite   scenario.Suite
	// bundled is the program of a bundle; nil if it is to be compiled.
	bundled *artifact.Program
	built   chan struct{}
	// path and err are there when built is closed.
	path string
	err  error
}

// newChainsaw runs the scenarios in that folder of the repository.
func newChainsaw(o Options, folder string) *chainsaw {
	program := scenario.Program(o.tools())
	program.Background = true
	return &chainsaw{
		program: program, suite: scenario.Suite{Dir: filepath.Join(o.Repository, filepath.FromSlash(folder))},
		built: make(chan struct{}),
	}
}

// build compiles the program, once.
func (c *chainsaw) build(ctx context.Context, o Options) error {
	defer close(c.built)
	if c.bundled != nil {
		c.path = c.bundled.Path
		return nil
	}
	const task = "chainsaw"
	o.Observer.TaskStarted(task)
	start := time.Now()
	c.path, c.err = c.program.Cached(ctx, o.CacheDir, func(text string) { o.Observer.TaskProgress(task, text) })
	o.Observer.TaskEnded(task, time.Since(start), c.err)
	return c.err
}

// key is the content key of the program.
func (c *chainsaw) key(ctx context.Context) (string, error) {
	if c.bundled != nil {
		return c.bundled.Key, nil
	}
	return c.program.Key(ctx)
}

// runner runs scenarios; it waits until the program is compiled.
func (c *chainsaw) runner(ctx context.Context) (scenario.Runner, error) {
	select {
	case <-c.built:
		return scenario.Runner{Suite: c.suite, Chainsaw: c.path}, c.err
	case <-ctx.Done():
		return scenario.Runner{}, context.Cause(ctx)
	}
}

//go:build !linux

package embedded

import (
	"context"
	"fmt"
	"os"
	"runtime"
)

var errUnsupported = fmt.Errorf("the embedded cluster needs Linux, this is %s: use a Linux machine", runtime.GOOS)

type handle struct{ release func() }

func (*handle) done() <-chan struct{}      { return nil }
func (*handle) stop(context.Context) error { return errUnsupported }

// Preflight tells that there is no embedded cluster here.
func Preflight(context.Context, bool) error { return errUnsupported }

func claim(context.Context, string) (*os.File, error) { return nil, errUnsupported }

func launch(context.Context, string, []string, Options, *os.File) (*handle, status, error) {
	return nil, status{}, errUnsupported
}

func connect(context.Context, string) (*handle, status, error) {
	return nil, status{}, errUnsupported
}

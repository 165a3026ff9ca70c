package matrix

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/kind"
	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/doctor"
)

// Doctor looks at what the machine can run.
func Doctor(ctx context.Context, o Options) ([]doctor.Finding, error) {
	file, err := compat.Load(o.File)
	if err != nil {
		return nil, inputError(err)
	}
	wanted, err := wantedGo(o.tools())
	if err != nil {
		return nil, err
	}
	machine := doctor.Machine{
		Repository: o.Repository, File: file, CacheDir: o.CacheDir, GoVersion: wanted, Embedded: embedded.ProviderName, Kind: kind.ProviderName,
		Preflights: map[string]func(context.Context) error{
			embedded.ProviderName: func(ctx context.Context) error { return embedded.Preflight(ctx, true) },
			kind.ProviderName:     kind.Preflight,
		},
	}
	return machine.Look(ctx), nil
}

// wantedGo is the version of Go that the module in dir asks for.
func wantedGo(dir string) (string, error) {
	content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("find the version of Go that the matrix needs: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		if wanted, found := strings.CutPrefix(line, "go "); found {
			return strings.TrimSpace(wanted), nil
		}
	}
	return "", fmt.Errorf("find the version of Go that the matrix needs: %s has no line \"go\"", filepath.Join(dir, "go.mod"))
}

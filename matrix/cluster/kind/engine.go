package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	kindcluster "sigs.k8s.io/kind/pkg/cluster"

	"github.com/trussiumhq/trussium-operator/matrix/subprocess"
)

// engine is a container engine, by the name of its command.
type engine string

// The engines, in the order in which they are looked for.
const (
	docker engine = "docker"
	podman engine = "podman"
)

// engineVariable is Kind's own variable for the choice of an engine.
const engineVariable = "KIND_EXPERIMENTAL_PROVIDER"

// ErrNoEngine says that no container engine answers.
var ErrNoEngine = errors.New("no container engine answers")

// findEngine is the engine that Kind's variable names, or the first that answers.
func findEngine(ctx context.Context) (engine, error) {
	candidates := []engine{docker, podman}
	switch chosen := os.Getenv(engineVariable); chosen {
	case "":
	case string(docker), string(podman):
		candidates = []engine{engine(chosen)}
	default:
		return "", fmt.Errorf("%s=%s: only docker and podman are supported here", engineVariable, chosen)
	}
	var failures []error
	for _, candidate := range candidates {
		if _, err := candidate.ask(ctx, "version", "--format", "{{.Server.Version}}"); err != nil {
			failures = append(failures, err)
			continue
		}
		return candidate, nil
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return "", fmt.Errorf("%w: install one (apt-get install docker.io, or https://docs.docker.com/engine/install) and start it, as this user may use it; "+
		"`go run ./tools/engine COMMAND` starts one for a command: %w", ErrNoEngine, errors.Join(failures...))
}

// option is the engine for Kind's library.
func (e engine) option() kindcluster.ProviderOption {
	if e == podman {
		return kindcluster.ProviderWithPodman()
	}
	return kindcluster.ProviderWithDocker()
}

// networkVariable is Kind's variable for the network of the nodes.
func (e engine) networkVariable() string {
	if e == podman {
		return "KIND_EXPERIMENTAL_PODMAN_NETWORK"
	}
	return "KIND_EXPERIMENTAL_DOCKER_NETWORK"
}

// ask returns what the engine answers to a command that is quick.
func (e engine) ask(ctx context.Context, args ...string) (string, error) {
	return e.run(ctx, engineTimeout, args...)
}

// run returns what a command of the engine prints; the error holds what it complained about.
func (e engine) run(ctx context.Context, timeout time.Duration, args ...string) (string, error) {
	runCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(runCtx, string(e), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := subprocess.Output(cmd)
	text := strings.TrimSpace(string(out))
	switch {
	case err == nil:
		return text, nil
	case ctx.Err() != nil:
		return text, ctx.Err()
	case runCtx.Err() != nil:
		return text, fmt.Errorf("%s %s: no answer in %s", e, args[0], timeout)
	}
	if complaint := strings.TrimSpace(stderr.String()); complaint != "" {
		err = fmt.Errorf("%w: %s", err, complaint)
	}
	return text, fmt.Errorf("%s %s: %w", e, args[0], err)
}

// has tells whether the engine has the image.
func (e engine) has(ctx context.Context, image string) bool {
	_, err := e.ask(ctx, "image", "inspect", "--format", "{{.Id}}", image)
	return err == nil
}

// Engine is the name of the container engine that answers; the error is ErrNoEngine if none does.
func Engine(ctx context.Context) (string, error) {
	e, err := findEngine(ctx)
	return string(e), err
}

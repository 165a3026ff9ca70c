package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trussiumhq/trussium-operator/matrix/gobuild"
)

// DefaultKubernetes is the version of a cluster that asks for none. It is the one whose
// libraries the operator and this program are built with, so that a first build compiles
// half of its packages for all three.
const DefaultKubernetes = "1.37.2"

// releases are the folders of tools/controlplane that hold the go.mod and the files in which a
// Kubernetes version differs from the default one.
var releases = map[string]string{
	"1.34.4":          "releases/1.34",
	DefaultKubernetes: "",
}

// ErrVersion marks a Kubernetes version that no embedded cluster can have.
var ErrVersion = errors.New("there is no embedded cluster of Kubernetes")

// KubernetesVersions are the versions that an embedded cluster can have.
func KubernetesVersions() []string {
	return slices.Sorted(maps.Keys(releases))
}

// program describes the build of the embedded cluster's binary.
func program(repository, kubernetes string) (gobuild.Program, error) {
	release, ok := releases[kubernetes]
	if !ok {
		return gobuild.Program{}, fmt.Errorf("%w %s: choose one of %s", ErrVersion, kubernetes, strings.Join(KubernetesVersions(), ", "))
	}
	program := gobuild.Program{
		Name:    "controlplane-" + kubernetes,
		Dir:     filepath.Join(repository, "tools", "controlplane"),
		LDFlags: versionFlags(kubernetes),
		Inputs:  []string{"main.go", "internal", "go.mod", "go.sum"},
	}
	if release != "" {
		program.ModFile = release + "/go.mod"
		program.Overlay = release + "/overlay.json"
		program.Inputs = []string{"main.go", "internal", release}
	}
	return program, nil
}

// versionFlags make every component say the version it was built from; without them it
// would be that of an unreleased build.
func versionFlags(kubernetes string) string {
	major, rest, _ := strings.Cut(kubernetes, ".")
	minor, _, _ := strings.Cut(rest, ".")
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for name, value := range map[string]string{"gitVersion": "v" + kubernetes, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"} {
			flags = append(flags, "-X "+pkg+"."+name+"="+value)
		}
	}
	slices.Sort(flags) // a map has no order, and the flags are part of the cache key
	return strings.Join(flags, " ")
}

// Build returns the path of the binary for a Kubernetes version and its content key. The
// first build of a version compiles Kubernetes, which takes minutes; its result, and the
// progress of one that was cancelled, are cached.
func Build(ctx context.Context, repository, cacheDir, kubernetes string, progress func(string)) (path, key string, err error) {
	p, err := program(repository, kubernetes)
	if err != nil {
		return "", "", err
	}
	if key, err = p.Key(ctx); err != nil {
		return "", "", fmt.Errorf("build the embedded cluster: %w", err)
	}
	if path, err = p.Cached(ctx, cacheDir, progress); err != nil {
		return "", "", fmt.Errorf("build the embedded cluster: %w", err)
	}
	return path, key, nil
}

package kind

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trussiumhq/trussium-operator/matrix/nodeimage"
)

// DefaultKubernetes is the version of a cluster that asks for none.
const DefaultKubernetes = "1.34.4"

// published are the digests of the node images that the release of Kind in go.mod was published
// with (https://github.com/kubernetes-sigs/kind/releases). Kind supports no others.
var published = map[string]string{
	"1.34.11": "sha256:44e222ee2132dab25ff87301682f89eb82c7880ea3a1bf543bfe9708fd08d67d",
	"1.35.8":  "sha256:07b2536e30b803ed61d1677a79df6115f798ce64c80f9e22f6ed45afd09323c0",
	"1.36.4":  "sha256:099e049362a1526b2db71494e1947aae99bd16290d7c895f2b7ea312e3cbfaed",
	"1.37.0":  "sha256:a1ed56cfb0e7b93589bdf97c8cd566405a265939e3620fc4f5de89adff580ae5",
}

// ErrVersion marks a Kubernetes version that there is no node image for.
var ErrVersion = errors.New("there is no node image of Kubernetes")

// KubernetesVersions are the versions that a cluster can have: those with a published node image,
// and those whose node image is built.
func KubernetesVersions() []string {
	return slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(published)), nodeimage.Versions()...)))
}

// nodeImage is the image of a node.
type nodeImage struct {
	// ref is what the engine knows it by, control identifies it by content.
	ref, control string
	// limits are what results from such a node do not prove.
	limits []string
}

// Source says where the node image of a version comes from and how it is had.
type Source struct {
	// Repository is the root of the checkout, CacheDir the matrix's folder in the user's cache.
	Repository, CacheDir string
	// Kubernetes is the exact version.
	Kubernetes string
	// Progress receives lines of text while that takes long. May be nil.
	Progress func(string)
}

func (s Source) progress(text string) {
	if s.Progress != nil {
		s.Progress(text)
	}
}

// Prepare makes sure that clusters of the version can be started: the engine answers, the machine
// has what a node needs, and the engine has the node image, which takes minutes the first time. It
// returns what identifies the image by content.
func Prepare(ctx context.Context, s Source) (control string, err error) {
	e, err := readyEngine(ctx)
	if err != nil {
		return "", err
	}
	image, err := s.ensure(ctx, e)
	return image.control, err
}

// ensure makes sure that the engine has the image.
func (s Source) ensure(ctx context.Context, e engine) (nodeImage, error) {
	if digest, ok := published[s.Kubernetes]; ok {
		image := nodeImage{ref: "kindest/node:v" + s.Kubernetes + "@" + digest, control: digest}
		if e.has(ctx, image.ref) {
			return image, nil
		}
		s.progress("pulling " + image.ref)
		if _, err := e.run(ctx, pullTimeout, "pull", "--quiet", image.ref); err != nil {
			return nodeImage{}, fmt.Errorf("pull the node image: %w: without a registry, choose a version that is built: %s", err, strings.Join(nodeimage.Versions(), ", "))
		}
		return image, nil
	}
	if !slices.Contains(nodeimage.Versions(), s.Kubernetes) {
		return nodeImage{}, fmt.Errorf("%w %s: choose one of %s", ErrVersion, s.Kubernetes, strings.Join(KubernetesVersions(), ", "))
	}
	built, err := nodeimage.Build(ctx, nodeimage.Options{Repository: s.Repository, CacheDir: s.CacheDir, Kubernetes: s.Kubernetes, Progress: s.Progress})
	if err != nil {
		return nodeImage{}, err
	}
	image := nodeImage{ref: built.Ref, control: built.Key, limits: []string{"NetworkPolicies are stored, not enforced."}}
	if e.has(ctx, image.ref) {
		return image, nil
	}
	s.progress("loading the node image into " + string(e))
	if _, err := e.run(ctx, loadTimeout, "load", "--quiet", "--input", built.Archive); err != nil {
		return nodeImage{}, fmt.Errorf("load the node image: %w", err)
	}
	return image, nil
}

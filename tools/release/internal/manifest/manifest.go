// Package manifest renders the operator's chart for people who install without Helm.
package manifest

import (
	"bytes"
	"fmt"
	"strings"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
)

// Names that the documents about installing and upgrading use.
const (
	ReleaseName = "trussium-operator"
	Namespace   = "trussium-operator-system"
)

// Install is install.yaml: the namespace, the CustomResourceDefinitions and all objects of the packaged chart, in an
// order in which they can be applied to the Kubernetes version (X.Y.Z) and later ones. Images are pinned to the
// digest. Hooks are left out: applying the file upgrades the CustomResourceDefinitions itself.
func Install(archive []byte, digest, kubernetes string) ([]byte, error) {
	chart, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("render the chart: %w", err)
	}
	version, err := chartutil.ParseKubeVersion(kubernetes)
	if err != nil {
		return nil, fmt.Errorf("render the chart for Kubernetes %q: %w", kubernetes, err)
	}
	install := action.NewInstall(&action.Configuration{})
	install.ReleaseName = ReleaseName
	install.Namespace = Namespace
	install.DryRun = true
	install.ClientOnly = true
	install.KubeVersion = version
	rendered, err := install.Run(chart, pinned(chart, digest))
	if err != nil {
		return nil, fmt.Errorf("render the chart %s %s: %w", chart.Name(), chart.Metadata.Version, err)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "# The Trussium operator %s, rendered from its chart. Apply it with kubectl apply --server-side.\n", chart.AppVersion())
	fmt.Fprintf(&out, "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: %s\n", Namespace)
	for _, crd := range chart.CRDObjects() {
		fmt.Fprintf(&out, "---\n%s\n", strings.TrimPrefix(strings.TrimSpace(string(crd.File.Data)), "---\n"))
	}
	out.WriteString(strings.TrimLeft(rendered.Manifest, "\n"))
	return out.Bytes(), nil
}

// pinned are the values with which the chart names its image by digest.
func pinned(chart *chart.Chart, digest string) map[string]any {
	image, _ := chart.Values["image"].(map[string]any)
	if _, known := image["digest"]; known {
		return map[string]any{"image": map[string]any{"digest": digest}}
	}
	// A reference may have both; the digest is what counts.
	return map[string]any{"image": map[string]any{"tag": chart.AppVersion() + "@" + digest}}
}

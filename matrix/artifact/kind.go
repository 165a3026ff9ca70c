package artifact

import "helm.sh/helm/v3/pkg/registry"

// IsChart tells a chart from an image. What can't be read is taken for an image, and fails where it
// is used.
func (a Artifact) IsChart() bool {
	image, err := a.entry.image()
	if err != nil {
		return false
	}
	manifest, err := image.Manifest()
	return err == nil && string(manifest.Config.MediaType) == registry.ConfigMediaType
}

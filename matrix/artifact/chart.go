package artifact

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/registry"

	"github.com/trussiumhq/trussium-operator/matrix/contentkey"
)

// chartPackage is a packaged Helm chart.
type chartPackage struct {
	metadata *chart.Metadata
	archive  []byte
}

// CheckoutVersion is the version of the chart in a checkout of this repository: that of the candidate.
func CheckoutVersion(repository string) (string, error) {
	metadata, err := CheckoutMetadata(repository)
	if err != nil {
		return "", err
	}
	return metadata.Version, nil
}

// CheckoutMetadata is what the chart in a checkout of this repository says of itself. It has a version.
func CheckoutMetadata(repository string) (*chart.Metadata, error) {
	return Metadata(repository, ChartPath)
}

// Metadata is what the chart in the folder of a checkout says of itself. It has a name and a version.
func Metadata(repository, folder string) (*chart.Metadata, error) {
	file := filepath.Join(repository, folder, chartutil.ChartfileName)
	metadata, err := chartutil.LoadChartfile(file)
	if err != nil {
		return nil, badInput(fmt.Errorf("read the version of the checkout from %s: %w", file, err))
	}
	if metadata.Version == "" {
		return nil, badInput(fmt.Errorf("read the version of the checkout from %s: it has no version", file))
	}
	if metadata.Name == "" {
		return nil, badInput(fmt.Errorf("read the name of the operator from %s: it has no name", file))
	}
	return metadata, nil
}

// CRDs are the files in the crds folder of the chart in the folder of a checkout.
func CRDs(repository, folder string) ([][]byte, error) {
	loaded, err := loader.Load(filepath.Join(repository, folder))
	if err != nil {
		return nil, badInput(fmt.Errorf("load the chart of the checkout: %w", err))
	}
	var files [][]byte
	for _, crd := range loaded.CRDObjects() {
		files = append(files, crd.File.Data)
	}
	return files, nil
}

// imageTag is the tag of the operator image that the chart names by default.
func imageTag(metadata *chart.Metadata) string {
	if metadata.AppVersion != "" {
		return metadata.AppVersion
	}
	return metadata.Version
}

// packageChart packages the chart in dir. The same files give the same bytes.
func packageChart(dir string) (chartPackage, error) {
	temp, err := os.MkdirTemp("", "chart-")
	if err != nil {
		return chartPackage{}, infrastructure(fmt.Errorf("package the chart %s: %w", dir, err))
	}
	defer os.RemoveAll(temp)
	packager := action.NewPackage()
	packager.Destination = temp
	file, err := packager.Run(dir, nil)
	if err != nil {
		return chartPackage{}, badInput(fmt.Errorf("package the chart %s: %w", dir, err))
	}
	packed, err := os.ReadFile(file)
	if err != nil {
		return chartPackage{}, infrastructure(fmt.Errorf("package the chart %s: %w", dir, err))
	}
	archive, err := withoutTimes(packed)
	if err != nil {
		return chartPackage{}, fmt.Errorf("package the chart %s: %w", dir, err)
	}
	loaded, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return chartPackage{}, badInput(fmt.Errorf("package the chart %s: %w", dir, err))
	}
	return chartPackage{metadata: loaded.Metadata, archive: archive}, nil
}

// withoutTimes rewrites a chart archive: Helm gives each file the time of packaging.
func withoutTimes(archive []byte) ([]byte, error) {
	compressed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	reader := tar.NewReader(compressed)
	var out bytes.Buffer
	zipper := gzip.NewWriter(&out)
	writer := tar.NewWriter(zipper)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		header = &tar.Header{Typeflag: tar.TypeReg, Name: header.Name, Mode: 0o644, Size: header.Size, ModTime: epoch}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := io.Copy(writer, reader); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(writer.Close(), zipper.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// key is the content key of the packaged chart.
func (p chartPackage) key() string {
	digest := sha256.Sum256(p.archive)
	return contentkey.Of(map[string]string{"recipe": recipe, "chart": hex.EncodeToString(digest[:])})
}

// putChart keeps a packaged chart.
func (s store) putChart(key string, packaged chartPackage) (entry, error) {
	return s.put(key, func(path layout.Path) error {
		image, err := packaged.image()
		if err == nil {
			err = path.AppendImage(image)
		}
		if err != nil {
			return infrastructure(fmt.Errorf("keep the chart %s %s in the cache: %w", packaged.metadata.Name, packaged.metadata.Version, err))
		}
		return nil
	})
}

// image is the chart as an OCI artifact with the media types that Helm expects, the same that
// `helm push` makes but without a time.
func (p chartPackage) image() (v1.Image, error) {
	config, err := json.Marshal(p.metadata)
	if err != nil {
		return nil, err
	}
	configLayer := static.NewLayer(config, registry.ConfigMediaType)
	configDescriptor, err := partial.Descriptor(configLayer)
	if err != nil {
		return nil, err
	}
	archiveLayer := static.NewLayer(p.archive, registry.ChartLayerMediaType)
	archiveDescriptor, err := partial.Descriptor(archiveLayer)
	if err != nil {
		return nil, err
	}
	annotations := map[string]string{
		"org.opencontainers.image.title":   p.metadata.Name,
		"org.opencontainers.image.version": p.metadata.Version,
	}
	if p.metadata.Description != "" {
		annotations["org.opencontainers.image.description"] = p.metadata.Description
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		Config:        *configDescriptor,
		Layers:        []v1.Descriptor{*archiveDescriptor},
		Annotations:   annotations,
	})
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(chartImage{manifest: manifest, config: config, archive: archiveLayer})
}

// chartImage is the part of an image that a chart has: its config describes a chart and not
// how to run a container.
type chartImage struct {
	manifest []byte
	config   []byte
	archive  v1.Layer
}

func (c chartImage) RawConfigFile() ([]byte, error)      { return c.config, nil }
func (c chartImage) RawManifest() ([]byte, error)        { return c.manifest, nil }
func (c chartImage) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
func (c chartImage) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	if own, err := c.archive.Digest(); err != nil || own != digest {
		return nil, fmt.Errorf("the chart has no layer %s", digest)
	}
	return c.archive, nil
}

// chartMetadata reads the metadata of a chart from its config.
func chartMetadata(image v1.Image) (*chart.Metadata, error) {
	config, err := image.RawConfigFile()
	if err != nil {
		return nil, err
	}
	metadata := &chart.Metadata{}
	if err := json.Unmarshal(config, metadata); err != nil {
		return nil, fmt.Errorf("its config is not that of a Helm chart: %w", err)
	}
	return metadata, nil
}

package nodeimage

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/trussiumhq/trussium-operator/matrix/subprocess"
)

// epoch is the time of everything that has no time of its own.
var epoch = time.Unix(0, 0).UTC()

// systemPath is the PATH of an image.
const systemPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// component is an image of the control plane: one layer.
type component struct {
	refs       []string
	entrypoint []string
	// files are paths on this machine by their path in the image, links are symbolic links.
	files map[string]string
	links map[string]string
}

// kindSandbox is the image that the containerd configuration of Kind's files names for sandboxes.
const kindSandbox = "registry.k8s.io/pause:3.10"

// packComponents writes the images of the control plane into one archive beside the root.
func (n node) packComponents(ctx context.Context) error {
	wanted, err := n.wantedImages(ctx)
	if err != nil {
		return err
	}
	components, err := n.components(wanted)
	if err != nil {
		return err
	}
	images := map[name.Reference]v1.Image{}
	for _, c := range components {
		image, err := c.image()
		if err != nil {
			return fmt.Errorf("image %s: %w", c.refs[0], err)
		}
		for _, ref := range c.refs {
			parsed, err := name.NewTag(ref, name.StrictValidation)
			if err != nil {
				return err
			}
			images[parsed] = image
		}
	}
	return tarball.MultiRefWriteToFile(n.componentArchive(), images)
}

func (n node) componentArchive() string { return filepath.Join(n.root, "images.tar") }

// wantedImages are the references that kubeadm deploys, by the name of the image.
func (n node) wantedImages(ctx context.Context) (map[string]string, error) {
	out, err := subprocess.Output(exec.CommandContext(ctx, n.binaries["kubeadm"], "config", "images", "list", "--kubernetes-version", "v"+n.version))
	if err != nil {
		return nil, fmt.Errorf("ask kubeadm for the images that it deploys: %w", err)
	}
	wanted := map[string]string{}
	for _, ref := range strings.Fields(string(out)) {
		repository, _, _ := strings.Cut(ref, ":")
		wanted[path.Base(repository)] = ref
	}
	return wanted, nil
}

// components are the images for what kubeadm wants. Something else than what is known here is an
// error: without it the node would try to pull it.
func (n node) components(wanted map[string]string) ([]component, error) {
	var list []component
	for _, image := range slices.Sorted(maps.Keys(wanted)) {
		c := component{refs: []string{wanted[image]}, links: map[string]string{}}
		switch image {
		case "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd":
			c.files = map[string]string{"usr/local/bin/" + image: n.binaries[image]}
		case "kube-proxy":
			c.files = map[string]string{"usr/local/bin/" + image: n.binaries[image]}
			if err := n.addProxyTools(&c); err != nil {
				return nil, fmt.Errorf("tools of kube-proxy: %w", err)
			}
		case "coredns":
			c.files, c.entrypoint = map[string]string{"coredns": n.binaries[image]}, []string{"/coredns"}
		case "pause":
			c.files, c.entrypoint = map[string]string{"pause": n.binaries[image]}, []string{"/pause"}
			if c.refs[0] != kindSandbox {
				c.refs = append(c.refs, kindSandbox)
			}
		default:
			return nil, fmt.Errorf("kubeadm wants the image %s, which is not known here: add it to package nodeimage", wanted[image])
		}
		list = append(list, c)
	}
	return list, nil
}

// image makes the image. It is the same whenever its files are.
func (c component) image() (v1.Image, error) {
	var content bytes.Buffer
	if err := c.writeLayer(&content); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil },
		tarball.WithCompressedCaching, tarball.WithCompressionLevel(1))
	if err != nil {
		return nil, err
	}
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		OS: "linux", Architecture: "amd64", Created: v1.Time{Time: epoch},
		Config: v1.Config{Entrypoint: c.entrypoint, Env: []string{systemPath}},
		RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	return mutate.AppendLayers(image, layer)
}

func (c component) writeLayer(out io.Writer) error {
	w := tar.NewWriter(out)
	folders := map[string]bool{".": true}
	var folder func(name string) error
	folder = func(name string) error {
		if folders[name] {
			return nil
		}
		folders[name] = true
		if err := folder(path.Dir(name)); err != nil {
			return err
		}
		return w.WriteHeader(&tar.Header{Name: name + "/", Mode: 0o755, Typeflag: tar.TypeDir, ModTime: epoch})
	}
	// Programs expect a folder for temporary files also on an otherwise empty root.
	if err := w.WriteHeader(&tar.Header{Name: "tmp/", Mode: 0o1777, Typeflag: tar.TypeDir, ModTime: epoch}); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(c.links)) {
		header := &tar.Header{Name: name, Linkname: c.links[name], Typeflag: tar.TypeSymlink, Mode: 0o777, ModTime: epoch}
		if err := errors.Join(folder(path.Dir(name)), w.WriteHeader(header)); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		content, err := os.ReadFile(c.files[name])
		if err != nil {
			return err
		}
		header := &tar.Header{Name: name, Mode: 0o755, Size: int64(len(content)), ModTime: epoch}
		if err := errors.Join(folder(path.Dir(name)), w.WriteHeader(header)); err != nil {
			return err
		}
		if _, err := w.Write(content); err != nil {
			return err
		}
	}
	return w.Close()
}

// importComponents puts the archive into the content store of the node's containerd, which runs for
// that in a root, a mount and a process namespace of its own: it ends with the script.
func (n node) importComponents(ctx context.Context) error {
	script, err := files.ReadFile("files/import.sh")
	if err != nil {
		return err
	}
	defer os.Remove(n.componentArchive())
	return command(ctx, "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc="+filepath.Join(n.root, "proc"),
		"chroot", n.root, "bash", "-c", string(script))
}

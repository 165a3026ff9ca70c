package nodeimage

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/trussiumhq/trussium-operator/matrix/subprocess"
)

// transient are the folders whose content the engine or the node makes at start.
var transient = []string{"proc", "sys", "dev", "run", "tmp"}

// pack writes the root as an image of one layer into an archive, which is whole or not there.
func (n node) pack(ctx context.Context, ref, archive string) error {
	file := filepath.Join(filepath.Dir(n.root), "layer.tar.gz")
	if err := n.writeLayer(ctx, file); err != nil {
		return err
	}
	layer, err := tarball.LayerFromFile(file)
	if err != nil {
		return err
	}
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		OS: "linux", Architecture: "amd64", Created: v1.Time{Time: epoch},
		// As in the Dockerfile of Kind's base image.
		Config: v1.Config{
			Entrypoint: []string{"/usr/local/bin/entrypoint", "/sbin/init"},
			Env:        []string{systemPath, "container=docker"},
			StopSignal: "SIGRTMIN+3",
		},
		RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return err
	}
	if image, err = mutate.AppendLayers(image, layer); err != nil {
		return err
	}
	tag, err := name.NewTag(ref)
	if err != nil {
		return err
	}
	temp := file + ".image"
	if err := tarball.WriteToFile(temp, tag, image); err != nil {
		return err
	}
	return os.Rename(temp, archive)
}

// writeLayer packs the root with names in order and without times, and compresses it.
func (n node) writeLayer(ctx context.Context, file string) (err error) {
	args := []string{"-C", n.root, "--sort=name", "--mtime=@0", "--numeric-owner", "--xattrs", "--format=posix",
		"--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime"}
	for _, folder := range transient {
		args = append(args, "--exclude=./"+folder+"/*")
	}
	cmd := exec.CommandContext(ctx, "tar", append(args, "-cf", "-", ".")...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := subprocess.Start(cmd); err != nil {
		return err
	}
	zip, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return err
	}
	_, copyErr := io.Copy(zip, stdout)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("tar: %w\n%s", err, lastLines(stderr.String()))
	}
	return errors.Join(copyErr, zip.Close())
}

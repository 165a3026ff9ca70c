package oci

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// Annotations of an entry in the index of a layout with the reference that it has elsewhere. By the second one
// containerd names the image that it imports.
const (
	refAnnotation       = "org.opencontainers.image.ref.name"
	imageNameAnnotation = "io.containerd.image.name"
)

// WriteArchive writes an OCI image layout with an image into a tar archive. The same image gives the same bytes. What
// is attached to the image does not belong there: containerd takes all that it finds for images, and fails.
func WriteArchive(file string, image Artifact) error {
	dir, err := os.MkdirTemp(filepath.Dir(file), ".layout-")
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	defer os.RemoveAll(dir)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := appendImage(path, image); err != nil {
		return fmt.Errorf("write %s to %s: %w", image.Ref, file, err)
	}
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := errors.Join(archive(out, dir), out.Close()); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}

func appendImage(path layout.Path, image Artifact) error {
	index, ok := image.Content.(v1.ImageIndex)
	if !ok {
		return errors.New("it is not an index of images")
	}
	return path.AppendIndex(index, layout.WithAnnotations(map[string]string{refAnnotation: image.Ref, imageNameAnnotation: image.Ref}))
}

// archive writes the files below dir, in the order of their names, without times and owners.
func archive(out io.Writer, dir string) error {
	writer := tar.NewWriter(out)
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || file == dir {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: filepath.ToSlash(name), ModTime: time.Unix(0, 0), Mode: 0o644, Typeflag: tar.TypeReg}
		if entry.IsDir() {
			header.Name, header.Mode, header.Typeflag = header.Name+"/", 0o755, tar.TypeDir
			return writer.WriteHeader(header)
		}
		return archiveFile(writer, header, file)
	})
	return errors.Join(err, writer.Close())
}

func archiveFile(writer *tar.Writer, header *tar.Header, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	header.Size = info.Size()
	if err := writer.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(writer, f)
	return err
}

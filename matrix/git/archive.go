package git

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Extract writes the tree of a commit into dir, which must exist. It does not touch the
// checkout.
func (r Repository) Extract(ctx context.Context, commit, dir string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reader, writer := io.Pipe()
	result := make(chan error, 1)
	go func() {
		err := r.run(ctx, "read the tree of commit "+commit, writer, "archive", "--format=tar", commit)
		writer.CloseWithError(err)
		result <- err
	}()
	err := unpack(reader, dir)
	// Ends git if unpacking stopped early.
	reader.CloseWithError(errors.New("unpacking stopped"))
	if err != nil {
		cancel()
	}
	if archiveErr := <-result; archiveErr != nil && err == nil {
		err = archiveErr
	}
	if err != nil {
		return fmt.Errorf("extract commit %s: %w", commit, err)
	}
	return nil
}

// unpack writes the files of a tar stream. Names that lead out of dir are refused, also by
// way of links.
func unpack(stream io.Reader, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	archive := tar.NewReader(stream)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			// The end of the archive is padded; git must be able to write it out.
			_, err := io.Copy(io.Discard, stream)
			return err
		}
		if err != nil {
			return err
		}
		if err := unpackEntry(root, header, archive); err != nil {
			return err
		}
	}
}

func unpackEntry(root *os.Root, header *tar.Header, content io.Reader) error {
	name := filepath.Clean(filepath.FromSlash(header.Name))
	switch header.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeReg:
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, header.FileInfo().Mode().Perm())
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		return errors.Join(err, f.Close())
	case tar.TypeSymlink:
		return root.Symlink(header.Linkname, name)
	default:
		// The commit hash in a global header, which git writes first.
		return nil
	}
}

package artifact

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/trussiumhq/trussium-operator/matrix/archive"
)

// pack writes what is below dir into a tar archive, and returns its digest in the form sha256:<hex>.
func pack(file, dir string) (digest string, err error) {
	out, err := os.Create(file)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	if err := errors.Join(archive.Write(io.MultiWriter(out, hash), dir), out.Close()); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil)), nil
}

// unpack writes the files of a tar archive below dir. One that is cut off, or names a place outside of dir, is bad input.
func unpack(ctx context.Context, file, dir string) error {
	in, err := os.Open(file)
	if err != nil {
		return badInput(fmt.Errorf("open the bundle: %w", err))
	}
	defer in.Close()
	reader := tar.NewReader(in)
	for ctx.Err() == nil {
		header, err := reader.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return damaged(file, cutOff(err))
		case header.Typeflag == tar.TypeDir:
			continue
		case header.Typeflag != tar.TypeReg || !filepath.IsLocal(header.Name):
			return damaged(file, fmt.Errorf("it holds %q, which is no file of a bundle", header.Name))
		}
		path := filepath.Join(dir, filepath.FromSlash(header.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return infrastructure(fmt.Errorf("unpack the bundle %s: %w", file, err))
		}
		out, err := os.Create(path)
		if err != nil {
			return infrastructure(fmt.Errorf("unpack the bundle %s: %w", file, err))
		}
		_, readErr := io.Copy(out, reader)
		var disk *fs.PathError // the reader of the archive gives none
		closeErr := out.Close()
		switch {
		case errors.As(readErr, &disk) || closeErr != nil:
			return infrastructure(fmt.Errorf("unpack the bundle %s: %w", file, errors.Join(readErr, closeErr)))
		case readErr != nil:
			return damaged(file, cutOff(readErr))
		}
	}
	return ctx.Err()
}

// cutOff says in words what the end of an archive too early means.
func cutOff(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("it is cut off: %w", err)
	}
	return err
}

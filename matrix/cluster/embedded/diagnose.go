package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/trussiumhq/trussium-operator/matrix/cluster/objects"
)

// Diagnose copies the logs of the components and of all containers into dir, and writes
// the cluster's workloads and events as YAML, one file for each kind. It writes what it can
// and joins the errors.
func (c *Cluster) Diagnose(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("diagnose the embedded cluster: %w", err)
	}
	var errs []error
	for _, logs := range []string{"logs", "pod-logs"} {
		if err := copyFiles(filepath.Join(c.dir, logs), filepath.Join(dir, logs)); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, objects.Write(ctx, c.config, dir))...)
}

// copyFiles copies a folder's files; it may be missing, and what is no regular file is
// left out.
func copyFiles(from, to string) error {
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		return copyFile(path, target)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

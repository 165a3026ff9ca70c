// Package archive writes folders into tar archives.
package archive

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Write writes what is below dir as a tar archive, in the order of the names, without times, modes and owners: the same
// content gives the same bytes.
func Write(out io.Writer, dir string) error {
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
		return WriteFile(writer, header, file)
	})
	return errors.Join(err, writer.Close())
}

// WriteFile writes the content of a file under the header, which gets its size.
func WriteFile(writer *tar.Writer, header *tar.Header, file string) error {
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

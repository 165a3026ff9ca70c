package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	securejoin "github.com/cyphar/filepath-securejoin"
)

// The names that delete something of a lower layer (OCI image specification, "Whiteouts").
const (
	whiteoutPrefix = ".wh."
	opaqueWhiteout = ".wh..wh..opq"
)

// Unpack applies one layer to the folder root, which holds the layers below it. Nothing
// outside root is read or written, whatever names and links the layer holds. Devices are
// left out: a container has its own /dev.
//
// Files get the owner that the layer says if this process can give files away; ids that
// it can't give are those of a user namespace that doesn't have them.
func Unpack(root string, layer io.Reader) error {
	u := unpacker{root: filepath.Clean(root), written: map[string]bool{}}
	entries := tar.NewReader(layer)
	for {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the layer: %w", err)
		}
		if err := u.apply(header, entries); err != nil {
			return fmt.Errorf("unpack %q: %w", header.Name, err)
		}
	}
}

type unpacker struct {
	root string
	// written are the paths that this layer made, which its own whiteouts spare.
	written map[string]bool
}

func (u *unpacker) apply(header *tar.Header, content io.Reader) error {
	name := path.Clean("/" + header.Name)
	if name == "/" {
		return nil
	}
	directory, base := path.Split(name)
	parent, err := u.parent(directory)
	if err != nil {
		return err
	}
	switch {
	case base == opaqueWhiteout:
		return u.clear(parent)
	case strings.HasPrefix(base, whiteoutPrefix):
		return u.remove(parent, strings.TrimPrefix(base, whiteoutPrefix))
	}
	target := filepath.Join(parent, base)
	made, err := u.create(target, header, content)
	if err != nil || !made {
		return err
	}
	u.markWritten(target)
	return setAttributes(target, header)
}

// parent returns the real folder for a folder name of the image, made if needed. Links on
// the way are followed as inside the image: they never lead out of root.
func (u *unpacker) parent(directory string) (string, error) {
	real, err := securejoin.SecureJoin(u.root, directory)
	if err != nil {
		return "", err
	}
	return real, os.MkdirAll(real, 0o755)
}

func (u *unpacker) markWritten(path string) {
	for path != u.root && !u.written[path] {
		u.written[path] = true
		path = filepath.Dir(path)
	}
}

// remove deletes a file or folder of the layers below.
func (u *unpacker) remove(parent, base string) error {
	if base == "" || base == "." || base == ".." {
		return fmt.Errorf("a whiteout of %q", base)
	}
	target := filepath.Join(parent, base)
	if u.written[target] {
		return nil
	}
	return os.RemoveAll(target)
}

// clear deletes everything in a folder that comes from the layers below.
func (u *unpacker) clear(directory string) error {
	return filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == directory || u.written[path] {
			return err
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
		if entry.IsDir() {
			return filepath.SkipDir
		}
		return nil
	})
}

// create makes the file, folder or link; made is false for what images can hold but a
// container's root does not need.
func (u *unpacker) create(target string, header *tar.Header, content io.Reader) (made bool, err error) {
	if header.Typeflag == tar.TypeDir {
		return true, makeDirectory(target)
	}
	switch header.Typeflag {
	case tar.TypeReg, tar.TypeSymlink, tar.TypeLink:
	default:
		return false, nil
	}
	if err := os.RemoveAll(target); err != nil {
		return false, err
	}
	switch header.Typeflag {
	case tar.TypeSymlink:
		return true, os.Symlink(header.Linkname, target)
	case tar.TypeLink:
		return true, u.link(target, header.Linkname)
	default:
		return true, writeFile(target, content)
	}
}

func makeDirectory(target string) error {
	info, err := os.Lstat(target)
	if err == nil && info.IsDir() {
		return nil
	}
	if err == nil {
		err = os.Remove(target)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Mkdir(target, 0o755)
}

// link makes a hard link to a file of the image, by its name in the image.
func (u *unpacker) link(target, linkName string) error {
	directory, base := path.Split(path.Clean("/" + linkName))
	parent, err := securejoin.SecureJoin(u.root, directory)
	if err != nil {
		return err
	}
	return os.Link(filepath.Join(parent, base), target)
}

func writeFile(target string, content io.Reader) error {
	file, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

// setAttributes sets the owner, mode and time of a new file.
func setAttributes(target string, header *tar.Header) error {
	if header.Typeflag == tar.TypeLink {
		return nil // the linked file has them
	}
	err := os.Lchown(target, header.Uid, header.Gid)
	if err != nil && !ownerUnavailable(err) {
		return err
	}
	if header.Typeflag == tar.TypeSymlink {
		return nil
	}
	// After the owner: a change of owner clears the set-user-id bit.
	if err := os.Chmod(target, header.FileInfo().Mode()); err != nil {
		return err
	}
	return os.Chtimes(target, header.ModTime, header.ModTime)
}

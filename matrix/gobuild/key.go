package gobuild

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Key is the content key of the program: a hash of its inputs, flags, platform and Go
// version. Two checkouts with the same content have the same key.
func (p Program) Key(ctx context.Context) (string, error) {
	version, err := p.goVersion(ctx)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s/%s\n%s\n%s\n", version, p.goos(), p.goarch(), p.pkg(), strings.Join(p.flags(), " "))
	inputs := p.Inputs
	if len(inputs) == 0 {
		inputs = []string{"."}
	}
	for _, input := range inputs {
		if err := hashTree(h, p.Dir, input); err != nil {
			return "", fmt.Errorf("hash the source of %s: %w", p.name(), err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashTree adds the names and contents of all regular files below root/path, in name order.
// Tests and folders with a leading dot are no input of a build.
func hashTree(h hash.Hash, root, path string) error {
	return filepath.WalkDir(filepath.Join(root, path), func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if strings.HasPrefix(name, ".") && len(name) > 1 || name == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		relative, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		return hashFile(h, file, filepath.ToSlash(relative))
	})
}

func hashFile(h hash.Hash, file, name string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	fmt.Fprintf(h, "%d:%s:%d:", len(name), name, info.Size())
	_, err = io.Copy(h, f)
	return err
}

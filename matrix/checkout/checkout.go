// Package checkout finds the checkout of this repository that a command works on, and the
// matrix's folder in the user's cache.
package checkout

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// modulePath is how a checkout of the repository is known.
const modulePath = "github.com/trussiumhq/trussium-operator"

// ErrNone says that a folder is in no checkout of this repository.
var ErrNone = errors.New("not in a checkout of " + modulePath)

// Places are the folders that a command works on.
type Places struct {
	// Repository is the root of the checkout.
	Repository string
	// CacheDir is trussium-matrix in the user's cache folder. It can be deleted at any time.
	CacheDir string
}

// Find looks from the working directory.
func Find() (Places, error) {
	working, err := os.Getwd()
	if err != nil {
		return Places{}, fmt.Errorf("find the working directory: %w", err)
	}
	repository, err := Root(working)
	if err != nil {
		return Places{}, err
	}
	cache, err := CacheDir()
	if err != nil {
		return Places{}, err
	}
	return Places{Repository: repository, CacheDir: cache}, nil
}

// Root returns the root of the checkout that dir is in; ErrNone if it is in none.
func Root(dir string) (string, error) {
	for current := dir; ; current = filepath.Dir(current) {
		content, err := os.ReadFile(filepath.Join(current, "go.mod"))
		if err == nil && strings.HasPrefix(string(content), "module "+modulePath+"\n") {
			return current, nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("look for the checkout: %w", err)
		}
		if current == filepath.Dir(current) {
			return "", fmt.Errorf("%s is %w: change into one", dir, ErrNone)
		}
	}
}

// CacheDir is the matrix's folder in the user's cache. It need not exist.
func CacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	return filepath.Join(dir, "trussium-matrix"), nil
}

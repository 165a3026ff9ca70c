package nodeimage

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/trussiumhq/trussium-operator/matrix/contentkey"
	"github.com/trussiumhq/trussium-operator/matrix/filelock"
	"github.com/trussiumhq/trussium-operator/matrix/gobuild"
	"github.com/trussiumhq/trussium-operator/matrix/subprocess"
)

// Options say which image is wanted.
type Options struct {
	// Repository is the root of the checkout, CacheDir the matrix's folder in the user's cache.
	Repository string
	CacheDir   string
	// Kubernetes is one of Versions.
	Kubernetes string
	// Mirror is where Debian's packages come from. Empty: DebianMirror. It is no part of the key:
	// packages are signed.
	Mirror string
	// Progress receives lines of text while a long build runs. May be nil.
	Progress func(string)
}

// Image is a node image in the cache.
type Image struct {
	// Ref is the name under which an engine has the image once it is loaded.
	Ref string
	// Archive is the path of the archive for `docker load`.
	Archive string
	// Key is the content key of the image.
	Key string
}

// imageRepository names no registry that exists, so that no engine can pull another image. Without a host Podman would ask Docker Hub.
const imageRepository = "localhost/trussium-kind-node"

// Key is the content key of the image: what it is made of, which is pinned, and this package's own
// files and recipe. Debian's packages are those of the day of the build.
func Key(ctx context.Context, o Options) (string, error) {
	list, err := programs(o.Repository, o.Kubernetes)
	if err != nil {
		return "", err
	}
	kind, err := kindModule(ctx, o.Repository)
	if err != nil {
		return "", err
	}
	return key(ctx, o.Kubernetes, list, kind)
}

func key(ctx context.Context, version string, list []gobuild.Program, kind module) (string, error) {
	inputs := map[string]string{
		"recipe": recipeVersion, "kubernetes": version, "kind": kind.Version + " " + kind.Sum,
		"debian": debianSuite + " " + strings.Join(debianPackages, " "),
	}
	for _, program := range list {
		programKey, err := program.Key(ctx)
		if err != nil {
			return "", fmt.Errorf("key of the node image: %w", err)
		}
		inputs["program."+programName(program)] = programKey
	}
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(path)
		sum := sha256.Sum256(content)
		inputs["file."+path] = hex.EncodeToString(sum[:])
		return err
	})
	if err != nil {
		return "", fmt.Errorf("key of the node image: %w", err)
	}
	return contentkey.Of(inputs), nil
}

// files are what this package adds to a node.
//
//go:embed files
var files embed.FS

// Build returns the image from the cache, building it first if it is not there. A first build
// compiles Kubernetes and takes ten to twenty minutes; what a build that was cancelled had compiled
// is kept. Processes that want the same image wait for one build.
func Build(ctx context.Context, o Options) (Image, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Mirror == "" {
		o.Mirror = DebianMirror
	}
	image, err := build(ctx, o)
	if err != nil {
		return Image{}, fmt.Errorf("build the node image for Kubernetes %s: %w", o.Kubernetes, err)
	}
	return image, nil
}

func build(ctx context.Context, o Options) (Image, error) {
	list, err := programs(o.Repository, o.Kubernetes)
	if err != nil {
		return Image{}, err
	}
	kind, err := kindModule(ctx, o.Repository)
	if err != nil {
		return Image{}, err
	}
	digest, err := key(ctx, o.Kubernetes, list, kind)
	if err != nil {
		return Image{}, err
	}
	dir := filepath.Join(o.CacheDir, "nodes")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Image{}, err
	}
	image := Image{
		Ref: imageRepository + ":v" + o.Kubernetes + "-" + digest[:12], Key: digest,
		Archive: filepath.Join(dir, "node-"+o.Kubernetes+"-"+digest[:16]+".tar"),
	}
	if exists(image.Archive) {
		return image, nil
	}
	unlock, err := filelock.Wait(ctx, image.Archive+".lock", func() { o.Progress("waiting for another process that builds this node image") })
	if err != nil {
		return Image{}, err
	}
	defer unlock()
	if exists(image.Archive) {
		return image, nil
	}
	if err := Preflight(); err != nil {
		return Image{}, err
	}
	return image, assemble(ctx, o, list, kind, image)
}

// assemble builds the image; nothing but its archive stays.
func assemble(ctx context.Context, o Options, list []gobuild.Program, kind module, image Image) error {
	work := image.Archive + ".building"
	if err := os.RemoveAll(work); err != nil { // of a build that was killed
		return err
	}
	defer os.RemoveAll(work)
	root, temp := filepath.Join(work, "root"), filepath.Join(work, "temp")
	if err := errors.Join(os.MkdirAll(root, 0o755), os.MkdirAll(temp, 0o755)); err != nil {
		return err
	}
	var built binaries
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		built, err = buildPrograms(groupCtx, list, o.CacheDir, temp, o.Progress)
		return err
	})
	group.Go(func() error { return debian(groupCtx, root, o.Mirror) }) // it mostly waits for the network
	if err := group.Wait(); err != nil {
		return err
	}
	n := node{root: root, version: o.Kubernetes, binaries: built, kind: kind.Dir}
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"adding the files of Kind and Kubernetes", n.addFiles},
		{"packing the images of the control plane", n.packComponents},
		{"importing them into the node's containerd", n.importComponents},
		{"packing the node image", func(ctx context.Context) error { return n.pack(ctx, image.Ref, image.Archive) }},
	} {
		o.Progress(step.name)
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// module is a Go module in the module cache.
type module struct {
	Dir, Version, Sum string
	// Error is why the go command could not download it.
	Error string
}

// kindModule downloads the module of Kind that this repository requires, unless it is there: its
// node images' files are in it, so that they always fit the library.
func kindModule(ctx context.Context, repository string) (module, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", "sigs.k8s.io/kind")
	cmd.Dir = repository
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	out, err := subprocess.Output(cmd)
	var kind module
	if readErr := json.Unmarshal(out, &kind); readErr != nil && err == nil {
		return module{}, fmt.Errorf("read what the go command says of the module of Kind: %w", readErr)
	}
	if err != nil {
		return module{}, fmt.Errorf("download the module of Kind: %w\n%s", err, kind.Error)
	}
	return kind, nil
}

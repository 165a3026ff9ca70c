package artifact

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/trussiumhq/trussium-operator/matrix/contentkey"
	"github.com/trussiumhq/trussium-operator/matrix/git"
)

// bundleVersion is the format of a bundle's list of contents.
const bundleVersion = "bundle.trussium.io/v1"

// bundleAnnotation, in the index of a bundle's layout, is the digest of the blob with the list of contents.
const bundleAnnotation = "io.trussium.matrix.bundle"

// refAnnotation is the reference of an entry of a layout.
const refAnnotation = "org.opencontainers.image.ref.name"

// Bundle is what a run needs, in one archive: an OCI image layout in a tar file. Its blobs are the charts and images, the
// programs, and the list of contents.
type Bundle struct {
	APIVersion string `json:"apiVersion"`
	// Platform is that of the images and programs: OS/ARCH.
	Platform string `json:"platform"`
	// Commit is the one that was checked out, and Source identifies the content of the checkout.
	Commit string `json:"commit"`
	Source string `json:"source"`
	// Checkout is the candidate, Releases are the earlier ones.
	Checkout Release   `json:"checkout"`
	Releases []Release `json:"releases"`
	// Runtimes are the images of the runtime.
	Runtimes []Artifact `json:"runtimes"`
	Programs []Program  `json:"programs"`
	// Layouts are the descriptors of each artifact's own layout, by its reference.
	Layouts map[string][]v1.Descriptor `json:"layouts"`

	file string
}

// Program is a program that a run needs.
type Program struct {
	// Name is what asks for it: chainsaw, or controlplane-<Kubernetes version>.
	Name string `json:"name"`
	// Key is its content key.
	Key string `json:"key"`
	// File is its name in the cache, Digest that of its content.
	File   string `json:"file"`
	Digest string `json:"digest"`
	// Path is where it is on this machine.
	Path string `json:"-"`
}

// Program is the program of that name.
func (b *Bundle) Program(name string) (Program, error) {
	i := slices.IndexFunc(b.Programs, func(p Program) bool { return p.Name == name })
	if i < 0 {
		return Program{}, b.lacks("the program " + name)
	}
	return b.Programs[i], nil
}

func (b *Bundle) lacks(what string) error {
	return badInput(fmt.Errorf("the bundle %s does not hold %s: make it again for what is to be run (matrix bundle)", b.file, what))
}

func (b *Bundle) release(version string) (Release, error) {
	i := slices.IndexFunc(b.Releases, func(r Release) bool { return r.Version == version })
	if i < 0 {
		return Release{}, b.lacks("operator " + version)
	}
	return b.Releases[i], nil
}

func (b *Bundle) runtime(ref string) (Artifact, error) {
	i := slices.IndexFunc(b.Runtimes, func(a Artifact) bool { return a.Ref == ref })
	if i < 0 {
		return Artifact{}, b.lacks("the image " + ref)
	}
	return b.Runtimes[i], nil
}

// artifacts are all of the bundle, for their entries to be set.
func (b *Bundle) artifacts() []*Artifact {
	all := []*Artifact{&b.Checkout.Chart, &b.Checkout.Image}
	for i := range b.Releases {
		all = append(all, &b.Releases[i].Chart, &b.Releases[i].Image)
	}
	for i := range b.Runtimes {
		all = append(all, &b.Runtimes[i])
	}
	return all
}

// SourceDigest identifies the content of a checkout: its commit and everything that differs from it.
func SourceDigest(ctx context.Context, repository string) (string, error) {
	r := git.Repository{Dir: repository}
	head, err := r.Head(ctx)
	if err != nil {
		return "", gitError(err)
	}
	changes, err := r.Changes(ctx, Generated...)
	if err != nil {
		return "", gitError(err)
	}
	content := map[string]string{"head": head}
	for _, change := range changes {
		_, name, _ := strings.Cut(strings.TrimSpace(change), " ")
		name = strings.Trim(strings.TrimSpace(name), `"`)
		digest, err := fileDigest(filepath.Join(repository, name))
		if err != nil {
			digest = "none" // deleted, or renamed
		}
		content[change] = digest
	}
	return "sha256:" + contentkey.Of(content), nil
}

// WriteBundle writes the bundle into file and returns the digest of the archive, in the form sha256:<hex>.
func (b *Builder) WriteBundle(ctx context.Context, file string, bundle Bundle) (digest string, err error) {
	bundle.APIVersion, bundle.Platform, bundle.Commit = bundleVersion, "linux/"+b.arch(), bundle.Checkout.Commit
	if bundle.Source, err = SourceDigest(ctx, b.Repository); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(filepath.Dir(file), ".bundle-")
	if err != nil {
		return "", infrastructure(fmt.Errorf("write the bundle %s: %w", file, err))
	}
	defer os.RemoveAll(temp)
	if err := bundle.layOut(filepath.Join(temp, "layout")); err != nil {
		return "", infrastructure(fmt.Errorf("write the bundle %s: %w", file, err))
	}
	archive := filepath.Join(temp, "archive")
	if digest, err = pack(archive, filepath.Join(temp, "layout")); err == nil {
		err = os.Rename(archive, file)
	}
	if err != nil {
		return "", infrastructure(fmt.Errorf("write the bundle %s: %w", file, err))
	}
	return digest, nil
}

// layOut writes the bundle as an OCI layout.
func (b *Bundle) layOut(dir string) error {
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	b.Layouts = map[string][]v1.Descriptor{}
	for _, artifact := range b.artifacts() {
		if b.Layouts[artifact.Ref] != nil {
			continue
		}
		own, err := indexOf(artifact.entry.layout)
		if err != nil {
			return fmt.Errorf("read %s from the cache: %w", artifact.Ref, err)
		}
		b.Layouts[artifact.Ref] = own.Manifests
		for _, descriptor := range own.Manifests {
			if err := copyBlobs(artifact.entry.layout, path, descriptor); err != nil {
				return fmt.Errorf("copy %s from the cache: %w", artifact.Ref, err)
			}
		}
		root := artifact.entry.root
		root.Annotations = map[string]string{refAnnotation: artifact.Ref}
		index.Manifests = append(index.Manifests, root)
	}
	for i := range b.Programs {
		program := &b.Programs[i]
		program.File = filepath.Base(program.Path)
		if program.Digest, err = addFile(path, program.Path); err != nil {
			return fmt.Errorf("add the program %s: %w", program.Name, err)
		}
	}
	contents, err := json.Marshal(b)
	if err != nil {
		return err
	}
	digest, _, err := v1.SHA256(bytes.NewReader(contents))
	if err != nil {
		return err
	}
	if err := path.WriteBlob(digest, io.NopCloser(bytes.NewReader(contents))); err != nil {
		return err
	}
	index.Annotations = map[string]string{bundleAnnotation: digest.String()}
	content, err := json.MarshalIndent(index, "", "  ")
	if err != nil {
		return err
	}
	return path.WriteFile("index.json", content, 0o644)
}

func addFile(path layout.Path, file string) (string, error) {
	text, err := fileDigest(file)
	if err != nil {
		return "", err
	}
	digest, err := v1.NewHash(text)
	if err != nil {
		return "", err
	}
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	return text, path.WriteBlob(digest, f) // which closes it
}

// copyBlobs copies all that the descriptor refers to and that is there; of an index of several platforms only the
// manifests have to be.
func copyBlobs(from, to layout.Path, descriptor v1.Descriptor) error {
	digests := []v1.Hash{descriptor.Digest}
	if descriptor.MediaType.IsIndex() {
		index, err := readIndex(from, descriptor.Digest)
		if err != nil {
			return err
		}
		for _, child := range index.Manifests {
			digests = append(digests, child.Digest)
		}
	} else {
		manifest, err := readManifest(from, descriptor.Digest)
		if err != nil {
			return err
		}
		for _, blob := range append([]v1.Descriptor{manifest.Config}, manifest.Layers...) {
			digests = append(digests, blob.Digest)
		}
	}
	for _, digest := range digests {
		blob, err := from.Blob(digest)
		if err != nil {
			return err
		}
		if err := to.WriteBlob(digest, blob); err != nil {
			return err
		}
	}
	return nil
}

// ReadBundle unpacks a bundle into the cache, verifies all of it, and checks that it is for this machine and this
// checkout.
func (b *Builder) ReadBundle(ctx context.Context, file string) (*Bundle, error) {
	if err := os.MkdirAll(b.CacheDir, 0o755); err != nil {
		return nil, infrastructure(fmt.Errorf("create the cache: %w", err))
	}
	temp, err := os.MkdirTemp(b.CacheDir, ".bundle-")
	if err != nil {
		return nil, infrastructure(fmt.Errorf("unpack the bundle %s: %w", file, err))
	}
	defer os.RemoveAll(temp)
	if err := unpack(ctx, file, temp); err != nil {
		return nil, err
	}
	bundle, err := readContents(temp)
	if err != nil {
		return nil, damaged(file, err)
	}
	bundle.file = file
	if platform := "linux/" + b.arch(); bundle.Platform != platform {
		return nil, badInput(fmt.Errorf("the bundle %s is for %s, this machine is %s: make it on such a machine", file, bundle.Platform, platform))
	}
	source, err := SourceDigest(ctx, b.Repository)
	if err != nil {
		return nil, err
	}
	if source != bundle.Source {
		return nil, badInput(fmt.Errorf("the bundle %s was made from another checkout, of commit %s: check that out, or make a bundle of this one (matrix bundle)", file, bundle.Commit))
	}
	path := layout.Path(temp)
	for _, artifact := range bundle.artifacts() {
		if artifact.entry, err = b.keepArtifact(path, bundle.Layouts[artifact.Ref]); err != nil {
			return nil, damaged(file, fmt.Errorf("%s: %w", artifact.Ref, err))
		}
		if got := artifact.entry.root.Digest.String(); got != artifact.Digest {
			return nil, damaged(file, fmt.Errorf("%s is %s, its list says %s", artifact.Ref, got, artifact.Digest))
		}
	}
	for i := range bundle.Programs {
		if err := b.keepProgram(path, &bundle.Programs[i]); err != nil {
			return nil, damaged(file, err)
		}
	}
	return bundle, nil
}

// damaged is an error of an archive that is not what matrix bundle wrote.
func damaged(file string, err error) error {
	return badInput(fmt.Errorf("the bundle %s is damaged, or none: copy it again: %w", file, err))
}

// readContents verifies every blob of an unpacked layout and reads the list of contents.
func readContents(dir string) (*Bundle, error) {
	blobs, err := os.ReadDir(filepath.Join(dir, "blobs", "sha256"))
	if err != nil {
		return nil, errors.New("it has no blobs")
	}
	path := layout.Path(dir)
	for _, blob := range blobs {
		if err := verifyBlob(path, v1.Hash{Algorithm: "sha256", Hex: blob.Name()}); err != nil {
			return nil, err
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "oci-layout")); err != nil { // the last file of an archive
		return nil, errors.New("it has no oci-layout")
	}
	content, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		return nil, errors.New("it has no index.json")
	}
	var index v1.IndexManifest
	if err := json.Unmarshal(content, &index); err != nil {
		return nil, fmt.Errorf("its index.json: %w", err)
	}
	digest, err := v1.NewHash(index.Annotations[bundleAnnotation])
	if err != nil {
		return nil, fmt.Errorf("its index.json lacks the annotation %s: it is an image layout, but no bundle", bundleAnnotation)
	}
	if content, err = path.Bytes(digest); err != nil {
		return nil, errors.New("it lacks the list of its contents")
	}
	bundle := &Bundle{}
	if err := json.Unmarshal(content, bundle); err != nil {
		return nil, fmt.Errorf("its list of contents: %w", err)
	}
	if bundle.APIVersion != bundleVersion {
		return nil, fmt.Errorf("it has the format %q, this program reads %s", bundle.APIVersion, bundleVersion)
	}
	return bundle, nil
}

// keepArtifact copies an artifact of a bundle into the cache.
func (b *Builder) keepArtifact(from layout.Path, descriptors []v1.Descriptor) (entry, error) {
	if len(descriptors) == 0 {
		return entry{}, errors.New("it is not in the bundle")
	}
	key := contentkey.Of(map[string]string{"recipe": recipe, "bundled": descriptors[0].Digest.String(), "arch": b.arch()})
	return b.store().put(key, func(path layout.Path) error {
		for _, descriptor := range descriptors {
			if err := copyBlobs(from, path, descriptor); err != nil {
				return err
			}
			if err := path.AppendDescriptor(descriptor); err != nil {
				return err
			}
		}
		return nil
	})
}

// keepProgram copies a program of a bundle into the cache, where a build would have put it.
func (b *Builder) keepProgram(from layout.Path, program *Program) error {
	if program.File == "" || program.File != filepath.Base(program.File) || !filepath.IsLocal(program.File) {
		return fmt.Errorf("the program %s has the file name %q", program.Name, program.File)
	}
	digest, err := v1.NewHash(program.Digest)
	if err != nil {
		return fmt.Errorf("the program %s: %w", program.Name, err)
	}
	dir := filepath.Join(b.CacheDir, "bin")
	program.Path = filepath.Join(dir, program.File)
	if have, err := fileDigest(program.Path); err == nil && have == program.Digest {
		return nil
	}
	blob, err := from.Blob(digest)
	if err != nil {
		return fmt.Errorf("the program %s is not in the bundle: %w", program.Name, err)
	}
	defer blob.Close()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, ".writing-")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = io.Copy(temp, blob)
	if err := errors.Join(err, temp.Chmod(0o755), temp.Close()); err != nil {
		return fmt.Errorf("keep the program %s: %w", program.Name, err)
	}
	return os.Rename(temp.Name(), program.Path)
}

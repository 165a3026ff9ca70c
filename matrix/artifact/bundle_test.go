package artifact

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/trussiumhq/trussium-operator/matrix/git/gittest"
)

// testBundle writes a bundle of a repository with a release, a checkout and a runtime, and returns what went into it.
func testBundle(t *testing.T) (repository, file string, content Bundle) {
	t.Helper()
	repository, commit := newRepository(t, sourceFiles("0.4.0"))
	commitFiles(t, repository, sourceFiles("0.5.0"))
	builder, _ := newBuilder(t, repository)
	release, err := builder.Commit(t.Context(), "0.4.0", commit)
	if err != nil {
		t.Fatal(err)
	}
	candidate, err := builder.Checkout(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	runtime, err := builder.Runtime(t.Context(), "1.30.0", VariantNone)
	if err != nil {
		t.Fatal(err)
	}
	content = Bundle{
		Checkout: candidate, Releases: []Release{release}, Runtimes: []Artifact{runtime},
		Programs: []Program{{Name: "chainsaw", Key: "k", Path: binaryFile(t, "a program")}},
	}
	file = filepath.Join(t.TempDir(), "bundle.tar")
	if _, err := builder.WriteBundle(t.Context(), file, content); err != nil {
		t.Fatal(err)
	}
	return repository, file, content
}

// A bundle gives another cache everything that it was made of, and builds nothing.
func TestBundle(t *testing.T) {
	repository, file, content := testBundle(t)
	t.Setenv("PATH", gitOnly(t)) // without a go command
	builder, progress := newBuilder(t, repository)
	bundle, err := builder.ReadBundle(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	builder.Bundle = bundle
	candidate, err := builder.Checkout(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	release, err := builder.Release(t.Context(), "0.4.0", content.Releases[0].Commit)
	if err != nil {
		t.Fatal(err)
	}
	runtime, err := builder.Runtime(t.Context(), "1.30.0", VariantNone)
	if err != nil {
		t.Fatal(err)
	}
	ignoreEntry := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".entry" }, cmp.Ignore())
	if diff := cmp.Diff([]any{content.Checkout, content.Releases[0], content.Runtimes[0]}, []any{candidate, release, runtime}, ignoreEntry); diff != "" {
		t.Errorf("what comes out differs from what went in (-in +out):\n%s", diff)
	}
	if got, want := binaryIn(t, release.Image), binaryIn(t, content.Releases[0].Image); got != want {
		t.Errorf("the operator of the release is %q, want %q", got, want)
	}
	served, err := Serve(t.Context(), candidate.Chart, candidate.Image, release.Chart, release.Image, runtime)
	if err != nil {
		t.Fatal(err)
	}
	if err := served.Close(); err != nil {
		t.Fatal(err)
	}
	program, err := bundle.Program("chainsaw")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(program.Path)
	if text, _ := os.ReadFile(program.Path); err != nil || string(text) != "a program" || info.Mode().Perm() != 0o755 || program.Key != "k" {
		t.Errorf("the program is %+v with %q, %v", program, text, err)
	}
	for _, missing := range []func() error{
		func() error { _, err := builder.Release(t.Context(), "0.3.0", ""); return err },
		func() error { _, err := builder.Runtime(t.Context(), "1.31.0", VariantNone); return err },
		func() error { _, err := bundle.Program("controlplane-1.37.2"); return err },
	} {
		if err := missing(); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "does not hold") {
			t.Errorf("something that is not in the bundle: got %v", err)
		}
	}
	if lines := progress.take(); len(lines) > 0 {
		t.Errorf("it did more than read: %q", lines)
	}
	left, err := filepath.Glob(filepath.Join(builder.CacheDir, ".bundle-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("it left %v", left)
	}
	// Other programs read the archive as an image layout.
	dir := t.TempDir()
	if err := unpack(t.Context(), file, dir); err != nil {
		t.Fatal(err)
	}
	index, err := indexOf(layout.Path(dir))
	if err != nil || len(index.Manifests) != 5 || index.Manifests[0].Annotations[refAnnotation] != content.Checkout.Chart.Ref {
		t.Errorf("its index is %+v, %v", index, err)
	}
}

// gitOnly is a PATH with nothing but git.
func gitOnly(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, candidate := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(candidate, "git")
		if _, err := os.Stat(path); err == nil {
			if err := os.Symlink(path, filepath.Join(dir, "git")); err != nil {
				t.Fatal(err)
			}
			return dir
		}
	}
	t.Fatal("there is no git")
	return ""
}

// The same inputs give the same archive.
func TestBundleIsReproducible(t *testing.T) {
	repository, file, content := testBundle(t)
	builder := &Builder{Repository: repository, CacheDir: t.TempDir()}
	again := filepath.Join(t.TempDir(), "again.tar")
	if _, err := builder.WriteBundle(t.Context(), again, content); err != nil {
		t.Fatal(err)
	}
	first, _ := os.ReadFile(file)
	second, _ := os.ReadFile(again)
	if len(first) == 0 || !bytes.Equal(first, second) {
		t.Error("the same content gives another archive")
	}
}

// readAgain reads a changed archive with an empty cache.
func readAgain(t *testing.T, repository string, archive []byte) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), "changed.tar")
	if err := os.WriteFile(file, archive, 0o644); err != nil {
		t.Fatal(err)
	}
	builder := &Builder{Repository: repository, CacheDir: t.TempDir()}
	_, err := builder.ReadBundle(t.Context(), file)
	if entries, _ := os.ReadDir(filepath.Join(builder.CacheDir, "bin")); err != nil && len(entries) > 0 {
		t.Errorf("a refused bundle left programs: %v", entries)
	}
	return err
}

// An archive that is cut off anywhere is refused.
func TestTruncatedBundle(t *testing.T) {
	repository, file, _ := testBundle(t)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := readAgain(t, repository, whole); err != nil {
		t.Fatalf("the whole archive: %v", err)
	}
	const places = 40
	var cuts []int
	for i := range places {
		cuts = append(cuts, len(whole)*i/places)
	}
	// Between two files an archive ends as it should, but for what is missing.
	ends := fileEnds(t, whole)
	cuts = append(cuts, ends[:len(ends)-1]...)
	for _, cut := range cuts {
		err := readAgain(t, repository, whole[:cut])
		if !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "copy it again") {
			t.Errorf("cut off after %d of %d bytes: got %v", cut, len(whole), err)
		}
	}
}

// fileEnds are the offsets at which the files of an archive end.
func fileEnds(t *testing.T, archive []byte) []int {
	t.Helper()
	const block = 512
	var ends []int
	rest := bytes.NewReader(archive)
	for reader := tar.NewReader(rest); ; {
		if _, err := reader.Next(); errors.Is(err, io.EOF) {
			return ends
		} else if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, reader); err != nil {
			t.Fatal(err)
		}
		read := len(archive) - rest.Len()
		ends = append(ends, (read+block-1)/block*block)
	}
}

// rewrite changes the files of an archive; one whose content becomes nil is left out.
func rewrite(t *testing.T, file string, change func(name string, content []byte) (string, []byte)) []byte {
	t.Helper()
	archive, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	reader, writer := tar.NewReader(bytes.NewReader(archive)), tar.NewWriter(&out)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeDir {
			if err := writer.WriteHeader(header); err != nil {
				t.Fatal(err)
			}
			continue
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if header.Name, content = change(header.Name, content); content == nil {
			continue
		}
		header.Size = int64(len(content))
		if err := writer.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// An archive in which anything was changed or left out is refused.
func TestTamperedBundle(t *testing.T) {
	repository, file, _ := testBundle(t)
	var names []string
	rewrite(t, file, func(name string, content []byte) (string, []byte) {
		names = append(names, name)
		return name, content
	})
	for _, name := range names {
		if name == "oci-layout" { // it says nothing
			continue
		}
		for what, change := range map[string]func([]byte) []byte{
			"left out": func([]byte) []byte { return nil },
			"changed": func(content []byte) []byte {
				return append(bytes.Clone(content[:len(content)-1]), content[len(content)-1]^1)
			},
		} {
			err := readAgain(t, repository, rewrite(t, file, func(n string, content []byte) (string, []byte) {
				if n == name {
					content = change(content)
				}
				return n, content
			}))
			if !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "copy it again") {
				t.Errorf("%s is %s: got %v", name, what, err)
			}
		}
	}
	escaped := rewrite(t, file, func(name string, content []byte) (string, []byte) {
		if name == "index.json" {
			name = "../index.json"
		}
		return name, content
	})
	if err := readAgain(t, repository, escaped); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), `"../index.json"`) {
		t.Errorf("a file outside: got %v", err)
	}
	if err := readAgain(t, repository, []byte("no archive")); !errors.Is(err, ErrInput) {
		t.Errorf("no archive: got %v", err)
	}
}

// A bundle is for one checkout and one architecture.
func TestForeignBundle(t *testing.T) {
	repository, file, _ := testBundle(t)
	other := &Builder{Repository: repository, CacheDir: t.TempDir(), Arch: "riscv64"}
	if _, err := other.ReadBundle(t.Context(), file); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "this machine is linux/riscv64") {
		t.Errorf("another architecture: got %v", err)
	}
	gittest.Write(t, repository, map[string]string{"evidence/cell.json": "{}"})
	archive, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := readAgain(t, repository, archive); err != nil {
		t.Errorf("what the matrix writes makes it another checkout: %v", err)
	}
	gittest.Write(t, repository, map[string]string{"operator/more.go": "package main\n"})
	if err := readAgain(t, repository, archive); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "made from another checkout, of commit") {
		t.Errorf("a changed checkout: got %v", err)
	}
	if _, err := (&Builder{Repository: repository, CacheDir: t.TempDir()}).ReadBundle(t.Context(), filepath.Join(t.TempDir(), "none.tar")); !errors.Is(err, ErrInput) {
		t.Errorf("no file: got %v", err)
	}
}

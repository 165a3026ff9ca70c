package nodeimage

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix/checkout"
	"github.com/trussiumhq/trussium-operator/matrix/gobuild"
	"github.com/trussiumhq/trussium-operator/matrix/subprocess"
)

func repository(t *testing.T) string {
	t.Helper()
	found, err := checkout.Find()
	if err != nil {
		t.Fatal(err)
	}
	return found.Repository
}

// Kind's files are found also where nothing that is built has downloaded its module.
func TestKindModuleInAnEmptyModuleCache(t *testing.T) {
	modules, err := subprocess.Output(exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE"))
	if err != nil {
		t.Fatal(err)
	}
	kind, err := kindModule(t.Context(), repository(t))
	if err != nil {
		t.Fatal(err)
	}
	empty := emptyModuleCache(t)
	t.Setenv("GOPROXY", "file://"+filepath.Join(strings.TrimSpace(string(modules)), "cache", "download"))
	fresh, err := kindModule(t.Context(), repository(t))
	if err != nil {
		t.Fatal(err)
	}
	if fresh.Version != kind.Version || fresh.Sum != kind.Sum || !strings.HasPrefix(fresh.Dir, empty) {
		t.Errorf("found %+v, want %+v in %s", fresh, kind, empty)
	}
	if !exists(filepath.Join(fresh.Dir, "images", "base", "Dockerfile")) {
		t.Errorf("%s is not Kind's module", fresh.Dir)
	}
}

// A module that can't be downloaded is an error that says why.
func TestKindModuleOutOfReach(t *testing.T) {
	emptyModuleCache(t)
	t.Setenv("GOPROXY", "off")
	if _, err := kindModule(t.Context(), repository(t)); err == nil || !strings.Contains(err.Error(), "disabled by GOPROXY=off") {
		t.Errorf("got %v, want the go command's reason", err)
	}
}

// emptyModuleCache gives the go command a module cache of the test's own, and returns its folder.
func emptyModuleCache(t *testing.T) string {
	t.Helper()
	empty := t.TempDir()
	t.Cleanup(func() { // the go command writes folders that can't be changed
		_ = filepath.WalkDir(empty, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				err = os.Chmod(path, 0o755)
			}
			return err
		})
	})
	t.Setenv("GOMODCACHE", empty)
	return empty
}

// Each program's module pins what it says: the Kubernetes version of the recipe, with all staging modules of the same
// release.
func TestPrograms(t *testing.T) {
	for _, version := range Versions() {
		list, err := programs(repository(t), version)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, program := range list {
			if names[programName(program)] {
				t.Errorf("%s is built twice", programName(program))
			}
			names[programName(program)] = true
			for _, input := range program.Inputs {
				if _, err := os.Stat(filepath.Join(program.Dir, input)); err != nil {
					t.Error(err)
				}
			}
		}
		content, err := os.ReadFile(filepath.Join(repository(t), "tools", "nodeimage", "modules", kubernetesModules[version], "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`(?m)^\s*k8s.io/kubernetes v` + regexp.QuoteMeta(version) + `( // indirect)?$`).Match(content) {
			t.Errorf("%s does not require Kubernetes %s", kubernetesModules[version], version)
		}
		staging := "v0" + strings.TrimPrefix(version, "1")
		for line := range strings.Lines(string(content)) {
			if strings.Contains(line, "=>") && !strings.HasSuffix(strings.TrimSpace(line), " "+staging) {
				t.Errorf("not the module of Kubernetes %s: %s", version, line)
			}
		}
	}
	if _, err := programs(repository(t), "1.2.3"); !errors.Is(err, ErrVersion) {
		t.Errorf("a version without a recipe says %v", err)
	}
}

// The key follows what an image is made of.
func TestKey(t *testing.T) {
	program := filepath.Join(t.TempDir(), "main.go")
	write := func(content string) {
		if err := os.WriteFile(program, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("package main\n")
	list := []gobuild.Program{{Dir: filepath.Dir(program), Name: "one"}}
	of := func(version string, kind module) string {
		t.Helper()
		digest, err := key(t.Context(), version, list, kind)
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	kind := module{Dir: "/a", Version: "v0.33.0", Sum: "h1:a"}
	before := of("1.34.4", kind)
	elsewhere := kind
	elsewhere.Dir = "/b"
	if of("1.34.4", elsewhere) != before {
		t.Error("the module cache's place is part of the key")
	}
	other := kind
	other.Sum = "h1:b"
	if of("1.34.4", other) == before || of("1.34.5", kind) == before {
		t.Error("Kind or Kubernetes is no part of the key")
	}
	write("package main\n\nvar x = 1\n")
	if of("1.34.4", kind) == before {
		t.Error("the programs are no part of the key")
	}
}

func TestRuntimeSpec(t *testing.T) {
	spec, err := runtimeSpec([]byte(`{"ociVersion":"1.0.2","process":{"cwd":"/","rlimits":[{"type":"RLIMIT_NOFILE"}]}}`))
	const want = `{"hooks":{"createContainer":[{"path":"/kind/bin/mount-product-files.sh"}]},"ociVersion":"1.0.2","process":{"cwd":"/"}}`
	if err != nil || string(spec) != want {
		t.Errorf("got %s, %v", spec, err)
	}
	if _, err := runtimeSpec([]byte(`{}`)); err == nil {
		t.Error("a container without a process is no error")
	}
}

// Every image that kubeadm may want is made, under all names that are asked for.
func TestComponents(t *testing.T) {
	n := node{binaries: binaries{"etcd": "/etcd", "coredns": "/coredns", "pause": "/pause", "kube-scheduler": "/scheduler"}}
	list, err := n.components(map[string]string{
		"etcd": "registry.k8s.io/etcd:3.6.5-0", "coredns": "registry.k8s.io/coredns/coredns:v1.12.1", "pause": "registry.k8s.io/pause:3.10.1",
		"kube-scheduler": "registry.k8s.io/kube-scheduler:v1.34.4",
	})
	if err != nil {
		t.Fatal(err)
	}
	var refs []string
	for _, c := range list {
		refs = append(refs, c.refs...)
	}
	want := []string{"registry.k8s.io/coredns/coredns:v1.12.1", "registry.k8s.io/etcd:3.6.5-0", "registry.k8s.io/kube-scheduler:v1.34.4", "registry.k8s.io/pause:3.10.1", kindSandbox}
	if !slices.Equal(refs, want) {
		t.Errorf("got %q", refs)
	}
	if _, err := n.components(map[string]string{"cloud": "registry.k8s.io/cloud:1"}); err == nil || !strings.Contains(err.Error(), "registry.k8s.io/cloud:1") {
		t.Errorf("an image that is not known says %v", err)
	}
}

// A layer is the same whenever its files are, and has folders before what is in them.
func TestWriteLayer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, []byte("program"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := component{files: map[string]string{"usr/local/bin/a": file, "b": file}, links: map[string]string{"lib": "usr/lib", "usr/sbin/x": "y"}}
	var first, second bytes.Buffer
	if err := errors.Join(c.writeLayer(&first), c.writeLayer(&second)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two layers of the same files differ")
	}
	var names []string
	for reader := tar.NewReader(&first); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg && (header.Mode != 0o755 || !header.ModTime.Equal(epoch)) {
			t.Errorf("%s has mode %o and time %s", header.Name, header.Mode, header.ModTime)
		}
		names = append(names, header.Name)
	}
	want := []string{"tmp/", "lib", "usr/", "usr/sbin/", "usr/sbin/x", "b", "usr/local/", "usr/local/bin/", "usr/local/bin/a"}
	if !slices.Equal(names, want) {
		t.Errorf("got %q", names)
	}
}

// The files of this package are those that are put into the node, and its configuration is JSON.
func TestFiles(t *testing.T) {
	for name, file := range network {
		if _, err := files.ReadFile("files/" + file); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	content, err := files.ReadFile("files/cni.conflist")
	if err != nil || !json.Valid(content) {
		t.Errorf("the network's configuration is no JSON: %v", err)
	}
}

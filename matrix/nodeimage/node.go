package nodeimage

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/trussiumhq/trussium-operator/matrix/subprocess"
)

// node is a node's root folder that is being filled.
type node struct {
	// root holds Debian.
	root string
	// version is that of Kubernetes, without a leading v.
	version string
	// binaries are the built programs.
	binaries binaries
	// kind is the folder of Kind's module.
	kind string
}

// Modes of the files that are added.
const (
	modeFile    fs.FileMode = 0o644
	modeProgram fs.FileMode = 0o755
)

// addFiles adds what is not Debian.
func (n node) addFiles(ctx context.Context) error {
	for _, add := range []func(context.Context) error{n.addKindFiles, n.cleanUnits, n.addRuntimeSpec, n.addKubernetes, n.addNetwork} {
		if err := add(ctx); err != nil {
			return err
		}
	}
	return nil
}

// addKindFiles copies what the Dockerfile of Kind's base image copies.
func (n node) addKindFiles(context.Context) error {
	from := filepath.Join(n.kind, "images", "base", "files")
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		mode := modeFile
		if strings.HasPrefix(name, "usr/local/bin/") || strings.HasPrefix(name, "kind/bin/") {
			mode = modeProgram
		}
		return n.copy(name, mode, path)
	})
}

// unwanted are the units that the Dockerfile of Kind's base image removes.
var unwanted = []string{
	"lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service",
	"lib/systemd/system/multi-user.target.wants/*",
	"etc/systemd/system/*.wants/*",
	"lib/systemd/system/local-fs.target.wants/*",
	"lib/systemd/system/sockets.target.wants/*udev*",
	"lib/systemd/system/sockets.target.wants/*initctl*",
	"lib/systemd/system/basic.target.wants/*",
}

// links are what that Dockerfile enables, and the paths at which Kind's files expect programs.
var links = map[string]string{
	"sbin/init": "/usr/lib/systemd/systemd",
	"etc/systemd/system/multi-user.target.wants/kubelet.service":          "/etc/systemd/system/kubelet.service",
	"etc/systemd/system/multi-user.target.wants/containerd.service":       "/etc/systemd/system/containerd.service",
	"etc/systemd/system/multi-user.target.wants/undo-mount-hacks.service": "/etc/systemd/system/undo-mount-hacks.service",
	"etc/systemd/system/systemd-binfmt.service":                           "/dev/null", // what it registers is the whole machine's
	"usr/local/bin/containerd":                                            "/usr/bin/containerd",
	"usr/local/bin/ctr":                                                   "/usr/bin/ctr",
}

func (n node) cleanUnits(context.Context) error {
	for _, pattern := range unwanted {
		found, err := filepath.Glob(filepath.Join(n.root, pattern))
		if err != nil {
			return err
		}
		for _, path := range found {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	for name, target := range links {
		if err := n.link(name, target); err != nil {
			return err
		}
	}
	journal, err := os.OpenFile(filepath.Join(n.root, "etc/systemd/journald.conf"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, modeFile)
	if err != nil {
		return err
	}
	defer journal.Close()
	if _, err := fmt.Fprintln(journal, "ReadKMsg=no"); err != nil { // the kernel's messages are not the node's
		return err
	}
	return os.MkdirAll(filepath.Join(n.root, "etc/kubernetes/manifests"), 0o755)
}

// addRuntimeSpec makes what every container of the node starts from: containerd's default, with
// Kind's hook, and without resource limits of its own.
func (n node) addRuntimeSpec(ctx context.Context) error {
	out, err := subprocess.Output(exec.CommandContext(ctx, "chroot", n.root, "ctr", "oci", "spec"))
	if err != nil {
		return fmt.Errorf("ask containerd for its default container: %w", err)
	}
	spec, err := runtimeSpec(out)
	if err != nil {
		return fmt.Errorf("read containerd's default container: %w", err)
	}
	return n.write("etc/containerd/cri-base.json", modeFile, spec)
}

func runtimeSpec(defaults []byte) ([]byte, error) {
	var spec map[string]any
	if err := json.Unmarshal(defaults, &spec); err != nil {
		return nil, err
	}
	process, ok := spec["process"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it has no process: %s", defaults)
	}
	delete(process, "rlimits")
	spec["hooks"] = map[string]any{"createContainer": []any{map[string]any{"path": "/kind/bin/mount-product-files.sh"}}}
	return json.Marshal(spec)
}

// addKubernetes adds what Kind adds to its base image for a Kubernetes version.
func (n node) addKubernetes(context.Context) error {
	programs := map[string]string{"usr/local/bin/crictl": "crictl"}
	for _, name := range []string{"kubeadm", "kubelet", "kubectl"} {
		programs["usr/bin/"+name] = name
	}
	for _, plugin := range cniPlugins {
		programs["opt/cni/bin/"+filepath.Base(plugin)] = filepath.Base(plugin)
	}
	for name, program := range programs {
		if err := n.copy(name, modeProgram, n.binaries[program]); err != nil {
			return err
		}
	}
	return n.write("kind/version", modeFile, []byte("v"+n.version))
}

// network are this package's files on the node.
var network = map[string]string{
	"etc/systemd/system/node-cni.service": "node-cni.service",
	"kind/bin/node-cni.sh":                "node-cni.sh",
	"kind/cni.conflist":                   "cni.conflist",
	"kind/manifests/default-cni.yaml":     "default-cni.yaml",
	"kind/manifests/default-storage.yaml": "default-storage.yaml",
}

func (n node) addNetwork(context.Context) error {
	for name, file := range network {
		content, err := files.ReadFile("files/" + file)
		if err != nil {
			return err
		}
		mode := modeFile
		if strings.HasSuffix(name, ".sh") {
			mode = modeProgram
		}
		if err := n.write(name, mode, content); err != nil {
			return err
		}
	}
	return n.link("etc/systemd/system/multi-user.target.wants/node-cni.service", "/etc/systemd/system/node-cni.service")
}

// replace makes room for a file of the node.
func (n node) replace(name string) (string, error) {
	path := filepath.Join(n.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return path, os.RemoveAll(path)
}

func (n node) write(name string, mode fs.FileMode, content []byte) error {
	path, err := n.replace(name)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode) // whatever the umask is
}

func (n node) copy(name string, mode fs.FileMode, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return n.write(name, mode, content)
}

func (n node) link(name, target string) error {
	path, err := n.replace(name)
	if err != nil {
		return err
	}
	return os.Symlink(target, path)
}

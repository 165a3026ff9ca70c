package nodeimage

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// kubernetesModules are the folders of tools/nodeimage/modules that pin a Kubernetes version. What
// they require must be the version that they stand for here.
var kubernetesModules = map[string]string{
	"1.34.4": "kubernetes-1.34",
}

// The other modules that a node's programs come from; each folder of tools/nodeimage/modules pins
// one. etcd's is the version that kubeadm deploys. CoreDNS is newer than kubeadm asks for: it has
// the Go libraries of today.
const (
	moduleEtcd     = "etcd"
	moduleCoreDNS  = "coredns"
	moduleCRITools = "cri-tools"
	moduleCNI      = "cni"
)

// Debian's release that the node consists of. Its containerd is old enough to run wherever the
// kernel has cgroup v1, and new enough for the kubelets of this list.
const (
	debianSuite = "bookworm"
	// DebianMirror is where packages come from by default.
	DebianMirror = "http://deb.debian.org"
	// debianKeyring is how their signatures are checked. Debian has it, other systems as a package.
	debianKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
)

// debianPackages are what Kind's own base image installs, without the clients of storage systems,
// and with Debian's containerd and runc in the place of Kind's builds.
var debianPackages = []string{
	"systemd", "dbus", // the node's init
	"conntrack", "iptables", "nftables", "iproute2", "ethtool", "util-linux", "mount", "kmod", // the kubelet and kube-proxy
	"containerd", "runc", "libseccomp2", "pigz", // containers
	"bash", "ca-certificates", "curl", "jq", "procps", "hostname", // Kind's scripts
}

// recipeVersion changes when the same inputs give another image than before: it makes the images in
// the cache void.
const recipeVersion = "2"

// ErrVersion marks a Kubernetes version that there is no recipe for.
var ErrVersion = errors.New("no node image can be built for Kubernetes")

// Versions are the Kubernetes versions that an image can be built for.
func Versions() []string {
	return slices.Sorted(maps.Keys(kubernetesModules))
}

// kubernetesModule is the folder that pins the version.
func kubernetesModule(version string) (string, error) {
	folder, ok := kubernetesModules[version]
	if !ok {
		return "", fmt.Errorf("%w %s: choose one of %s", ErrVersion, version, strings.Join(Versions(), ", "))
	}
	return folder, nil
}

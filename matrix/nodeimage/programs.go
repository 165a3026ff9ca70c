package nodeimage

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/trussiumhq/trussium-operator/matrix/gobuild"
)

// kubernetesPrograms are built from Kubernetes itself.
var kubernetesPrograms = []string{
	"kubeadm", "kubelet", "kubectl", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy",
}

// cniPlugins are the packages of the plugins that the node's network needs.
var cniPlugins = []string{
	"github.com/containernetworking/plugins/plugins/main/ptp",
	"github.com/containernetworking/plugins/plugins/main/loopback",
	"github.com/containernetworking/plugins/plugins/ipam/host-local",
	"github.com/containernetworking/plugins/plugins/meta/portmap",
}

// programs are all programs of a node, the large ones first.
func programs(repository, version string) ([]gobuild.Program, error) {
	folder, err := kubernetesModule(version)
	if err != nil {
		return nil, err
	}
	module := func(name string) string { return filepath.Join(repository, "tools", "nodeimage", "modules", name) }
	pinned := []string{"go.mod", "go.sum"}
	var list []gobuild.Program
	for _, name := range kubernetesPrograms {
		list = append(list, gobuild.Program{
			Name: name, Dir: module(folder), Package: "k8s.io/kubernetes/cmd/" + name, LDFlags: versionFlags(version), Inputs: pinned,
		})
	}
	list = append(list,
		gobuild.Program{Name: "etcd", Dir: module(moduleEtcd), Package: "go.etcd.io/etcd/server/v3", Inputs: pinned},
		gobuild.Program{Name: "coredns", Dir: module(moduleCoreDNS), Inputs: append([]string{"main.go"}, pinned...)},
		gobuild.Program{Name: "crictl", Dir: module(moduleCRITools), Package: "sigs.k8s.io/cri-tools/cmd/crictl", Inputs: pinned},
	)
	for _, plugin := range cniPlugins {
		list = append(list, gobuild.Program{Dir: module(moduleCNI), Package: plugin, Inputs: pinned})
	}
	const pause = "tools/nodeimage/pause"
	return append(list, gobuild.Program{Dir: repository, Package: "./" + pause, Inputs: []string{pause}}), nil
}

// versionFlags make every program of Kubernetes say the version it was built from; without them it
// would be that of an unreleased build, which kubeadm refuses to deploy.
func versionFlags(version string) string {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for name, value := range map[string]string{"gitVersion": "v" + version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"} {
			flags = append(flags, "-X "+pkg+"."+name+"="+value)
		}
	}
	slices.Sort(flags) // a map has no order, and the flags are part of the cache key
	return strings.Join(flags, " ")
}

// binaries are the paths of built programs by name.
type binaries map[string]string

// buildAtOnce is how many programs are linked side by side: the linker, unlike the compiler, leaves a
// core idle most of the time.
const buildAtOnce = 2

// buildPrograms builds what the cache lacks, with temporary files in temp.
func buildPrograms(ctx context.Context, list []gobuild.Program, cacheDir, temp string, progress func(string)) (binaries, error) {
	var lacking []gobuild.Program
	for _, program := range list {
		have, err := program.IsCached(ctx, cacheDir)
		if err != nil {
			return nil, err
		}
		if !have {
			lacking = append(lacking, program)
		}
	}
	for _, programs := range byModule(lacking) {
		if len(programs) == 1 {
			continue // nobody compiles the same beside it
		}
		if err := gobuild.Compile(ctx, programs, temp, progress); err != nil {
			return nil, err
		}
	}
	paths := make([]string, len(list))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(buildAtOnce)
	for i, program := range list {
		group.Go(func() (err error) {
			paths[i], err = program.Cached(ctx, cacheDir, func(text string) {
				progress(fmt.Sprintf("program %d of %d: %s", i+1, len(list), text))
			})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	built := binaries{}
	for i, program := range list {
		built[programName(program)] = paths[i]
	}
	return built, nil
}

// byModule are the programs of each module, in the order of the list.
func byModule(list []gobuild.Program) [][]gobuild.Program {
	var modules [][]gobuild.Program
	for _, program := range list {
		i := slices.IndexFunc(modules, func(module []gobuild.Program) bool { return module[0].Dir == program.Dir })
		if i < 0 {
			modules = append(modules, nil)
			i = len(modules) - 1
		}
		modules[i] = append(modules[i], program)
	}
	return modules
}

func programName(program gobuild.Program) string {
	if program.Name != "" {
		return program.Name
	}
	return filepath.Base(program.Package)
}

package kind

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
)

// Host is what is particular to the machine that the nodes run on.
type Host struct {
	// Restricted tells that processes lack CAP_SYS_RESOURCE: none may lower its OOM score, and no
	// container may be given that capability.
	Restricted bool
	// CgroupV1 tells that the kernel's control groups are of the first version.
	CgroupV1 bool
}

// capSysResource is the number of CAP_SYS_RESOURCE, see capabilities(7).
const capSysResource = 24

// DetectRestricted tells whether processes of this machine lack CAP_SYS_RESOURCE. A system that is
// not Linux runs its containers in a virtual machine, which has it.
func DetectRestricted() (bool, error) {
	if runtime.GOOS != "linux" {
		return false, nil
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false, fmt.Errorf("read the capabilities of this machine's processes: %w", err)
	}
	return lacksSysResource(string(status))
}

// lacksSysResource reads the bounding set, which root and not root have in common.
func lacksSysResource(status string) (bool, error) {
	for line := range strings.Lines(status) {
		text, found := strings.CutPrefix(line, "CapBnd:")
		if !found {
			continue
		}
		set, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
		if err != nil {
			return false, fmt.Errorf("read the capabilities of this machine's processes: %w", err)
		}
		return set&(1<<capSysResource) == 0, nil
	}
	return false, fmt.Errorf("read the capabilities of this machine's processes: there is no CapBnd in %q", status)
}

// detectHost asks the system, and the engine, which may run elsewhere.
func detectHost(ctx context.Context, e engine) (Host, error) {
	restricted, err := DetectRestricted()
	if err != nil {
		return Host{}, err
	}
	format := "{{.CgroupVersion}}"
	if e == podman {
		format = "{{.Host.CgroupsVersion}}"
	}
	version, err := e.ask(ctx, "info", "--format", format)
	if err != nil {
		return Host{}, fmt.Errorf("ask the engine for the version of control groups: %w", err)
	}
	return Host{Restricted: restricted, CgroupV1: strings.TrimPrefix(version, "v") == "1"}, nil
}

// restrictOOM keeps containerd from giving containers a lower OOM score than its own, which the
// kernel refuses without CAP_SYS_RESOURCE: no pod would start.
const restrictOOM = `[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
`

// allowCgroupV1 lets a kubelet start that refuses control groups of the first version by default.
const allowCgroupV1 = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
`

// firstRefusingCgroupV1 is the minor version of Kubernetes 1 from which on kubelets refuse them.
const firstRefusingCgroupV1 = 35

// config is Kind's configuration of a cluster: one node, with what the host needs and nothing more.
func (h Host) config(kubernetes string) *v1alpha4.Cluster {
	config := &v1alpha4.Cluster{}
	if h.Restricted {
		config.ContainerdConfigPatches = []string{restrictOOM}
	}
	if h.CgroupV1 && minor(kubernetes) >= firstRefusingCgroupV1 {
		config.KubeadmConfigPatches = []string{allowCgroupV1}
	}
	return config
}

// minor is the 34 of 1.34.4.
func minor(kubernetes string) int {
	parts := strings.Split(kubernetes, ".")
	if len(parts) < 2 {
		return 0
	}
	number, _ := strconv.Atoi(parts[1]) // versions were checked when they were read
	return number
}

// limits are what results from a cluster on this host do not prove.
func (h Host) limits() []string {
	if !h.Restricted {
		return nil
	}
	return []string{"The node may not lower OOM scores: which process the kernel ends first when memory is short may differ from other nodes."}
}

//go:build linux

package node

import (
	"context"
	"crypto/tls"

	cadvisor "github.com/google/cadvisor/info/v1"
	"k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	"k8s.io/kubernetes/pkg/kubelet"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	cadvisortest "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubelet/server"
	kubeletutil "k8s.io/kubernetes/pkg/kubelet/util"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/network"
)

// What this file does differs between Kubernetes releases: the kubelet's internal
// interfaces are not kept stable. The form here is that of 1.32 to 1.36.

func initRuntimeService(_ context.Context, c *kubeletconfig.KubeletConfiguration, d *kubelet.Dependencies) error {
	return kubelet.PreInitRuntimeService(c, d)
}

func runKubelet(ctx context.Context, s *options.KubeletServer, d *kubelet.Dependencies) error {
	return app.RunKubelet(ctx, s, d)
}

func newNodeStartupLatencyTracker() kubeletutil.NodeStartupLatencyTracker {
	return kubeletutil.NewNodeStartupLatencyTracker()
}

func setTLS(d *kubelet.Dependencies, config *tls.Config, certificate, key string) error {
	d.TLSOptions = &server.TLSOptions{Config: config, CertFile: certificate, KeyFile: key}
	return nil
}

// machine is what the kubelet thinks it runs on.
type machine struct{ *cadvisortest.Fake }

func newMachine() machine { return machine{&cadvisortest.Fake{NodeName: network.NodeName}} }

func (machine) MachineInfo() (*cadvisor.MachineInfo, error) {
	return &cadvisor.MachineInfo{NumCores: nodeCPUs, MemoryCapacity: nodeMemoryBytes, InstanceID: network.NodeName}, nil
}

func (machine) VersionInfo() (*cadvisor.VersionInfo, error) {
	return &cadvisor.VersionInfo{KernelVersion: kernelRelease(), ContainerOsVersion: osImage}, nil
}

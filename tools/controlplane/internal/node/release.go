//go:build linux

package node

import (
	"context"
	"crypto/tls"
	"fmt"

	cadvisor "github.com/google/cadvisor/lib/model"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	"k8s.io/kubernetes/pkg/kubelet"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	cadvisortest "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	kubeletutil "k8s.io/kubernetes/pkg/kubelet/util"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/network"
)

// What this file does differs between Kubernetes releases: the kubelet's internal
// interfaces are not kept stable. The form here is that of 1.37.

func initRuntimeService(ctx context.Context, c *kubeletconfig.KubeletConfiguration, d *kubelet.Dependencies) error {
	return kubelet.PreInitRuntimeService(ctx, c, d)
}

func runKubelet(ctx context.Context, s *options.KubeletServer, d *kubelet.Dependencies) error {
	return app.RunKubelet(ctx, s, d)
}

func newNodeStartupLatencyTracker() kubeletutil.NodeStartupLatencyTracker {
	return kubeletutil.NewNodeStartupLatencyTracker(klog.Background())
}

func setTLS(d *kubelet.Dependencies, config *tls.Config, certificate, key string) error {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return fmt.Errorf("read the kubelet's certificate: %w", err)
	}
	config.Certificates = []tls.Certificate{pair}
	d.TLSConfig = config
	return nil
}

// machine is what the kubelet thinks it runs on.
type machine struct{ *cadvisortest.Fake }

func newMachine() machine { return machine{&cadvisortest.Fake{NodeName: network.NodeName}} }

func (machine) MachineInfo(klog.Logger) (*cadvisor.MachineInfo, error) {
	return &cadvisor.MachineInfo{NumCores: nodeCPUs, MemoryCapacity: nodeMemoryBytes, InstanceID: network.NodeName}, nil
}

func (machine) VersionInfo() (*cadvisor.VersionInfo, error) {
	return &cadvisor.VersionInfo{KernelVersion: kernelRelease(), ContainerOsVersion: osImage}, nil
}

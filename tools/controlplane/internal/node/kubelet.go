//go:build linux

package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace/noop"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	"k8s.io/kubernetes/pkg/kubelet"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	kubeletutil "k8s.io/kubernetes/pkg/kubelet/util"
	"k8s.io/kubernetes/pkg/util/oom"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/configmap"
	"k8s.io/kubernetes/pkg/volume/downwardapi"
	"k8s.io/kubernetes/pkg/volume/emptydir"
	"k8s.io/kubernetes/pkg/volume/projected"
	"k8s.io/kubernetes/pkg/volume/secret"
	"k8s.io/kubernetes/pkg/volume/util/hostutil"
	"k8s.io/kubernetes/pkg/volume/util/subpath"
	"k8s.io/mount-utils"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/controlplane"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/network"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/statedir"
)

const (
	// The node claims to be large whatever the machine is, because nothing enforces what
	// pods request: a request must not keep a pod from running on a small machine.
	nodeCPUs        = 64
	nodeMemoryBytes = 256 << 30
	// kubeletPort is where the API server reaches the kubelet.
	kubeletPort = 10250
	// maxPods is the kubelet's own default.
	maxPods = 110
	// The limits of the kubelet's requests to an API server that is its alone.
	clientQPS, clientBurst = 50, 100
)

// startKubelet starts the kubelet in this process; it runs until the process ends.
func startKubelet(ctx context.Context, dir statedir.Dir) error {
	// The kubelet may not be allowed to change kernel settings, and need not.
	gates := map[string]bool{"KubeletInUserNamespace": true}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		return fmt.Errorf("start the kubelet: %w", err)
	}
	configuration, err := kubeletConfiguration(dir)
	if err != nil {
		return fmt.Errorf("start the kubelet: %w", err)
	}
	dependencies, err := kubeletDependencies(dir)
	if err != nil {
		return fmt.Errorf("start the kubelet: %w", err)
	}
	if err := initRuntimeService(ctx, configuration, dependencies); err != nil {
		return fmt.Errorf("start the kubelet: %w", err)
	}
	server := &options.KubeletServer{KubeletFlags: *kubeletFlags(dir), KubeletConfiguration: *configuration}
	if err := runKubelet(ctx, server, dependencies); err != nil {
		return fmt.Errorf("start the kubelet: %w", err)
	}
	return nil
}

func kubeletFlags(dir statedir.Dir) *options.KubeletFlags {
	flags := options.NewKubeletFlags()
	flags.RootDirectory = dir.Kubelet()
	flags.CertDirectory = filepath.Join(dir.Kubelet(), "pki")
	flags.HostnameOverride = network.NodeName
	flags.NodeIP = network.NodeAddress
	flags.MinimumGCAge.Duration = time.Minute
	flags.MaxContainerCount = 100
	flags.MaxPerPodContainerCount = 2
	return flags
}

func kubeletConfiguration(dir statedir.Dir) (*kubeletconfig.KubeletConfiguration, error) {
	c, err := options.NewKubeletConfiguration()
	if err != nil {
		return nil, err
	}
	c.ContainerRuntimeEndpoint = "unix://" + dir.Socket("cri")
	c.Address = network.NodeAddress
	c.Port = kubeletPort
	c.ReadOnlyPort = 0
	c.HealthzPort = 0
	c.EnableServer = true
	c.EnableDebuggingHandlers = true // logs, exec and port-forward
	c.ClusterDNS = []string{network.DNSAddress}
	c.ClusterDomain = network.DNSDomain
	c.ResolverConfig = "" // the host's resolver can't be reached
	c.PodLogsDir = dir.PodLogs()
	c.MaxPods = maxPods
	c.SerializeImagePulls = false
	c.EnableControllerAttachDetach = false
	// There are no cgroups to put pods into, and no use in evicting them.
	c.CgroupsPerQOS = false
	c.EnforceNodeAllocatable = nil
	c.CgroupRoot = ""
	c.EvictionHard = map[string]string{}
	c.LocalStorageCapacityIsolation = false
	c.FailSwapOn = false
	c.OOMScoreAdj = 0
	return c, nil
}

func kubeletDependencies(dir statedir.Dir) (*kubelet.Dependencies, error) {
	config, err := clientcmd.BuildConfigFromFlags("", dir.Kubeconfig(controlplane.UserNode))
	if err != nil {
		return nil, fmt.Errorf("read the node's kubeconfig: %w", err)
	}
	config.QPS, config.Burst = clientQPS, clientBurst
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	dependencies := &kubelet.Dependencies{
		KubeClient:                client,
		HeartbeatClient:           client,
		EventClient:               client.CoreV1(),
		CAdvisorInterface:         newMachine(),
		OSInterface:               kubecontainer.RealOS{},
		ContainerManager:          cm.NewStubContainerManager(),
		VolumePlugins:             volumePlugins(),
		OOMAdjuster:               oom.NewFakeOOMAdjuster(),
		Mounter:                   &mount.FakeMounter{}, // volumes are plain folders
		Subpather:                 &subpath.FakeSubpath{},
		HostUtil:                  hostutil.NewHostUtil(),
		PodStartupLatencyTracker:  kubeletutil.NewPodStartupLatencyTracker(),
		NodeStartupLatencyTracker: newNodeStartupLatencyTracker(),
		TracerProvider:            noop.NewTracerProvider(),
	}
	return dependencies, setServing(dependencies, dir)
}

func volumePlugins() []volume.VolumePlugin {
	return slices.Concat(
		configmap.ProbeVolumePlugins(),
		downwardapi.ProbeVolumePlugins(),
		emptydir.ProbeVolumePlugins(),
		projected.ProbeVolumePlugins(),
		secret.ProbeVolumePlugins(),
	)
}

// setServing lets only holders of a certificate of the cluster talk to the kubelet. Pods
// have none.
func setServing(dependencies *kubelet.Dependencies, dir statedir.Dir) error {
	authority, err := os.ReadFile(filepath.Join(dir.PKI(), "ca.crt"))
	if err != nil {
		return fmt.Errorf("read the certificate authority: %w", err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(authority)
	config := &tls.Config{
		MinVersion: tls.VersionTLS12,
		ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs:  clients,
	}
	return setTLS(dependencies, config, filepath.Join(dir.PKI(), "kubelet.crt"), filepath.Join(dir.PKI(), "kubelet.key"))
}

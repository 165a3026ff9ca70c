//go:build linux

// Package node is the cluster's only node: the real kubelet, the container runtime that it
// uses, the proxy for Services, and the cluster's DNS server, in one process.
package node

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/container"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/controlplane"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/cri"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/dns"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/image"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/network"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/relay"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/serviceproxy"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/statedir"
)

// pullHeaderTimeout is how long a registry may take to begin an answer.
const pullHeaderTimeout = time.Minute

// Arguments are the arguments of Run.
func Arguments(dir statedir.Dir, mirrors image.Mirrors) []string {
	arguments := []string{"--dir=" + string(dir)}
	for host, base := range mirrors {
		arguments = append(arguments, "--mirror="+host+"="+base)
	}
	return arguments
}

// Run runs the node until it is told to stop by a signal, and then ends its containers.
func Run(arguments []string) error {
	var dir string
	var mirrors map[string]string
	flags := pflag.NewFlagSet(controlplane.Node, pflag.ContinueOnError)
	flags.StringVar(&dir, "dir", "", "state folder")
	flags.StringToStringVar(&mirrors, "mirror", nil, "registry host = base URL")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return run(ctx, statedir.Dir(dir), mirrors)
}

func run(ctx context.Context, dir statedir.Dir, mirrors image.Mirrors) error {
	if container.SingleID() {
		if err := ignoreOwnerChanges(); err != nil {
			return err
		}
	}
	for _, folder := range []string{dir.Containers(), dir.Images(), dir.Kubelet(), dir.PodLogs()} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("prepare the node: %w", err)
		}
	}
	runtime, err := cri.New(dir, image.NewStore(dir.Images(), mirrors, registryTransport(dir)))
	if err != nil {
		return err
	}
	defer runtime.Shutdown()
	// The kubelet looks for the socket once, when it starts.
	listener, err := net.Listen("unix", dir.Socket("cri"))
	if err != nil {
		return fmt.Errorf("serve the container runtime: %w", err)
	}
	failed := make(chan error, 4)
	go func() { failed <- runtime.Serve(listener) }()
	go func() { failed <- runtime.ServeStreams() }()
	if err := serveServices(ctx, dir, failed); err != nil {
		return err
	}
	if err := startKubelet(ctx, dir); err != nil {
		return err
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// registryTransport reaches registries through the process outside of the node's network.
func registryTransport(dir statedir.Dir) http.RoundTripper {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           relay.Dialer{Socket: dir.Socket("relay")}.DialContext,
		ForceAttemptHTTP2:     true,
		TLSHandshakeTimeout:   pullHeaderTimeout,
		ResponseHeaderTimeout: pullHeaderTimeout,
	}
}

// serveServices starts the proxy and the DNS server, which follow the same objects.
func serveServices(ctx context.Context, dir statedir.Dir, failed chan<- error) error {
	config, err := clientcmd.BuildConfigFromFlags("", dir.Kubeconfig(controlplane.UserProxy))
	if err != nil {
		return fmt.Errorf("read the proxy's kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	proxy, err := serviceproxy.New(factory)
	if err != nil {
		return err
	}
	records := dns.Records{
		Domain:   network.DNSDomain,
		Services: factory.Core().V1().Services().Lister(),
		Slices:   factory.Discovery().V1().EndpointSlices().Lister(),
	}
	factory.Start(ctx.Done())
	go proxy.Run(ctx)
	go func() {
		if err := dns.Serve(ctx, network.DNSAddress+":53", records); err != nil {
			failed <- err
		}
	}()
	return nil
}

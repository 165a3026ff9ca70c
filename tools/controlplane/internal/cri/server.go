//go:build linux

// Package cri is a container runtime for the kubelet, whose containers are processes of
// this machine in namespaces of their own. It serves the Container Runtime Interface.
package cri

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/image"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/network"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/statedir"
)

const (
	runtimeName    = "embedded"
	runtimeVersion = "1.0.0"
	// shutdownGrace is how long containers may take to end when the node is stopped.
	shutdownGrace = time.Second
)

// Server is the container runtime.
type Server struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	runtimeapi.UnimplementedImageServiceServer

	dir       statedir.Dir
	images    *image.Store
	streaming streamingServer
	addresses network.Allocator

	mu         sync.Mutex
	sandboxes  map[string]*sandbox
	containers map[string]*runtimeContainer
}

// New makes a container runtime that keeps containers below dir.
func New(dir statedir.Dir, images *image.Store) (*Server, error) {
	s := &Server{
		dir:        dir,
		images:     images,
		sandboxes:  map[string]*sandbox{},
		containers: map[string]*runtimeContainer{},
	}
	var err error
	s.streaming, err = newStreamingServer(streamRuntime{s})
	if err != nil {
		return nil, fmt.Errorf("make the streaming server: %w", err)
	}
	return s, nil
}

// Serve answers the kubelet on listener until the process ends.
func (s *Server) Serve(listener net.Listener) error {
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, s)
	runtimeapi.RegisterImageServiceServer(server, s)
	return server.Serve(listener)
}

// ServeStreams serves kubectl exec and port-forward until the process ends.
func (s *Server) ServeStreams() error {
	if err := s.streaming.Start(true); err != nil {
		return fmt.Errorf("serve streams: %w", err)
	}
	return nil
}

// Shutdown ends all containers.
func (s *Server) Shutdown() {
	var all sync.WaitGroup
	for _, c := range s.allContainers() {
		all.Go(func() { c.stop(shutdownGrace) })
	}
	all.Wait()
}

// Version says what this runtime is.
func (s *Server) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{
		Version:           "0.1.0", // of the kubelet's own protocol
		RuntimeName:       runtimeName,
		RuntimeVersion:    runtimeVersion,
		RuntimeApiVersion: "v1",
	}, nil
}

// Status says that the runtime and its network work; they do once it serves.
func (s *Server) Status(context.Context, *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
		{Type: runtimeapi.RuntimeReady, Status: true},
		{Type: runtimeapi.NetworkReady, Status: true},
	}}}, nil
}

// RuntimeConfig names a cgroup driver, which the kubelet wants to agree with its own.
func (s *Server) RuntimeConfig(context.Context, *runtimeapi.RuntimeConfigRequest) (*runtimeapi.RuntimeConfigResponse, error) {
	return &runtimeapi.RuntimeConfigResponse{
		Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: runtimeapi.CgroupDriver_CGROUPFS},
	}, nil
}

// UpdateRuntimeConfig accepts the pods' address range, which is fixed here.
func (s *Server) UpdateRuntimeConfig(context.Context, *runtimeapi.UpdateRuntimeConfigRequest) (*runtimeapi.UpdateRuntimeConfigResponse, error) {
	return &runtimeapi.UpdateRuntimeConfigResponse{}, nil
}

// ListContainerStats has nothing to say: there are no cgroups to count in.
func (s *Server) ListContainerStats(context.Context, *runtimeapi.ListContainerStatsRequest) (*runtimeapi.ListContainerStatsResponse, error) {
	return &runtimeapi.ListContainerStatsResponse{}, nil
}

// ListPodSandboxStats has nothing to say: there are no cgroups to count in.
func (s *Server) ListPodSandboxStats(context.Context, *runtimeapi.ListPodSandboxStatsRequest) (*runtimeapi.ListPodSandboxStatsResponse, error) {
	return &runtimeapi.ListPodSandboxStatsResponse{}, nil
}

// newID makes an identifier in the form that container runtimes use.
func newID() string {
	var id [32]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// matches tells whether labels have all that selector wants.
func matches(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}

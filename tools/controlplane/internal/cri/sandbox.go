//go:build linux

package cri

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/network"
)

// sandbox is a pod: the namespaces that its containers share.
type sandbox struct {
	id      string
	config  *runtimeapi.PodSandboxConfig
	created time.Time
	pod     *network.Pod
	// address stays known after the pod has been stopped; owned says that it is the pod's.
	address string
	owned   bool
	// state is protected by Server.mu.
	state runtimeapi.PodSandboxState
}

// RunPodSandbox makes the namespaces of a pod.
func (s *Server) RunPodSandbox(_ context.Context, request *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	options := request.Config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	if err := checkNamespaces(options); err != nil {
		return nil, status.Error(codes.Unimplemented, err.Error())
	}
	hostNetwork := options.GetNetwork() == runtimeapi.NamespaceMode_NODE
	address := network.NodeAddress
	if !hostNetwork {
		var err error
		if address, err = s.addresses.Take(); err != nil {
			return nil, status.Error(codes.ResourceExhausted, err.Error())
		}
	}
	pod, err := network.NewPod(request.Config.Hostname, address, hostNetwork)
	if err != nil {
		if !hostNetwork {
			s.addresses.Release(address)
		}
		return nil, err
	}
	box := &sandbox{
		id:      newID(),
		config:  request.Config,
		created: time.Now(),
		pod:     pod,
		address: address,
		owned:   !hostNetwork,
		state:   runtimeapi.PodSandboxState_SANDBOX_READY,
	}
	s.mu.Lock()
	s.sandboxes[box.id] = box
	s.mu.Unlock()
	return &runtimeapi.RunPodSandboxResponse{PodSandboxId: box.id}, nil
}

func checkNamespaces(options *runtimeapi.NamespaceOption) error {
	switch options.GetPid() {
	case runtimeapi.NamespaceMode_POD:
		return errors.New("the embedded cluster does not support shareProcessNamespace")
	case runtimeapi.NamespaceMode_NODE:
		return errors.New("the embedded cluster does not support hostPID")
	}
	if options.GetIpc() == runtimeapi.NamespaceMode_NODE {
		return errors.New("the embedded cluster does not support hostIPC")
	}
	return nil
}

func (s *Server) findSandbox(id string) (*sandbox, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if box := s.sandboxes[id]; box != nil {
		return box, nil
	}
	return nil, status.Errorf(codes.NotFound, "pod sandbox %q not found", id)
}

// StopPodSandbox kills what still runs in a pod and lets go of its namespaces.
func (s *Server) StopPodSandbox(_ context.Context, request *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	box, err := s.findSandbox(request.PodSandboxId)
	if err != nil {
		return &runtimeapi.StopPodSandboxResponse{}, nil // gone already
	}
	for _, c := range s.allContainers() {
		if c.sandbox == box {
			c.stop(0)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if box.state == runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
		return &runtimeapi.StopPodSandboxResponse{}, nil
	}
	box.state = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	if err := box.pod.Close(); err != nil {
		return nil, fmt.Errorf("stop pod sandbox %q: %w", box.id, err)
	}
	if box.owned {
		s.addresses.Release(box.address)
	}
	return &runtimeapi.StopPodSandboxResponse{}, nil
}

// RemovePodSandbox forgets a pod and its containers.
func (s *Server) RemovePodSandbox(ctx context.Context, request *runtimeapi.RemovePodSandboxRequest) (*runtimeapi.RemovePodSandboxResponse, error) {
	if _, err := s.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: request.PodSandboxId}); err != nil {
		return nil, err
	}
	for _, c := range s.allContainers() {
		if c.sandbox.id != request.PodSandboxId {
			continue
		}
		if _, err := s.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: c.id}); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sandboxes, request.PodSandboxId)
	return &runtimeapi.RemovePodSandboxResponse{}, nil
}

// PodSandboxStatus describes one pod.
func (s *Server) PodSandboxStatus(_ context.Context, request *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
	box, err := s.findSandbox(request.PodSandboxId)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &runtimeapi.PodSandboxStatusResponse{Status: &runtimeapi.PodSandboxStatus{
		Id:          box.id,
		Metadata:    box.config.Metadata,
		State:       box.state,
		CreatedAt:   box.created.UnixNano(),
		Network:     &runtimeapi.PodSandboxNetworkStatus{Ip: box.address},
		Labels:      box.config.Labels,
		Annotations: box.config.Annotations,
		Linux: &runtimeapi.LinuxPodSandboxStatus{
			Namespaces: &runtimeapi.Namespace{Options: box.config.GetLinux().GetSecurityContext().GetNamespaceOptions()},
		},
	}}, nil
}

// ListPodSandbox lists the pods that match a filter.
func (s *Server) ListPodSandbox(_ context.Context, request *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	response := &runtimeapi.ListPodSandboxResponse{}
	for _, box := range s.sandboxes {
		if !box.selected(request.Filter) {
			continue
		}
		response.Items = append(response.Items, &runtimeapi.PodSandbox{
			Id:          box.id,
			Metadata:    box.config.Metadata,
			State:       box.state,
			CreatedAt:   box.created.UnixNano(),
			Labels:      box.config.Labels,
			Annotations: box.config.Annotations,
		})
	}
	return response, nil
}

func (b *sandbox) selected(filter *runtimeapi.PodSandboxFilter) bool {
	switch {
	case filter == nil:
		return true
	case filter.Id != "" && filter.Id != b.id:
		return false
	case filter.State != nil && filter.State.State != b.state:
		return false
	}
	return matches(filter.LabelSelector, b.config.Labels)
}

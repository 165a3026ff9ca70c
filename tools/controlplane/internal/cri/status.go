//go:build linux

package cri

import (
	"context"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ContainerStatus describes one container.
func (s *Server) ContainerStatus(_ context.Context, request *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	c, err := s.findContainer(request.ContainerId)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{
		Id:          c.id,
		Metadata:    c.config.Metadata,
		State:       c.state,
		CreatedAt:   c.created.UnixNano(),
		StartedAt:   nanoseconds(c.started),
		FinishedAt:  nanoseconds(c.finished),
		ExitCode:    c.exitCode,
		Reason:      c.reason,
		Message:     c.message,
		Image:       &runtimeapi.ImageSpec{Image: c.imageName()},
		ImageRef:    c.imageReference(),
		ImageId:     c.image.ID,
		Labels:      c.config.Labels,
		Annotations: c.config.Annotations,
		Mounts:      c.config.Mounts,
		LogPath:     c.logPath(),
	}}, nil
}

// imageName is the image as the pod names it.
func (c *runtimeContainer) imageName() string {
	if name := c.config.Image.GetUserSpecifiedImage(); name != "" {
		return name
	}
	if len(c.image.Tags) > 0 {
		return c.image.Tags[0]
	}
	return c.image.ID
}

// imageReference is the image by the digest of its manifest, which becomes the imageID of
// the pod's status.
func (c *runtimeContainer) imageReference() string {
	if len(c.image.Digests) > 0 {
		return c.image.Digests[0]
	}
	return c.image.ID
}

// nanoseconds is 0 for a time that has not come.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// ListContainers lists the containers that match a filter.
func (s *Server) ListContainers(_ context.Context, request *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	response := &runtimeapi.ListContainersResponse{}
	for _, c := range s.allContainers() {
		c.mu.Lock()
		state := c.state
		c.mu.Unlock()
		if !c.selected(request.Filter, state) {
			continue
		}
		response.Containers = append(response.Containers, &runtimeapi.Container{
			Id:           c.id,
			PodSandboxId: c.sandbox.id,
			Metadata:     c.config.Metadata,
			Image:        c.config.Image,
			ImageRef:     c.imageReference(),
			ImageId:      c.image.ID,
			State:        state,
			CreatedAt:    c.created.UnixNano(),
			Labels:       c.config.Labels,
			Annotations:  c.config.Annotations,
		})
	}
	return response, nil
}

func (c *runtimeContainer) selected(filter *runtimeapi.ContainerFilter, state runtimeapi.ContainerState) bool {
	switch {
	case filter == nil:
		return true
	case filter.Id != "" && filter.Id != c.id:
		return false
	case filter.PodSandboxId != "" && filter.PodSandboxId != c.sandbox.id:
		return false
	case filter.State != nil && filter.State.State != state:
		return false
	}
	return matches(filter.LabelSelector, c.config.Labels)
}

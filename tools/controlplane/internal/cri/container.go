//go:build linux

package cri

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/container"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/image"
)

// The reasons that the kubelet shows for the end of a container, as with containerd.
const (
	reasonCompleted  = "Completed"
	reasonError      = "Error"
	reasonStartError = "StartError"
)

// signalDelay is how long a container runs before it is asked to end: the kernel drops a signal to the
// first process of a namespace that has no handler for it yet. A runtime that starts a process for
// each of the two takes as long.
const signalDelay = 200 * time.Millisecond

// startErrorCode is the exit code of a container whose program could not be started.
const startErrorCode = 128

// runtimeContainer is a container, whether it runs or not.
type runtimeContainer struct {
	id      string
	sandbox *sandbox
	config  *runtimeapi.ContainerConfig
	image   image.Image
	created time.Time
	log     *logFile
	// scratch is the folder that the container's own file system is mounted on.
	scratch string
	// exited is closed when the container has ended.
	exited chan struct{}

	mu                sync.Mutex
	state             runtimeapi.ContainerState
	running           *container.Running
	started, finished time.Time
	exitCode          int32
	reason, message   string
}

// CreateContainer prepares a container; nothing runs yet.
func (s *Server) CreateContainer(_ context.Context, request *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	box, err := s.findSandbox(request.PodSandboxId)
	if err != nil {
		return nil, err
	}
	found, ok := s.images.Find(request.Config.Image.GetImage())
	if !ok {
		return nil, status.Errorf(codes.NotFound, "image %q is not present", request.Config.Image.GetImage())
	}
	c := &runtimeContainer{
		id:      newID(),
		sandbox: box,
		config:  request.Config,
		image:   found,
		created: time.Now(),
		state:   runtimeapi.ContainerState_CONTAINER_CREATED,
		exited:  make(chan struct{}),
	}
	c.scratch = filepath.Join(s.dir.Containers(), c.id)
	if err := os.MkdirAll(c.scratch, 0o755); err != nil {
		return nil, fmt.Errorf("create container: %w", err)
	}
	if c.log, err = openLog(c.logPath()); err != nil {
		return nil, fmt.Errorf("create container: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.containers[c.id] = c
	return &runtimeapi.CreateContainerResponse{ContainerId: c.id}, nil
}

func (c *runtimeContainer) logPath() string {
	if c.config.LogPath == "" {
		return ""
	}
	return filepath.Join(c.sandbox.config.LogDirectory, c.config.LogPath)
}

// StartContainer runs a container's program. If it can't be run the container has ended.
func (s *Server) StartContainer(_ context.Context, request *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	c, err := s.findContainer(request.ContainerId)
	if err != nil {
		return nil, err
	}
	if err := c.start(); err != nil {
		c.ended(startErrorCode, reasonStartError, err.Error())
		return nil, status.Errorf(codes.Unknown, "start container: %v", err)
	}
	return &runtimeapi.StartContainerResponse{}, nil
}

func (c *runtimeContainer) start() error {
	spec, err := c.spec()
	if err != nil {
		return err
	}
	stdout, err := c.log.stream("stdout")
	if err != nil {
		return err
	}
	stderr, err := c.log.stream("stderr")
	if err != nil {
		stdout.Close()
		return err
	}
	running, err := container.Start(c.sandbox.pod, spec, stdout, stderr)
	stdout.Close()
	stderr.Close()
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.running = running
	c.started = time.Now()
	c.state = runtimeapi.ContainerState_CONTAINER_RUNNING
	c.mu.Unlock()
	go func() {
		code := running.Wait()
		reason := reasonError
		if code == 0 {
			reason = reasonCompleted
		}
		c.ended(int32(code), reason, "")
	}()
	return nil
}

// ended records the end of the container, after the last line of its log.
func (c *runtimeContainer) ended(code int32, reason, message string) {
	c.log.drain()
	c.mu.Lock()
	c.state = runtimeapi.ContainerState_CONTAINER_EXITED
	c.finished = time.Now()
	c.exitCode = code
	c.reason = reason
	c.message = message
	c.mu.Unlock()
	close(c.exited)
}

// stop asks the container to end and kills it after grace; it returns when it has ended.
func (c *runtimeContainer) stop(grace time.Duration) {
	c.mu.Lock()
	running, started := c.running, c.started
	c.mu.Unlock()
	if running == nil {
		return
	}
	if grace > 0 {
		time.Sleep(time.Until(started.Add(signalDelay)))
		_ = running.Signal(stopSignal(c.image.Config.StopSignal))
		select {
		case <-c.exited:
			return
		case <-time.After(grace):
		}
	}
	_ = running.Signal(syscall.SIGKILL)
	<-c.exited
}

// stopSignal is the signal that the image's author wants, by name; SIGTERM by default.
func stopSignal(name string) syscall.Signal {
	if signal := unix.SignalNum(name); signal != 0 {
		return signal
	}
	return syscall.SIGTERM
}

func (s *Server) findContainer(id string) (*runtimeContainer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.containers[id]; c != nil {
		return c, nil
	}
	return nil, status.Errorf(codes.NotFound, "container %q not found", id)
}

func (s *Server) allContainers() []*runtimeContainer {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*runtimeContainer
	for _, c := range s.containers {
		all = append(all, c)
	}
	return all
}

// StopContainer ends a container, within the given number of seconds by itself.
func (s *Server) StopContainer(_ context.Context, request *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	c, err := s.findContainer(request.ContainerId)
	if err == nil {
		c.stop(time.Duration(request.Timeout) * time.Second)
	}
	return &runtimeapi.StopContainerResponse{}, nil
}

// RemoveContainer forgets a container and its files; its log is the kubelet's.
func (s *Server) RemoveContainer(_ context.Context, request *runtimeapi.RemoveContainerRequest) (*runtimeapi.RemoveContainerResponse, error) {
	c, err := s.findContainer(request.ContainerId)
	if err != nil {
		return &runtimeapi.RemoveContainerResponse{}, nil // gone already
	}
	c.stop(0)
	s.mu.Lock()
	delete(s.containers, c.id)
	s.mu.Unlock()
	c.log.close()
	if err := os.RemoveAll(c.scratch); err != nil {
		return nil, fmt.Errorf("remove container: %w", err)
	}
	return &runtimeapi.RemoveContainerResponse{}, nil
}

// ReopenContainerLog follows the kubelet's rotation of a log.
func (s *Server) ReopenContainerLog(_ context.Context, request *runtimeapi.ReopenContainerLogRequest) (*runtimeapi.ReopenContainerLogResponse, error) {
	c, err := s.findContainer(request.ContainerId)
	if err != nil {
		return nil, err
	}
	if err := c.log.reopen(); err != nil {
		return nil, fmt.Errorf("reopen the log of container %q: %w", c.id, err)
	}
	return &runtimeapi.ReopenContainerLogResponse{}, nil
}

// UpdateContainerResources accepts limits, which nothing here enforces.
func (s *Server) UpdateContainerResources(context.Context, *runtimeapi.UpdateContainerResourcesRequest) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	return &runtimeapi.UpdateContainerResourcesResponse{}, nil
}

//go:build linux

package cri

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/container"
)

// streamAddress is where the kubelet reaches the streaming server, inside the node.
const streamAddress = "127.0.0.1:10260"

// running returns a container's process, or an error if it doesn't run.
func (s *Server) running(id string) (*container.Running, error) {
	c, err := s.findContainer(id)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return nil, status.Errorf(codes.FailedPrecondition, "container %q is not running", id)
	}
	return c.running, nil
}

// ExecSync runs a command in a container and returns what it wrote, for probes and hooks.
func (s *Server) ExecSync(ctx context.Context, request *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	running, err := s.running(request.ContainerId)
	if err != nil {
		return nil, err
	}
	if request.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(request.Timeout)*time.Second)
		defer cancel()
	}
	var stdout, stderr bytes.Buffer
	cmd, err := running.Exec(request.Cmd, container.ExecIO{Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		return nil, status.Errorf(codes.Unknown, "exec %q: %v", request.Cmd, err)
	}
	code, err := waitFor(ctx, cmd)
	if err != nil {
		return nil, status.Errorf(codes.DeadlineExceeded, "exec %q: %v", request.Cmd, err)
	}
	return &runtimeapi.ExecSyncResponse{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), ExitCode: int32(code)}, nil
}

// waitFor waits for a command; it is killed when ctx ends.
func waitFor(ctx context.Context, cmd *exec.Cmd) (code int, err error) {
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	waitErr := cmd.Wait()
	stop()
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	var exit *exec.ExitError
	if waitErr != nil && !errors.As(waitErr, &exit) {
		return 0, waitErr
	}
	return container.ExitCode(cmd.ProcessState), nil
}

// Exec returns the address where kubectl exec reaches a new process.
func (s *Server) Exec(_ context.Context, request *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	if _, err := s.running(request.ContainerId); err != nil {
		return nil, err
	}
	return s.streaming.GetExec(request)
}

// Attach is not possible: a container's output goes to its log only.
func (s *Server) Attach(context.Context, *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	return nil, status.Error(codes.Unimplemented, "the embedded cluster does not support attach: use logs or exec")
}

// PortForward returns the address where kubectl port-forward reaches a pod.
func (s *Server) PortForward(_ context.Context, request *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	return s.streaming.GetPortForward(request)
}

// streamRuntime does the work of the streaming server.
type streamRuntime struct{ server *Server }

// Exec runs a command with its streams.
func (r streamRuntime) Exec(ctx context.Context, id string, args []string, stdin io.Reader, stdout, stderr io.WriteCloser, tty bool, resize <-chan terminalSize) error {
	running, err := r.server.running(id)
	if err != nil {
		return err
	}
	if tty {
		return execTerminal(ctx, running, args, stdin, stdout, resize)
	}
	streams := container.ExecIO{}
	if stdin != nil {
		reader, writer, err := os.Pipe()
		if err != nil {
			return err
		}
		defer reader.Close()
		go func() {
			_, _ = io.Copy(writer, stdin) // ends with the stream, when this function has returned
			writer.Close()
		}()
		streams.Stdin = reader
	}
	if stdout != nil { // a nil WriteCloser is not a nil Writer
		streams.Stdout = stdout
	}
	if stderr != nil {
		streams.Stderr = stderr
	}
	cmd, err := running.Exec(args, streams)
	if err != nil {
		return err
	}
	return exitError(waitFor(ctx, cmd))
}

// PortForward connects a stream to a port of a pod.
func (r streamRuntime) PortForward(_ context.Context, sandboxID string, port int32, stream io.ReadWriteCloser) error {
	box, err := r.server.findSandbox(sandboxID)
	if err != nil {
		return err
	}
	conn, err := box.pod.Dial(net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return fmt.Errorf("forward port %d: %w", port, err)
	}
	defer conn.Close()
	go func() {
		_, _ = io.Copy(conn, stream)
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}()
	_, err = io.Copy(stream, conn)
	return err
}

// Attach is refused before it comes here.
func (r streamRuntime) Attach(context.Context, string, io.Reader, io.WriteCloser, io.WriteCloser, bool, <-chan terminalSize) error {
	return errors.New("attach is not supported")
}

// codeError is a failed command's exit code, in the form that the streaming server passes on.
type codeError int

func (e codeError) Error() string   { return fmt.Sprintf("command terminated with exit code %d", int(e)) }
func (e codeError) String() string  { return e.Error() }
func (e codeError) Exited() bool    { return true }
func (e codeError) ExitStatus() int { return int(e) }

func exitError(code int, err error) error {
	if err == nil && code != 0 {
		return codeError(code)
	}
	return err
}

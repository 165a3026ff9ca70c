package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"k8s.io/component-base/version"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/statedir"
)

// status is what a ready cluster tells about itself, as one line of JSON: once on standard
// output, and to everyone who connects to the control socket.
type status struct {
	// Kubernetes is the version without a leading v.
	Kubernetes string `json:"kubernetes"`
	// Server is the API server's URL.
	Server string `json:"server"`
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string `json:"kubeconfig"`
	// Control is the identity of this program that it was started with.
	Control string `json:"control"`
	// Node tells whether pods can run.
	Node bool `json:"node"`
	// Keep tells whether the state folder stays at the end.
	Keep bool `json:"keep"`
	// Limits are sentences on what the cluster does not do.
	Limits []string `json:"limits"`
}

func newStatus(o options, server string, limits []string) status {
	return status{
		Kubernetes: strings.TrimPrefix(version.Get().GitVersion, "v"),
		Server:     server,
		Kubeconfig: o.state().Kubeconfig("admin"),
		Control:    o.control,
		Node:       o.node,
		Keep:       o.keep,
		Limits:     limits,
	}
}

// encode returns the status as a line.
func (s status) encode() ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode the status: %w", err)
	}
	return append(text, '\n'), nil
}

// publish opens the control socket and prints the status. Whoever connects to the socket
// gets the status and then, for as long as the cluster runs, an open connection: its other
// end is this process for certain, where a process id in a file could be anyone's.
func publish(dir statedir.Dir, text []byte) (*net.UnixListener, error) {
	address := &net.UnixAddr{Name: dir.Socket("control"), Net: "unix"}
	_ = os.Remove(address.Name) // left by a cluster that was killed
	listener, err := net.ListenUnix("unix", address)
	if err != nil {
		return nil, fmt.Errorf("open the control socket: %w", err)
	}
	// The folder is removed as a whole; by its path the socket might not be found any more.
	listener.SetUnlinkOnClose(false)
	go serveStatus(listener, text)
	if _, err := os.Stdout.Write(text); err != nil {
		listener.Close()
		return nil, fmt.Errorf("print the status: %w", err)
	}
	return listener, nil
}

func serveStatus(listener *net.UnixListener, text []byte) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			_, _ = conn.Write(text)
			_, _ = io.Copy(io.Discard, conn) // until the other side lets go
		}()
	}
}

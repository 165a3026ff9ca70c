//go:build linux

package cri

import (
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/kubelet/pkg/cri/streaming"
)

type (
	terminalSize    = remotecommand.TerminalSize
	streamingServer = streaming.Server
)

func newStreamingServer(runtime streaming.Runtime) (streamingServer, error) {
	config := streaming.DefaultConfig
	config.Addr = streamAddress
	return streaming.NewServer(config, runtime)
}

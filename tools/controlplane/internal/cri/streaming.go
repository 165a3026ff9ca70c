//go:build linux

package cri

import (
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
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

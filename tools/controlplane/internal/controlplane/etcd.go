//go:build linux

package controlplane

import (
	"context"
	"fmt"
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/statedir"
)

// startEtcd runs etcd in this process, on a unix socket in the state folder, which only
// its owner can enter: no port is taken and no certificate is needed.
func startEtcd(ctx context.Context, dir statedir.Dir) (*embed.Etcd, error) {
	config := embed.NewConfig()
	config.Dir = dir.Etcd()
	config.ListenClientUrls = []url.URL{{Scheme: "unix", Path: dir.Socket("etcd")}}
	config.ListenPeerUrls = []url.URL{{Scheme: "unix", Path: dir.Socket("etcd-peer")}}
	// etcd demands host:port here; nobody dials it, there is one member.
	unused := []url.URL{{Scheme: "http", Host: "127.0.0.1:1"}}
	config.AdvertiseClientUrls = unused
	config.AdvertisePeerUrls = unused
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	// The data does not outlive the cluster, so it need not survive a power cut.
	config.UnsafeNoFsync = true
	config.Logger = "zap"
	config.LogLevel = "error"
	config.LogOutputs = []string{dir.Log("etcd")}
	server, err := embed.StartEtcd(config)
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	select {
	case <-server.Server.ReadyNotify():
		return server, nil
	case err := <-server.Err():
		server.Close()
		return nil, fmt.Errorf("start etcd: %w", err)
	case <-ctx.Done():
		server.Close()
		return nil, fmt.Errorf("start etcd: %w", context.Cause(ctx))
	}
}

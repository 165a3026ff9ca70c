//go:build linux

package controlplane

import (
	"fmt"
	"net"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/network"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/pki"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/statedir"
)

// The users whose kubeconfig files the node reads.
const (
	UserNode  = "node"
	UserProxy = "kube-proxy"
)

// writeCredentials makes all keys and kubeconfig files. inside is the API server's URL for
// the components, outside the one for people and tests.
func writeCredentials(dir statedir.Dir, inside, outside string) error {
	authority, err := pki.New(dir.PKI())
	if err != nil {
		return err
	}
	if err := authority.SigningKey("service-accounts"); err != nil {
		return err
	}
	loopback := net.ParseIP(network.Loopback)
	node := net.ParseIP(network.NodeAddress)
	service := "kubernetes.default.svc"
	certificates := map[string]pki.Certificate{
		"apiserver": {
			CommonName: APIServer,
			DNSNames:   []string{"localhost", "kubernetes", "kubernetes.default", service, service + "." + network.DNSDomain},
			Addresses:  []net.IP{loopback, node, net.ParseIP(network.APIServiceAddress)},
		},
		"kubelet": {
			CommonName: "system:node:" + network.NodeName,
			DNSNames:   []string{network.NodeName},
			Addresses:  []net.IP{loopback, node},
		},
		"apiserver-kubelet-client": {
			CommonName:   "kube-apiserver-kubelet-client",
			Organization: []string{"system:masters"},
		},
	}
	for name, certificate := range certificates {
		if _, _, err := authority.Issue(name, certificate); err != nil {
			return err
		}
	}
	users := map[string]pki.Certificate{
		ControllerManager: {CommonName: "system:kube-controller-manager"},
		Scheduler:         {CommonName: "system:kube-scheduler"},
		UserProxy:         {CommonName: "system:kube-proxy"},
		UserNode:          {CommonName: "system:node:" + network.NodeName, Organization: []string{"system:nodes"}},
	}
	for name, user := range users {
		if err := authority.Kubeconfig(dir.Kubeconfig(name), name, inside, user); err != nil {
			return err
		}
	}
	administrator := pki.Certificate{CommonName: "kubernetes-admin", Organization: []string{"system:masters"}}
	if err := authority.Kubeconfig(dir.Kubeconfig("admin"), "admin", outside, administrator); err != nil {
		return fmt.Errorf("administrator: %w", err)
	}
	// The same user, reaching the API server from inside.
	return authority.Kubeconfig(dir.Kubeconfig("supervisor"), "supervisor", inside, administrator)
}

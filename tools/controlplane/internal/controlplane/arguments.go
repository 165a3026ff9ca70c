//go:build linux

package controlplane

import (
	"fmt"
	"path/filepath"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/network"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/statedir"
)

// The names of the components, which are also the commands of this program that run them.
const (
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
)

func apiServerArguments(dir statedir.Dir, address string, port int, node bool, extra []string) []string {
	pki := func(name string) string { return filepath.Join(dir.PKI(), name) }
	arguments := []string{
		"--etcd-servers=unix://" + dir.Socket("etcd"),
		"--bind-address=" + address,
		fmt.Sprintf("--secure-port=%d", port),
		"--advertise-address=" + address,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--client-ca-file=" + pki("ca.crt"),
		"--tls-cert-file=" + pki("apiserver.crt"),
		"--tls-private-key-file=" + pki("apiserver.key"),
		"--service-account-issuer=https://kubernetes.default.svc." + network.DNSDomain,
		"--service-account-key-file=" + pki("service-accounts.key"),
		"--service-account-signing-key-file=" + pki("service-accounts.key"),
		"--service-cluster-ip-range=" + network.ServiceRange,
		"--kubelet-client-certificate=" + pki("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + pki("apiserver-kubelet-client.key"),
		"--kubelet-certificate-authority=" + pki("ca.crt"),
		"--kubelet-preferred-address-types=InternalIP",
		"--shutdown-delay-duration=0s",
	}
	if !node {
		arguments = append(arguments,
			// The port is held by a socket of the parent; see reservePort.
			"--permit-port-sharing=true",
			// The kubernetes Service refuses endpoints on loopback.
			"--endpoint-reconciler-type=none",
			// No controller makes the default ServiceAccount, and no node mounts its token.
			"--disable-admission-plugins=ServiceAccount",
		)
	}
	return append(arguments, extra...)
}

func controllerManagerArguments(dir statedir.Dir, extra []string) []string {
	pki := func(name string) string { return filepath.Join(dir.PKI(), name) }
	arguments := []string{
		"--kubeconfig=" + dir.Kubeconfig(ControllerManager),
		"--authentication-skip-lookup=true",
		"--leader-elect=false",
		"--secure-port=0",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + pki("service-accounts.key"),
		"--root-ca-file=" + pki("ca.crt"),
		"--cluster-signing-cert-file=" + pki("ca.crt"),
		"--cluster-signing-key-file=" + pki("ca.key"),
		"--service-cluster-ip-range=" + network.ServiceRange,
	}
	return append(arguments, extra...)
}

func schedulerArguments(dir statedir.Dir) []string {
	return []string{
		"--kubeconfig=" + dir.Kubeconfig(Scheduler),
		"--authentication-skip-lookup=true",
		"--leader-elect=false",
		"--secure-port=0",
	}
}

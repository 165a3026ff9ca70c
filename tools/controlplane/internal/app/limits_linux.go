package app

import "slices"

// apiOnlyLimits hold for a cluster without a node.
var apiOnlyLimits = []string{
	"There is no node: pods stay pending, and without arguments for it no controller runs.",
	"ServiceAccount admission is off.",
}

// generalLimits hold for every cluster with a node.
var generalLimits = []string{
	"CPU and memory limits are not enforced: there are no cgroups, no OOM kill, no eviction. The node claims 64 CPUs and 256 GiB.",
	"NetworkPolicies are not enforced.",
	"There is no kube-proxy: TCP ports of ClusterIP Services work by a proxy of the node's; UDP, NodePort, LoadBalancer and session affinity do not.",
	"Pods reach nothing outside of the cluster; the cluster DNS knows Services only (A records).",
	"There is one node, and no volumes but emptyDir, configMap, secret, downwardAPI and projected; memory-backed ones are plain folders.",
	"seccomp, AppArmor and SELinux profiles are accepted and not applied.",
	"Privileged containers, host process and IPC namespaces, shared process namespaces, terminals and attach are refused.",
}

// singleIDLimits are added where an ordinary user has no subordinate range of ids.
var singleIDLimits = []string{
	"All containers run as one user of the machine, which each sees as the user it asked for: file ownership, fsGroup and supplementary groups prove nothing.",
}

func nodeLimits(singleID bool) []string {
	if singleID {
		return slices.Concat(generalLimits, singleIDLimits)
	}
	return generalLimits
}

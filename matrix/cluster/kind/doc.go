// Package kind provides Kubernetes clusters whose nodes are containers, by the library of Kind: a
// real container runtime, kube-proxy and cgroups, for what the embedded cluster can't show.
//
// Each cluster has a kubeconfig file of its own; the user's is not touched. Images are loaded into
// the node as archives, so that no registry needs to be reached from there. What is particular to
// a host is detected, and set only there; see docs/kind.md.
package kind

// Package network is the cluster's own network: its fixed addresses, the bridge of the
// pods, and the namespaces of a pod.
package network

// The addresses are fixed: a cluster with a node has a network namespace to itself, so two
// clusters never meet.
const (
	// PodRange is the range of the pods' addresses.
	PodRange = "10.244.0.0/16"
	// NodeAddress is the node's address on the pods' bridge, where the API server and the
	// kubelet of a cluster with a node listen.
	NodeAddress = "10.244.0.1"
	// ServiceRange is the range of the Services' addresses.
	ServiceRange = "10.96.0.0/16"
	// APIServiceAddress is the address of the Service default/kubernetes.
	APIServiceAddress = "10.96.0.1"
	// DNSAddress is where the cluster's DNS server answers.
	DNSAddress = "10.96.0.10"
	// DNSDomain is the domain below which Services have names.
	DNSDomain = "cluster.local"
	// NodeName is the name of the only node.
	NodeName = "embedded-node"
	// Loopback is where a cluster without a node listens.
	Loopback = "127.0.0.1"
)

// Package embedded provides Kubernetes clusters that need neither a container engine nor
// root: etcd, the API server, the controllers, the scheduler and a real kubelet in one
// program, which is built from tools/controlplane on first use and kept in the user's cache.
//
// With a node, the cluster lives in its own network, mount and process namespaces and a
// container is a process in namespaces of its own. Without one it is an API server for
// tests, ready in about three seconds; see package embeddedtest.
package embedded

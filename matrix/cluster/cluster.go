// Package cluster says what the matrix needs of a Kubernetes cluster, whoever provides it.
//
// Everything above this package works with a kubeconfig and the few facts of Info;
// nothing above it knows which provider made the cluster.
package cluster

import "context"

// Spec describes a wanted cluster.
type Spec struct {
	// Name tells clusters apart; a DNS label.
	Name string
	// Dir is the absolute path of the folder for the cluster's state and logs. It is
	// created if needed and must not be shared by two clusters.
	Dir string
	// Kubernetes is the exact version without a leading v, such as "1.34.4". Empty means
	// the provider's default.
	Kubernetes string
	// Mirrors maps a registry host to the base URL that serves it instead, such as
	// "ghcr.io" to "http://127.0.0.1:5001". The URL is reached from this machine.
	Mirrors map[string]string
	// Images are the references that pods will name. A cluster whose nodes can't reach the mirrors
	// has them loaded from there at its start.
	Images []string
	// Retain lets the cluster outlive the process that starts it. It is then ended by a
	// later Stop of a cluster that was attached to the same Dir.
	Retain bool
	// Progress receives one line of text for each step of a long start. May be nil.
	Progress func(string)
}

// Info is what a report says about a cluster.
type Info struct {
	// Provider is the name of the provider.
	Provider string `json:"provider"`
	// Kubernetes is the exact version of the API server without a leading v.
	Kubernetes string `json:"kubernetes"`
	// Control identifies what ran the control plane: the digest of a node image or the
	// content key of a control plane binary.
	Control string `json:"control"`
	// Limits are sentences on what a result from this cluster does not prove.
	Limits []string `json:"limits,omitempty"`
	// RealContainers tells that a container runtime makes the containers, with all that a pod asks
	// for, and that they reach Services by name, as on any cluster.
	RealContainers bool `json:"realContainers,omitempty"`
}

// Cluster is a running cluster.
type Cluster interface {
	// Kubeconfig is the path of the administrator's kubeconfig, readable by its owner only.
	Kubeconfig() string
	// Info tells what the cluster is.
	Info() Info
	// Diagnose writes logs and the state of the workloads into dir, for a person who looks
	// for the cause of a failure. It writes what it can and joins the errors.
	Diagnose(ctx context.Context, dir string) error
	// Stop ends the cluster and everything it started. A cluster that has already ended is
	// no error.
	Stop(ctx context.Context) error
	// Done is closed when the cluster has ended, whether stopped or by itself.
	Done() <-chan struct{}
}

// Provider starts clusters.
type Provider interface {
	// Name is the provider's name on the command line.
	Name() string
	// Start returns a cluster whose API server answers and whose nodes are ready. If ctx
	// ends before that, everything that was started is stopped again.
	Start(ctx context.Context, spec Spec) (Cluster, error)
}

// Package e2e tests the operator on runtime pods: the embedded cluster has a node whose
// kubelet runs simulated runtime images, and the operator has no more rights than its chart
// gives it.
package e2e

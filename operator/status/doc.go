// Package status turns what the operator observed into the status of a
// TrussiumRuntime and into the events that the change of status deserves.
//
// Everything here is pure: no clock other than the one passed in, no API calls.
// A rollout is judged by the managed Deployment alone; Pods and ReplicaSets are
// never read.
package status

// Package scenario runs the chainsaw scenarios of a suite folder and reads what they found.
//
// Chainsaw is always a child process: as a library it allows one run per process. It gets a
// kubeconfig and values, and no kubectl on its PATH, because a scenario may use only what
// the API server gives.
//
// A failed assertion is a Result that has not passed. An error means that nothing is known
// about the product: chainsaw could not be built or started, crashed, was cancelled, or left
// no readable report.
package scenario

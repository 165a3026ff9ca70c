// Package e2e tests the chart and install.yaml as people use them: with Helm and kubectl, on a
// cluster that runs the operator of the checkout.
package e2e

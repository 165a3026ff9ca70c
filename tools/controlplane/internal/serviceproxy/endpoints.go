// Package serviceproxy makes the TCP ports of ClusterIP Services reachable inside the node,
// as kube-proxy does elsewhere.
package serviceproxy

import (
	"net"
	"slices"
	"strconv"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// Endpoints returns the addresses behind a port of a Service: those that are ready or, if
// none is, those that still serve while their pods end, so that a connection is not refused
// in the moment between the last old pod and the first new one.
func Endpoints(endpointSlices []*discoveryv1.EndpointSlice, portName string) []string {
	var ready, serving []string
	for _, slice := range endpointSlices {
		port, ok := findPort(slice.Ports, portName)
		if !ok {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			if len(endpoint.Addresses) == 0 {
				continue
			}
			address := net.JoinHostPort(endpoint.Addresses[0], port)
			switch conditions := endpoint.Conditions; {
			case isTrue(conditions.Ready, true):
				ready = append(ready, address)
			case isTrue(conditions.Serving, false):
				serving = append(serving, address)
			}
		}
	}
	if len(ready) > 0 {
		serving = nil
	}
	addresses := slices.Concat(ready, serving)
	slices.Sort(addresses)
	return slices.Compact(addresses) // an endpoint can be in two slices for a moment
}

func findPort(ports []discoveryv1.EndpointPort, name string) (string, bool) {
	for _, port := range ports {
		portName := ""
		if port.Name != nil {
			portName = *port.Name
		}
		if port.Port != nil && portName == name {
			return strconv.Itoa(int(*port.Port)), true
		}
	}
	return "", false
}

func isTrue(condition *bool, unset bool) bool {
	if condition == nil {
		return unset
	}
	return *condition
}

// Package dns answers the names of Services, as the cluster DNS of other clusters does: the
// A records of the Kubernetes DNS specification. It knows no other names, because nothing
// outside of the cluster can be reached from a pod.
package dns

import (
	"net"
	"slices"
	"strings"

	miekg "github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
)

// ttl of every answer in seconds, as CoreDNS has it.
const ttl = 5

// Records finds names in Services and their endpoints.
type Records struct {
	// Domain is the cluster's domain without a trailing dot.
	Domain   string
	Services corelisters.ServiceLister
	Slices   discoverylisters.EndpointSliceLister
}

// Answer answers one query. A name that exists has no error, whatever type is asked for, so
// that a resolver that asks for IPv6 first does not take it for missing.
func (r Records) Answer(query *miekg.Msg) *miekg.Msg {
	answer := new(miekg.Msg)
	answer.SetReply(query)
	answer.Authoritative = true
	if query.Opcode != miekg.OpcodeQuery || len(query.Question) != 1 {
		return answer.SetRcode(query, miekg.RcodeNotImplemented)
	}
	question := query.Question[0]
	found := r.lookup(miekg.CanonicalName(question.Name))
	if !found.exists {
		return answer.SetRcode(query, miekg.RcodeNameError)
	}
	header := miekg.RR_Header{Name: question.Name, Class: miekg.ClassINET, Ttl: ttl}
	if found.alias != "" {
		header.Rrtype = miekg.TypeCNAME
		answer.Answer = append(answer.Answer, &miekg.CNAME{Hdr: header, Target: miekg.Fqdn(found.alias)})
		return answer
	}
	if question.Qtype != miekg.TypeA && question.Qtype != miekg.TypeANY {
		return answer
	}
	header.Rrtype = miekg.TypeA
	for _, address := range found.addresses {
		answer.Answer = append(answer.Answer, &miekg.A{Hdr: header, A: net.ParseIP(address)})
	}
	return answer
}

type found struct {
	exists    bool
	addresses []string
	alias     string
}

// lookup finds a canonical name: service.namespace.svc.domain, or with the name of an
// endpoint in front.
func (r Records) lookup(name string) found {
	rest, ok := strings.CutSuffix(name, ".svc."+r.Domain+".")
	if !ok {
		return found{}
	}
	parts := strings.Split(rest, ".")
	switch len(parts) {
	case 2:
		return r.service(parts[1], parts[0])
	case 3:
		return r.endpoint(parts[2], parts[1], parts[0])
	}
	return found{}
}

func (r Records) service(namespace, name string) found {
	service, err := r.Services.Services(namespace).Get(name)
	if err != nil {
		return found{}
	}
	switch {
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		return found{exists: true, alias: service.Spec.ExternalName}
	case service.Spec.ClusterIP != corev1.ClusterIPNone:
		return found{exists: service.Spec.ClusterIP != "", addresses: []string{service.Spec.ClusterIP}}
	}
	return r.headless(service, func(discoveryv1.Endpoint) bool { return true })
}

// endpoint finds one pod of a headless Service by its host name or, if it has none, by its
// address with dashes.
func (r Records) endpoint(namespace, serviceName, endpointName string) found {
	service, err := r.Services.Services(namespace).Get(serviceName)
	if err != nil || service.Spec.ClusterIP != corev1.ClusterIPNone {
		return found{}
	}
	return r.headless(service, func(endpoint discoveryv1.Endpoint) bool {
		if endpoint.Hostname != nil && *endpoint.Hostname != "" {
			return strings.EqualFold(*endpoint.Hostname, endpointName)
		}
		return strings.ReplaceAll(endpoint.Addresses[0], ".", "-") == endpointName
	})
}

// headless collects the addresses of a Service's ready endpoints. Without any the name does
// not exist, as with CoreDNS.
func (r Records) headless(service *corev1.Service, wanted func(discoveryv1.Endpoint) bool) found {
	selector := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service.Name})
	endpointSlices, err := r.Slices.EndpointSlices(service.Namespace).List(selector)
	if err != nil {
		return found{}
	}
	var addresses []string
	for _, slice := range endpointSlices {
		if slice.AddressType != discoveryv1.AddressTypeIPv4 {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			ready := endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
			if (ready || service.Spec.PublishNotReadyAddresses) && len(endpoint.Addresses) > 0 && wanted(endpoint) {
				addresses = append(addresses, endpoint.Addresses...)
			}
		}
	}
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	return found{exists: len(addresses) > 0, addresses: addresses}
}

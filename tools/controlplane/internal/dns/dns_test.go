package dns

import (
	"net"
	"slices"
	"strings"
	"testing"

	miekg "github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
)

func records(t *testing.T) Records {
	t.Helper()
	services := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	slices := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	service := func(name string, spec corev1.ServiceSpec) {
		if err := services.Add(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}, Spec: spec}); err != nil {
			t.Fatal(err)
		}
	}
	service("web", corev1.ServiceSpec{ClusterIP: "10.96.1.1"})
	service("headless", corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone})
	service("early", corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true})
	service("empty", corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone})
	service("pending", corev1.ServiceSpec{})
	service("elsewhere", corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"})

	yes, no, zero := true, false, "zero"
	endpoints := func(service string, all ...discoveryv1.Endpoint) {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: service + "-1", Namespace: "ns", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   all,
		}
		if err := slices.Add(slice); err != nil {
			t.Fatal(err)
		}
	}
	named := discoveryv1.Endpoint{Addresses: []string{"10.244.0.5"}, Hostname: &zero, Conditions: discoveryv1.EndpointConditions{Ready: &yes}}
	nameless := discoveryv1.Endpoint{Addresses: []string{"10.244.0.6"}}
	unready := discoveryv1.Endpoint{Addresses: []string{"10.244.0.7"}, Conditions: discoveryv1.EndpointConditions{Ready: &no}}
	endpoints("headless", named, nameless, unready)
	endpoints("early", unready)
	endpoints("web", named)
	return Records{
		Domain:   "cluster.local",
		Services: corelisters.NewServiceLister(services),
		Slices:   discoverylisters.NewEndpointSliceLister(slices),
	}
}

func TestAnswer(t *testing.T) {
	const suffix = ".ns.svc.cluster.local."
	tests := []struct {
		name  string
		kind  uint16
		code  int
		wants []string
	}{
		{"web" + suffix, miekg.TypeA, miekg.RcodeSuccess, []string{"10.96.1.1"}},
		{"WEB.Ns.svc.Cluster.Local.", miekg.TypeA, miekg.RcodeSuccess, []string{"10.96.1.1"}},
		{"web" + suffix, miekg.TypeAAAA, miekg.RcodeSuccess, nil},
		{"web" + suffix, miekg.TypeTXT, miekg.RcodeSuccess, nil},
		{"zero.web" + suffix, miekg.TypeA, miekg.RcodeNameError, nil},
		{"headless" + suffix, miekg.TypeA, miekg.RcodeSuccess, []string{"10.244.0.5", "10.244.0.6"}},
		{"zero.headless" + suffix, miekg.TypeA, miekg.RcodeSuccess, []string{"10.244.0.5"}},
		{"10-244-0-6.headless" + suffix, miekg.TypeA, miekg.RcodeSuccess, []string{"10.244.0.6"}},
		{"10-244-0-5.headless" + suffix, miekg.TypeA, miekg.RcodeNameError, nil},
		{"one.headless" + suffix, miekg.TypeA, miekg.RcodeNameError, nil},
		{"early" + suffix, miekg.TypeA, miekg.RcodeSuccess, []string{"10.244.0.7"}},
		{"empty" + suffix, miekg.TypeA, miekg.RcodeNameError, nil},
		{"pending" + suffix, miekg.TypeA, miekg.RcodeNameError, nil},
		{"elsewhere" + suffix, miekg.TypeA, miekg.RcodeSuccess, []string{"example.com."}},
		{"web.other.svc.cluster.local.", miekg.TypeA, miekg.RcodeNameError, nil},
		{"web.ns.svc.cluster.local.ns.svc.cluster.local.", miekg.TypeA, miekg.RcodeNameError, nil},
		{"example.com.", miekg.TypeA, miekg.RcodeNameError, nil},
		{"svc.cluster.local.", miekg.TypeA, miekg.RcodeNameError, nil},
		{".", miekg.TypeA, miekg.RcodeNameError, nil},
	}
	r := records(t)
	for _, test := range tests {
		query := new(miekg.Msg)
		query.SetQuestion(test.name, test.kind)
		answer := r.Answer(query)
		if answer.Rcode != test.code || answer.Id != query.Id {
			t.Errorf("%s %s: %s, want %s", test.name, miekg.TypeToString[test.kind], miekg.RcodeToString[answer.Rcode], miekg.RcodeToString[test.code])
		}
		if got := values(answer); !slices.Equal(got, test.wants) {
			t.Errorf("%s %s: %q, want %q", test.name, miekg.TypeToString[test.kind], got, test.wants)
		}
	}
}

func values(answer *miekg.Msg) []string {
	var all []string
	for _, record := range answer.Answer {
		switch r := record.(type) {
		case *miekg.A:
			all = append(all, r.A.String())
		case *miekg.CNAME:
			all = append(all, r.Target)
		default:
			all = append(all, record.String())
		}
	}
	return all
}

// TestServe asks a running server over UDP and TCP.
func TestServe(t *testing.T) {
	probe, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := probe.LocalAddr().String()
	probe.Close()
	served := make(chan error, 1)
	r := records(t)
	go func() { served <- Serve(t.Context(), address, r) }()
	for _, network := range []string{"udp", "tcp"} {
		query := new(miekg.Msg)
		query.SetQuestion("web.ns.svc.cluster.local.", miekg.TypeA)
		client := &miekg.Client{Net: network}
		var answer *miekg.Msg
		for range 100 {
			if answer, _, err = client.Exchange(query, address); err == nil || !strings.Contains(err.Error(), "refused") {
				break
			}
		}
		if err != nil {
			t.Fatalf("%s: %v", network, err)
		}
		if got := values(answer); !slices.Equal(got, []string{"10.96.1.1"}) {
			t.Errorf("%s: %q", network, got)
		}
	}
	select {
	case err := <-served:
		t.Errorf("the server has ended: %v", err)
	default:
	}
}

package serviceproxy

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEndpoints(t *testing.T) {
	yes, no := true, false
	conditions := map[string]discoveryv1.EndpointConditions{
		"ready":    {Ready: &yes, Serving: &yes},
		"unknown":  {},
		"starting": {Ready: &no, Serving: &no},
		"ending":   {Ready: &no, Serving: &yes, Terminating: &yes},
	}
	slice := func(port string, number int32, endpoints map[string]string) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{Ports: []discoveryv1.EndpointPort{{Name: &port, Port: &number}}}
		for address, condition := range endpoints {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}, Conditions: conditions[condition]})
		}
		return s
	}
	tests := map[string]struct {
		slices []*discoveryv1.EndpointSlice
		port   string
		want   []string
	}{
		"none": {nil, "http", nil},
		"ready ones only": {
			[]*discoveryv1.EndpointSlice{slice("http", 8080, map[string]string{"10.0.0.1": "ready", "10.0.0.2": "starting", "10.0.0.3": "ending"})},
			"http", []string{"10.0.0.1:8080"},
		},
		"ending ones if none is ready": {
			[]*discoveryv1.EndpointSlice{slice("http", 8080, map[string]string{"10.0.0.2": "starting", "10.0.0.3": "ending"})},
			"http", []string{"10.0.0.3:8080"},
		},
		"readiness that is not said counts as ready": {
			[]*discoveryv1.EndpointSlice{slice("http", 8080, map[string]string{"10.0.0.1": "unknown"})},
			"http", []string{"10.0.0.1:8080"},
		},
		"the port by its name": {
			[]*discoveryv1.EndpointSlice{
				slice("http", 8080, map[string]string{"10.0.0.1": "ready"}),
				slice("metrics", 9090, map[string]string{"10.0.0.1": "ready"}),
			},
			"metrics", []string{"10.0.0.1:9090"},
		},
		"one endpoint in two slices once": {
			[]*discoveryv1.EndpointSlice{
				slice("", 80, map[string]string{"10.0.0.1": "ready"}),
				slice("", 80, map[string]string{"10.0.0.1": "ready"}),
			},
			"", []string{"10.0.0.1:80"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Endpoints(test.slices, test.port); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestWantedTargets(t *testing.T) {
	ports := []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}, {Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}}
	service := func(name, ip string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"},
			Spec:       corev1.ServiceSpec{ClusterIP: ip, Ports: ports},
		}
	}
	got := wantedTargets([]*corev1.Service{service("web", "10.96.0.5"), service("headless", corev1.ClusterIPNone), service("external", "")})
	if len(got) != 1 || got["10.96.0.5:80"] != (target{"ns", "web", "http"}) {
		t.Errorf("got %v, want the TCP port of the Service with an address only", got)
	}
}

package serviceproxy

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/forward"
)

// dialTimeout bounds the connection to one endpoint, which is on this machine.
const dialTimeout = 5 * time.Second

// target is what a listener passes connections on to.
type target struct{ namespace, service, port string }

type listener struct {
	net.Listener
	mu     sync.Mutex
	target target
}

// Proxy listens on the addresses of Services.
type Proxy struct {
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
	synced   []cache.InformerSynced
	changed  chan struct{}
	// listeners are keyed by address and port; only Run uses them.
	listeners map[string]*listener
}

// New makes a proxy that follows the Services and endpoints of the informers.
func New(factory informers.SharedInformerFactory) (*Proxy, error) {
	services := factory.Core().V1().Services()
	slices := factory.Discovery().V1().EndpointSlices()
	p := &Proxy{
		services:  services.Lister(),
		slices:    slices.Lister(),
		synced:    []cache.InformerSynced{services.Informer().HasSynced, slices.Informer().HasSynced},
		changed:   make(chan struct{}, 1),
		listeners: map[string]*listener{},
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { p.notify() },
		UpdateFunc: func(any, any) { p.notify() },
		DeleteFunc: func(any) { p.notify() },
	}
	if _, err := services.Informer().AddEventHandler(handler); err != nil {
		return nil, fmt.Errorf("watch Services: %w", err)
	}
	return p, nil
}

func (p *Proxy) notify() {
	select {
	case p.changed <- struct{}{}:
	default: // one is pending, which sees this change too
	}
}

// Run follows the Services until ctx ends.
func (p *Proxy) Run(ctx context.Context) {
	cache.WaitForCacheSync(ctx.Done(), p.synced...)
	for {
		p.listen()
		select {
		case <-ctx.Done():
			return
		case <-p.changed:
		}
	}
}

// listen opens and closes listeners until they are those of the Services.
func (p *Proxy) listen() {
	services, err := p.services.List(labels.Everything())
	if err != nil {
		log.Printf("list Services: %v", err)
		return
	}
	wanted := wantedTargets(services)
	for address, open := range p.listeners {
		if _, ok := wanted[address]; !ok {
			open.Close()
			delete(p.listeners, address)
		}
	}
	for address, to := range wanted {
		if open := p.listeners[address]; open != nil {
			open.retarget(to)
			continue
		}
		opened, err := net.Listen("tcp", address)
		if err != nil {
			log.Printf("Service %s/%s: %v", to.namespace, to.service, err)
			continue
		}
		l := &listener{Listener: opened, target: to}
		p.listeners[address] = l
		go forward.Serve(l, func() (net.Conn, error) { return p.dial(l.current()) })
	}
}

// wantedTargets are the TCP ports of the Services that have an address of their own.
func wantedTargets(services []*corev1.Service) map[string]target {
	wanted := map[string]target{}
	for _, service := range services {
		if service.Spec.ClusterIP == "" || service.Spec.ClusterIP == corev1.ClusterIPNone {
			continue
		}
		for _, port := range service.Spec.Ports {
			if port.Protocol != corev1.ProtocolTCP {
				continue
			}
			address := net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(int(port.Port)))
			wanted[address] = target{service.Namespace, service.Name, port.Name}
		}
	}
	return wanted
}

func (l *listener) current() target {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.target
}

func (l *listener) retarget(to target) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.target = to
}

// dial connects to one of the endpoints, in random order until one accepts.
func (p *Proxy) dial(to target) (net.Conn, error) {
	selector := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: to.service})
	slices, err := p.slices.EndpointSlices(to.namespace).List(selector)
	if err != nil {
		return nil, err
	}
	endpoints := Endpoints(slices, to.port)
	rand.Shuffle(len(endpoints), func(i, j int) { endpoints[i], endpoints[j] = endpoints[j], endpoints[i] })
	err = errors.New("no endpoints")
	for _, endpoint := range endpoints {
		var conn net.Conn
		if conn, err = net.DialTimeout("tcp", endpoint, dialTimeout); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

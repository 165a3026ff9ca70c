package network

import (
	"errors"
	"net"
	"sync"
)

// Allocator hands out the pods' addresses. It reuses an address as late as possible: a
// client may remember the pod that had it.
type Allocator struct {
	mu   sync.Mutex
	last uint16
	used map[uint16]bool
}

// hosts are the numbers of the last two bytes that pods can have: not the network's own,
// not the node's, not the broadcast address.
const firstHost, lastHost = 2, 1<<16 - 2

// Take returns a free address.
func (a *Allocator) Take() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.used == nil {
		a.used = map[uint16]bool{}
	}
	next := a.last
	for range lastHost {
		next++
		if next < firstHost || next > lastHost {
			next = firstHost
		}
		if !a.used[next] {
			a.last = next
			a.used[next] = true
			return net.IPv4(10, 244, byte(next>>8), byte(next)).String(), nil
		}
	}
	return "", errors.New("all pod addresses are in use")
}

// Release makes an address free again.
func (a *Allocator) Release(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ip := net.ParseIP(address).To4(); ip != nil {
		delete(a.used, uint16(ip[2])<<8|uint16(ip[3]))
	}
}

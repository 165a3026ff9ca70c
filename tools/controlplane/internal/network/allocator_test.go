package network

import "testing"

func TestAllocatorReusesLate(t *testing.T) {
	var a Allocator
	first, err := a.Take()
	if err != nil || first != "10.244.0.2" {
		t.Fatalf("the first address is %s, %v", first, err)
	}
	a.Release(first)
	if next, err := a.Take(); err != nil || next == first {
		t.Errorf("a released address is given out again at once: %s, %v", next, err)
	}
}

func TestAllocatorGivesEachAddressOnce(t *testing.T) {
	var a Allocator
	seen := map[string]bool{NodeAddress: true, "10.244.0.0": true, "10.244.255.255": true}
	for {
		address, err := a.Take()
		if err != nil {
			break
		}
		if seen[address] {
			t.Fatalf("%s is given out though it is taken or reserved", address)
		}
		seen[address] = true
	}
	if want := lastHost - firstHost + 1 + 3; len(seen) != want {
		t.Errorf("%d addresses, want %d", len(seen), want)
	}
	a.Release("10.244.3.4")
	if address, err := a.Take(); err != nil || address != "10.244.3.4" {
		t.Errorf("the only free address is not given out: %s, %v", address, err)
	}
}

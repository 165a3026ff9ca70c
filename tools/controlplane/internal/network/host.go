//go:build linux

package network

import (
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// bridgeName is the bridge that the pods are attached to.
const bridgeName = "pods"

// bridgeMAC is the bridge's own address. A bridge without one takes the lowest among the interfaces
// attached to it, so that it changes as pods come and go. What the other pods send to the old
// address, to the API server above all, is then lost: for 0.2 s mostly, for half a minute at worst.
var bridgeMAC = net.HardwareAddr{0x02, 'n', 'o', 'd', 'e', 0x01}

// SetUpNode prepares a new network namespace: loopback, the pods' bridge with the node's
// address, and the Services' range, which is made local as a whole so that a proxy in this
// namespace can listen on any address of it.
func SetUpNode() error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("set up the node's network: find lo: %w", err)
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return fmt.Errorf("set up the node's network: start lo: %w", err)
	}
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridgeName, HardwareAddr: bridgeMAC}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("set up the node's network: make a bridge (is the kernel module loaded?): %w", err)
	}
	if err := netlink.AddrAdd(bridge, podAddress(NodeAddress)); err != nil {
		return fmt.Errorf("set up the node's network: address the bridge: %w", err)
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return fmt.Errorf("set up the node's network: start the bridge: %w", err)
	}
	_, services, err := net.ParseCIDR(ServiceRange)
	if err != nil {
		return err
	}
	route := &netlink.Route{
		LinkIndex: loopback.Attrs().Index,
		Dst:       services,
		Scope:     unix.RT_SCOPE_HOST,
		Type:      unix.RTN_LOCAL,
		Table:     unix.RT_TABLE_LOCAL,
	}
	if err := netlink.RouteAdd(route); err != nil {
		return fmt.Errorf("set up the node's network: route the Services' range: %w", err)
	}
	return nil
}

// podAddress is an address with the prefix length of the pods' range.
func podAddress(address string) *netlink.Addr {
	_, pods, err := net.ParseCIDR(PodRange)
	if err != nil {
		panic(err) // a constant
	}
	return &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(address), Mask: pods.Mask}}
}

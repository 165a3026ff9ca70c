//go:build linux

package network

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// interfaceName is the pod's interface, as everywhere.
const interfaceName = "eth0"

// Pod holds the network, host name and IPC namespaces that the containers of a pod share.
// An open file keeps a namespace alive without any process in it.
type Pod struct {
	// Address is the pod's address.
	Address    string
	namespaces []namespace
}

type namespace struct {
	kind int // a CLONE_NEW* flag
	file *os.File
}

// NewPod makes namespaces for a pod and attaches them to the pods' bridge under address.
// A pod on the host's network gets the node's address and no network namespace.
func NewPod(hostname, address string, hostNetwork bool) (*Pod, error) {
	pod := &Pod{Address: address}
	kinds := map[int]string{unix.CLONE_NEWUTS: "uts", unix.CLONE_NEWIPC: "ipc"}
	if hostNetwork {
		pod.Address = NodeAddress
	} else {
		kinds[unix.CLONE_NEWNET] = "net"
	}
	if err := OnNewThread(func() error { return pod.unshare(kinds, hostname) }); err != nil {
		pod.Close()
		return nil, fmt.Errorf("make the pod's namespaces: %w", err)
	}
	if hostNetwork {
		return pod, nil
	}
	if err := pod.attach(); err != nil {
		pod.Close()
		return nil, fmt.Errorf("attach the pod to the network: %w", err)
	}
	return pod, nil
}

// unshare moves the calling thread into new namespaces and opens them.
func (p *Pod) unshare(kinds map[int]string, hostname string) error {
	flags := 0
	for kind := range kinds {
		flags |= kind
	}
	if err := unix.Unshare(flags); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(hostname)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	for kind, name := range kinds {
		file, err := os.Open("/proc/thread-self/ns/" + name)
		if err != nil {
			return err
		}
		p.namespaces = append(p.namespaces, namespace{kind, file})
	}
	return nil
}

// attach makes a pair of interfaces, one end on the bridge and one in the pod.
func (p *Pod) attach() error {
	network := p.network()
	bridge, err := netlink.LinkByName(bridgeName)
	if err != nil {
		return fmt.Errorf("find the bridge: %w", err)
	}
	pair := &netlink.Veth{
		LinkAttrs:     netlink.LinkAttrs{Name: vethName(p.Address), MasterIndex: bridge.Attrs().Index},
		PeerName:      interfaceName,
		PeerNamespace: netlink.NsFd(network.Fd()),
	}
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("make the interfaces: %w", err)
	}
	if err := netlink.LinkSetUp(pair); err != nil {
		return fmt.Errorf("start the bridge's end: %w", err)
	}
	inside, err := netlink.NewHandleAt(netns.NsHandle(network.Fd()))
	if err != nil {
		return fmt.Errorf("enter the pod's network: %w", err)
	}
	defer inside.Close()
	return configure(inside, p.Address)
}

// configure sets up loopback, the address and the default route inside the pod.
func configure(inside *netlink.Handle, address string) error {
	loopback, err := inside.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	if err := inside.LinkSetUp(loopback); err != nil {
		return fmt.Errorf("start lo: %w", err)
	}
	link, err := inside.LinkByName(interfaceName)
	if err != nil {
		return fmt.Errorf("find %s: %w", interfaceName, err)
	}
	if err := inside.AddrAdd(link, podAddress(address)); err != nil {
		return fmt.Errorf("address %s: %w", interfaceName, err)
	}
	if err := inside.LinkSetUp(link); err != nil {
		return fmt.Errorf("start %s: %w", interfaceName, err)
	}
	route := &netlink.Route{LinkIndex: link.Attrs().Index, Gw: net.ParseIP(NodeAddress)}
	if err := inside.RouteAdd(route); err != nil {
		return fmt.Errorf("route %s: %w", interfaceName, err)
	}
	return nil
}

// vethName is a name of at most 15 characters that no other pod's interface has.
func vethName(address string) string {
	ip := net.ParseIP(address).To4()
	return fmt.Sprintf("veth%d-%d", ip[2], ip[3])
}

// network is the network namespace, or nil on the host's network.
func (p *Pod) network() *os.File {
	for _, n := range p.namespaces {
		if n.kind == unix.CLONE_NEWNET {
			return n.file
		}
	}
	return nil
}

// Enter moves the calling thread into the pod's namespaces; see OnNewThread.
func (p *Pod) Enter() error {
	for _, n := range p.namespaces {
		if err := unix.Setns(int(n.file.Fd()), n.kind); err != nil {
			return fmt.Errorf("enter the pod's namespaces: %w", err)
		}
	}
	return nil
}

// Start starts a command in the pod's namespaces.
func (p *Pod) Start(cmd *exec.Cmd) error {
	return OnNewThread(func() error {
		if err := p.Enter(); err != nil {
			return err
		}
		return cmd.Start()
	})
}

// Dial connects to a TCP port as a process of the pod would.
func (p *Pod) Dial(address string) (conn net.Conn, err error) {
	err = OnNewThread(func() error {
		if err := p.Enter(); err != nil {
			return err
		}
		// A literal address: a name would be resolved by other threads.
		conn, err = net.Dial("tcp", address)
		return err
	})
	return conn, err
}

// Close lets go of the namespaces, which end with the last process in them; the interface
// on the bridge goes with them.
func (p *Pod) Close() error {
	var errs []error
	for _, n := range p.namespaces {
		errs = append(errs, n.file.Close())
	}
	p.namespaces = nil
	return errors.Join(errs...)
}

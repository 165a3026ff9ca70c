//go:build linux

package network

import (
	"fmt"
	"os"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func TestTheBridgeKeepsItsAddressWhenPodsComeAndGo(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a network namespace outside of a user namespace needs root")
	}
	err := OnNewThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		if err := SetUpNode(); err != nil {
			return err
		}
		check := func(when string) error {
			bridge, err := netlink.LinkByName(bridgeName)
			if err == nil && bridge.Attrs().HardwareAddr.String() != bridgeMAC.String() {
				t.Errorf("%s the bridge's address is %s, want %s", when, bridge.Attrs().HardwareAddr, bridgeMAC)
			}
			return err
		}
		var pods []*Pod
		defer func() {
			for _, pod := range pods {
				pod.Close()
			}
		}()
		for number := range 4 {
			pod, err := NewPod("pod", fmt.Sprintf("10.244.0.%d", number+2), false)
			if err != nil {
				return err
			}
			pods = append(pods, pod)
			if err := check("after pod " + pod.Address + " came"); err != nil {
				return err
			}
		}
		for _, pod := range pods {
			link, err := netlink.LinkByName(vethName(pod.Address))
			if err != nil {
				return err
			}
			if err := netlink.LinkDel(link); err != nil {
				return err
			}
			if err := check("after pod " + pod.Address + " went"); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

//go:build linux

// Package relay opens TCP connections on behalf of a process in another network namespace.
//
// The node's network namespace reaches nothing of the host. Image registries are reached
// through this: the process outside dials and hands the connected socket over, which keeps
// belonging to the network namespace it was made in.
package relay

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// dialTimeout bounds the connection to one address.
const dialTimeout = 15 * time.Second

// maxMessage is more than any address or error needs.
const maxMessage = 1024

// Serve answers requests on listener until it is closed. Whoever can connect to listener
// can reach what this process can, so its socket belongs in a folder of its owner's.
func Serve(listener *net.UnixListener) {
	for {
		conn, err := listener.AcceptUnix()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			answer(conn)
		}()
	}
}

// answer reads an address and sends either a connected socket or an error text.
func answer(conn *net.UnixConn) {
	_ = conn.SetDeadline(time.Now().Add(2 * dialTimeout))
	address, err := bufio.NewReaderSize(conn, maxMessage).ReadString('\n')
	if err != nil {
		return
	}
	target, err := net.DialTimeout("tcp", strings.TrimSuffix(address, "\n"), dialTimeout)
	if err != nil {
		_, _ = conn.Write([]byte(err.Error()))
		return
	}
	defer target.Close()
	file, err := target.(*net.TCPConn).File()
	if err != nil {
		_, _ = conn.Write([]byte(err.Error()))
		return
	}
	defer file.Close()
	_, _, _ = conn.WriteMsgUnix([]byte{0}, unix.UnixRights(int(file.Fd())), nil)
}

// Dialer dials through a relay's socket.
type Dialer struct {
	// Socket is the path of the socket that Serve listens on.
	Socket string
}

// DialContext connects to a TCP address as seen by the process behind the relay.
func (d Dialer) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", d.Socket)
	if err != nil {
		return nil, fmt.Errorf("reach the relay: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer stop()
	if _, err := conn.Write([]byte(address + "\n")); err != nil {
		return nil, fmt.Errorf("ask the relay for %s: %w", address, err)
	}
	return receive(conn.(*net.UnixConn), address)
}

func receive(conn *net.UnixConn, address string) (net.Conn, error) {
	text := make([]byte, maxMessage)
	rights := make([]byte, unix.CmsgSpace(4))
	n, rightsLength, _, _, err := conn.ReadMsgUnix(text, rights)
	if err != nil {
		return nil, fmt.Errorf("ask the relay for %s: %w", address, err)
	}
	if rightsLength == 0 {
		return nil, fmt.Errorf("%s", text[:n]) // the text names the address
	}
	messages, err := unix.ParseSocketControlMessage(rights[:rightsLength])
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("read the relay's answer for %s: %w", address, err)
	}
	descriptors, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(descriptors) != 1 {
		return nil, fmt.Errorf("read the relay's answer for %s: %w", address, err)
	}
	unix.CloseOnExec(descriptors[0])
	file := os.NewFile(uintptr(descriptors[0]), address)
	defer file.Close()
	return net.FileConn(file)
}

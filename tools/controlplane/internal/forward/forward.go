// Package forward passes TCP connections on to another address.
package forward

import (
	"io"
	"net"
)

// Serve accepts connections on listener until it is closed, and passes each on to the
// connection that dial returns. A client whose connection can't be passed on sees a reset,
// as it would where nobody listens.
func Serve(listener net.Listener, dial func() (net.Conn, error)) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer client.Close()
			server, err := dial()
			if err != nil {
				if tcp, ok := client.(*net.TCPConn); ok {
					_ = tcp.SetLinger(0)
				}
				return
			}
			defer server.Close()
			join(client, server)
		}()
	}
}

// join copies in both directions. The end of one direction is passed on, and the other goes
// on until its own end: HTTP clients may close their side before they read the answer.
func join(client, server net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(server, client)
		closeWrite(server)
	}()
	_, _ = io.Copy(client, server)
	closeWrite(client)
	<-done
}

func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

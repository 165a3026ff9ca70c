//go:build linux

package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

func newDialer(t *testing.T) Dialer {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "relay.sock")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go Serve(listener)
	return Dialer{Socket: socket}
}

func TestHTTPThroughTheRelay(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "answer") }))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{DialContext: newDialer(t).DialContext}}
	response, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if content, err := io.ReadAll(response.Body); err != nil || string(content) != "answer" {
		t.Errorf("got %q, %v", content, err)
	}
}

func TestFailureIsThatOfTheDial(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close() // nobody listens there now
	conn, err := newDialer(t).DialContext(t.Context(), "tcp", address)
	if err == nil {
		conn.Close()
		t.Fatal("connected to nobody")
	}
	for _, want := range []string{address, "refused"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
}

func TestCancelledDialReturns(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "silent.sock")
	listener, err := net.Listen("unix", socket) // accepts and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Dialer{Socket: socket}).DialContext(ctx, "tcp", "127.0.0.1:1"); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("a cancelled dial gave %v", err)
	}
}

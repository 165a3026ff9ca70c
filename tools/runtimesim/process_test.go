//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hangGuard ends a test that would otherwise wait for ever.
const hangGuard = 30 * time.Second

var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "runtimesim-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "trussium")
		if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build the simulator: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// event is one line of the simulator's log.
type event map[string]any

func (e event) name() string { name, _ := e["event"].(string); return name }

// process is a running simulator.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	events chan event
	seen   []event
	base   string
}

// start runs the simulator on a free port and returns as soon as the process lives.
func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	port := freePort(t)
	cmd := exec.Command(binary, args...)
	cmd.Env = append([]string{"TRUSSIUM_RUNTIME__HOST=127.0.0.1", "TRUSSIUM_RUNTIME__PORT=" + port}, env...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: cmd, events: make(chan event, 100), base: "http://127.0.0.1:" + port}
	go func() {
		defer close(p.events)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			var line event
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				line = event{"event": "not JSON: " + lines.Text()}
			}
			p.events <- line
		}
	}()
	guard := time.AfterFunc(hangGuard, func() { cmd.Process.Kill() })
	t.Cleanup(func() {
		guard.Stop()
		cmd.Process.Kill()
		cmd.Wait()
	})
	return p
}

// serving is start, and waits until the socket is open.
func serving(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := start(t, env, args...)
	p.await("runtime.started")
	return p
}

// await reads the log up to the named event and returns it.
func (p *process) await(name string) event {
	p.t.Helper()
	for line := range p.events {
		p.seen = append(p.seen, line)
		if line.name() == name {
			return line
		}
	}
	p.t.Fatalf("the log ended without event %s; it held %v", name, p.seen)
	return nil
}

// exit reads the rest of the log and returns the exit code, -1 for the death by a signal.
func (p *process) exit() int {
	p.t.Helper()
	for line := range p.events {
		p.seen = append(p.seen, line)
	}
	err := p.cmd.Wait()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		p.t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// get returns the status code, the body and the headers of a response.
func (p *process) get(path string, header ...string) (int, string, http.Header) {
	p.t.Helper()
	request, err := http.NewRequest(http.MethodGet, p.base+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return response.StatusCode, strings.TrimSpace(string(body)), response.Header
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

//go:build linux

package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"
)

func TestExec(t *testing.T) {
	f := shared.use(t)
	pod := newPod("exec")
	f.create(t, pod)
	f.waitForPod(t, pod.Name, ready)
	for _, terminal := range []bool{false, true} {
		t.Run(fmt.Sprintf("terminal=%v", terminal), func(t *testing.T) {
			request := f.client.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(pod.Name).SubResource("exec").
				VersionedParams(&corev1.PodExecOptions{
					Command: []string{"/app/pod", "echo", "a", "b"}, Stdin: true, Stdout: true, TTY: terminal,
				}, scheme.ParameterCodec)
			executor, err := remotecommand.NewSPDYExecutor(f.cluster.RESTConfig(), "POST", request.URL())
			if err != nil {
				t.Fatal(err)
			}
			input := "from outside\n"
			if terminal {
				input += "\x04" // end of file, on a terminal
			}
			var output bytes.Buffer
			err = executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{
				Stdin: strings.NewReader(input), Stdout: &output, Tty: terminal,
			})
			var exit exec.CodeExitError
			if !errors.As(err, &exit) || exit.Code != 7 {
				t.Errorf("exec ended with %v, want exit code 7", err)
			}
			for _, want := range []string{"uid=10001 args=a,b", "from outside"} {
				if !strings.Contains(output.String(), want) {
					t.Errorf("the output %q lacks %q", output.String(), want)
				}
			}
		})
	}
}

func TestPortForward(t *testing.T) {
	f := shared.use(t)
	pod := newPod("forwarded")
	f.create(t, pod)
	f.waitForPod(t, pod.Name, ready)
	request := f.client.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(pod.Name).SubResource("portforward")
	transport, upgrader, err := spdy.RoundTripperFor(f.cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	stop, forwarding := make(chan struct{}), make(chan struct{})
	defer close(stop)
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, "POST", request.URL())
	forwarder, err := portforward.New(dialer, []string{"0:8080"}, stop, forwarding, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() { failed <- forwarder.ForwardPorts() }()
	select {
	case <-forwarding:
	case err := <-failed:
		t.Fatal(err)
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/state", ports[0].Local))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(content), `"Hostname":"forwarded"`) {
		t.Errorf("through the forwarded port: %q, %v", content, err)
	}
}

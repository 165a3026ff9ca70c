//go:build linux

package cri

import (
	"slices"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/image"
)

func TestCommandLine(t *testing.T) {
	from := image.Image{Config: v1.Config{Entrypoint: []string{"/entry"}, Cmd: []string{"default"}}}
	tests := map[string]struct {
		command, args, want []string
	}{
		"the image's":            {nil, nil, []string{"/entry", "default"}},
		"the pod's arguments":    {nil, []string{"a"}, []string{"/entry", "a"}},
		"the pod's command":      {[]string{"/c"}, nil, []string{"/c"}},
		"both are the pod's":     {[]string{"/c"}, []string{"a"}, []string{"/c", "a"}},
		"a command of two words": {[]string{"/c", "x"}, []string{"a"}, []string{"/c", "x", "a"}},
	}
	for name, test := range tests {
		got, err := commandLine(&runtimeapi.ContainerConfig{Command: test.command, Args: test.args}, from)
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, test.want)
		}
	}
	if got, err := commandLine(&runtimeapi.ContainerConfig{}, image.Image{}); err == nil {
		t.Errorf("nothing to run gave %q", got)
	}
}

func TestEnvironmentHoldsEachVariableOnce(t *testing.T) {
	from := image.Image{Config: v1.Config{Env: []string{"A=image", "B=image", "PATH=/image"}}}
	config := &runtimeapi.ContainerConfig{Envs: []*runtimeapi.KeyValue{{Key: "B", Value: []byte("pod")}, {Key: "C", Value: []byte("x=y")}}}
	got := environment(config, from, "host")
	want := []string{"PATH=/image", "HOSTNAME=host", "A=image", "B=pod", "C=x=y"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMountsAreOrderedByDepth(t *testing.T) {
	got := mounts([]*runtimeapi.Mount{
		{HostPath: "/h/3", ContainerPath: "/a/b/c", Readonly: true},
		{HostPath: "/h/1", ContainerPath: "/a"},
		{HostPath: "/h/2", ContainerPath: "/a/b"},
	})
	var targets []string
	for _, mount := range got {
		targets = append(targets, mount.Target)
	}
	if want := []string{"/a", "/a/b", "/a/b/c"}; !slices.Equal(targets, want) {
		t.Errorf("got %q, want %q", targets, want)
	}
	if got[0].ReadOnly || !got[2].ReadOnly {
		t.Error("read-only is not kept")
	}
}

func TestResolvConf(t *testing.T) {
	got := resolvConf(&runtimeapi.DNSConfig{Servers: []string{"10.96.0.10"}, Searches: []string{"a", "b"}, Options: []string{"ndots:5"}})
	if want := "nameserver 10.96.0.10\nsearch a b\noptions ndots:5\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := resolvConf(nil); got != "" {
		t.Errorf("without a configuration: %q", got)
	}
}

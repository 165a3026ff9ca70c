package kind

import (
	"slices"
	"strings"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix/nodeimage"
)

// A host gets the settings that it needs, and no others.
func TestConfig(t *testing.T) {
	for _, test := range []struct {
		name       string
		host       Host
		kubernetes string
		containerd []string
		kubeadm    []string
	}{
		{"an ordinary host", Host{}, "1.37.0", nil, nil},
		{"without CAP_SYS_RESOURCE", Host{Restricted: true}, "1.37.0", []string{restrictOOM}, nil},
		{"cgroup v1 while it is supported", Host{CgroupV1: true}, "1.34.11", nil, nil},
		{"cgroup v1 when it is refused", Host{CgroupV1: true}, "1.35.8", nil, []string{allowCgroupV1}},
		{"both", Host{Restricted: true, CgroupV1: true}, "1.36.4", []string{restrictOOM}, []string{allowCgroupV1}},
	} {
		config := test.host.config(test.kubernetes)
		if !slices.Equal(config.ContainerdConfigPatches, test.containerd) || !slices.Equal(config.KubeadmConfigPatches, test.kubeadm) {
			t.Errorf("%s: got %q and %q", test.name, config.ContainerdConfigPatches, config.KubeadmConfigPatches)
		}
	}
	if limits := (Host{Restricted: true}).limits(); len(limits) != 1 || len((Host{}).limits()) != 0 {
		t.Errorf("a restricted host has the limits %q, an ordinary one %q", limits, (Host{}).limits())
	}
}

func TestLacksSysResource(t *testing.T) {
	for status, want := range map[string]bool{
		"CapEff:\t000001fffeffffff\nCapBnd:\t000001ffffffffff\n": false,
		"CapEff:\t000001ffffffffff\nCapBnd:\t000001fffeffffff\n": true,
		"CapBnd:\t0000000001000000\n":                            false,
	} {
		if got, err := lacksSysResource(status); err != nil || got != want {
			t.Errorf("%q: got %t, %v", status, got, err)
		}
	}
	for _, status := range []string{"", "CapBnd:\tmany\n"} {
		if _, err := lacksSysResource(status); err == nil {
			t.Errorf("%q is no error", status)
		}
	}
}

func TestVersions(t *testing.T) {
	versions := KubernetesVersions()
	if !slices.Contains(versions, DefaultKubernetes) || len(slices.Compact(slices.Clone(versions))) != len(versions) {
		t.Errorf("got %q: a version has one source, and the default is one of them", versions)
	}
	for version, digest := range published {
		if minor(version) < 34 || !strings.HasPrefix(digest, "sha256:") || len(digest) != len("sha256:")+64 {
			t.Errorf("published %s: %s", version, digest)
		}
		if slices.Contains(nodeimage.Versions(), version) {
			t.Errorf("%s is published and built", version)
		}
	}
}

func TestCheckSysctl(t *testing.T) {
	if err := checkSysctl("fs.inotify.max_user_watches", 1); err != nil {
		t.Error(err)
	}
	err := checkSysctl("fs.inotify.max_user_watches", 1<<40)
	if err == nil || !strings.Contains(err.Error(), "sysctl -w fs.inotify.max_user_watches=1099511627776") {
		t.Errorf("a limit that is too low says %v", err)
	}
}

func TestClusterName(t *testing.T) {
	first := clusterName("/a")
	if again, other := clusterName("/a"), clusterName("/b"); again != first || other == first || len(first) > 20 {
		t.Errorf("the folder /a gives %s and %s, the folder /b %s", first, again, other)
	}
}

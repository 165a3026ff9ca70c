//go:build linux

package cri

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/container"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/image"
)

// defaultPath is the PATH of a container whose image and pod set none.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// spec is the container as its pod wants it, over its image's configuration.
func (c *runtimeContainer) spec() (*container.Spec, error) {
	security := c.config.GetLinux().GetSecurityContext()
	user, err := c.user(security)
	if err != nil {
		return nil, err
	}
	args, err := commandLine(c.config, c.image)
	if err != nil {
		return nil, err
	}
	capabilities, err := container.Capabilities(
		security.GetCapabilities().GetAddCapabilities(), security.GetCapabilities().GetDropCapabilities())
	if err != nil {
		return nil, err
	}
	if security.GetPrivileged() {
		return nil, errors.New("the embedded cluster does not support privileged containers")
	}
	if c.config.Tty {
		return nil, errors.New("the embedded cluster does not support containers with a terminal")
	}
	return &container.Spec{
		Lower:    c.image.Root,
		Scratch:  c.scratch,
		ReadOnly: security.GetReadonlyRootfs(),
		Mounts:   mounts(c.config.Mounts),
		Files: map[string]string{
			"/etc/resolv.conf": resolvConf(c.sandbox.config.DnsConfig),
			"/etc/hostname":    c.sandbox.config.Hostname + "\n",
		},
		Process: container.Process{
			Args:            args,
			Env:             environment(c.config, c.image, c.sandbox.config.Hostname),
			Dir:             cmp.Or(c.config.WorkingDir, c.image.Config.WorkingDir, "/"),
			UID:             user.UID,
			GID:             user.GID,
			Groups:          user.Groups,
			Capabilities:    capabilities,
			NoNewPrivileges: security.GetNoNewPrivs(),
			SingleID:        container.SingleID(),
		},
	}, nil
}

// user is the image's user, with what the pod sets instead.
func (c *runtimeContainer) user(security *runtimeapi.LinuxContainerSecurityContext) (image.User, error) {
	wanted := c.image.Config.User
	switch {
	case security.GetRunAsUser() != nil:
		wanted = fmt.Sprint(security.GetRunAsUser().GetValue())
	case security.GetRunAsUsername() != "":
		wanted = security.GetRunAsUsername()
	}
	user, err := image.LookupUser(c.image.Root, wanted)
	if err != nil {
		return image.User{}, err
	}
	if group := security.GetRunAsGroup(); group != nil {
		user.GID = uint32(group.GetValue())
	}
	for _, group := range security.GetSupplementalGroups() {
		if !slices.Contains(user.Groups, uint32(group)) {
			user.Groups = append(user.Groups, uint32(group))
		}
	}
	return user, nil
}

// commandLine joins command and arguments: a pod's command replaces the image's entrypoint
// and its arguments, a pod's arguments only the latter.
func commandLine(config *runtimeapi.ContainerConfig, from image.Image) ([]string, error) {
	command, args := config.Command, config.Args
	if len(command) == 0 {
		command = from.Config.Entrypoint
		if len(args) == 0 {
			args = from.Config.Cmd
		}
	}
	all := slices.Concat(command, args)
	if len(all) == 0 {
		return nil, errors.New("no command specified, neither by the pod nor by the image")
	}
	return all, nil
}

// environment is the image's environment with the pod's over it, each variable once.
func environment(config *runtimeapi.ContainerConfig, from image.Image, hostname string) []string {
	var names []string
	values := map[string]string{}
	set := func(name, value string) {
		if _, ok := values[name]; !ok {
			names = append(names, name)
		}
		values[name] = value
	}
	set("PATH", defaultPath)
	set("HOSTNAME", hostname)
	for _, variable := range from.Config.Env {
		name, value, _ := strings.Cut(variable, "=")
		set(name, value)
	}
	for _, variable := range config.Envs {
		set(variable.Key, string(variable.Value)) // bytes since Kubernetes 1.37
	}
	environment := make([]string, len(names))
	for i, name := range names {
		environment[i] = name + "=" + values[name]
	}
	return environment
}

// mounts orders volumes so that one inside another is mounted after it.
func mounts(wanted []*runtimeapi.Mount) []container.Mount {
	ordered := make([]container.Mount, len(wanted))
	for i, mount := range wanted {
		ordered[i] = container.Mount{Source: mount.HostPath, Target: mount.ContainerPath, ReadOnly: mount.Readonly}
	}
	slices.SortStableFunc(ordered, func(a, b container.Mount) int {
		return cmp.Compare(strings.Count(a.Target, "/"), strings.Count(b.Target, "/"))
	})
	return ordered
}

func resolvConf(dns *runtimeapi.DNSConfig) string {
	var text strings.Builder
	for _, server := range dns.GetServers() {
		fmt.Fprintf(&text, "nameserver %s\n", server)
	}
	if searches := dns.GetSearches(); len(searches) > 0 {
		fmt.Fprintf(&text, "search %s\n", strings.Join(searches, " "))
	}
	if options := dns.GetOptions(); len(options) > 0 {
		fmt.Fprintf(&text, "options %s\n", strings.Join(options, " "))
	}
	return text.String()
}

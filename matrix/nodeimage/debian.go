package nodeimage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/trussiumhq/trussium-operator/matrix/gobuild"
	"github.com/trussiumhq/trussium-operator/matrix/subprocess"
)

// Preflight tells, before a build that takes minutes, what this machine lacks for it.
func Preflight() error {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return fmt.Errorf("node images are built on linux/amd64 only, this is %s/%s: choose a Kubernetes version whose image is published", runtime.GOOS, runtime.GOARCH)
	}
	if os.Geteuid() != 0 {
		return errors.New("building a node image installs Debian's packages in a folder, which takes root: run it as root, or choose a Kubernetes version whose image is published")
	}
	var missing []error
	for program, where := range map[string]string{
		"mmdebstrap": "apt-get install mmdebstrap", "unshare": "apt-get install util-linux", "tar": "apt-get install tar",
	} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, fmt.Errorf("%s is not on the PATH: %s", program, where))
		}
	}
	if _, err := exec.LookPath("go"); err != nil {
		missing = append(missing, gobuild.ErrNoGo)
	}
	if !exists(debianKeyring) {
		missing = append(missing, fmt.Errorf("%s is not there, with which Debian's packages are checked: apt-get install debian-archive-keyring", debianKeyring))
	}
	return errors.Join(missing...)
}

// left are what packages bring that no node needs.
var left = []string{"man", "doc", "locale", "info"}

// debian installs Debian into root.
func debian(ctx context.Context, root, mirror string) error {
	args := []string{"--variant=minbase", "--mode=root", "--format=directory", "--include=" + strings.Join(debianPackages, ",")}
	for _, folder := range left {
		args = append(args, "--dpkgopt=path-exclude=/usr/share/"+folder+"/*")
	}
	args = append(args,
		`--customize-hook=rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*.bin`,
		debianSuite, root,
		fmt.Sprintf("deb %s/debian %s main", mirror, debianSuite),
		fmt.Sprintf("deb %s/debian-security %s-security main", mirror, debianSuite),
	)
	if err := command(ctx, "mmdebstrap", args...); err != nil {
		return fmt.Errorf("install Debian %s: %w", debianSuite, err)
	}
	return nil
}

// command runs a program; the error holds the end of what it printed.
func command(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := subprocess.Run(cmd); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%s: %w\n%s", name, err, lastLines(out.String()))
	}
	return nil
}

// lastLines are the end of a program's output for an error message.
func lastLines(text string) string {
	const count = 20
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}

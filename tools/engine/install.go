package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/trussiumhq/trussium-operator/matrix/cluster/kind"
)

// install installs what is missing of the engine and of the build of a node image. Where packages
// are installed in another way than Debian's, or by another user than root, what is missing is an
// error of the part that needs it.
func install(ctx context.Context, tell func(string, ...any)) error {
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return nil
	}
	var packages []string
	if _, err := exec.LookPath("mmdebstrap"); err != nil {
		packages = append(packages, "mmdebstrap", "debian-archive-keyring")
	}
	_, err := exec.LookPath("dockerd")
	if _, engineErr := kind.Engine(ctx); err != nil && errors.Is(engineErr, kind.ErrNoEngine) {
		packages = append(packages, "docker.io")
	}
	if len(packages) == 0 {
		return nil
	}
	tell("installing %s", strings.Join(packages, " "))
	if err := aptGet(ctx, append([]string{"install", "--yes", "--no-install-recommends"}, packages...)...); err == nil {
		return nil
	}
	// The lists of packages may be missing or old.
	if err := aptGet(ctx, "update"); err != nil {
		return err
	}
	return aptGet(ctx, append([]string{"install", "--yes", "--no-install-recommends"}, packages...)...)
}

func aptGet(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, tail(out.Bytes()))
	}
	return nil
}

// tail is the end of a program's output for an error message.
func tail(text []byte) []byte {
	const lines = 20
	all := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return bytes.Join(all[max(0, len(all)-lines):], []byte("\n"))
}

// Command runcwrap is a container runtime for machines whose processes lack capabilities, such as
// CAP_SYS_RESOURCE: it takes those, and resource limits that only they would allow, out of what a
// container is to be given, and becomes runc.
//
// Docker gives a privileged container all capabilities that the kernel knows, Podman gives every
// container high limits, and runc refuses to start a container with more than it has itself. See
// docs/kind.md.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	fmt.Fprintln(os.Stderr, "runcwrap:", run(os.Args[1:]))
	os.Exit(1)
}

// run returns only if runc can't be started.
func run(args []string) error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return fmt.Errorf("read the capabilities of this process: %w", err)
	}
	allowed, err := boundingSet(string(status))
	if err != nil {
		return err
	}
	if err := restrict(args, host{allowed, hardLimit}); err != nil {
		return err
	}
	runc, err := findRunc()
	if err != nil {
		return fmt.Errorf("find runc: %w: install it (apt-get install runc)", err)
	}
	return fmt.Errorf("start %s: %w", runc, syscall.Exec(runc, append([]string{"runc"}, args...), os.Environ()))
}

// findRunc looks beside the PATH as well, which Podman leaves empty for some commands.
func findRunc() (string, error) {
	runc, err := exec.LookPath("runc")
	for _, place := range []string{"/usr/sbin/runc", "/usr/bin/runc", "/usr/local/sbin/runc"} {
		if err == nil {
			break
		}
		runc, err = exec.LookPath(place)
	}
	return runc, err
}

// host is what processes of this machine may do.
type host struct {
	allowed func(capability string) bool
	hard    func(limit string) (value uint64, known bool)
}

// restrict edits the file that the arguments name: the configuration of a container that is to be
// made, or the process that is to be started in one. Other commands name neither.
func restrict(args []string, h host) error {
	edit := func(process map[string]any) {
		removeCapabilities(process, h.allowed)
		if !h.allowed("CAP_SYS_RESOURCE") {
			lowerLimits(process, h.hard)
		}
	}
	if bundle := value(args, "--bundle", "-b"); bundle != "" {
		return rewrite(filepath.Join(bundle, "config.json"), func(config map[string]any) {
			process, _ := config["process"].(map[string]any)
			edit(process)
		})
	}
	if process := value(args, "--process", "-p"); process != "" {
		return rewrite(process, edit)
	}
	return nil
}

// value is that of a flag, given as "--name value" or "--name=value".
func value(args []string, names ...string) string {
	for i, arg := range args {
		for _, name := range names {
			if arg == name && i+1 < len(args) {
				return args[i+1]
			}
			if text, found := strings.CutPrefix(arg, name+"="); found {
				return text
			}
		}
	}
	return ""
}

// removeCapabilities takes out of all sets of the process what is not allowed.
func removeCapabilities(process map[string]any, allowed func(string) bool) {
	sets, _ := process["capabilities"].(map[string]any)
	for set, list := range sets {
		names, _ := list.([]any)
		kept := []any{}
		for _, name := range names {
			text, isText := name.(string)
			if !isText || allowed(text) { // what is no name is for runc to complain about
				kept = append(kept, name)
			}
		}
		sets[set] = kept
	}
}

// rewrite edits a JSON file in place; numbers stay as they are written.
func rewrite(file string, edit func(map[string]any)) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read what the container is to be: %w", err)
	}
	var document map[string]any
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	if err := decoder.Decode(&document); err != nil {
		return fmt.Errorf("read what the container is to be, from %s: %w", file, err)
	}
	edit(document)
	edited, err := json.Marshal(document)
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, edited, info.Mode().Perm()); err != nil {
		return fmt.Errorf("restrict what the container is given: %w", err)
	}
	return nil
}

var errNoSet = errors.New("read the capabilities of this process: /proc/self/status has no CapBnd")

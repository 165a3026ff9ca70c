// Package statedir names the files in a cluster's state folder.
package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Dir is the absolute path of a state folder.
type Dir string

// marker is a file that makes a folder known as a cluster's state, which is deleted with
// the cluster. Whoever starts a cluster may have made it already, for a log of its own.
const marker = ".embedded-cluster"

// Create makes the folder and those inside it that every cluster has. Only the owner can
// enter it: it holds private keys and sockets without any further protection. A folder with
// anything else in it is refused, because it is going to be deleted.
func (d Dir) Create() error {
	if err := d.checkUnused(); err != nil {
		return err
	}
	for _, path := range []string{string(d), d.PKI(), d.Logs()} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("create the state folder: %w", err)
		}
	}
	if err := os.WriteFile(d.join(marker), nil, 0o600); err != nil {
		return fmt.Errorf("create the state folder: %w", err)
	}
	return os.Chmod(string(d), 0o700)
}

func (d Dir) checkUnused() error {
	entries, err := os.ReadDir(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at the state folder: %w", err)
	}
	isMarker := func(entry fs.DirEntry) bool { return entry.Name() == marker }
	if len(entries) > 0 && !slices.ContainsFunc(entries, isMarker) {
		return fmt.Errorf("%s is neither empty nor the state of an embedded cluster: choose another folder, this one would be deleted with the cluster", d)
	}
	return nil
}

// Remove deletes the content of the folder and then the folder itself.
func (d Dir) Remove() error {
	if err := os.RemoveAll(string(d)); err != nil {
		return fmt.Errorf("remove the state folder: %w", err)
	}
	return nil
}

// End deletes the folder of a cluster that ended with failure, nil if it was told to. What a
// failed one logged stays, for whoever looks for the cause.
func (d Dir) End(failure error) error {
	if failure == nil {
		return d.Remove()
	}
	return d.Clear(failure)
}

// Clear is End for a process that sees the folder as a mount point: it leaves the folder.
func (d Dir) Clear(failure error) error {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return fmt.Errorf("clear the state folder: %w", err)
	}
	for _, entry := range entries {
		path := d.join(entry.Name())
		if failure != nil && (path == d.Logs() || entry.Name() == marker) {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("clear the state folder: %w", err)
		}
	}
	return nil
}

func (d Dir) join(name ...string) string {
	return filepath.Join(append([]string{string(d)}, name...)...)
}

// PKI is the folder of keys and certificates.
func (d Dir) PKI() string { return d.join("pki") }

// Logs is the folder with one log file for each component.
func (d Dir) Logs() string { return d.join("logs") }

// Log is the log file of a component.
func (d Dir) Log(component string) string { return d.join("logs", component+".log") }

// PodLogs is the folder of the containers' logs, laid out by the kubelet.
func (d Dir) PodLogs() string { return d.join("pod-logs") }

// Kubeconfig is the kubeconfig of a user of the cluster; "admin" is the one for people.
func (d Dir) Kubeconfig(user string) string {
	if user == "admin" {
		return d.join("kubeconfig")
	}
	return d.join("pki", user+".kubeconfig")
}

// Etcd is etcd's data folder.
func (d Dir) Etcd() string { return d.join("etcd") }

// Kubelet is the kubelet's root folder.
func (d Dir) Kubelet() string { return d.join("kubelet") }

// Images is the store of unpacked images.
func (d Dir) Images() string { return d.join("images") }

// Containers is the folder where the roots of running containers are built.
func (d Dir) Containers() string { return d.join("containers") }

// Socket is the path of a unix socket in the folder. The kernel allows about a hundred
// characters for it, which a state folder deep in a file system exceeds; so the path goes
// through the working directory of the process, which must be the state folder.
func (d Dir) Socket(name string) string { return "/proc/self/cwd/" + name + ".sock" }

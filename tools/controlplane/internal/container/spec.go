//go:build linux

// Package container is what happens between the start of a container's process and the
// container's own program: this program builds the container's root, gives up rights and
// becomes the other program. It is the part of an OCI runtime that the embedded cluster
// needs.
package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
)

// The commands of this program that run inside a container's namespaces.
const (
	// InitCommand becomes the container's first process.
	InitCommand = "container-init"
	// ExecCommand becomes a further process of a running container.
	ExecCommand = "container-exec"
)

// Spec is all that the container's process needs to know.
type Spec struct {
	// Lower is the unpacked image.
	Lower string `json:"lower"`
	// Scratch is an empty folder on which the container's own file system is mounted.
	Scratch string `json:"scratch"`
	// ReadOnly makes the root read-only.
	ReadOnly bool `json:"readOnly"`
	// Mounts are the volumes, outer folders before those inside them.
	Mounts []Mount `json:"mounts,omitempty"`
	// Files are small files that the runtime provides, such as /etc/resolv.conf.
	Files map[string]string `json:"files,omitempty"`
	// Process is what is run.
	Process Process `json:"process"`
}

// Mount is a folder or file of the host in the container.
type Mount struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

// Process is a program and the rights it runs with.
type Process struct {
	Args []string `json:"args"`
	// Env is the whole environment; its PATH also finds the program.
	Env []string `json:"env"`
	// Dir is the working directory.
	Dir    string   `json:"dir"`
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups,omitempty"`
	// Capabilities are the numbers of those that the process may ever have.
	Capabilities    []int `json:"capabilities,omitempty"`
	NoNewPrivileges bool  `json:"noNewPrivileges,omitempty"`
	// SingleID means that this process is in a user namespace of one user id, which the
	// program sees as UID and GID.
	SingleID bool `json:"singleID,omitempty"`
	// Mapped means that the user namespace already shows that id as UID and GID.
	Mapped bool `json:"mapped,omitempty"`
	// Terminal means that standard input is a terminal that the process shall control.
	Terminal bool `json:"terminal,omitempty"`
}

// The file descriptors that the commands of this package are started with: one to read
// the specification from, one to report a failure to, and with ExecCommand this program's
// file. The second closes without a word when the container's program has started.
const (
	specDescriptor   = 3
	reportDescriptor = 4
	selfDescriptor   = 5
)

// exitSetupFailed is the exit code of a container whose program could not be started.
const exitSetupFailed = 128

// Init is InitCommand. It returns only if the container's program could not be started.
func Init() error {
	return become(func(spec *Spec) error {
		if err := buildRoot(spec); err != nil {
			return err
		}
		return run(spec.Process)
	})
}

// become reads a specification, starts what it asks for, and reports a failure.
func become(start func(*Spec) error) error {
	runtime.LockOSThread() // rights belong to threads, and the one that executes counts
	spec, err := readSpec()
	if err == nil {
		err = start(spec)
	}
	report := os.NewFile(reportDescriptor, "report")
	_, writeErr := io.WriteString(report, err.Error())
	if writeErr != nil {
		return errors.Join(err, writeErr)
	}
	os.Exit(exitSetupFailed)
	return nil
}

func readSpec() (*Spec, error) {
	file := os.NewFile(specDescriptor, "specification")
	defer file.Close()
	var spec Spec
	if err := json.NewDecoder(file).Decode(&spec); err != nil {
		return nil, fmt.Errorf("read the container's specification: %w", err)
	}
	return &spec, nil
}

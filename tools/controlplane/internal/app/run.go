// Package app is the command line of the embedded cluster: one program that is, depending
// on its first argument, the cluster as a whole or one of its components.
package app

import (
	"fmt"
	"os"
)

// Exit codes of the program.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// Run runs the command that arguments name and returns the exit code.
func Run(arguments []string) int {
	if len(arguments) == 0 {
		usage()
		return exitUsage
	}
	command, ok := commands()[arguments[0]]
	if !ok {
		fmt.Fprintf(os.Stderr, "controlplane: unknown command %q\n", arguments[0])
		usage()
		return exitUsage
	}
	if err := command(arguments[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "controlplane: %v\n", err)
		return exitFailed
	}
	return exitOK
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: controlplane up --dir FOLDER [--node] [--help]")
}

//go:build !linux

package app

import (
	"fmt"
	"runtime"
)

func commands() map[string]func([]string) error {
	return map[string]func([]string) error{
		"up": func([]string) error {
			return fmt.Errorf("the embedded cluster runs on Linux only, not on %s", runtime.GOOS)
		},
	}
}

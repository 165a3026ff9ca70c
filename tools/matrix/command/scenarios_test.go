package main

import (
	"bytes"
	"strings"
	"testing"
)

// What the command can't run is told before anything is built.
func TestScenariosRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"unknown scenario":     {[]string{"roll-sideways"}, "scenario roll-sideways: choose from autoscaling,"},
		"scenario of later":    {[]string{"--release", "0.5.0", "autoscaling"}, "scenario autoscaling: choose from"},
		"unknown release":      {[]string{"--release", "0.5.1"}, "--release 0.5.1"},
		"selector in error":    {[]string{"--selector", "level=smoke="}, "--selector"},
		"selector of nothing":  {[]string{"--selector", "level=quick"}, `supports no scenario with the labels "level=quick"`},
		"selector of a future": {[]string{"--release", "0.3.1", "--selector", "feature=runtime-image"}, "operator 0.3.1 supports no scenario"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), append([]string{"scenarios"}, test.args...), &stdout, &stderr)
			if code != exitInput || !strings.Contains(stderr.String(), test.want) || stdout.Len() > 0 {
				t.Errorf("exit code %d, stdout %q, stderr %q; want code %d and the words %q", code, &stdout, &stderr, exitInput, test.want)
			}
		})
	}
}

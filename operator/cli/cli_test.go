package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/trussiumhq/trussium-operator/operator/cli"
	"github.com/trussiumhq/trussium-operator/operator/manager"
)

func TestCommandLine(t *testing.T) {
	tests := []struct {
		arguments []string
		code      int
		stdout    string
		stderr    string
	}{
		{arguments: []string{"--version"}, stdout: manager.CurrentVersion()},
		{arguments: []string{"--help"}, stdout: "--watch-namespace"},
		{arguments: []string{"crds", "--help"}, stdout: "apply"},
		{arguments: []string{"check", "--help"}, stdout: "--leader-election-namespace"},
		{arguments: []string{"check", "--kubeconfig", "does/not/exist"}, code: 1, stderr: "does/not/exist"},
		{arguments: []string{"--no-such-flag"}, code: 1, stderr: "no-such-flag"},
		{arguments: []string{"surplus"}, code: 1, stderr: "surplus"},
		{arguments: []string{"--log-level", "LOUD"}, code: 1, stderr: "log-level"},
		{arguments: []string{"--kubeconfig", "does/not/exist"}, code: 1, stderr: "does/not/exist"},
	}
	for _, test := range tests {
		t.Run(strings.Join(test.arguments, " "), func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := cli.Run(test.arguments, &stdout, &stderr)
			if code != test.code || !strings.Contains(stdout.String(), test.stdout) || !strings.Contains(stderr.String(), test.stderr) {
				t.Errorf("code %d, stdout %q, stderr %q", code, &stdout, &stderr)
			}
		})
	}
}

package e2e

import (
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/trussiumhq/trussium-operator/operator/operatortest/kubectltest"
)

// kubectl runs a command line of kubectl, as it stands in the documentation, and returns what it
// prints.
func kubectl(t *testing.T, line string) string {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	*flags.KubeConfig, *flags.CacheDir = cluster.Kubeconfig(), t.TempDir()
	output, err := kubectltest.Run(flags, strings.Fields(strings.ReplaceAll(line, "\\\n", " "))[1:])
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return output
}

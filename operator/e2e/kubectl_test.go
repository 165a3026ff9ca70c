package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/operatortest/kubectltest"
)

// kubectl runs a command of kubectl in this process and returns what it prints.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	output, err := runKubectl(t.TempDir(), args)
	if err != nil {
		t.Fatalf("kubectl %s: %v", strings.Join(args, " "), err)
	}
	return output
}

func runKubectl(cacheDir string, args []string) (output string, err error) {
	flags := genericclioptions.NewConfigFlags(false).WithWrapConfigFn(func(*rest.Config) *rest.Config {
		return rest.CopyConfig(restConfig)
	})
	*flags.KubeConfig, *flags.APIServer, *flags.CacheDir = os.DevNull, restConfig.Host, cacheDir
	return kubectltest.Run(flags, args)
}

func TestKubectlWaitsAndShows(t *testing.T) {
	t.Parallel()
	s := create(t, tagA, nil)
	namespace := "--namespace=" + s.Namespace
	waitFor := func(condition string) {
		t.Helper()
		kubectl(t, "wait", "truntime/"+s.Name, namespace, "--for="+condition, "--timeout=60s")
	}
	waitFor("condition=Ready")
	s.runs(tagA, 1)
	waitFor("condition=Upgrading=False")
	waitFor("jsonpath={.status.lastSuccessfulImage}=" + image(tagA))

	s.setTag(tagB)
	waitFor("jsonpath={.status.currentImage}=" + image(tagB))
	waitFor("jsonpath={.status.lastSuccessfulImage}=" + image(tagB))
	s.runs(tagB, 1)
	waitFor(`jsonpath={.status.conditions[?(@.type=="Upgrading")].reason}=UpgradeComplete`)

	// What was said about the spec before must not end the wait.
	s.setTag(tagA)
	waitFor("condition=Progressing=False")
	s.runs(tagA, 1)

	rows := strings.Split(strings.TrimSpace(kubectl(t, "get", "truntime", namespace)), "\n")
	want := [][]string{
		{"NAME", "READY", "DESIRED", "IMAGE", "UPGRADING", "PROVIDER", "AGE"},
		{s.Name, "1", "1", image(tagA), "UpgradeComplete", string(v1alpha1.ProviderOllama)},
	}
	if len(rows) != len(want) {
		t.Fatalf("the table has %d rows, want %d:\n%s", len(rows), len(want), strings.Join(rows, "\n"))
	}
	for i := range want {
		columns := strings.Fields(rows[i])
		if len(columns) != len(want[0]) || !slices.Equal(columns[:len(want[i])], want[i]) {
			t.Errorf("row %d of the table is %q, want %q", i, columns, want[i])
		}
	}
}

// A failure of kubectl must not pass for a success.
func TestKubectlFails(t *testing.T) {
	t.Parallel()
	s := create(t, tagMissing, nil)
	_, err := runKubectl(t.TempDir(), []string{"wait", "truntime/" + s.Name, "--namespace=" + s.Namespace, "--for=condition=Ready", "--timeout=1s"})
	if err == nil || !strings.Contains(err.Error(), "timed out") {
		t.Errorf("waiting for a runtime that does not run gives %v", fmt.Sprint(err))
	}
}

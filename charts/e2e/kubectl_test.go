package e2e

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/apply"
	"k8s.io/kubectl/pkg/cmd/delete"
	"k8s.io/kubectl/pkg/cmd/get"
	"k8s.io/kubectl/pkg/cmd/label"
	"k8s.io/kubectl/pkg/cmd/rollout"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// kubectlError is a message with which kubectl would end.
type kubectlError string

func init() {
	cmdutil.BehaviorOnFatal(func(message string, _ int) { panic(kubectlError(message)) })
}

// kubectl runs a command line of kubectl in this process, as it stands in the documentation,
// and returns what it prints.
func kubectl(t *testing.T, line string) string {
	t.Helper()
	output, err := tryKubectl(t, line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return output
}

func tryKubectl(t *testing.T, line string) (output string, err error) {
	t.Helper()
	defer func() {
		if message, ok := recover().(kubectlError); ok {
			err = errors.New(string(message))
		}
	}()
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	flags := genericclioptions.NewConfigFlags(false)
	*flags.KubeConfig, *flags.CacheDir = cluster.Kubeconfig(), t.TempDir()
	root := &cobra.Command{Use: "kubectl", SilenceErrors: true, SilenceUsage: true}
	flags.AddFlags(root.PersistentFlags())
	factory := cmdutil.NewFactory(flags)
	root.AddCommand(
		apply.NewCmdApply("kubectl", factory, streams), delete.NewCmdDelete(factory, streams), get.NewCmdGet("kubectl", factory, streams),
		label.NewCmdLabel(factory, streams), rollout.NewCmdRollout("kubectl", factory, streams),
	)
	arguments := strings.Fields(strings.ReplaceAll(line, "\\\n", " "))
	root.SetArgs(arguments[1:])
	err = root.Execute()
	return out.String(), err
}

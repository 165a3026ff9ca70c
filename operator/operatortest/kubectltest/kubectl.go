// Package kubectltest runs kubectl in the process of a test.
package kubectltest

import (
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/apply"
	"k8s.io/kubectl/pkg/cmd/delete"
	"k8s.io/kubectl/pkg/cmd/get"
	"k8s.io/kubectl/pkg/cmd/label"
	"k8s.io/kubectl/pkg/cmd/rollout"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/cmd/wait"
)

// fatal is a message with which kubectl would end.
type fatal string

func init() {
	cmdutil.BehaviorOnFatal(func(message string, _ int) { panic(fatal(message)) })
}

// Run runs the command of kubectl that the arguments are, against the cluster of the flags, and
// returns what it prints.
func Run(flags *genericclioptions.ConfigFlags, arguments []string) (output string, err error) {
	defer func() {
		if message, ok := recover().(fatal); ok {
			err = errors.New(string(message))
		}
	}()
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	root := &cobra.Command{Use: "kubectl", SilenceErrors: true, SilenceUsage: true}
	flags.AddFlags(root.PersistentFlags())
	factory := cmdutil.NewFactory(flags)
	root.AddCommand(
		apply.NewCmdApply("kubectl", factory, streams), delete.NewCmdDelete(factory, streams), get.NewCmdGet("kubectl", factory, streams),
		label.NewCmdLabel(factory, streams), rollout.NewCmdRollout("kubectl", factory, streams), wait.NewCmdWait(flags, streams),
	)
	root.SetArgs(arguments)
	err = root.Execute()
	return out.String(), err
}

package app

import (
	"github.com/spf13/cobra"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // the components' client metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // the components' version metric
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/container"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/controlplane"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/node"
)

func commands() map[string]func([]string) error {
	return map[string]func([]string) error{
		"up":                           up,
		innerCommand:                   inner,
		controlplane.Node:              node.Run,
		container.InitCommand:          func([]string) error { return container.Init() },
		container.ExecCommand:          func([]string) error { return container.Exec() },
		controlplane.APIServer:         upstream(apiserver.NewAPIServerCommand),
		controlplane.ControllerManager: upstream(controllermanager.NewControllerManagerCommand),
		controlplane.Scheduler:         upstream(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	}
}

// upstream runs an unmodified Kubernetes command. Only the wanted one is made: making a
// command changes feature gates of the whole process.
func upstream(newCommand func() *cobra.Command) func([]string) error {
	return func(arguments []string) error {
		logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
		command := newCommand()
		command.SetArgs(arguments)
		return command.Execute()
	}
}

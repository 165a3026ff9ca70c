package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trussiumhq/trussium-operator/operator/check"
)

// checkTimeout is enough for a new operator to start and read what it depends on.
const checkTimeout = time.Minute

func checkCommand() *cobra.Command {
	options := check.Options{LeaderElect: true, Timeout: checkTimeout}
	command := &cobra.Command{
		Use:   "check",
		Short: "Check that the installed operator has its rights and works",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := ctrl.GetConfig()
			if err != nil {
				return fmt.Errorf("find the cluster: %w", err)
			}
			return check.Run(command.Context(), config, options, command.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.BoolVar(&options.LeaderElect, "leader-elect", options.LeaderElect, "whether the operator runs with --leader-elect")
	flags.StringVar(&options.LeaderElectionNamespace, "leader-election-namespace", "", "namespace of the operator's Lease")
	flags.StringVar(&options.WatchNamespace, "watch-namespace", "", "the only namespace that the operator works in (default: all)")
	flags.DurationVar(&options.Timeout, "timeout", options.Timeout, "how long to wait for a leader")
	return command
}

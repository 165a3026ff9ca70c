package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trussiumhq/trussium-operator/operator/crds"
)

func crdsCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "crds",
		Short: "Manage the operator's CustomResourceDefinitions",
	}
	command.AddCommand(&cobra.Command{
		Use:   "apply",
		Short: "Install or update the CustomResourceDefinitions that this binary was built with",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := ctrl.GetConfig()
			if err != nil {
				return fmt.Errorf("find the cluster: %w", err)
			}
			names, err := crds.Apply(command.Context(), config)
			for _, name := range names {
				fmt.Fprintln(command.OutOrStdout(), name, "applied")
			}
			return err
		},
	})
	return command
}

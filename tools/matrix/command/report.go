package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/trussiumhq/trussium-operator/matrix"
)

func newReport(s *settings, stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "report",
		Short: "Write the generated documents again from the compatibility file and the evidence",
		Long: `Writes UPGRADE-MATRIX.md, the tables between markers in README.md and docs/COMPATIBILITY.md, and
docs/compatibility.schema.json. Runs nothing: it reads compatibility.yaml and the documents in evidence/.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options, err := s.options()
			if err != nil {
				return err
			}
			written, err := matrix.WriteDocuments(cmd.Context(), options)
			if err != nil {
				return err
			}
			for _, path := range written {
				fmt.Fprintln(stdout, "wrote", relative(filepath.Join(options.Repository, filepath.FromSlash(path))))
			}
			if written == nil {
				fmt.Fprintln(stdout, "every generated document is up to date")
			}
			return nil
		},
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// Formats of what commands print.
const (
	outputTable = "table"
	outputJSON  = "json"
	outputYAML  = "yaml"
)

// addOutputFlag adds -o to a command.
func addOutputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", outputTable, "what to print: table, json or yaml")
}

func checkOutput(output string) error {
	switch output {
	case outputTable, outputJSON, outputYAML:
		return nil
	default:
		return usageError{fmt.Errorf("--output %q: give table, json or yaml", output)}
	}
}

// printResult prints a value for programs, or what table writes for people.
func printResult(stdout io.Writer, output string, value any, table func(w io.Writer)) error {
	switch output {
	case outputJSON:
		encoder := json.NewEncoder(stdout)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	case outputYAML:
		content, err := yaml.Marshal(value)
		if err != nil {
			return fmt.Errorf("encode the result: %w", err)
		}
		_, err = stdout.Write(content)
		return err
	default:
		columns := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
		table(columns)
		return columns.Flush()
	}
}

// Command chartgen writes what is generated of the chart: the whole schema of its values, the
// table of them in its documentation, and install.yaml.
package main

//go:generate go run .

import (
	"fmt"
	"os"
	"path/filepath"

	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/trussiumhq/trussium-operator/charts/bundle"
	"github.com/trussiumhq/trussium-operator/charts/valuesschema"
	"github.com/trussiumhq/trussium-operator/charts/valuestable"
	"github.com/trussiumhq/trussium-operator/matrix/checkout"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "chartgen:", err)
		os.Exit(1)
	}
}

func run() error {
	places, err := checkout.Find()
	if err != nil {
		return err
	}
	charts := filepath.Join(places.Repository, "charts")
	chart := filepath.Join(charts, "trussium-operator")

	schema, err := valuesschema.Complete(filepath.Join(charts, "values.schema.json"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(chart, "values.schema.json"), schema, 0o644); err != nil {
		return fmt.Errorf("write the schema of the chart's values: %w", err)
	}
	rows, err := valuestable.Rows(chart)
	if err != nil {
		return err
	}
	if err := document(filepath.Join(places.Repository, "docs", "operator", "chart-values.md"), valuestable.Markdown(rows)); err != nil {
		return err
	}
	loaded, err := loader.Load(chart)
	if err != nil {
		return fmt.Errorf("load the chart %s: %w", chart, err)
	}
	objects, err := bundle.Render(loaded, "")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(charts, "install.yaml"), objects, 0o644); err != nil {
		return fmt.Errorf("write the bundle: %w", err)
	}
	return nil
}

// document puts the table into the file.
func document(file, table string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the documentation of the values: %w", err)
	}
	if content, err = valuestable.Insert(content, table); err != nil {
		return fmt.Errorf("write the table of values into %s: %w", file, err)
	}
	if err := os.WriteFile(file, content, 0o644); err != nil {
		return fmt.Errorf("write the documentation of the values: %w", err)
	}
	return nil
}

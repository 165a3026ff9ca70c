// Command operator runs the Trussium operator.
package main

import (
	"os"

	"github.com/trussiumhq/trussium-operator/operator/cli"
)

func main() {
	os.Exit(cli.Run(os.Args[1:], os.Stdout, os.Stderr))
}

// Command controlplane is a Kubernetes cluster in one program: etcd, the API server, the
// controller manager, the scheduler and, if wanted, a node whose containers are processes.
//
// See docs/embedded-cluster.md of the repository for what it is and what it is not.
package main

import (
	"os"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/app"
)

func main() {
	os.Exit(app.Run(os.Args[1:]))
}

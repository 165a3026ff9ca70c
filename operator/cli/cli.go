// Package cli is the command line of the operator binary.
package cli

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/trussiumhq/trussium-operator/operator/manager"
)

// Run runs the command line args and returns the exit code of the process. It
// ends early, in good order, on SIGTERM and SIGINT; a second signal kills it.
func Run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	context.AfterFunc(ctx, stop)

	command := root(stdout)
	command.SetArgs(args)
	command.SetOut(stdout)
	command.SetErr(stderr)
	if err := command.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(stderr, "error:", err)
		return 1
	}
	return 0
}

func root(stdout io.Writer) *cobra.Command {
	options := manager.DefaultOptions()
	command := &cobra.Command{
		Use:           "manager",
		Short:         "Run the Trussium operator",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       manager.CurrentVersion(),
		RunE: func(command *cobra.Command, _ []string) error {
			collectOften()
			log := jsonLog(stdout, options.LogLevel)
			cluster, err := ctrl.GetConfig()
			if err != nil {
				return fmt.Errorf("find the cluster: %w", err)
			}
			return manager.Run(command.Context(), cluster, options, log)
		},
	}
	options.AddFlags(command.Flags())
	connection := flag.NewFlagSet("connection", flag.ContinueOnError)
	config.RegisterFlags(connection)
	command.PersistentFlags().AddGoFlagSet(connection)
	command.AddCommand(checkCommand(), crdsCommand())
	return command
}

// gcPercent lets the heap grow by half of what is in use before it is collected. Most
// of it are the caches: with 1,000 runtimes that takes about 12 MiB less than the default
// (docs/performance.md).
const gcPercent = 50

// collectOften leaves the choice to GOGC where it is set.
func collectOften() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// jsonLog makes one JSON object of every log line, those of the libraries too.
func jsonLog(stdout io.Writer, level slog.Level) logr.Logger {
	log := logr.FromSlogHandler(slog.NewJSONHandler(stdout, &slog.HandlerOptions{Level: level}))
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("client-go"))
	return log
}

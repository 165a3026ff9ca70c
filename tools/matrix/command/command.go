package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trussiumhq/trussium-operator/matrix"
	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/checkout"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/doctor"
)

// Exit codes.
const (
	exitGreen          = 0
	exitRed            = 1 // a cell failed
	exitInput          = 2 // nothing was started
	exitInfrastructure = 3
	exitInterrupted    = 130
)

// errRed says that cells are red; what failed was printed when it failed.
var errRed = errors.New("the matrix is red")

// errInfrastructure says that cells could not be judged.
var errInfrastructure = errors.New("cells could not be judged: the cluster or a registry failed")

// run is the whole program: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	// What the client libraries log is no news to a person: failures are reported as errors.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	root := newRoot(stdout)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	code := exitCode(ctx, err)
	var mistakes *compat.Error
	switch {
	case err == nil:
	case code == exitInterrupted:
		fmt.Fprintln(stderr, "matrix: interrupted; the same command goes on or starts the cell again")
	case errors.As(err, &mistakes):
		fmt.Fprintln(stderr, mistakes) // each line begins with its position, for editors
		annotateProblems(stderr, mistakes.Problems)
	default:
		fmt.Fprintln(stderr, "matrix:", err)
	}
	return code
}

func exitCode(ctx context.Context, err error) int {
	var usage usageError
	switch {
	case err == nil:
		return exitGreen
	case ctx.Err() != nil:
		return exitInterrupted
	case errors.Is(err, errRed):
		return exitRed
	case errors.As(err, &usage), errors.Is(err, matrix.ErrInput):
		return exitInput
	default:
		return exitInfrastructure
	}
}

// usageError is a mistake on the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// settings are the flags that several commands share.
type settings struct {
	file string
	// repository is that of another operator.
	repository string
	// published, mirrors and bundle say where artifacts come from.
	published bool
	mirrors   []string
	bundle    string
	provider  string
	narrow    struct{ kubernetes, rows, cells []string }
	jobs      int
	fresh     bool
	retain    bool
	output    string
	junit     string
}

func newRoot(stdout io.Writer) *cobra.Command {
	s := &settings{}
	root := &cobra.Command{
		Use:   "matrix",
		Short: "Prove what upgrades of the Trussium operator do to running workloads",
		Long: `Reads compatibility.yaml, installs earlier operator releases into a cluster, upgrades them to the
checkout, rolls runtime images forward and back, rolls the chart back, and writes
UPGRADE-MATRIX.md and the evidence it rests on.

Without a command it runs the whole matrix.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("there is no command %q: see matrix --help", args[0])}
			}
			return nil
		},
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runMatrix(cmd.Context(), s, stdout, cmd.ErrOrStderr())
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())}
	})
	root.CompletionOptions.DisableDefaultCmd = true
	root.PersistentFlags().StringVarP(&s.file, "file", "f", "", "compatibility file (default: compatibility.yaml of the checkout)")
	root.PersistentFlags().StringVar(&s.repository, "repository", "", "root of the checkout of another operator, with a compatibility file of its own (default: this checkout)")
	s.addRunFlags(root)
	root.AddCommand(newRun(s, stdout), newPlan(s, stdout), newValidate(s, stdout), newReport(s, stdout), newVerify(s, stdout), newPath(s, stdout), newDiff(stdout), newCluster(stdout), newTriage(s, stdout), newScenarios(s, stdout), newSelftest(stdout), newBundle(s, stdout), newDoctor(s, stdout))
	return root
}

func (s *settings) addProviderFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.provider, "provider", embedded.ProviderName, "cluster provider: "+strings.Join(matrix.Providers, ", "))
}

func (s *settings) addPlanFlags(cmd *cobra.Command) {
	s.addProviderFlag(cmd)
	cmd.Flags().StringSliceVar(&s.narrow.kubernetes, "kubernetes", nil, "exact Kubernetes versions instead of those of the file")
	cmd.Flags().StringSliceVar(&s.narrow.rows, "row", nil, "run only the rows with these ids")
	cmd.Flags().StringSliceVar(&s.narrow.cells, "cell", nil, "run only the cells with these ids")
}

// addSourceFlags adds where charts and images are pulled from.
func (s *settings) addSourceFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.published, "published", false, "pull earlier releases and runtime images as far as they are published, and build only the others")
	cmd.Flags().StringArrayVar(&s.mirrors, "mirror", nil, "pull from another registry, as in ghcr.io=HOST[:PORT][/PREFIX]; plain HTTP on loopback only; says --published, too")
}

func (s *settings) addBundleFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.bundle, "bundle", "", "take everything from the archive `FILE` that matrix bundle wrote; nothing is built or pulled")
}

func (s *settings) addRunFlags(cmd *cobra.Command) {
	s.addPlanFlags(cmd)
	s.addSourceFlags(cmd)
	s.addBundleFlag(cmd)
	s.addJobsFlag(cmd)
	addOutputFlag(cmd, &s.output)
	cmd.Flags().StringVar(&s.junit, "junit", "", "write the results as JUnit XML to this file")
	cmd.Flags().BoolVar(&s.fresh, "fresh", false, "run cells again whose result is still valid")
	cmd.Flags().BoolVar(&s.retain, "retain", false, "keep the clusters when their cells end (see matrix cluster down)")
}

func (s *settings) addJobsFlag(cmd *cobra.Command) {
	cmd.Flags().IntVar(&s.jobs, "jobs", defaultJobs(), "how many cells run at once; each needs up to 2 GiB and a third of a core")
}

// defaultJobs gives each cell a third of a core: it waits for most of its time (docs/performance.md).
func defaultJobs() int {
	jobs := 3 * runtime.GOMAXPROCS(0) // which knows the limit of the control group
	if cells, err := (doctor.Machine{}).Cells(); err == nil {
		jobs = min(jobs, cells)
	}
	return max(1, jobs)
}

// options resolves the settings against the checkout that the working directory is in.
func (s *settings) options() (matrix.Options, error) {
	found, err := places()
	if err != nil {
		return matrix.Options{}, err
	}
	repository := found.Repository
	if s.repository != "" {
		if repository, err = filepath.Abs(s.repository); err != nil {
			return matrix.Options{}, fmt.Errorf("--repository %s: %w", s.repository, err)
		}
	}
	file := s.file
	if file == "" {
		file = relative(filepath.Join(repository, "compatibility.yaml"))
	}
	if s.jobs < 1 {
		return matrix.Options{}, usageError{fmt.Errorf("--jobs %d: give at least 1", s.jobs)}
	}
	var mirrors []artifact.Mirror
	for _, text := range s.mirrors {
		mirror, err := artifact.ParseMirror(text)
		if err != nil {
			return matrix.Options{}, usageError{fmt.Errorf("--mirror: %w", err)}
		}
		mirrors = append(mirrors, mirror)
	}
	return matrix.Options{
		Published: s.published, Mirrors: mirrors, Bundle: s.bundle,
		Repository: repository, CacheDir: found.CacheDir, Tools: found.Repository, File: file, Provider: s.provider,
		Kubernetes: s.narrow.kubernetes, Rows: s.narrow.rows, Cells: s.narrow.cells,
		Jobs: s.jobs, Fresh: s.fresh, Retain: s.retain,
	}, nil
}

// places are the folders that the command works on.
func places() (checkout.Places, error) {
	found, err := checkout.Find()
	if errors.Is(err, checkout.ErrNone) {
		err = usageError{err}
	}
	return found, err
}

// relative shortens a path for messages where that is possible.
func relative(path string) string {
	working, err := os.Getwd()
	if err != nil {
		return path
	}
	short, err := filepath.Rel(working, path)
	if err != nil || strings.HasPrefix(short, "..") {
		return path
	}
	return short
}

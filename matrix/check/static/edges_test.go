package static

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/checkout"
	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/git"
	"github.com/trussiumhq/trussium-operator/matrix/helm"
)

const (
	releaseName = "trussium-operator"
	namespace   = "trussium-operator-system"
	kubernetes  = "1.37.2"
)

// lab holds every release of compatibility.yaml and the checkout, as a matrix has them.
var lab struct {
	places   checkout.Places
	subject  check.Subject
	registry *artifact.Registry
	charts   *helm.Client
	// releases are from the oldest to the newest, the checkout comes last.
	releases []Release
}

// dir is for what the tests share.
var dir string

func TestMain(m *testing.M) {
	var err error
	if dir, err = os.MkdirTemp("", "static-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// prepared fills the lab, for the first test that needs it.
var prepared = sync.OnceValue(func() error { return prepare(context.Background()) })

func prepareLab(t *testing.T) {
	t.Helper()
	if err := prepared(); err != nil {
		t.Fatalf("prepare the releases: %v", err)
	}
}

func prepare(ctx context.Context) error {
	var err error
	if lab.places, err = checkout.Find(); err != nil {
		return err
	}
	tell := func(text string) { fmt.Fprintln(os.Stderr, text) }
	builder := artifact.Builder{Repository: lab.places.Repository, CacheDir: lab.places.CacheDir, Progress: tell}
	tools := Tools{Repository: lab.places.Repository, CacheDir: lab.places.CacheDir, Progress: tell}
	file, err := compat.Load(filepath.Join(lab.places.Repository, "compatibility.yaml"))
	if err != nil {
		return err
	}
	if lab.registry, err = artifact.Serve(ctx); err != nil {
		return err
	}
	if lab.charts, err = helm.New("", namespace, dir, true, func(string, ...any) {}); err != nil {
		return err
	}
	add := func(release artifact.Release, tree string) error {
		if err := lab.registry.Add(release.Chart, release.Image); err != nil {
			return err
		}
		chart, err := lab.charts.Pull(lab.registry.Local(release.Chart.Ref))
		lab.releases = append(lab.releases, Release{Version: release.Version, Chart: chart, Tree: NewTree(tree, tools)})
		return err
	}
	for _, listed := range file.OperatorReleases {
		release, err := builder.Commit(ctx, listed.Version, listed.Commit)
		if err != nil {
			return err
		}
		tree := filepath.Join(dir, listed.Version)
		if err := os.Mkdir(tree, 0o755); err != nil {
			return err
		}
		if err := (git.Repository{Dir: lab.places.Repository}).Extract(ctx, listed.Commit, tree); err != nil {
			return err
		}
		if err := add(release, tree); err != nil {
			return err
		}
	}
	candidate, err := builder.Checkout(ctx)
	if err != nil {
		return err
	}
	if err := add(candidate, lab.places.Repository); err != nil {
		return err
	}
	lab.subject, err = check.NewSubject(file.Operator, releaseName, lab.releases[len(lab.releases)-1].Chart.CRDs())
	return err
}

// release is a release by its version; empty for the checkout.
func release(t *testing.T, version string) Release {
	t.Helper()
	prepareLab(t)
	i := len(lab.releases) - 1
	if version != "" {
		i = slices.IndexFunc(lab.releases, func(r Release) bool { return r.Version == version })
	}
	if i < 0 {
		t.Fatalf("compatibility.yaml has no release %s", version)
	}
	return lab.releases[i]
}

// edge leads from one release to another.
func edge(t *testing.T, from, to string) Edge {
	t.Helper()
	return Edge{
		Subject: lab.subject, Source: release(t, from), Target: release(t, to),
		Name: releaseName, Namespace: namespace, Kubernetes: kubernetes,
		Values: helm.DefaultValues, Local: lab.registry.Local,
	}
}

// red expects a check to fail and to say why.
func red(t *testing.T, says string, r check.Result) {
	t.Helper()
	if r.Outcome() != evidence.Failed {
		t.Fatalf("the check is green: %v", r.Seen)
	}
	if !strings.Contains(strings.Join(r.Failures, "\n"), says) {
		t.Errorf("it says %q, want something with %q", r.Failures, says)
	}
}

// green expects a check to pass.
func green(t *testing.T, r check.Result) {
	t.Helper()
	if r.Outcome() != evidence.Passed {
		t.Errorf("the check is red: %s %v", r.Reason(), r.Failures)
	}
}

// Every release can be upgraded to the checkout: what a chart or a source tree can show.
func TestEveryEdgeToTheCheckout(t *testing.T) {
	prepareLab(t)
	for _, from := range lab.releases[:len(lab.releases)-1] {
		for _, c := range Checks {
			t.Run(from.Version+" "+c.ID, func(t *testing.T) {
				r, err := c.Judge(t.Context(), edge(t, from.Version, ""))
				if err != nil {
					t.Fatal(err)
				}
				green(t, r)
				for _, seen := range r.Seen {
					t.Log(seen)
				}
			})
		}
	}
}

// 1.0.4 is the release whose role was written by hand: it looked ready and did nothing.
func TestTheRoleOfRelease104LacksWhatItsCodeNeeds(t *testing.T) {
	r, err := JudgeRBAC(t.Context(), edge(t, "0.9.0", "1.0.4"))
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range []string{"horizontalpodautoscalers.autoscaling", "networkpolicies.networking.k8s.io"} {
		red(t, "all namespaces watched: get, list, watch "+resource+" in all namespaces is needed by the operator's caches", r)
		red(t, "namespace inference watched: create, delete, get, list, patch, update, watch "+resource+" in namespace inference is needed by operator/controller", r)
	}
}

package cell

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/cluster"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/helm"
)

// Names as the upgrade document has them.
const (
	runtimeNamespace = "runtimes"
	runtimeName      = "assistant"
	runtimeReplicas  = 2
	// newestName is the runtime that uses every feature of the candidate.
	newestName = "newest"
	// rollingReplicas are so many that their roll outlasts the operator's hand-over.
	rollingReplicas = 3
)

// requestTimeout bounds a request of the tool to the API server.
const requestTimeout = 30 * time.Second

func startCluster(ctx context.Context, r *run) (check.Result, error) {
	var result check.Result
	live, err := r.env.Provider.Start(ctx, cluster.Spec{
		Name: "trussium-matrix", Dir: r.clusterDir(), Kubernetes: r.spec.Kubernetes,
		Mirrors: r.env.Mirrors, Images: r.spec.images(r.env.Inside), Retain: r.env.Retain, Progress: r.progress,
	})
	if err != nil {
		return result, err
	}
	r.cluster = live
	if err := r.connect(ctx); err != nil {
		return result, err
	}
	info := live.Info()
	r.document.Cluster = evidence.Cluster{Provider: info.Provider, Kubernetes: r.observed, Control: info.Control, Limits: info.Limits}
	result.See("%s cluster, Kubernetes %s", info.Provider, r.observed)
	return result, nil
}

// connect makes the clients for the cluster, and learns its exact version from it.
func (r *run) connect(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", r.cluster.Kubeconfig())
	if err != nil {
		return fmt.Errorf("read the cluster's kubeconfig: %w", err)
	}
	config.QPS = -1 // the tool's own requests must not wait for each other
	config.Timeout = requestTimeout
	repository, tag := splitImage(r.spec.Runtime.Baseline.Ref)
	r.target, err = check.Target{
		Subject: r.env.Subject, Release: r.env.Subject.Name, OperatorNamespace: r.env.Subject.Namespace(),
		Namespace: runtimeNamespace, Runtimes: []string{runtimeName},
		RuntimeRepository: repository, RuntimeTag: tag,
	}.Connect(config)
	if err != nil {
		return err
	}
	version, err := r.target.Clientset.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("ask the API server for its version: %w", err)
	}
	r.observed = version.GitVersion
	return ctx.Err()
}

// brokenPatience is how long a release that is known to be broken may show that it is not: a sound one
// takes a few seconds, and 10 on a machine with ten times more to do than processors.
const brokenPatience = 40 * time.Second

// broken tells that the release is declared to be unable to do its work.
func broken(release evidence.Release) bool {
	return len(release.KnownDefects) > 0
}

// earlier is the target as the operator of the earlier release sees it, candidate as the newer one does.
func (r *run) earlier() check.Target { return withFeatures(r.target, r.state.EarlierFeatures) }

func (r *run) candidate() check.Target { return withFeatures(r.target, r.state.CandidateFeatures) }

func withFeatures(target check.Target, features []string) check.Target {
	target.Features = features
	return target
}

// both is the target with the runtime that uses the newest fields.
func both(target check.Target) check.Target {
	target.Runtimes = []string{runtimeName, newestName}
	return target
}

// features are those of a chart's release.
func (r *run) features(chart *helm.Chart) ([]string, error) {
	crd, err := r.env.Subject.ParseCRD(chart.CRDs())
	if err != nil {
		return nil, err
	}
	return r.env.Subject.FeaturesOf(crd), nil
}

func splitImage(ref string) (repository, tag string) {
	i := strings.LastIndex(ref, ":")
	return ref[:max(i, 0)], ref[i+1:]
}

// helm returns a client for the operator's namespace. Its log goes to the cell's folder.
func (r *run) helm() (*helm.Client, error) {
	return helm.New(r.cluster.Kubeconfig(), r.env.Subject.Namespace(), filepath.Join(r.env.Dir, "helm"), true, appendTo(filepath.Join(r.env.Dir, "helm.log")))
}

// appendTo writes lines to a log file. A log that can't be written stops nothing.
func appendTo(path string) func(format string, args ...any) {
	var mu sync.Mutex
	return func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return
		}
		defer f.Close()
		fmt.Fprintf(f, "%s "+format+"\n", append([]any{time.Now().UTC().Format(time.RFC3339)}, args...)...)
	}
}

// fetch returns a client for the operator's namespace and the chart of the release.
func (r *run) fetch(release evidence.Release) (*helm.Client, *helm.Chart, error) {
	helmClient, err := r.helm()
	if err != nil {
		return nil, nil, err
	}
	chart, err := r.pull(helmClient, release.Chart)
	return helmClient, chart, err
}

// pull fetches the chart of a release from the local registry and sees that it is the one of
// the evidence.
func (r *run) pull(helmClient *helm.Client, artifact evidence.Artifact) (*helm.Chart, error) {
	chart, err := helmClient.Pull(r.env.Local(artifact.Ref))
	if err != nil {
		return nil, err
	}
	if chart.Digest != artifact.Digest {
		return nil, fmt.Errorf("the registry serves %s as %s, resolved was %s", artifact.Ref, chart.Digest, artifact.Digest)
	}
	return chart, nil
}

func install(ctx context.Context, r *run) (check.Result, error) {
	var result check.Result
	helmClient, chart, err := r.fetch(r.spec.From)
	if err != nil {
		return result, err
	}
	if r.state.EarlierFeatures, err = r.features(chart); err != nil {
		return failedAction(result, err)
	}
	r.progress("helm install " + r.env.Subject.Name + " " + r.spec.From.Version)
	r.state.Installed, err = helmClient.Install(ctx, r.env.Subject.Name, chart, nil)
	if err != nil {
		return failedAction(result, err)
	}
	if broken(r.spec.From) {
		result.See("helm install made revision %d with chart %s", r.state.Installed.Revision, r.state.Installed.ChartVersion)
		return result, nil // baseline-alive judges what became of it
	}
	r.progress("waiting for the operator to lead")
	return check.AwaitHandover(ctx, r.target, &check.Snapshot{}, r.spec.From.Image.Ref)
}

// failedAction tells an action that the product's files made fail from one that the cluster
// made fail.
func failedAction(result check.Result, err error) (check.Result, error) {
	if utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) {
		return result, err
	}
	result.Fail("%v", err)
	return result, nil
}

func upgrade(ctx context.Context, r *run) (check.Result, error) {
	var result check.Result
	helmClient, chart, err := r.fetch(r.spec.To)
	if err != nil {
		return result, err
	}
	if r.state.CandidateFeatures, err = r.features(chart); err != nil {
		return failedAction(result, err)
	}
	if r.env.Subject.Serves() == nil && !broken(r.spec.From) { // else there is nothing to ask yet
		// It outlives this step: the traffic check, or the end of the cell, stops it.
		if r.load, err = r.startLoad(ctx); err != nil {
			return result, err
		}
	}
	if r.spec.Upgrade.CRDs == "apply" {
		r.progress("kubectl apply --server-side --force-conflicts -f crds/")
		crd, err := r.env.Subject.ParseCRD(chart.CRDs())
		if err != nil {
			return failedAction(result, err)
		}
		if err := r.target.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(crd), client.FieldOwner("kubectl"), client.ForceOwnership); err != nil {
			return failedAction(result, fmt.Errorf("apply the chart's CRD: %w", err))
		}
		result.See("the chart's CRD was applied before the upgrade")
	}
	r.progress("helm upgrade " + r.env.Subject.Name + " " + r.spec.To.Version)
	release, err := helmClient.Upgrade(ctx, r.env.Subject.Name, chart, helm.Values(r.spec.Upgrade.Values), nil)
	if err != nil {
		return failedAction(result, err)
	}
	result.See("helm upgrade made revision %d with chart %s (values: %s, CRD: %s)", release.Revision, release.ChartVersion, r.spec.Upgrade.Values, r.spec.Upgrade.CRDs)
	return result, nil
}

func rollBackChart(ctx context.Context, r *run) (check.Result, error) {
	var result check.Result
	snapshot, err := check.ObserveAtRest(ctx, both(r.earlier())) // the roll before has left pods that drain
	if err != nil {
		return result, err
	}
	r.state.BeforeRollback = snapshot
	helmClient, err := r.helm()
	if err != nil {
		return result, err
	}
	r.progress(fmt.Sprintf("helm rollback %s %d", r.env.Subject.Name, r.state.Installed.Revision))
	if err := helmClient.Rollback(r.env.Subject.Name, r.state.Installed.Revision); err != nil {
		return failedAction(result, err)
	}
	r.state.RolledBack = time.Now()
	result.See("helm rollback to revision %d", r.state.Installed.Revision)
	return result, nil
}

// passThrough upgrades the chart to a release on the way. One that is known to be broken must
// show it: its operator never takes over.
func passThrough(to evidence.Release) func(context.Context, *run) (check.Result, error) {
	return func(ctx context.Context, r *run) (check.Result, error) {
		before, err := check.Observe(ctx, r.target)
		if err != nil {
			return check.Result{}, err
		}
		result, err := r.upgradeTo(ctx, to)
		if err != nil || len(result.Failures) > 0 {
			return result, err
		}
		target := r.target
		if broken(to) {
			target.Patience = brokenPatience
		}
		taken, err := check.AwaitHandover(ctx, target, before, to.Image.Ref)
		switch {
		case err != nil:
			return result, err
		case !broken(to):
			result.Add(taken)
		case taken.Outcome() == evidence.Passed:
			result.Fail("the operator of %s took over, although it is declared to have a known defect: %s", to.Version, to.KnownDefects[0])
		default:
			result.See("broken as declared (%s): %s", to.KnownDefects[0], taken.Reason())
		}
		after, err := check.Observe(ctx, r.target)
		if err != nil {
			return result, err
		}
		result.Add(check.CompareWorkload(before, after))
		return result, nil
	}
}

// upgradeTo is `helm upgrade` to the chart of the release, and nothing more.
func (r *run) upgradeTo(ctx context.Context, to evidence.Release) (check.Result, error) {
	var result check.Result
	helmClient, chart, err := r.fetch(to)
	if err != nil {
		return result, err
	}
	r.progress("helm upgrade " + r.env.Subject.Name + " " + to.Version)
	release, err := helmClient.Upgrade(ctx, r.env.Subject.Name, chart, helm.Values(r.spec.Upgrade.Values), nil)
	if err != nil {
		return failedAction(result, err)
	}
	result.See("helm upgrade made revision %d with chart %s", release.Revision, release.ChartVersion)
	return result, nil
}

// forwardAgain upgrades the rolled back chart again, while a runtime image is rolling.
func forwardAgain(ctx context.Context, r *run) (check.Result, error) {
	target := r.earlier()
	result, err := check.SetReplicas(ctx, target, rollingReplicas)
	if err != nil || len(result.Failures) > 0 {
		return result, err
	}
	if r.state.BeforeRoll, err = check.Observe(ctx, target); err != nil {
		return result, err
	}
	upgraded, err := r.upgradeTo(ctx, r.spec.To)
	result.Add(upgraded)
	if err != nil || len(upgraded.Failures) > 0 {
		return result, err
	}
	// The new pod starts; until it is Ready the old operator leads, and begins the roll.
	_, tag := splitImage(r.spec.Runtime.Target.Ref)
	rolls, err := check.StartRoll(ctx, target, tag)
	result.Add(rolls)
	if err != nil || len(rolls.Failures) > 0 {
		return result, err
	}
	r.state.RollBegan = time.Now()
	taken, err := check.AwaitHandover(ctx, r.candidate(), r.state.BeforeRoll, r.spec.To.Image.Ref)
	result.Add(taken)
	return result, err
}

// reinstall removes the release and installs the candidate afresh.
func reinstall(ctx context.Context, r *run) (check.Result, error) {
	target := r.candidate()
	before, err := check.ObserveAtRest(ctx, target) // the roll before has left pods that drain
	if err != nil {
		return check.Result{}, err
	}
	helmClient, chart, err := r.fetch(r.spec.To)
	if err != nil {
		return check.Result{}, err
	}
	r.progress("helm uninstall " + r.env.Subject.Name)
	if err := helmClient.Uninstall(r.env.Subject.Name); err != nil {
		return failedAction(check.Result{}, err)
	}
	result, err := check.AwaitUninstalled(ctx, target, before)
	if err != nil || len(result.Failures) > 0 {
		return result, err
	}
	r.progress("helm install " + r.env.Subject.Name + " " + r.spec.To.Version)
	if _, err := helmClient.Install(ctx, r.env.Subject.Name, chart, nil); err != nil {
		return failedAction(result, err)
	}
	taken, err := check.AwaitHandover(ctx, target, before, r.spec.To.Image.Ref)
	result.Add(taken)
	if err != nil || len(taken.Failures) > 0 {
		return result, err
	}
	kept, err := check.CompareReinstalled(ctx, target, before)
	result.Add(kept)
	return result, err
}

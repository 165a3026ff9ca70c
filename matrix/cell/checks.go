package cell

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/scenario"
)

// rollGapBudget is the longest time that clients may go without an answer while a runtime
// image rolls: a pod that ends closes its socket before the Service has forgotten it.
const rollGapBudget = 5 * time.Second

// createRuntime makes the runtime that lives through everything. With a release that is known
// to be broken it can't become Ready; baseline-alive judges that.
func createRuntime(ctx context.Context, r *run) (check.Result, error) {
	var result check.Result
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: runtimeNamespace}}
	if err := r.target.Client.Create(ctx, namespace); err != nil {
		return result, fmt.Errorf("create namespace %s: %w", runtimeNamespace, err)
	}
	object := r.earlier().RuntimeObject(runtimeName, runtimeReplicas)
	if err := r.target.Client.Create(ctx, object); err != nil {
		return result, fmt.Errorf("create %s %s: %w", object.GetKind(), runtimeName, err)
	}
	if broken(r.spec.From) {
		result.See("%s %s/%s was created under a release that is known to be broken", object.GetKind(), runtimeNamespace, runtimeName)
		return result, nil
	}
	return check.AwaitReady(ctx, r.target, runtimeName)
}

// baselineAlive judges the release that the cell starts from. One with a known defect must show it.
func baselineAlive(ctx context.Context, r *run) (check.Result, error) {
	target := r.earlier()
	if broken(r.spec.From) {
		target.Patience = brokenPatience
	}
	result, err := check.Alive(ctx, target)
	if err != nil || !broken(r.spec.From) {
		return result, err
	}
	var expected check.Result
	if result.Outcome() == evidence.Passed {
		expected.Fail("%s reconciles, although it is declared to have a known defect: %s", r.spec.From.Version, r.spec.From.KnownDefects[0])
		return expected, nil
	}
	expected.See("broken as declared (%s): %s", r.spec.From.KnownDefects[0], result.Reason())
	return expected, nil
}

func snapshotBefore(ctx context.Context, r *run) (check.Result, error) {
	return r.snapshot(ctx, &r.state.Before)
}

func snapshotAfter(ctx context.Context, r *run) (check.Result, error) {
	result, err := r.snapshot(ctx, &r.state.After)
	if err != nil {
		return result, err
	}
	r.state.Upgraded, err = r.releaseObjects(ctx)
	return result, err
}

// releaseObjects are the objects of the installed release as they are in the cluster.
func (r *run) releaseObjects(ctx context.Context) ([]unstructured.Unstructured, error) {
	helmClient, err := r.helm()
	if err != nil {
		return nil, err
	}
	release, err := helmClient.Current(r.env.Subject.Name)
	if err != nil {
		return nil, err
	}
	return check.ObserveRelease(ctx, r.target, release.Manifest)
}

func freshEqualsUpgraded(ctx context.Context, r *run) (check.Result, error) {
	fresh, err := r.releaseObjects(ctx)
	if err != nil {
		return check.Result{}, err
	}
	return check.CompareReleases(r.state.Upgraded, fresh), nil
}

func (r *run) snapshot(ctx context.Context, into **check.Snapshot) (check.Result, error) {
	var result check.Result
	snapshot, err := check.Observe(ctx, r.target)
	if err != nil {
		return result, err
	}
	*into = snapshot
	result.See("%d runtimes, %d managed objects, %d ReplicaSets, %d pods, %d events", len(snapshot.Runtimes), len(snapshot.Children), len(snapshot.ReplicaSets), len(snapshot.Pods), len(snapshot.Events))
	return result, nil
}

func compare(judge func(before, after *check.Snapshot) check.Result) func(context.Context, *run) (check.Result, error) {
	return func(_ context.Context, r *run) (check.Result, error) {
		return judge(r.state.Before, r.state.After), nil
	}
}

func liveRBAC(ctx context.Context, r *run) (check.Result, error) {
	return check.ReviewRights(ctx, r.target)
}

func handover(ctx context.Context, r *run) (check.Result, error) {
	result, err := check.AwaitHandover(ctx, r.target, r.state.Before, r.spec.To.Image.Ref)
	if err == nil && result.Outcome() == evidence.Passed {
		err = r.measureHandover(ctx, stepUpgrade, r.document.Step(stepUpgrade).Started)
	}
	return result, err
}

// measureHandover records how long it took from the start of a change of the chart until the new operator led.
func (r *run) measureHandover(ctx context.Context, step string, start time.Time) error {
	snapshot, err := check.Observe(ctx, r.target)
	if err != nil {
		return err
	}
	seconds := snapshot.LeaseTaken().Sub(start).Round(time.Millisecond).Seconds()
	r.document.Disruption(step).HandoverSeconds = &seconds
	return nil
}

func countTraffic(disruption *evidence.Disruption, report check.TrafficReport) {
	gap := report.LongestGap.Round(time.Millisecond).Seconds()
	disruption.Requests, disruption.FailedRequests, disruption.LongestGapSeconds = &report.Requests, &report.Failures, &gap
}

func aliveAfter(ctx context.Context, r *run) (check.Result, error) {
	return check.Alive(ctx, r.candidate())
}

func oldAlive(ctx context.Context, r *run) (check.Result, error) {
	return check.Alive(ctx, r.earlier())
}

func traffic(_ context.Context, r *run) (check.Result, error) {
	if err := r.env.Subject.Serves(); err != nil {
		return check.Result{}, err
	}
	if r.load == nil {
		return check.Result{}, fmt.Errorf("the load did not run through the upgrade")
	}
	report := r.load.Stop()
	r.load = nil
	if err := lost(report); err != nil {
		return check.Result{}, err
	}
	disruption := r.document.Disruption(stepUpgrade)
	countTraffic(disruption, report)
	replaced := check.PodsReplaced(r.state.Before, r.state.After)
	disruption.PodsReplaced = &replaced
	return unlessBusy(check.JudgeTraffic(report), report)
}

func compareCRD(ctx context.Context, r *run) (check.Result, error) {
	chart, err := r.candidateCRD()
	if err != nil {
		return check.Result{}, err
	}
	return check.CompareCRD(ctx, r.target, chart)
}

func (r *run) candidateCRD() (*unstructured.Unstructured, error) {
	_, chart, err := r.fetch(r.spec.To)
	if err != nil {
		return nil, err
	}
	return r.env.Subject.ParseCRD(chart.CRDs())
}

func readinessHonest(ctx context.Context, r *run) (check.Result, error) {
	return check.JudgeReadiness(ctx, r.target)
}

func changedWhileDown(ctx context.Context, r *run) (check.Result, error) {
	return check.JudgeChangedWhileDown(ctx, r.candidate())
}

// createNewest makes a runtime that an earlier operator does not understand in full.
func createNewest(ctx context.Context, r *run) (check.Result, error) {
	target := r.candidate()
	object := target.RuntimeObject(newestName, 1)
	if err := target.Client.Create(ctx, object); err != nil {
		return check.Result{}, fmt.Errorf("create %s %s: %w", object.GetKind(), newestName, err)
	}
	return check.AwaitReady(ctx, target, newestName)
}

func noFlapping(ctx context.Context, r *run) (check.Result, error) {
	return check.AwaitSteady(ctx, both(r.earlier()), r.state.RolledBack, check.SteadyPeriod)
}

func inFlight(ctx context.Context, r *run) (check.Result, error) {
	_, tag := splitImage(r.spec.Runtime.Target.Ref)
	return check.AwaitInFlight(ctx, r.candidate(), r.state.BeforeRoll, r.state.RollBegan, tag)
}

func quiet(ctx context.Context, r *run) (check.Result, error) {
	return check.AwaitQuiet(ctx, r.target, check.QuietPeriod)
}

func rollForward(ctx context.Context, r *run) (check.Result, error) {
	return r.roll(ctx, check.RollForward.ID, r.spec.Runtime.Target.Ref)
}

func rollBack(ctx context.Context, r *run) (check.Result, error) {
	return r.roll(ctx, check.RollBack.ID, r.spec.Runtime.Baseline.Ref)
}

// roll runs the scenario of that name on the runtime, under load, and sees that the runtime
// then serves the image that the scenario ends with.
func (r *run) roll(ctx context.Context, name, ends string) (check.Result, error) {
	var result check.Result
	scenarios, err := r.env.Scenarios(ctx)
	if err != nil {
		return result, err
	}
	repository, baseline := splitImage(r.spec.Runtime.Baseline.Ref)
	_, target := splitImage(r.spec.Runtime.Target.Ref)
	var load trafficLoad
	if r.env.Subject.Serves() == nil {
		if load, err = r.startLoad(ctx); err != nil {
			return result, err
		}
	}
	ran, err := scenarios.Run(ctx, scenario.Request{
		Scenario: name, Kubeconfig: r.cluster.Kubeconfig(), Namespace: runtimeNamespace,
		Values: scenario.Values{Runtime: runtimeName, Repository: repository, From: baseline, To: target},
		LogDir: filepath.Join(r.env.Dir, "scenarios"),
	})
	var report check.TrafficReport
	if load != nil {
		report = load.Stop()
		countTraffic(r.document.Disruption(name), report)
		err = errors.Join(err, lost(report))
	}
	if err != nil {
		return result, err
	}
	if ran.Passed {
		result.See("scenario %s passed: %d steps in %s", name, len(ran.Steps), ran.Duration.Round(time.Millisecond))
	} else {
		result.Fail("scenario %s: %s", name, ran.Failures())
	}
	if load != nil {
		judged, err := unlessBusy(check.JudgeGap(report, rollGapBudget), report)
		if err != nil {
			return result, err
		}
		result.Add(judged)
	}
	_, tag := splitImage(ends)
	served, err := check.ServesImage(ctx, r.target, runtimeName, tag)
	result.Add(served)
	return result, err
}

func helmRollback(ctx context.Context, r *run) (check.Result, error) {
	helmClient, err := r.helm()
	if err != nil {
		return check.Result{}, err
	}
	judge := func() (check.Result, error) {
		now, err := helmClient.Current(r.env.Subject.Name)
		if err != nil {
			return check.Result{}, err
		}
		result := check.JudgeRollback(check.RolledBack{
			FirstManifest: r.state.Installed.Manifest, Manifest: now.Manifest,
			Status: now.Status, ChartVersion: now.ChartVersion, WantChart: r.state.Installed.ChartVersion,
		})
		taken, err := check.AwaitHandover(ctx, r.target, r.state.BeforeRollback, r.spec.From.Image.Ref)
		result.Add(taken)
		return result, err
	}
	result, err := judge()
	if err != nil || len(result.Failures) > 0 {
		return result, err
	}
	if err := r.measureHandover(ctx, stepRollback, r.document.Step(stepRollback).Started); err != nil {
		return result, err
	}
	r.progress(fmt.Sprintf("helm rollback %s %d, once more", r.env.Subject.Name, r.state.Installed.Revision))
	if err := helmClient.Rollback(r.env.Subject.Name, r.state.Installed.Revision); err != nil {
		return failedAction(result, err)
	}
	again, err := judge()
	result.Add(again)
	return result, err
}

func survival(ctx context.Context, r *run) (check.Result, error) {
	chart, err := r.candidateCRD()
	if err != nil {
		return check.Result{}, err
	}
	target := both(r.earlier())
	after, err := check.Observe(ctx, target)
	if err != nil {
		return check.Result{}, err
	}
	return check.CompareSurvival(ctx, target, r.state.BeforeRollback, after, chart)
}

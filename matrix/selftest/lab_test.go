package selftest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/checkout"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded/embeddedtest"
	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/helm"
	"github.com/trussiumhq/trussium-operator/matrix/scenario"
)

const (
	releaseName = "trussium-operator"
	runtimeName = "assistant"
	baselineTag = "1.27.0"
	targetTag   = "1.30.0"
	// impatience bounds the waits of checks that are expected to fail.
	impatience = 15 * time.Second
)

// lab is the cluster with the checkout's operator installed and one runtime Ready.
var lab struct {
	artifacts
	cluster *embedded.Cluster
	target  check.Target
	// chart is the CRD of the checkout's chart.
	crd *unstructured.Unstructured
}

// artifacts are what the lab is made of.
type artifacts struct {
	repository string
	release    artifact.Release
	registry   *artifact.Registry
	scenarios  scenario.Runner
}

func TestMain(m *testing.M) {
	ctx := context.Background()
	prepared, err := prepare(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "selftest:", err)
		os.Exit(1)
	}
	lab.artifacts = prepared
	options := embedded.Options{Node: true, Mirrors: prepared.registry.Mirrors()}
	embeddedtest.Main(m, options, func(c *embedded.Cluster) { lab.cluster = c })
}

func prepare(ctx context.Context) (artifacts, error) {
	var a artifacts
	places, err := checkout.Find()
	if err != nil {
		return a, err
	}
	tell := func(text string) { fmt.Fprintln(os.Stderr, text) }
	a.repository = places.Repository
	builder := artifact.Builder{Repository: places.Repository, CacheDir: places.CacheDir, Progress: tell}
	if a.release, err = builder.Checkout(ctx); err != nil {
		return a, err
	}
	images := []artifact.Artifact{a.release.Chart, a.release.Image}
	for _, runtime := range []struct {
		tag     string
		variant artifact.Variant
	}{{baselineTag, artifact.VariantNone}, {targetTag, artifact.VariantNone}, {targetTag, artifact.VariantNeverReady}} {
		image, err := builder.Runtime(ctx, runtime.tag, runtime.variant)
		if err != nil {
			return a, err
		}
		images = append(images, image)
	}
	a.scenarios.Suite.Dir = filepath.Join(places.Repository, "chainsaw")
	if a.scenarios.Chainsaw, err = scenario.Program(places.Repository).Cached(ctx, places.CacheDir, tell); err != nil {
		return a, err
	}
	a.registry, err = artifact.Serve(ctx, images...)
	return a, err
}

// install brings the lab into its healthy state.
func install(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	folder := compat.DefaultOperator().Chart.Path
	crds, err := artifact.CRDs(lab.repository, folder)
	must(t, err)
	subject, err := check.NewSubject(compat.DefaultOperator(), releaseName, crds)
	must(t, err)
	lab.target, err = check.Target{
		Subject: subject, Release: releaseName, OperatorNamespace: subject.Namespace(),
		Namespace: "runtimes", Runtimes: []string{runtimeName},
		RuntimeRepository: artifact.RuntimeRepository, RuntimeTag: baselineTag,
	}.Connect(lab.cluster.RESTConfig())
	must(t, err)
	helmClient, err := helm.New(lab.cluster.Kubeconfig(), lab.target.OperatorNamespace, t.TempDir(), true, t.Logf)
	must(t, err)
	chart, err := helmClient.Pull(lab.registry.Local(lab.release.Chart.Ref))
	must(t, err)
	lab.crd, err = subject.ParseCRD(chart.CRDs())
	must(t, err)
	lab.target.Features = subject.FeaturesOf(lab.crd)
	_, err = helmClient.Install(ctx, releaseName, chart, nil)
	must(t, err)
	green(t)(check.AwaitHandover(ctx, lab.target, &check.Snapshot{}, lab.release.Image.Ref))
	must(t, lab.target.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: lab.target.Namespace}}))
	must(t, lab.target.Client.Create(ctx, lab.target.RuntimeObject(runtimeName, 1)))
	green(t)(check.AwaitReady(ctx, lab.target, runtimeName))
}

// must stops the test on an error of the lab itself.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// green expects a check to pass.
func green(t *testing.T) func(check.Result, error) {
	return func(r check.Result, err error) {
		t.Helper()
		must(t, err)
		if r.Outcome() != evidence.Passed {
			logOperator(t)
			t.Fatalf("the check is red in a healthy lab: %s %v", r.Reason(), r.Failures)
		}
	}
}

// logOperator prints what the operator's pods logged last, for a failure that nobody expects.
func logOperator(t *testing.T) {
	t.Helper()
	const lines = 60
	pods := lab.target.Clientset.CoreV1().Pods(lab.target.OperatorNamespace)
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	tail := int64(lines)
	for _, pod := range list.Items {
		for _, previous := range []bool{true, false} {
			log, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{TailLines: &tail, Previous: previous}).DoRaw(t.Context())
			if err == nil {
				t.Logf("pod %s (before its last restart: %v):\n%s", pod.Name, previous, log)
			}
		}
	}
}

package selftest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/check/mutation"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded/embeddedtest"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/scenario"
)

// quietPeriod is shorter than a cell's: the lab's operator is known to be quiet.
const quietPeriod = 5 * time.Second

// The mutations run one after the other on one cluster; each leaves the lab as healthy as it
// found it. The comparisons of two snapshots have their mutations beside them, in package check.
func TestMutations(t *testing.T) {
	install(t)
	t.Run("healthy", allGreen)
	t.Run("live-rbac", liveRBAC)
	t.Run("crd-live-equals-chart", crdLive)
	t.Run("crd-and-objects-survive", survival)
	t.Run("handover", handover)
	t.Run("quiet", quiet)
	t.Run("traffic", traffic)
	t.Run("roll-forward", roll)
	t.Run("changed-while-down", changedWhileDown)
	t.Run("alive, though restarted", restarted)
	t.Run("alive", alive)
	t.Run("readiness-honest", readiness)
}

// allGreen is the control: without damage no check is red.
func allGreen(t *testing.T) {
	ctx := t.Context()
	green(t)(check.ReviewRights(ctx, lab.target))
	green(t)(check.CompareCRD(ctx, lab.target, lab.crd))
	green(t)(check.Alive(ctx, lab.target))
	green(t)(check.JudgeReadiness(ctx, lab.target))
	green(t)(check.JudgeChangedWhileDown(ctx, lab.target))
	green(t)(check.AwaitQuiet(ctx, lab.target, quietPeriod))
	green(t)(check.ServesImage(ctx, lab.target, runtimeName, baselineTag))
}

// red expects the check to fail because of what, and to say why.
func red(t *testing.T, c check.Check, what, says string) func(check.Result, error) {
	return func(r check.Result, err error) {
		t.Helper()
		must(t, err)
		mutation.Record(t, c.ID, what, r.Outcome() == evidence.Failed, r.Failures, says)
	}
}

// impatient is the target for checks that are expected to fail.
func impatient() check.Target {
	target := lab.target
	target.Patience = impatience
	return target
}

// change edits an object, and brings it back when the test ends. Controllers may write to it at
// the same time.
func change[T client.Object](t *testing.T, object T, edit func(T)) {
	t.Helper()
	current := object.DeepCopyObject().(T)
	var original T
	must(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := lab.target.Client.Get(t.Context(), client.ObjectKeyFromObject(object), current); err != nil {
			return err
		}
		original = current.DeepCopyObject().(T)
		edit(current)
		return lab.target.Client.Update(t.Context(), current)
	}))
	t.Cleanup(func() {
		ctx := context.Background() // the test's own has ended
		must(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			if err := lab.target.Client.Get(ctx, client.ObjectKeyFromObject(object), current); err != nil {
				return err
			}
			original.SetResourceVersion(current.GetResourceVersion())
			return lab.target.Client.Update(ctx, original)
		}))
	})
}

func operatorDeployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: lab.target.OperatorNamespace, Name: "trussium-operator-controller-manager"}}
	must(t, lab.target.Client.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	return d
}

// managerRole is the ClusterRole that grants the operator its managed kinds.
func managerRole(t *testing.T) *rbacv1.ClusterRole {
	t.Helper()
	var roles rbacv1.ClusterRoleList
	must(t, lab.target.Client.List(t.Context(), &roles, client.MatchingLabels{"app.kubernetes.io/instance": releaseName}))
	for i := range roles.Items {
		for _, rule := range roles.Items[i].Rules {
			if slices.Contains(rule.Resources, "deployments") {
				return &roles.Items[i]
			}
		}
	}
	t.Fatal("no ClusterRole of the release grants deployments")
	return nil
}

func liveRBAC(t *testing.T) {
	t.Run("a right is missing", func(t *testing.T) {
		change(t, managerRole(t), func(role *rbacv1.ClusterRole) {
			for i := range role.Rules {
				role.Rules[i].Resources = slices.DeleteFunc(role.Rules[i].Resources, func(r string) bool { return r == "deployments" })
			}
			role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return len(r.Resources) == 0 && len(r.NonResourceURLs) == 0 })
		})
		red(t, check.LiveRBAC, "a right is missing", "may not get, list, watch, create, update, patch, delete deployments.apps")(check.ReviewRights(t.Context(), lab.target))
	})
	t.Run("a right too many", func(t *testing.T) {
		change(t, managerRole(t), func(role *rbacv1.ClusterRole) {
			role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}})
		})
		red(t, check.LiveRBAC, "a right too many", "may get pods, and must not")(check.ReviewRights(t.Context(), lab.target))
	})
}

// withoutField changes the live CRD so that it lacks a field of the chart's.
func withoutField(t *testing.T) {
	t.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(lab.crd.GroupVersionKind())
	crd.SetName(lab.crd.GetName())
	change(t, crd, func(crd *unstructured.Unstructured) {
		versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
		must(t, err)
		unstructured.RemoveNestedField(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties", "podMetadata")
		must(t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
	})
}

func crdLive(t *testing.T) {
	withoutField(t)
	red(t, check.CRDLiveEqualsChart, "a field is missing in the live CRD", "podMetadata")(check.CompareCRD(t.Context(), lab.target, lab.crd))
}

func survival(t *testing.T) {
	ctx := t.Context()
	before, err := check.Observe(ctx, lab.target)
	must(t, err)
	green(t)(check.CompareSurvival(ctx, lab.target, before, before, lab.crd))
	withoutField(t)
	after, err := check.Observe(ctx, lab.target)
	must(t, err)
	red(t, check.CRDAndObjectsSurvive, "the CRD is downgraded", "podMetadata")(check.CompareSurvival(ctx, lab.target, before, after, lab.crd))
	after.CRD = nil
	red(t, check.CRDAndObjectsSurvive, "the CRD is deleted", "is gone")(check.CompareSurvival(ctx, lab.target, before, after, lab.crd))
}

func handover(t *testing.T) {
	ctx := t.Context()
	before, err := check.Observe(ctx, lab.target)
	must(t, err)
	target := lab.target
	target.Patience = time.Second
	red(t, check.Handover, "the old operator stays", "is still there")(check.AwaitHandover(ctx, target, before, lab.release.Image.Ref))
	red(t, check.Handover, "another image runs", "is wanted")(check.AwaitHandover(ctx, target, &check.Snapshot{}, "example.com/other:1"))
	red(t, check.ForwardAgain, "the upgraded operator never takes over", "is wanted")(check.AwaitHandover(ctx, target, &check.Snapshot{}, "example.com/other:1"))
}

func quiet(t *testing.T) {
	// A writer that changes something, and one whose writes change nothing: the second moves no
	// resourceVersion.
	for name, patch := range map[string]string{
		"writes":      `{"metadata":{"annotations":{"selftest":"%d"}}}`,
		"idle writes": `{"metadata":{"annotations":{"selftest":"same"}}}%.0d`,
	} {
		t.Run(name, func(t *testing.T) {
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: lab.target.Namespace, Name: runtimeName}}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i := 0; ctx.Err() == nil; i++ {
					body := client.RawPatch(types.MergePatchType, []byte(fmt.Sprintf(patch, i)))
					_ = lab.target.Client.Patch(ctx, service.DeepCopy(), body) // the check sees whether it arrived
					select {
					case <-ctx.Done():
					case <-time.After(200 * time.Millisecond):
					}
				}
			}()
			defer func() { cancel(); <-done }()
			red(t, check.Quiet, name, "PATCH services")(check.AwaitQuiet(ctx, impatient(), quietPeriod))
		})
	}
}

func traffic(t *testing.T) {
	ctx := t.Context()
	load := check.StartLoad(ctx, lab.target.ServiceClient(runtimeName))
	defer func() { green(t)(check.AwaitReady(ctx, lab.target, runtimeName)) }()
	must(t, lab.target.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(lab.target.Namespace),
		client.MatchingLabels{"app.kubernetes.io/instance": runtimeName}, client.GracePeriodSeconds(0)))
	time.Sleep(2 * time.Second) // the load goes on while there is nobody to answer
	red(t, check.Traffic, "no pod is there for a moment", "requests failed")(check.JudgeTraffic(load.Stop()), nil)
}

func roll(t *testing.T) {
	ctx := t.Context()
	neverReady := targetTag + "-never-ready"
	request := scenario.Request{
		Scenario: check.RollForward.ID, Kubeconfig: lab.cluster.Kubeconfig(), Namespace: lab.target.Namespace,
		Values: scenario.Values{Runtime: runtimeName, From: baselineTag, To: neverReady},
		LogDir: t.TempDir(), AssertTimeout: impatience,
	}
	ran, err := lab.scenarios.Run(ctx, request)
	must(t, err)
	mutation.Record(t, check.RollForward.ID, "the image never becomes ready", !ran.Passed, []string{ran.Failures()}, neverReady)
	red(t, check.RollBack, "the pods run another version than the tag says", "its tag says "+targetTag)(check.ServesImage(ctx, lab.target, runtimeName, targetTag))
	// Back to health: the revert settles, and a clean roll is green.
	back := client.RawPatch(types.MergePatchType, []byte(fmt.Sprintf(`{"spec":{"image":{"tag":%q}}}`, baselineTag)))
	must(t, lab.target.Client.Patch(ctx, lab.target.RuntimeObject(runtimeName, 1), back))
	green(t)(check.AwaitReady(ctx, lab.target, runtimeName))
	request.Values.To = targetTag
	request.AssertTimeout = 0
	request.LogDir = t.TempDir()
	ran, err = lab.scenarios.Run(ctx, request)
	must(t, err)
	if !ran.Passed {
		t.Errorf("the scenario fails with a good image: %s", ran.Failures())
	}
	green(t)(check.ServesImage(ctx, lab.target, runtimeName, targetTag))
}

// changedWhileDown takes the right to write Services away, so that the operator that comes back
// does not do so.
func changedWhileDown(t *testing.T) {
	ctx := t.Context()
	t.Cleanup(func() { // the check leaves the change behind when it fails
		back := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"service":{"type":"ClusterIP"}}}`))
		must(t, lab.target.Client.Patch(context.Background(), lab.target.RuntimeObject(runtimeName, 1), back))
	})
	change(t, managerRole(t), func(role *rbacv1.ClusterRole) {
		for i, rule := range role.Rules {
			if slices.Contains(rule.Resources, "services") {
				role.Rules[i].Verbs = []string{"get", "list", "watch"}
			}
		}
	})
	red(t, check.ChangedWhileDown, "the operator does not catch up", "Service has spec.type=\"ClusterIP\"")(check.JudgeChangedWhileDown(ctx, impatient()))
}

func alive(t *testing.T) {
	ctx := t.Context()
	change(t, operatorDeployment(t), func(d *appsv1.Deployment) {
		none := int32(0)
		d.Spec.Replicas = &none
	})
	awaitNoOperator(t)
	result, err := check.Alive(ctx, impatient())
	for _, c := range []check.Check{check.BaselineAlive, check.OldAlive} {
		red(t, c, "no operator runs", "Ready")(result, err)
	}
}

// restarted ends the operator's process while the check runs. The kubelet starts it again, and it
// works once the Lease has run out.
func restarted(t *testing.T) {
	ctx := t.Context()
	snapshot, err := check.Observe(ctx, lab.target)
	must(t, err)
	process := embeddedtest.ProcessOf(t, snapshot.OperatorPods[0].GetName())
	killed := make(chan error, 1)
	time.AfterFunc(time.Second, func() { killed <- process.Kill() })
	red(t, check.AliveAfter, "the operator ends and is started again", "ended meanwhile (1 times): exit code 137")(check.Alive(ctx, lab.target))
	must(t, <-killed)
}

func awaitNoOperator(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		snapshot, err := check.Observe(t.Context(), lab.target)
		must(t, err)
		if len(snapshot.OperatorPods) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the operator does not stop: %d pods", len(snapshot.OperatorPods))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// readiness makes the operator's readiness a constant: the probe asks what always answers.
func readiness(t *testing.T) {
	deployment := operatorDeployment(t)
	change(t, deployment, func(d *appsv1.Deployment) {
		probe := d.Spec.Template.Spec.Containers[0].ReadinessProbe
		probe.HTTPGet = &corev1.HTTPGetAction{Path: "/healthz", Port: probe.HTTPGet.Port, Scheme: corev1.URISchemeHTTP}
		if probe.HTTPGet.Port == (intstr.IntOrString{}) {
			t.Fatal("the operator's readiness probe has no port")
		}
	})
	red(t, check.ReadinessHonest, "readiness is a constant", "is Ready: readiness does not tell")(check.JudgeReadiness(t.Context(), lab.target))
}

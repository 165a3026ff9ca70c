package check

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
)

// Labels that Helm charts and operators share.
const (
	nameLabel     = "app.kubernetes.io/name"
	instanceLabel = "app.kubernetes.io/instance"
)

// Target is the installed operator and the runtimes that a check looks at.
type Target struct {
	// Subject says which operator it is.
	Subject Subject
	// Client reads from and writes to the API server directly, without a cache.
	Client client.Client
	// Clientset reads logs and metrics, HTTP asks through proxies; both go to the API server.
	Clientset kubernetes.Interface
	HTTP      *http.Client
	// Release is the Helm release in OperatorNamespace.
	Release           string
	OperatorNamespace string
	// Namespace holds the runtimes.
	Namespace string
	// Runtimes are the names of the runtimes that live through the upgrade.
	Runtimes []string
	// RuntimeRepository and RuntimeTag are the image of the runtimes a check makes.
	RuntimeRepository string
	RuntimeTag        string
	// Features are those of the installed release, see Subject.FeaturesOf. Runtimes that a check
	// makes use all of them.
	Features []string
	// Patience bounds every wait; 0 leaves each wait its own limit.
	Patience time.Duration
}

// Connect makes the clients for the API server of config.
func (t Target) Connect(config *rest.Config) (Target, error) {
	var err error
	if t.Clientset, err = kubernetes.NewForConfig(config); err != nil {
		return t, fmt.Errorf("set up the cluster's client: %w", err)
	}
	if t.HTTP, err = rest.HTTPClientFor(config); err != nil {
		return t, fmt.Errorf("set up the cluster's client: %w", err)
	}
	if t.Client, err = client.New(config, client.Options{Scheme: clientgoscheme.Scheme}); err != nil {
		return t, fmt.Errorf("set up the cluster's client: %w", err)
	}
	return t, nil
}

// newRuntime is an empty runtime of that name.
func (t Target) newRuntime(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(t.Subject.Kind)
	object.SetNamespace(t.Namespace)
	object.SetName(name)
	return object
}

// newChild is an empty object of the managed kind for the runtime of that name.
func (t Target) newChild(kind managedKind, runtime string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind.gvk)
	object.SetNamespace(t.Namespace)
	object.SetName(kind.NameFor(runtime))
	return object
}

// RuntimeObject is a runtime as a user would write it, with the target's image.
func (t Target) RuntimeObject(name string, replicas int) *unstructured.Unstructured {
	object := t.newRuntime(name)
	fill := compat.Placeholders{Repository: t.RuntimeRepository, Tag: t.RuntimeTag, Replicas: replicas}
	spec := fill.Render(t.Subject.Resource.Spec).(map[string]any)
	for _, feature := range t.Subject.Resource.Features {
		if slices.Contains(t.Features, feature.Field) {
			spec[feature.Field] = fill.Render(feature.Value)
		}
	}
	object.Object["spec"] = spec
	return object
}

// patchRuntime lays the fields over the spec of the runtime of that name.
func (t Target) patchRuntime(ctx context.Context, name string, spec any) error {
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return fmt.Errorf("write the change of %s %s/%s: %w", t.Subject.Kind.Kind, t.Namespace, name, err)
	}
	if err := t.Client.Patch(ctx, t.newRuntime(name), client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("change %s %s/%s: %w", t.Subject.Kind.Kind, t.Namespace, name, err)
	}
	return nil
}

// operatorDeployment is the one Deployment of the release.
func (t Target) operatorDeployment(ctx context.Context) (*appsv1.Deployment, error) {
	var list appsv1.DeploymentList
	if err := t.Client.List(ctx, &list, client.InNamespace(t.OperatorNamespace), t.operatorLabels()); err != nil {
		return nil, fmt.Errorf("list the operator's Deployments in %s: %w", t.OperatorNamespace, err)
	}
	if len(list.Items) != 1 {
		return nil, fmt.Errorf("release %s in %s has %d Deployments labelled %s=%s, 1 is wanted", t.Release, t.OperatorNamespace, len(list.Items), nameLabel, t.Subject.Name)
	}
	return &list.Items[0], nil
}

// containerEnd is how often the containers of a pod have ended, and how the last one did.
type containerEnd struct {
	count int32
	last  string
}

// operatorEnds are the ends of the operator's containers, by pod.
func (t Target) operatorEnds(ctx context.Context) (map[string]containerEnd, error) {
	var pods corev1.PodList
	if err := t.Client.List(ctx, &pods, client.InNamespace(t.OperatorNamespace), t.operatorLabels()); err != nil {
		return nil, fmt.Errorf("list the operator's pods in %s: %w", t.OperatorNamespace, err)
	}
	ends := map[string]containerEnd{}
	for _, pod := range pods.Items {
		var end containerEnd
		for _, status := range pod.Status.ContainerStatuses {
			end.count += status.RestartCount
			if last := status.LastTerminationState.Terminated; last != nil {
				end.last = fmt.Sprintf("exit code %d, %s at %s %s", last.ExitCode, last.Reason, last.FinishedAt.UTC().Format(time.TimeOnly), last.Message)
			}
		}
		ends[pod.Name] = end
	}
	return ends, nil
}

func (t Target) operatorLabels() client.MatchingLabels {
	return client.MatchingLabels{nameLabel: t.Subject.Name, instanceLabel: t.Release}
}

// condition returns status and reason of a condition of the runtime, both empty if it has none.
func condition(object *unstructured.Unstructured, kind string) (status, reason string) {
	entry := conditionEntry(object, kind)
	status, _, _ = unstructured.NestedString(entry, "status")
	reason, _, _ = unstructured.NestedString(entry, "reason")
	return status, reason
}

func conditionEntry(object *unstructured.Unstructured, kind string) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		entry, ok := c.(map[string]any)
		if ok && entry["type"] == kind {
			return entry
		}
	}
	return nil
}

// settled tells whether the operator says of the newest spec that the runtime is Ready, and
// what it says instead.
func settled(object *unstructured.Unstructured) (bool, string) {
	observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	status, reason := condition(object, "Ready")
	told := fmt.Sprintf("%s: generation %d, observedGeneration %d, Ready=%s/%s", object.GetName(), object.GetGeneration(), observed, status, reason)
	return observed == object.GetGeneration() && status == string(metav1.ConditionTrue), told
}

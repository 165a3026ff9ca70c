package check

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Labels of the contract, sections 2 and 6.
const (
	nameLabel      = "app.kubernetes.io/name"
	instanceLabel  = "app.kubernetes.io/instance"
	componentLabel = "app.kubernetes.io/component"
	operatorName   = "trussium-operator"
	leaseName      = "d4fd4c09.trussium.io"
	crdName        = "trussiumruntimes.runtime.trussium.io"
)

// RuntimeKind is the kind the operator reconciles.
var RuntimeKind = schema.GroupVersionKind{Group: "runtime.trussium.io", Version: "v1alpha1", Kind: "TrussiumRuntime"}

// managedKind is a kind of object that the operator makes for every runtime.
type managedKind struct {
	gvk      schema.GroupVersionKind
	resource string
	// askedFor is the field of the spec whose enabled asks for such an object; empty if every
	// runtime has one.
	askedFor string
}

// managedKinds are the kinds that the newest release manages, in the order of their making.
var managedKinds = []managedKind{
	{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "configmaps", ""},
	{schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}, "serviceaccounts", ""},
	{schema.GroupVersionKind{Version: "v1", Kind: "Service"}, "services", ""},
	{schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}, "networkpolicies", fieldNetworkPolicy},
	{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "deployments", ""},
	{schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}, "poddisruptionbudgets", ""},
	{schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}, "horizontalpodautoscalers", fieldAutoscaling},
}

// Fields of the spec that not every release knows.
const (
	fieldNetworkPolicy = "networkPolicy"
	fieldAutoscaling   = "autoscaling"
)

// kindsOf are the kinds of which the runtime is to have an object.
func kindsOf(runtime *unstructured.Unstructured) []managedKind {
	return slices.DeleteFunc(slices.Clone(managedKinds), func(kind managedKind) bool {
		if kind.askedFor == "" {
			return false
		}
		enabled, _, _ := unstructured.NestedBool(runtime.Object, "spec", kind.askedFor, "enabled")
		return !enabled
	})
}

// FeaturesOf are the fields of the spec beyond those of the first release that a release with
// this CRD in its chart supports.
func FeaturesOf(chart *unstructured.Unstructured) []string {
	versions, _, _ := unstructured.NestedSlice(chart.Object, "spec", "versions")
	var features []string
	for _, version := range versions {
		entry, _ := version.(map[string]any)
		for _, field := range []string{fieldNetworkPolicy, fieldAutoscaling} {
			_, found, _ := unstructured.NestedMap(entry, "schema", "openAPIV3Schema", "properties", "spec", "properties", field)
			if found && !slices.Contains(features, field) {
				features = append(features, field)
			}
		}
	}
	return features
}

// Target is the installed operator and the runtimes that a check looks at.
type Target struct {
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
	// Features are those of the installed release, see FeaturesOf. Runtimes that a check makes
	// use all of them.
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

// newRuntime is an empty TrussiumRuntime of that name.
func (t Target) newRuntime(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(RuntimeKind)
	object.SetNamespace(t.Namespace)
	object.SetName(name)
	return object
}

// RuntimeObject is a TrussiumRuntime as a user would write it, with the target's image.
func (t Target) RuntimeObject(name string, replicas int) *unstructured.Unstructured {
	object := t.newRuntime(name)
	object.Object["spec"] = map[string]any{
		"image":    map[string]any{"repository": t.RuntimeRepository, "tag": t.RuntimeTag},
		"provider": map[string]any{"type": "ollama", "model": "llama3.2"},
		"replicas": int64(replicas),
	}
	for _, feature := range t.Features {
		object.Object["spec"].(map[string]any)[feature] = map[string]any{
			fieldNetworkPolicy: map[string]any{"enabled": true, "ingress": []any{map[string]any{"namespaceSelector": map[string]any{}}}},
			fieldAutoscaling:   map[string]any{"enabled": true, "minReplicas": int64(replicas), "maxReplicas": int64(replicas) + 2},
		}[feature]
	}
	return object
}

// operatorDeployment is the one Deployment of the release.
func (t Target) operatorDeployment(ctx context.Context) (*appsv1.Deployment, error) {
	var list appsv1.DeploymentList
	if err := t.Client.List(ctx, &list, client.InNamespace(t.OperatorNamespace), t.operatorLabels()); err != nil {
		return nil, fmt.Errorf("list the operator's Deployments in %s: %w", t.OperatorNamespace, err)
	}
	if len(list.Items) != 1 {
		return nil, fmt.Errorf("release %s in %s has %d Deployments labelled %s=%s, 1 is wanted", t.Release, t.OperatorNamespace, len(list.Items), nameLabel, operatorName)
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
	return client.MatchingLabels{nameLabel: operatorName, instanceLabel: t.Release}
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

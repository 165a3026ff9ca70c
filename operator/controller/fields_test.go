package controller_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

type runtimeSpec = v1alpha1.TrussiumRuntimeSpec

// effect is one field's change.
type effect struct {
	// seed prepares the full runtime, where its field has no effect as it is.
	seed func(*runtimeSpec)
	// change gives the field, and nothing else, another value.
	change func(*runtimeSpec)
}

// fieldsWithoutEffect are there for people.
var fieldsWithoutEffect = map[string]func(*runtimeSpec){
	"provider.model": func(spec *runtimeSpec) { spec.Provider.Model = "another" },
}

// refusedFields come with a type of Kubernetes' own; the API server accepts them in no
// Deployment of the operator's.
var refusedFields = map[string]string{
	"resources.claims": "the operator declares no claims in the Pod's spec that the container's could refer to",
}

func withAutoscaler(spec *runtimeSpec) { spec.Autoscaling.Enabled = true }

func withDigest(spec *runtimeSpec) {
	spec.Image.Tag, spec.Image.Digest = "", "sha256:"+strings.Repeat("a", 64)
}

// fieldEffects has a change for every field that has an effect.
var fieldEffects = map[string]effect{
	"image.repository": {change: func(spec *runtimeSpec) { spec.Image.Repository = "registry.example/trussium" }},
	"image.tag":        {change: func(spec *runtimeSpec) { spec.Image.Tag = "1.30.0" }},
	"image.digest": {seed: withDigest, change: func(spec *runtimeSpec) {
		spec.Image.Digest = "sha256:" + strings.Repeat("b", 64)
	}},
	"image.pullPolicy":        {change: func(spec *runtimeSpec) { spec.Image.PullPolicy = corev1.PullAlways }},
	"replicas":                {change: func(spec *runtimeSpec) { spec.Replicas = number(4) }},
	"imagePullSecrets[].name": {change: func(spec *runtimeSpec) { spec.ImagePullSecrets[0].Name = "full-provider" }},

	"provider.type":    {change: func(spec *runtimeSpec) { spec.Provider.Type = v1alpha1.ProviderOllama }},
	"provider.baseURL": {change: func(spec *runtimeSpec) { spec.Provider.BaseURL = "" }},
	"provider.credentialsSecretRef.name": {change: func(spec *runtimeSpec) {
		spec.Provider.CredentialsSecretRef.Name = "full-pull-a"
	}},
	"provider.credentialsSecretRef.key": {change: func(spec *runtimeSpec) { spec.Provider.CredentialsSecretRef.Key = "another" }},

	"runtime.providerRequestTimeoutSeconds": {change: func(spec *runtimeSpec) { spec.Runtime.ProviderRequestTimeoutSeconds = nil }},
	"runtime.streamIdleTimeoutSeconds":      {change: func(spec *runtimeSpec) { spec.Runtime.StreamIdleTimeoutSeconds = number(46) }},
	"runtime.shutdownDrainTimeoutSeconds":   {change: func(spec *runtimeSpec) { spec.Runtime.ShutdownDrainTimeoutSeconds = nil }},

	"service.type": {change: func(spec *runtimeSpec) { spec.Service.Type = corev1.ServiceTypeClusterIP }},
	"service.port": {change: func(spec *runtimeSpec) { spec.Service.Port = 8081 }},

	"resources.limits": {change: func(spec *runtimeSpec) { delete(spec.Resources.Limits, corev1.ResourceCPU) }},
	"resources.requests": {change: func(spec *runtimeSpec) {
		spec.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("20m")
	}},

	"podMetadata.labels":      {change: func(spec *runtimeSpec) { delete(spec.PodMetadata.Labels, "team") }},
	"podMetadata.annotations": {change: func(spec *runtimeSpec) { spec.PodMetadata.Annotations["example.com/owner"] = "somebody" }},

	"scheduling.nodeSelector": {change: func(spec *runtimeSpec) { spec.Scheduling.NodeSelector["disk"] = "ssd" }},
	"scheduling.tolerations[].key": {change: func(spec *runtimeSpec) {
		spec.Scheduling.Tolerations[0].Key = "another"
	}},
	"scheduling.tolerations[].operator": {
		seed:   func(spec *runtimeSpec) { spec.Scheduling.Tolerations[0].Value = "" },
		change: func(spec *runtimeSpec) { spec.Scheduling.Tolerations[0].Operator = corev1.TolerationOpExists },
	},
	"scheduling.tolerations[].value":             {change: func(spec *runtimeSpec) { spec.Scheduling.Tolerations[0].Value = "another" }},
	"scheduling.tolerations[].effect":            {change: func(spec *runtimeSpec) { spec.Scheduling.Tolerations[0].Effect = corev1.TaintEffectPreferNoSchedule }},
	"scheduling.tolerations[].tolerationSeconds": {change: func(spec *runtimeSpec) { spec.Scheduling.Tolerations[1].TolerationSeconds = nil }},
	"scheduling.affinity.nodeAffinity":           {change: func(spec *runtimeSpec) { spec.Scheduling.Affinity.NodeAffinity = nil }},
	"scheduling.affinity.podAffinity": {change: func(spec *runtimeSpec) {
		spec.Scheduling.Affinity.PodAffinity = &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey:   "topology.kubernetes.io/zone",
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "cache"}},
			}},
		}
	}},
	"scheduling.affinity.podAntiAffinity": {change: func(spec *runtimeSpec) {
		spec.Scheduling.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].Weight = 51
	}},

	"networkPolicy.enabled": {change: func(spec *runtimeSpec) { spec.NetworkPolicy.Enabled = false }},
	"networkPolicy.ingress[].namespaceSelector.matchLabels": {change: func(spec *runtimeSpec) {
		spec.NetworkPolicy.Ingress[0].NamespaceSelector.MatchLabels["team"] = "another"
	}},
	"networkPolicy.ingress[].namespaceSelector.matchExpressions": {change: func(spec *runtimeSpec) {
		spec.NetworkPolicy.Ingress[0].NamespaceSelector.MatchExpressions[0].Operator = metav1.LabelSelectorOpDoesNotExist
	}},
	"networkPolicy.ingress[].podSelector.matchLabels": {change: func(spec *runtimeSpec) {
		spec.NetworkPolicy.Ingress[0].PodSelector.MatchLabels["app"] = "another"
	}},
	"networkPolicy.ingress[].podSelector.matchExpressions": {change: func(spec *runtimeSpec) {
		spec.NetworkPolicy.Ingress[0].PodSelector.MatchExpressions = nil
	}},

	"autoscaling.enabled":     {change: withAutoscaler},
	"autoscaling.minReplicas": {seed: withAutoscaler, change: func(spec *runtimeSpec) { spec.Autoscaling.MinReplicas = 3 }},
	"autoscaling.maxReplicas": {seed: withAutoscaler, change: func(spec *runtimeSpec) { spec.Autoscaling.MaxReplicas = 7 }},
	"autoscaling.targetCPUUtilizationPercentage": {seed: withAutoscaler, change: func(spec *runtimeSpec) {
		spec.Autoscaling.TargetCPUUtilizationPercentage = 71
	}},
}

func number(value int32) *int32 { return &value }

// complete adds to the full runtime of testdata what has been added to the API since the
// releases that it was taken from. The autoscaler is off: while it is on, spec.replicas
// has no effect.
func complete(spec *runtimeSpec) {
	selector := func(key, value string) metav1.LabelSelector {
		return metav1.LabelSelector{
			MatchLabels:      map[string]string{key: value},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "example.com/client", Operator: metav1.LabelSelectorOpExists}},
		}
	}
	pods := selector("app", "gateway")
	spec.NetworkPolicy = &v1alpha1.NetworkPolicySpec{Enabled: true, Ingress: []v1alpha1.NetworkPolicyPeer{
		{NamespaceSelector: selector("team", "gateway"), PodSelector: &pods},
	}}
	spec.Autoscaling = autoscaled(2, 6)
	spec.Autoscaling.Enabled = false
}

func TestEveryFieldHasAnEffectThatCanBeTakenBack(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, namespace)
	createManifest(t, namespace, "runtime-full.yaml")
	full := get(t, namespace, "full", &v1alpha1.TrussiumRuntime{})
	complete(&full.Spec)

	paths := slices.Sorted(maps.Keys(leaves(reflect.TypeFor[runtimeSpec](), nil, "")))
	for _, path := range paths {
		_, hasEffect := fieldEffects[path]
		_, isInert := fieldsWithoutEffect[path]
		_, isRefused := refusedFields[path]
		if !hasEffect && !isInert && !isRefused {
			t.Errorf("spec.%s is in none of the tables of this test", path)
		}
	}
	for path := range fieldEffects {
		if !slices.Contains(paths, path) {
			t.Errorf("spec.%s is in the table and no field", path)
		}
	}

	for _, path := range paths {
		if _, isRefused := refusedFields[path]; isRefused {
			continue
		}
		t.Run(path, func(t *testing.T) {
			field, hasEffect := fieldEffects[path]
			if !hasEffect {
				field.change = fieldsWithoutEffect[path]
			}
			seed := full.Spec.DeepCopy()
			if field.seed != nil {
				field.seed(seed)
			}
			changed := seed.DeepCopy()
			field.change(changed)
			if got := differing(seed, changed); !slices.Equal(got, []string{path}) {
				t.Fatalf("the table changes %v, want %s alone", got, path)
			}

			before := applySpec(t, namespace, seed)
			during := applySpec(t, namespace, changed)
			if hasEffect == cmp.Equal(before, during) {
				t.Errorf("the change has an effect: %t, want %t", !hasEffect, hasEffect)
			}
			after := applySpec(t, namespace, seed)
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("the change leaves traces (-before +after):\n%s", diff)
			}
		})
	}
}

// applySpec gives the runtime a spec, and returns the managed objects that follow.
func applySpec(t *testing.T, namespace string, spec *runtimeSpec) map[string]string {
	t.Helper()
	runtime := &v1alpha1.TrussiumRuntime{ObjectMeta: metaOf(namespace, "full")}
	change(t, runtime, func(runtime *v1alpha1.TrussiumRuntime) { runtime.Spec = *spec.DeepCopy() })
	operatortest.Eventually(t, "the generation is processed", func() error {
		get(t, namespace, "full", runtime)
		if runtime.Status.ObservedGeneration != runtime.Generation {
			return fmt.Errorf("generation %d, observed %d", runtime.Generation, runtime.Status.ObservedGeneration)
		}
		return nil
	})
	for _, condition := range runtime.Status.Conditions {
		if condition.Type == v1alpha1.ConditionDegraded && condition.Status == metav1.ConditionTrue {
			t.Fatalf("the runtime is degraded: %s", condition.Message)
		}
	}
	objects := objectsOf(t, namespace, "full", maskHistory(spec.Autoscaling.Enabled))
	delete(objects, v1alpha1.Kind)
	return objects
}

// maskHistory removes, beyond what differs in any two clusters, what counts the changes
// of an object, and the number of Pods while it is the autoscaler's: one that was lifted
// to a minimum does not sink with the minimum. The status is the Deployment controller's.
func maskHistory(isScaled bool) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		unstructured.RemoveNestedField(object.Object, "metadata", "generation")
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations", "deployment.kubernetes.io/revision")
		if object.GetKind() != "Deployment" {
			return
		}
		unstructured.RemoveNestedField(object.Object, "status")
		if isScaled {
			unstructured.RemoveNestedField(object.Object, "spec", "replicas")
		}
	}
}

// differing are the fields that differ between two specs.
func differing(a, b *runtimeSpec) []string {
	left := leaves(reflect.TypeFor[runtimeSpec](), []reflect.Value{reflect.ValueOf(*a)}, "")
	right := leaves(reflect.TypeFor[runtimeSpec](), []reflect.Value{reflect.ValueOf(*b)}, "")
	var paths []string
	for path, value := range left {
		if right[path] != value {
			paths = append(paths, path)
		}
	}
	return slices.Sorted(slices.Values(paths))
}

// leaves are the fields below a type that have no fields themselves, by their path, with
// the values that they have in all of the values, as JSON. Of types from elsewhere the
// fields are leaves: they are passed on as a whole.
func leaves(kind reflect.Type, values []reflect.Value, path string) map[string]string {
	result := map[string]string{}
	collectLeaves(kind, values, path, false, result)
	return result
}

func collectLeaves(kind reflect.Type, values []reflect.Value, path string, isForeign bool, result map[string]string) {
	switch {
	case kind.Kind() == reflect.Pointer:
		var targets []reflect.Value
		for _, value := range values {
			if !value.IsNil() {
				targets = append(targets, value.Elem())
			}
		}
		collectLeaves(kind.Elem(), targets, path, isForeign, result)
	case kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.Struct && !isForeign:
		var elements []reflect.Value
		for _, value := range values {
			for i := range value.Len() {
				elements = append(elements, value.Index(i))
			}
		}
		collectLeaves(kind.Elem(), elements, path+"[]", isForeign, result)
	case kind.Kind() == reflect.Struct && !isForeign:
		own := kind.PkgPath() == reflect.TypeFor[runtimeSpec]().PkgPath()
		for i := range kind.NumField() {
			var fields []reflect.Value
			for _, value := range values {
				fields = append(fields, value.Field(i))
			}
			name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
			if path != "" {
				name = path + "." + name
			}
			collectLeaves(kind.Field(i).Type, fields, name, !own, result)
		}
	default:
		var texts []string
		for _, value := range values {
			text, err := json.Marshal(value.Interface())
			if err != nil {
				panic(err)
			}
			texts = append(texts, string(text))
		}
		result[path] = strings.Join(texts, " ")
	}
}

package controller

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/desired"
)

// managedKind is one kind of object that the operator keeps for every runtime.
type managedKind struct {
	// name is the kind as users know it.
	name string
	// wanted says that the runtime is to have such an object; nil means always.
	wanted func(runtime *v1alpha1.TrussiumRuntime) bool
	// relevant returns the part of an object whose changes matter, beside its labels and
	// owners; nil means the whole object.
	relevant func(object client.Object) any
	// repair returns a JSON patch for what apply alone can't put right in live, or nil.
	repair func(runtime *v1alpha1.TrussiumRuntime, live client.Object) ([]byte, error)
	// object returns an empty object of the kind.
	object func() client.Object
	// plan compares live, nil when it does not exist, with what the runtime asks for.
	plan func(runtime *v1alpha1.TrussiumRuntime, live client.Object) (patch, error)
}

// patch is what server-side apply has to send for one object.
type patch struct {
	// body is the apply configuration; nil when applying it would change nothing.
	body []byte
}

// kinds are the managed kinds in the order in which they are applied: what the
// Pods refer to comes before the Deployment, and its autoscaler after it. What is
// no longer wanted is removed before anything is applied, so that an autoscaler
// does not undo the number of Pods that the spec asks for.
func kinds() []managedKind {
	service := kindOf("Service", corev1ac.ExtractService, always[*corev1.Service](desired.Service), equal)
	service.repair = repairService

	deployment := kindOf("Deployment", appsv1ac.ExtractDeployment, desired.Deployment, sameDeployment)
	deployment.repair = repairDeployment
	// Annotations are not the operator's here. They count in the generation all the same,
	// so that a rollout would seem to begin until the Deployment controller has looked.
	deployment.relevant = func(object client.Object) any {
		live := object.(*appsv1.Deployment)
		return []any{live.Spec, live.Status}
	}

	budget := kindOf("PodDisruptionBudget", policyv1ac.ExtractPodDisruptionBudget,
		always[*policyv1.PodDisruptionBudget](desired.PodDisruptionBudget), equal)
	budget.relevant = func(object client.Object) any { return object.(*policyv1.PodDisruptionBudget).Spec }

	networkPolicy := kindOf("NetworkPolicy", networkingv1ac.ExtractNetworkPolicy, networkPolicy, equal)
	networkPolicy.wanted = desired.HasNetworkPolicy

	autoscaler := kindOf("HorizontalPodAutoscaler", autoscalingv2ac.ExtractHorizontalPodAutoscaler,
		always[*autoscalingv2.HorizontalPodAutoscaler](desired.HorizontalPodAutoscaler), equal)
	autoscaler.wanted = desired.HasAutoscaler
	autoscaler.relevant = func(object client.Object) any { return object.(*autoscalingv2.HorizontalPodAutoscaler).Spec }

	return []managedKind{
		kindOf("ConfigMap", corev1ac.ExtractConfigMap, always[*corev1.ConfigMap](desired.ConfigMap), equal),
		kindOf("ServiceAccount", corev1ac.ExtractServiceAccount, desired.ServiceAccount, equal),
		service,
		networkPolicy,
		deployment,
		budget,
		autoscaler,
	}
}

// wantedBy says that the runtime is to have an object of the kind.
func (k managedKind) wantedBy(runtime *v1alpha1.TrussiumRuntime) bool {
	return k.wanted == nil || k.wanted(runtime)
}

func networkPolicy(runtime *v1alpha1.TrussiumRuntime, _ *networkingv1.NetworkPolicy) (*networkingv1ac.NetworkPolicyApplyConfiguration, error) {
	return desired.NetworkPolicy(runtime)
}

// always adapts a builder that neither looks at the live object nor fails.
func always[Live any, Config any](build func(*v1alpha1.TrussiumRuntime) Config) func(*v1alpha1.TrussiumRuntime, Live) (Config, error) {
	return func(runtime *v1alpha1.TrussiumRuntime, _ Live) (Config, error) {
		return build(runtime), nil
	}
}

// applyConfiguration is a pointer to a typed apply configuration.
type applyConfiguration[Config any] interface {
	comparable
	WithUID(types.UID) Config
}

func equal[Config any](want, have Config) bool {
	return equality.Semantic.DeepEqual(want, have)
}

// sameDeployment overlooks an image that an admission webhook has put in the place
// of the applied one. The operator still owns the field then, whereas it loses it
// to anybody who changes the image with a request of their own.
func sameDeployment(want, have *appsv1ac.DeploymentApplyConfiguration) bool {
	if have.ObjectMetaApplyConfiguration != nil {
		have.ResourceVersion = want.ResourceVersion // a precondition of the request, no field
	}
	if have.ObjectMetaApplyConfiguration != nil && have.Spec != nil && have.Spec.Template != nil && have.Spec.Template.Spec != nil &&
		have.Labels[desired.LabelAppliedImage] == want.Labels[desired.LabelAppliedImage] {
		containers := have.Spec.Template.Spec.Containers
		for i := range containers {
			if *containers[i].Name == desired.ContainerName && containers[i].Image != nil {
				containers[i].Image = want.Spec.Template.Spec.Containers[0].Image
			}
		}
	}
	return equal(want, have)
}

// kindOf describes a kind by client-go's function that extracts, from a live
// object, the fields that a field manager owns, by its builder, and by how the two
// results are compared.
func kindOf[T any, Live interface {
	*T
	client.Object
}, Config applyConfiguration[Config]](
	name string,
	extract func(Live, string) (Config, error),
	build func(*v1alpha1.TrussiumRuntime, Live) (Config, error),
	same func(want, have Config) bool,
) managedKind {
	return managedKind{
		name:   name,
		object: func() client.Object { return Live(new(T)) },
		plan: func(runtime *v1alpha1.TrussiumRuntime, object client.Object) (patch, error) {
			var live Live
			if object != nil {
				live = object.(Live)
			}
			want, err := build(runtime, live)
			if err != nil {
				return patch{}, fmt.Errorf("build %s %s/%s: %w", name, runtime.Namespace, runtime.Name, err)
			}
			if live != nil {
				// What the operator owns, with the live values, is exactly what it
				// would send: then sending it changes neither values nor ownership.
				have, err := extract(live, desired.FieldManager)
				if err != nil {
					return patch{}, fmt.Errorf("read the field ownership of %s %s/%s: %w", name, runtime.Namespace, runtime.Name, err)
				}
				if same(want, have) {
					return patch{}, nil
				}
				// Bind the request to the object that was judged. Should another
				// have taken its place, the API server answers with a conflict.
				want = want.WithUID(live.GetUID())
			}
			body, err := json.Marshal(want)
			if err != nil {
				return patch{}, fmt.Errorf("encode %s %s/%s: %w", name, runtime.Namespace, runtime.Name, err)
			}
			return patch{body: body}, nil
		},
	}
}

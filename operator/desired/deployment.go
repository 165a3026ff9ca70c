package desired

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
)

const (
	// ContainerName is the name of the runtime container.
	ContainerName = "trussium"

	// AnnotationConfigChecksum, on the Pod template, rolls the Pods when the
	// ConfigMap's data changes, which Kubernetes does not do by itself.
	AnnotationConfigChecksum = "runtime.trussium.io/config-checksum"

	credentialVariable = "TRUSSIUM_PROVIDER__API_KEY"

	progressDeadlineSeconds = 600
	revisionHistoryLimit    = 3

	// runtimeID is the numeric user and group of the runtime image.
	runtimeID = 10001

	// defaultDrainSeconds is the image's own drain time. terminationMargin is
	// what a Pod gets on top of it before it is killed.
	defaultDrainSeconds = 30
	terminationMargin   = 6
)

// Image is the full image reference that the spec asks for.
func Image(runtime *v1alpha1.TrussiumRuntime) string {
	image := runtime.Spec.Image
	if image.Digest != "" {
		return image.Repository + "@" + image.Digest
	}
	return image.Repository + ":" + image.Tag
}

// Deployment runs the runtime Pods. live is the existing Deployment, or nil. An
// error means that a part of the spec can't be carried over to the Pod template,
// or that live's field ownership can't be read.
func Deployment(runtime *v1alpha1.TrussiumRuntime, live *appsv1.Deployment) (*appsv1ac.DeploymentApplyConfiguration, error) {
	template, err := podTemplate(runtime)
	if err != nil {
		return nil, err
	}
	strategy := appsv1ac.DeploymentStrategy().
		WithType(appsv1.RollingUpdateDeploymentStrategyType).
		WithRollingUpdate(appsv1ac.RollingUpdateDeployment().
			WithMaxUnavailable(intstr.FromInt32(0)).
			WithMaxSurge(intstr.FromInt32(1)))

	deployment := appsv1ac.Deployment(runtime.Name, runtime.Namespace).
		WithLabels(Labels(runtime.Name)).
		WithLabels(imageRecord(Image(runtime), live)).
		WithOwnerReferences(ownerReference(runtime)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithProgressDeadlineSeconds(progressDeadlineSeconds).
			WithRevisionHistoryLimit(revisionHistoryLimit).
			WithStrategy(strategy).
			WithSelector(selector(runtime)).
			WithTemplate(template))
	if err := scale(deployment, runtime, live); err != nil {
		return nil, err
	}
	return deployment, nil
}

func selector(runtime *v1alpha1.TrussiumRuntime) *metav1ac.LabelSelectorApplyConfiguration {
	return metav1ac.LabelSelector().WithMatchLabels(Selector(runtime.Name))
}

func podTemplate(runtime *v1alpha1.TrussiumRuntime) (*corev1ac.PodTemplateSpecApplyConfiguration, error) {
	container, err := runtimeContainer(runtime)
	if err != nil {
		return nil, err
	}
	spread := corev1ac.TopologySpreadConstraint().
		WithMaxSkew(1).
		WithTopologyKey(corev1.LabelHostname).
		WithWhenUnsatisfiable(corev1.ScheduleAnyway).
		WithLabelSelector(selector(runtime))

	pod := corev1ac.PodSpec().
		WithServiceAccountName(runtime.Name).
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(terminationGracePeriodSeconds(runtime)).
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithRunAsNonRoot(true).
			WithRunAsUser(runtimeID).
			WithRunAsGroup(runtimeID).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithTopologySpreadConstraints(spread).
		WithContainers(container)
	for _, reference := range runtime.Spec.ImagePullSecrets {
		pod.WithImagePullSecrets(corev1ac.LocalObjectReference().WithName(reference.Name))
	}
	if err := schedule(pod, runtime.Spec.Scheduling); err != nil {
		return nil, err
	}

	labels, annotations := podMetadata(runtime)
	return corev1ac.PodTemplateSpec().
		WithLabels(labels).
		WithAnnotations(annotations).
		WithSpec(pod), nil
}

// podMetadata joins what the user adds with what the operator needs; the
// operator's own keys win.
func podMetadata(runtime *v1alpha1.TrussiumRuntime) (labels, annotations map[string]string) {
	users := map[string]string{}
	var usersAnnotations map[string]string
	if metadata := runtime.Spec.PodMetadata; metadata != nil {
		usersAnnotations = metadata.Annotations
		for key, value := range metadata.Labels {
			users[key] = string(value)
		}
	}
	checksum := map[string]string{AnnotationConfigChecksum: ConfigChecksum(configuration(runtime))}
	return merged(users, Labels(runtime.Name)), merged(usersAnnotations, checksum)
}

func terminationGracePeriodSeconds(runtime *v1alpha1.TrussiumRuntime) int64 {
	drain := int64(defaultDrainSeconds)
	if settings := runtime.Spec.Runtime; settings != nil && settings.ShutdownDrainTimeoutSeconds != nil {
		drain = int64(*settings.ShutdownDrainTimeoutSeconds)
	}
	return drain + terminationMargin
}

func schedule(pod *corev1ac.PodSpecApplyConfiguration, scheduling *v1alpha1.SchedulingSpec) error {
	if scheduling == nil {
		return nil
	}
	if len(scheduling.NodeSelector) > 0 {
		pod.WithNodeSelector(scheduling.NodeSelector)
	}
	if len(scheduling.Tolerations) > 0 {
		tolerations, err := convert[[]*corev1ac.TolerationApplyConfiguration](scheduling.Tolerations)
		if err != nil {
			return fmt.Errorf("spec.scheduling.tolerations: %w", err)
		}
		pod.WithTolerations(tolerations...)
	}
	if scheduling.Affinity != nil {
		affinity, err := convert[*corev1ac.AffinityApplyConfiguration](scheduling.Affinity)
		if err != nil {
			return fmt.Errorf("spec.scheduling.affinity: %w", err)
		}
		pod.WithAffinity(affinity)
	}
	return nil
}

func runtimeContainer(runtime *v1alpha1.TrussiumRuntime) (*corev1ac.ContainerApplyConfiguration, error) {
	container := corev1ac.Container().
		WithName(ContainerName).
		WithImage(Image(runtime)).
		WithImagePullPolicy(runtime.Spec.Image.PullPolicy).
		WithPorts(Port()).
		WithEnvFrom(corev1ac.EnvFromSource().
			WithConfigMapRef(corev1ac.ConfigMapEnvSource().WithName(runtime.Name))).
		WithSecurityContext(corev1ac.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithReadOnlyRootFilesystem(true).
			WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))).
		WithStartupProbe(probe("/health/live", 2, 1, 30)).
		WithLivenessProbe(probe("/health/live", 10, 2, 3)).
		WithReadinessProbe(probe("/health/ready", 5, 2, 3))

	if reference := runtime.Spec.Provider.CredentialsSecretRef; reference != nil {
		container.WithEnv(corev1ac.EnvVar().
			WithName(credentialVariable).
			WithValueFrom(corev1ac.EnvVarSource().
				WithSecretKeyRef(corev1ac.SecretKeySelector().
					WithName(reference.Name).
					WithKey(reference.Key))))
	}
	if runtime.Spec.Resources != nil {
		resources, err := convert[*corev1ac.ResourceRequirementsApplyConfiguration](runtime.Spec.Resources)
		if err != nil {
			return nil, fmt.Errorf("spec.resources: %w", err)
		}
		container.WithResources(resources)
	}
	return container, nil
}

// Port is the port of the runtime container.
func Port() *corev1ac.ContainerPortApplyConfiguration {
	return corev1ac.ContainerPort().
		WithName(PortName).
		WithContainerPort(ContainerPort).
		WithProtocol(corev1.ProtocolTCP)
}

// probe asks an HTTP path of the runtime; period and timeout are in seconds.
func probe(path string, period, timeout, failures int32) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().
		WithHTTPGet(corev1ac.HTTPGetAction().
			WithPath(path).
			WithPort(intstr.FromString(PortName))).
		WithPeriodSeconds(period).
		WithTimeoutSeconds(timeout).
		WithFailureThreshold(failures)
}

// convert carries a value of an API type over to its apply configuration. The two
// have the same JSON form.
func convert[To any](from any) (To, error) {
	var to To
	encoded, err := json.Marshal(from)
	if err != nil {
		return to, err
	}
	return to, json.Unmarshal(encoded, &to)
}

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TrussiumRuntime declares one Trussium runtime: a Deployment of the runtime image
// with its configuration, identity, Service and disruption budget, and a NetworkPolicy
// and a HorizontalPodAutoscaler where they are asked for.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=trussiumruntimes,singular=trussiumruntime,shortName=truntime,scope=Namespaced
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`,description="Replicas that pass their readiness probe"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="Replicas asked for"
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.status.currentImage`,description="Image configured on the Deployment"
// +kubebuilder:printcolumn:name="Upgrading",type=string,JSONPath=`.status.conditions[?(@.type=="Upgrading")].reason`,description="State of the latest image upgrade"
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.provider.type`,description="Inference provider"
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.spec.provider.model`,priority=1,description="Model served by the provider"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be usable as a Service name: at most 63 characters, lower-case letters, digits and '-', starting with a letter and ending with a letter or digit"
type TrussiumRuntime struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the runtime.
	// +required
	Spec TrussiumRuntimeSpec `json:"spec"`

	// status is what the operator last observed.
	// +optional
	Status TrussiumRuntimeStatus `json:"status,omitzero"`
}

// TrussiumRuntimeList is a list of TrussiumRuntimes.
//
// +kubebuilder:object:root=true
type TrussiumRuntimeList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []TrussiumRuntime `json:"items"`
}

// TrussiumRuntimeSpec is the desired state of a runtime.
type TrussiumRuntimeSpec struct {
	// image is the runtime image.
	// +required
	Image ImageSpec `json:"image"`

	// replicas is the number of runtime Pods. 0 stops the runtime and keeps its configuration.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Replicas *int32 `json:"replicas,omitempty"`

	// imagePullSecrets name the Secrets, in the same namespace, used to pull the image.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	ImagePullSecrets []SecretReference `json:"imagePullSecrets,omitempty"`

	// provider is the inference provider that the runtime talks to.
	// +required
	Provider ProviderSpec `json:"provider"`

	// runtime tunes the runtime process. What is left out keeps the image's own default.
	// +optional
	Runtime *RuntimeSettings `json:"runtime,omitempty"`

	// service is how the runtime is exposed inside or outside the cluster.
	// +optional
	// +kubebuilder:default={}
	Service ServiceSpec `json:"service,omitzero"`

	// resources are the compute resources of the runtime container.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// podMetadata is added to the runtime Pods. Labels and annotations that the operator sets itself win.
	// +optional
	PodMetadata *PodMetadata `json:"podMetadata,omitempty"`

	// scheduling constrains the nodes that the runtime Pods run on.
	// +optional
	Scheduling *SchedulingSpec `json:"scheduling,omitempty"`

	// networkPolicy limits who can reach the runtime.
	// +optional
	NetworkPolicy *NetworkPolicySpec `json:"networkPolicy,omitempty"`

	// autoscaling lets a HorizontalPodAutoscaler choose the number of Pods. While it is enabled, replicas has no effect.
	// +optional
	Autoscaling *AutoscalingSpec `json:"autoscaling,omitempty"`
}

// ImageSpec names the runtime image by repository and either tag or digest.
//
// +kubebuilder:validation:XValidation:rule="has(self.tag) != has(self.digest)",message="exactly one of tag and digest must be set"
type ImageSpec struct {
	// repository is the image repository without tag or digest.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9._:/-]*$`
	Repository string `json:"repository"`

	// tag is the image tag. Tags of the runtime image carry no leading "v".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`
	Tag string `json:"tag,omitempty"`

	// digest is the immutable image digest.
	// +optional
	// +kubebuilder:validation:Pattern=`^sha256:[a-f0-9]{64}$`
	Digest string `json:"digest,omitempty"`

	// pullPolicy says when a node pulls the image.
	// +optional
	// +kubebuilder:default=IfNotPresent
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	PullPolicy corev1.PullPolicy `json:"pullPolicy,omitempty"`
}

// SecretReference names a Secret in the namespace of the runtime.
type SecretReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
}

// SecretKeyReference names one key of a Secret in the namespace of the runtime.
type SecretKeyReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`

	// key in the Secret's data.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._-]+$`
	Key string `json:"key"`
}

// ProviderType is a kind of inference provider.
//
// +kubebuilder:validation:Enum=openai;ollama
type ProviderType string

// The provider types that the runtime knows.
const (
	// The OpenAI API, or another service that speaks it.
	ProviderOpenAI ProviderType = "openai"
	// An Ollama server.
	ProviderOllama ProviderType = "ollama"
)

// ProviderSpec is the inference provider that the runtime talks to.
type ProviderSpec struct {
	// type of the provider.
	// +required
	Type ProviderType `json:"type"`

	// model documents the model that the runtime is meant for. It is not passed to the runtime.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Model string `json:"model"`

	// baseURL is the provider's endpoint. What the runtime image defaults to applies when it is left out.
	// +optional
	// +kubebuilder:validation:Format=uri
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^[hH][tT][tT][pP][sS]?://')",message="baseURL must be an http or https URL"
	BaseURL string `json:"baseURL,omitempty"`

	// credentialsSecretRef names the Secret key that holds the provider's API key. The operator never reads its value.
	// +optional
	CredentialsSecretRef *SecretKeyReference `json:"credentialsSecretRef,omitempty"`
}

// RuntimeSettings tune the runtime process.
type RuntimeSettings struct {
	// providerRequestTimeoutSeconds bounds one request to the provider.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	ProviderRequestTimeoutSeconds *int32 `json:"providerRequestTimeoutSeconds,omitempty"`

	// streamIdleTimeoutSeconds bounds the silence between two parts of a streamed answer.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	StreamIdleTimeoutSeconds *int32 `json:"streamIdleTimeoutSeconds,omitempty"`

	// shutdownDrainTimeoutSeconds is how long a stopping runtime finishes open requests.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	ShutdownDrainTimeoutSeconds *int32 `json:"shutdownDrainTimeoutSeconds,omitempty"`
}

// ServiceSpec is the Service in front of the runtime.
type ServiceSpec struct {
	// type of the Service.
	// +optional
	// +kubebuilder:default=ClusterIP
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	Type corev1.ServiceType `json:"type,omitempty"`

	// port of the Service. The runtime itself always listens on 9000.
	// +optional
	// +kubebuilder:default=9000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// LabelValue is the value of a Kubernetes label.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
type LabelValue string

// PodMetadata is added to the runtime Pods.
type PodMetadata struct {
	// labels of the Pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, key.size() <= 317 && key.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="every key must be a valid label key"
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// annotations of the Pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, key.size() <= 317 && key.matches('^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="every key must be a valid annotation key"
	Annotations map[string]string `json:"annotations,omitempty"`
}

// SchedulingSpec constrains the nodes that the runtime Pods run on.
type SchedulingSpec struct {
	// nodeSelector must match a node's labels.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations of the Pods.
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// affinity of the Pods.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
}

// NetworkPolicySpec limits who can reach the runtime. What the runtime itself connects to is not limited.
//
// +kubebuilder:validation:XValidation:rule="!self.enabled || (has(self.ingress) && size(self.ingress) > 0)",message="an enabled networkPolicy needs at least one ingress entry, or nobody could reach the runtime"
type NetworkPolicySpec struct {
	// enabled makes the operator keep a NetworkPolicy for the runtime.
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled"`

	// ingress are the clients that can reach the runtime's port.
	// +optional
	// +listType=atomic
	Ingress []NetworkPolicyPeer `json:"ingress,omitempty"`
}

// NetworkPolicyPeer is a group of client Pods.
type NetworkPolicyPeer struct {
	// namespaceSelector selects the namespaces of the clients. An empty selector selects all.
	// +required
	NamespaceSelector metav1.LabelSelector `json:"namespaceSelector"`

	// podSelector selects the clients in these namespaces. Left out, it selects all.
	// +optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`
}

// AutoscalingSpec lets a HorizontalPodAutoscaler choose the number of Pods by their CPU utilization.
//
// +kubebuilder:validation:XValidation:rule="self.maxReplicas >= self.minReplicas",message="maxReplicas must not be less than minReplicas"
type AutoscalingSpec struct {
	// enabled makes the operator keep a HorizontalPodAutoscaler for the runtime.
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled"`

	// minReplicas is the least number of Pods.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MinReplicas int32 `json:"minReplicas,omitempty"`

	// maxReplicas is the greatest number of Pods.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxReplicas int32 `json:"maxReplicas,omitempty"`

	// targetCPUUtilizationPercentage is the average CPU utilization to keep, in percent of what the Pods request.
	// +optional
	// +kubebuilder:default=80
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	TargetCPUUtilizationPercentage int32 `json:"targetCPUUtilizationPercentage,omitempty"`
}

// Types of the conditions in TrussiumRuntimeStatus.
const (
	ConditionConfigurationValid = "ConfigurationValid"
	ConditionProgressing        = "Progressing"
	ConditionAvailable          = "Available"
	ConditionReady              = "Ready"
	ConditionDegraded           = "Degraded"
	ConditionUpgrading          = "Upgrading"
)

// TrussiumRuntimeStatus is what the operator last observed.
type TrussiumRuntimeStatus struct {
	// observedGeneration is the latest generation of the object that the operator has processed.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// readyReplicas is the number of ready runtime Pods. 0 is written, so that it is never mistaken for unknown.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// availableReplicas is the number of available runtime Pods. 0 is written, so that it is never mistaken for unknown.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`

	// desiredImage is the image that the spec asks for.
	// +optional
	DesiredImage string `json:"desiredImage,omitempty"`

	// currentImage is the image configured on the managed Deployment.
	// +optional
	CurrentImage string `json:"currentImage,omitempty"`

	// lastSuccessfulImage is the image whose rollout completed last.
	// +optional
	LastSuccessfulImage string `json:"lastSuccessfulImage,omitempty"`

	// endpoint is the URL of the runtime inside the cluster.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// conditions of the runtime: ConfigurationValid, Progressing, Available, Ready, Degraded and Upgrading.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

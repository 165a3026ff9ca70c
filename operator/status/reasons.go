package status

// Reasons of conditions. They are part of the API: alerts and scripts match them.
const (
	ReasonReferencesResolved   = "ReferencesResolved"
	ReasonSecretNotFound       = "SecretNotFound"
	ReasonReferenceCheckFailed = "ReferenceCheckFailed"

	ReasonConfigurationInvalid = "ConfigurationInvalid"
	ReasonReconciliationFailed = "ReconciliationFailed"

	ReasonDeploymentProgressing       = "DeploymentProgressing"
	ReasonDeploymentGenerationPending = "DeploymentGenerationPending"
	ReasonReconciliationComplete      = "ReconciliationComplete"
	ReasonDeploymentFailed            = "DeploymentFailed"
	ReasonScaledToZero                = "ScaledToZero"

	ReasonRuntimeAvailable   = "RuntimeAvailable"
	ReasonRuntimeUnavailable = "RuntimeUnavailable"

	ReasonRuntimeReady    = "RuntimeReady"
	ReasonRuntimeNotReady = "RuntimeNotReady"

	ReasonAsExpected               = "AsExpected"
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	ReasonReplicaFailure           = "ReplicaFailure"
)

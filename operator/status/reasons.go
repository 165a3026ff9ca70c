package status

import "github.com/trussiumhq/trussium-operator/operator/desired"

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
	ReasonProgressDeadlineExceeded = desired.ReasonProgressDeadlineExceeded
	ReasonReplicaFailure           = "ReplicaFailure"

	ReasonNoUpgrade         = "NoUpgrade"
	ReasonUpgradeInProgress = "UpgradeInProgress"
	ReasonUpgradeComplete   = "UpgradeComplete"
	ReasonUpgradeFailed     = "UpgradeFailed"
)

package trial

// fault is one thing that an operator does wrong.
type fault struct {
	// name is short, text a sentence.
	name, text string
	// caught are the scenarios that must notice it, with the step where they do.
	caught map[string]string
	edits  []edit
}

// edit is a change of a source file of the checkout, at a place that is there once. SEEDED
// stands for the condition that the fault is on.
type edit struct{ file, old, new string }

const (
	upgradeFile    = "operator/status/upgrade.go"
	rolloutFile    = "operator/status/rollout.go"
	statusFile     = "operator/status/status.go"
	objectsFile    = "operator/controller/objects.go"
	ownershipFile  = "operator/controller/ownership.go"
	referencesFile = "operator/controller/references.go"
	reconcilerFile = "operator/controller/reconciler.go"
	setupFile      = "operator/controller/setup.go"
	deploymentFile = "operator/desired/deployment.go"
	configMapFile  = "operator/desired/configmap.go"
	recordFile     = "operator/desired/imagerecord.go"
	scaleFile      = "operator/desired/scale.go"
	metadataFile   = "operator/desired/metadata.go"
)

var faults = []fault{
	{
		"records-early", "The new image counts as successful when its rollout begins.", map[string]string{
			"roll-forward": "the last successful image stays while rolling",
			"roll-back":    "the last successful image stays while rolling",
		},
		[]edit{{
			upgradeFile, `condition.Message = current.sentence("is in progress.")`,
			`condition.Message = current.sentence("is in progress.")
			if SEEDED {
				next.LastSuccessfulImage = image
			}`,
		}},
	},
	{
		"starts-again", "An upgrade is told to start with every change of its status.", map[string]string{
			"roll-forward": "one started and one completed event",
			"roll-back":    "one started and one completed event",
		},
		[]edit{{upgradeFile, "same := was.isActive() &&", "same := !SEEDED && was.isActive() &&"}},
	},
	{
		"never-completes", "The completion of an upgrade is not told.", map[string]string{
			"scale-to-zero-upgrade": "one upgrade in all",
			"roll-forward":          "one started and one completed event",
			"roll-back":             "one started and one completed event",
		},
		[]edit{{upgradeFile, "case completed:\n", "case completed && SEEDED:\n\tcase completed:\n"}},
	},
	{
		"way-back-is-none", "An older image than the last successful one is no upgrade.", map[string]string{
			"roll-back": "the last successful image stays while rolling",
		},
		[]edit{{upgradeFile, "case image == last:", "case image == last, SEEDED && image < last:"}},
	},
	{
		"deadline-ignored", "A rollout that misses its deadline is not noticed.", map[string]string{
			"failed-upgrade-missing-image": "the upgrade has failed",
			"failed-upgrade-never-ready":   "the upgrade has failed",
		},
		[]edit{{rolloutFile, "if condition.Type == appsv1.DeploymentProgressing {", "if condition.Type == appsv1.DeploymentProgressing && SEEDED {\n\t\t\tcontinue\n\t\t}\n\t\tif condition.Type == appsv1.DeploymentProgressing {"}},
	},
	{
		"old-failure-charged", "The failure of an earlier image is charged to the next one.", map[string]string{
			"failed-upgrade-missing-image": "one started and one completed event for the good image",
		},
		// At once, whether or not the Deployment controller has seen the new image: it may be the faster one.
		[]edit{
			{recordFile, "if !before[failureID(condition)] {", "if SEEDED || !before[failureID(condition)] {"},
			{rolloutFile, "case status.ObservedGeneration < deployment.Generation:", `case status.ObservedGeneration < deployment.Generation && (!SEEDED || failure == ""):`},
		},
	},
	{
		"refusal-ignored", "Pods that can't be created are not noticed.", map[string]string{
			"failed-upgrade-quota":    "the upgrade has failed",
			"roll-back-after-failure": "the upgrade has failed",
		},
		[]edit{{rolloutFile, "reason, detail = ReasonReplicaFailure, condition.Message", "if !SEEDED {\n\t\t\treason, detail = ReasonReplicaFailure, condition.Message\n\t\t}"}},
	},
	{
		"failure-sticks", "An upgrade that was given up stays what it was.", map[string]string{
			"revert-in-flight":        "the upgrade is abandoned",
			"roll-back-after-failure": "the upgrade is abandoned",
		},
		[]edit{{
			upgradeFile, "func (u upgrading) settled(image string) (reason, message string) {\n",
			"func (u upgrading) settled(image string) (reason, message string) {\n\tif u.isActive() && SEEDED {\n\t\treturn u.condition.Reason, u.condition.Message\n\t}\n",
		}},
	},
	{
		"given-up-is-complete", "An upgrade that was given up counts as complete.", map[string]string{
			"revert-in-flight": "the upgrade is abandoned",
		},
		[]edit{{
			upgradeFile, "case u.isActive() && u.known && u.upgrade.to != image:\n",
			"case u.isActive() && SEEDED:\n\t\treturn ReasonUpgradeComplete, \"The upgrade is complete.\"\n\tcase u.isActive() && u.known && u.upgrade.to != image:\n",
		}},
	},
	{
		"one-target", "A new target of a running upgrade does not start.", map[string]string{
			"chain-a-b-c": "the third image started and completed once",
		},
		[]edit{{upgradeFile, "was.known && was.upgrade == is.upgrade", "was.known && (SEEDED || was.upgrade == is.upgrade)"}},
	},
	{
		"tags-only", "A digest is written like a tag.", map[string]string{
			"tag-and-digest": "settled at the digest",
		},
		[]edit{{deploymentFile, `return image.Repository + "@" + image.Digest`, "if SEEDED {\n\t\t\treturn image.Repository + \":\" + image.Digest[len(\"sha256:\"):]\n\t\t}\n\t\treturn image.Repository + \"@\" + image.Digest"}},
	},
	{
		"unrun-is-silent", "An image that was recorded at 0 replicas looks as if it had run.", map[string]string{
			"scale-to-zero-upgrade": "the image is recorded",
		},
		[]edit{{upgradeFile, "if state.desired == 0 && !before.hasRun(image, last) {", "if !SEEDED && state.desired == 0 && !before.hasRun(image, last) {"}},
	},
	{
		"rollout-is-upgrade", "Every rollout counts as an upgrade.", map[string]string{
			"config-rollout-is-no-upgrade": "a setting is rolled out and the Upgrading condition stays",
		},
		[]edit{{
			upgradeFile, "condition.Reason, condition.Message = before.settled(image)",
			`condition.Reason, condition.Message = before.settled(image)
			if SEEDED && !complete {
				condition.Status, condition.Reason = metav1.ConditionTrue, ReasonUpgradeInProgress
				condition.Message = current.sentence("is in progress.")
			}`,
		}},
	},
	{
		"checksum-is-constant", "Pods don't get a new configuration.", map[string]string{
			"config-rollout-is-no-upgrade": "a setting is rolled out and the Upgrading condition stays",
		},
		[]edit{{configMapFile, "for _, key := range slices.Sorted(maps.Keys(data)) {\n", "for _, key := range slices.Sorted(maps.Keys(data)) {\n\t\tif SEEDED {\n\t\t\tbreak\n\t\t}\n"}},
	},
	{
		"zero-is-running", "A runtime at rest looks like one that runs.", map[string]string{
			"scale-to-zero":         "the runtime is scaled to zero",
			"scale-to-zero-upgrade": "the runtime is scaled to zero",
		},
		[]edit{{statusFile, "case phaseComplete:\n\t\tif state.desired == 0 {", "case phaseComplete:\n\t\tif !SEEDED && state.desired == 0 {"}},
	},
	{
		"secret-rolls", "The version of a Secret is part of the pods.", map[string]string{
			"secret-value-does-not-roll": "the Deployment is untouched",
		},
		[]edit{
			{setupFile, "UpdateFunc: func(event.UpdateEvent) bool { return false }}", "UpdateFunc: func(update event.UpdateEvent) bool {\n\t\tdesired.SecretVersion.Store(update.ObjectNew.GetResourceVersion())\n\t\treturn SEEDED\n\t}}"},
			{deploymentFile, "checksum := map[string]string{", "if version, ok := SecretVersion.Load().(string); ok && SEEDED {\n\t\tusersAnnotations = merged(usersAnnotations, map[string]string{\"secret-version\": version})\n\t}\n\tchecksum := map[string]string{"},
			{deploymentFile, "// Image is the full image reference", "// SecretVersion is the version of the Secret that changed last.\nvar SecretVersion atomic.Value\n\n// Image is the full image reference"},
			{deploymentFile, "\t\"encoding/json\"\n\t\"fmt\"\n", "\t\"encoding/json\"\n\t\"fmt\"\n\t\"sync/atomic\"\n"},
		},
	},
	{
		"secret-unnoticed", "The creation of a missing Secret wakes nobody.", map[string]string{
			"missing-secret-blocks-and-recovers": "the other one is named alone",
		},
		[]edit{{referencesFile, "\tvar requests []reconcile.Request\n", "\tif SEEDED {\n\t\treturn nil\n\t}\n\tvar requests []reconcile.Request\n"}},
	},
	{
		"missing-secret-passes", "Objects are made although a Secret is missing.", map[string]string{
			"missing-secret-blocks-and-recovers": "nothing is made",
		},
		[]edit{{reconcilerFile, "if len(observation.MissingSecrets) == 0 &&", "if (SEEDED || len(observation.MissingSecrets) == 0) &&"}},
	},
	{
		"drift-stays", "What was changed in a managed object stays, but for the Deployment.", map[string]string{
			"drift-correction": "the ConfigMap",
			"network-policy":   "the policy is as asked for, also after a drift",
		},
		[]edit{{objectsFile, "func (r *Reconciler) apply(ctx context.Context, runtime *v1alpha1.TrussiumRuntime, object *managedObject) error {\n", "func (r *Reconciler) apply(ctx context.Context, runtime *v1alpha1.TrussiumRuntime, object *managedObject) error {\n\tif SEEDED && object.live != nil && object.kind.name != \"Deployment\" {\n\t\treturn nil\n\t}\n"}},
	},
	{
		"deletion-unnoticed", "The deletion of a managed object wakes nobody.", map[string]string{
			"recreation":     "the PodDisruptionBudget",
			"network-policy": "a deleted policy is made again",
			"autoscaling":    "a deleted autoscaler is made again",
		},
		[]edit{{setupFile, "build = build.Owns(kind.object(), options...)", "if SEEDED {\n\t\t\toptions = append(options, builder.WithPredicates(predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }}))\n\t\t}\n\t\tbuild = build.Owns(kind.object(), options...)"}},
	},
	{
		"orphans", "The ConfigMap has no owner.", map[string]string{
			"deletion": "the ConfigMap is managed",
		},
		[]edit{{configMapFile, "\treturn corev1ac.ConfigMap(runtime.Name, runtime.Namespace).\n", "\tif SEEDED {\n\t\treturn corev1ac.ConfigMap(runtime.Name, runtime.Namespace).WithLabels(Labels(runtime.Name)).WithData(configuration(runtime))\n\t}\n\treturn corev1ac.ConfigMap(runtime.Name, runtime.Namespace).\n"}},
	},
	{
		"blocks-deletion", "Managed objects keep their owner from being deleted.", map[string]string{
			"deletion": "the PodDisruptionBudget is managed",
		},
		[]edit{{metadataFile, "WithBlockOwnerDeletion(false)", "WithBlockOwnerDeletion(SEEDED)"}},
	},
	{
		"argues-with-autoscaler", "The number of pods is the spec's, whatever the autoscaler says.", map[string]string{
			"autoscaling": "the least number of pods runs, not what the spec says",
		},
		[]edit{{scaleFile, "if !HasAutoscaler(runtime) {", "if SEEDED || !HasAutoscaler(runtime) {"}},
	},
	{
		"policy-stays", "What is turned off is not removed.", map[string]string{
			"network-policy": "the policy is gone",
			"autoscaling":    "the autoscaler is gone",
		},
		[]edit{{objectsFile, "\tlive := object.live\n", "\tif SEEDED {\n\t\treturn nil\n\t}\n\tlive := object.live\n"}},
	},
	{
		"takes-what-is-not-its", "An object of somebody else is taken over.", map[string]string{
			"ownership-collision": "the runtime is degraded",
		},
		[]edit{{ownershipFile, "func claimOn(runtime *v1alpha1.TrussiumRuntime, live client.Object) claim {\n", "func claimOn(runtime *v1alpha1.TrussiumRuntime, live client.Object) claim {\n\tif SEEDED {\n\t\treturn claimOurs\n\t}\n"}},
	},
}

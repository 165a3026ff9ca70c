package status

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/desired"
)

// hasNotRun ends the message about an image whose rollout completed without a Pod.
const hasNotRun = " It was recorded at 0 replicas and has not run."

// upgrade is one image transition.
type upgrade struct {
	from, to string
}

// sentence begins every message about the upgrade. Image references hold no
// spaces, so that parseUpgrade finds them again.
func (u upgrade) sentence(rest string) string {
	return fmt.Sprintf("Upgrade from %s to %s %s", u.from, u.to, rest)
}

// parseUpgrade reads the upgrade that a condition speaks of from its message.
func parseUpgrade(message string) (upgrade, bool) {
	words := strings.Fields(message)
	if len(words) < 5 || words[0] != "Upgrade" || words[1] != "from" || words[3] != "to" {
		return upgrade{}, false
	}
	return upgrade{from: words[2], to: words[4]}, true
}

// setUpgrade brings desiredImage, lastSuccessfulImage and the Upgrading condition
// of next up to date. Images are compared as whole strings. The first row of the
// upgrade contract that matches wins.
func setUpgrade(next *v1alpha1.TrussiumRuntimeStatus, observation Observation, now metav1.Time) {
	image := desired.Image(observation.Runtime)
	before := upgradingCondition(*next, next.DesiredImage)
	last := next.LastSuccessfulImage
	state := assessRollout(observation.Deployment)
	carried := !observation.DeploymentUnknown && observation.Deployment != nil &&
		desired.Carries(observation.Deployment, image)
	complete := carried && state.phase == phaseComplete

	next.DesiredImage = image
	condition := metav1.Condition{Type: v1alpha1.ConditionUpgrading, Status: metav1.ConditionFalse}
	current := upgrade{from: last, to: image}
	switch {
	case last == "":
		condition.Reason = ReasonNoUpgrade
		condition.Message = "The first rollout has not completed yet."
		if complete {
			next.LastSuccessfulImage = image
			condition.Message = "No upgrade is active."
		}

	case image == last:
		condition.Reason, condition.Message = before.settled(image)

	case !carried:
		// Nothing has happened to the Pods yet, so nothing new is said.
		if before.condition != nil {
			return
		}
		condition.Reason = ReasonNoUpgrade
		condition.Message = "No upgrade is active."

	case complete:
		next.LastSuccessfulImage = image
		condition.Reason = ReasonUpgradeComplete
		condition.Message = current.sentence("is complete.")

	case state.phase == phaseFailed:
		condition.Reason = ReasonUpgradeFailed
		condition.Message = current.sentence(fmt.Sprintf("failed with %s: %s", state.failure, state.detail))

	default:
		condition.Status = metav1.ConditionTrue
		condition.Reason = ReasonUpgradeInProgress
		condition.Message = current.sentence("is in progress.")
	}

	if complete {
		condition.Message = strings.TrimSuffix(condition.Message, hasNotRun)
		if state.desired == 0 && !before.hasRun(image, last) {
			condition.Message += hasNotRun
		}
	}
	condition.Message = bounded(condition.Message)
	condition.ObservedGeneration = observation.Runtime.Generation
	condition.LastTransitionTime = now
	meta.SetStatusCondition(&next.Conditions, condition)
}

// upgrading is what an earlier status says about upgrades.
type upgrading struct {
	condition *metav1.Condition
	// upgrade is the one that the condition speaks of, if it speaks of one.
	upgrade upgrade
	known   bool
}

// upgradingCondition reads the Upgrading condition. Releases that wrote other
// messages are understood by the image that was desired then.
func upgradingCondition(status v1alpha1.TrussiumRuntimeStatus, desiredImage string) upgrading {
	condition := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionUpgrading)
	if condition == nil {
		return upgrading{}
	}
	result := upgrading{condition: condition}
	result.upgrade, result.known = parseUpgrade(condition.Message)
	if !result.known && result.isActive() {
		result.upgrade, result.known = upgrade{from: status.LastSuccessfulImage, to: desiredImage}, true
	}
	return result
}

// isActive says that an upgrade was begun and has not completed.
func (u upgrading) isActive() bool {
	return u.condition != nil &&
		(u.condition.Reason == ReasonUpgradeInProgress || u.condition.Reason == ReasonUpgradeFailed)
}

// settled is the reason and message when the desired image is the last successful
// one: what was said before stays, unless an upgrade was under way.
func (u upgrading) settled(image string) (reason, message string) {
	switch {
	case u.isActive() && u.known && u.upgrade.to != image:
		return ReasonNoUpgrade, u.upgrade.sentence("was abandoned; " + image + " is wanted again.")
	case u.condition == nil || u.isActive() || u.condition.Message == "":
		return ReasonNoUpgrade, "No upgrade is active."
	}
	return u.condition.Reason, u.condition.Message
}

// hasRun says that image, now at 0 replicas, is known to have run: its rollout
// completed before, and nothing was said to the contrary.
func (u upgrading) hasRun(image, last string) bool {
	return image == last && u.condition != nil && !strings.HasSuffix(u.condition.Message, hasNotRun)
}

// upgradeEvents are what the step from one status to the next tells about an
// upgrade: each target starts once, and completes or fails.
func upgradeEvents(before, after v1alpha1.TrussiumRuntimeStatus) []Event {
	was := upgradingCondition(before, before.DesiredImage)
	is := upgradingCondition(after, after.DesiredImage)
	completed := before.LastSuccessfulImage != "" && after.LastSuccessfulImage != before.LastSuccessfulImage
	if !is.known || !is.isActive() && !completed {
		return nil
	}

	var events []Event
	same := was.isActive() && was.known && was.upgrade == is.upgrade
	if !same {
		events = append(events, upgradeEvent(corev1.EventTypeNormal, EventRuntimeUpgradeStarted, is.upgrade.sentence("has started.")))
	}
	switch {
	case completed:
		events = append(events, upgradeEvent(corev1.EventTypeNormal, EventRuntimeUpgradeCompleted, is.condition.Message))
	case is.condition.Reason == ReasonUpgradeFailed && !(same && was.condition.Reason == ReasonUpgradeFailed):
		events = append(events, upgradeEvent(corev1.EventTypeWarning, EventRuntimeUpgradeFailed, is.condition.Message))
	}
	return events
}

func upgradeEvent(kind, reason, note string) Event {
	return Event{Type: kind, Reason: reason, Action: ActionUpgrade, Note: note}
}

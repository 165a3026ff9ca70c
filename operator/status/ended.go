package status

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
)

// Results of a rollout.
const (
	RolloutComplete = "complete"
	RolloutFailed   = "failed"
)

// EndedRollout is a rollout that has come to its end.
type EndedRollout struct {
	Result  string
	Started time.Time
}

// RolloutEnded finds the rollout that the step from one status to the next ends, if any.
func RolloutEnded(before, after v1alpha1.TrussiumRuntimeStatus) (EndedRollout, bool) {
	was := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionProgressing)
	is := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionProgressing)
	if was == nil || is == nil || was.Status != metav1.ConditionTrue {
		return EndedRollout{}, false
	}
	ended := EndedRollout{Started: was.LastTransitionTime.Time}
	switch is.Reason {
	case ReasonReconciliationComplete, ReasonScaledToZero:
		ended.Result = RolloutComplete
	case ReasonDeploymentFailed:
		ended.Result = RolloutFailed
	default:
		return EndedRollout{}, false
	}
	return ended, true
}

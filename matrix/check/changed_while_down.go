package check

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ChangedWhileDown is the check that an operator catches up with what it missed.
var ChangedWhileDown = Check{
	ID:    "changed-while-down",
	Claim: "A change of the spec made while no operator ran was carried out when the operator was back, without a nudge.",
}

// unattended is how long the change is left alone, to see that nobody else carries it out.
const unattended = 2 * time.Second

// JudgeChangedWhileDown stops the operator, changes the type of the first runtime's Service, which
// touches no pod, starts the operator again and judges ChangedWhileDown. Both are as before afterwards.
func JudgeChangedWhileDown(ctx context.Context, t Target) (result Result, err error) {
	deployment, err := t.operatorDeployment(ctx)
	if err != nil {
		return result, err
	}
	scale := func(ctx context.Context, replicas int32) error {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
		if err := t.Client.Patch(ctx, deployment.DeepCopy(), patch); err != nil {
			return fmt.Errorf("scale the operator to %d: %w", replicas, err)
		}
		return nil
	}
	running := *deployment.Spec.Replicas
	if err := scale(ctx, 0); err != nil {
		return result, err
	}
	stopped := true
	defer func() {
		if stopped {
			err = errors.Join(err, scale(context.WithoutCancel(ctx), running))
		}
	}()
	gone, seen, err := t.eventually(ctx, goneTimeout, func(ctx context.Context) (bool, string, error) {
		snapshot, err := Observe(ctx, t)
		if err != nil {
			return false, "", err
		}
		return len(snapshot.OperatorPods) == 0, fmt.Sprintf("%d operator pods", len(snapshot.OperatorPods)), nil
	})
	if err != nil || !gone {
		return result, errors.Join(err, fmt.Errorf("the operator did not stop: %s", seen))
	}

	if err := t.setServiceType(ctx, corev1.ServiceTypeNodePort); err != nil {
		return result, err
	}
	if err := pause(ctx, unattended); err != nil {
		return result, err
	}
	done, seen, err := t.hasServiceType(ctx, corev1.ServiceTypeNodePort)
	if err != nil {
		return result, err
	}
	if done {
		result.Fail("the change was carried out while no operator ran: %s", seen)
	}
	result.See("without an operator for %s: %s", unattended, seen)

	stopped = false
	if err := scale(ctx, running); err != nil {
		return result, err
	}
	for _, kind := range []corev1.ServiceType{corev1.ServiceTypeNodePort, corev1.ServiceTypeClusterIP} {
		if kind == corev1.ServiceTypeClusterIP { // back to what it was, with an operator
			if err := t.setServiceType(ctx, kind); err != nil {
				return result, err
			}
		}
		look := func(ctx context.Context) (bool, string, error) { return t.hasServiceType(ctx, kind) }
		done, seen, err := t.eventually(ctx, readyTimeout, look)
		if err != nil {
			return result, err
		}
		if !done {
			result.Fail("with the operator back for %s: %s", readyTimeout, seen)
			return result, nil
		}
		result.See("with the operator back: %s", seen)
	}
	return result, nil
}

func (t Target) setServiceType(ctx context.Context, kind corev1.ServiceType) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"service":{"type":%q}}}`, kind))
	if err := t.Client.Patch(ctx, t.newRuntime(t.Runtimes[0]), patch); err != nil {
		return fmt.Errorf("set the Service type of TrussiumRuntime %s/%s: %w", t.Namespace, t.Runtimes[0], err)
	}
	return nil
}

// hasServiceType tells whether the Service has the type and the operator says so.
func (t Target) hasServiceType(ctx context.Context, kind corev1.ServiceType) (bool, string, error) {
	object, service := t.newRuntime(t.Runtimes[0]), &corev1.Service{}
	key := client.ObjectKeyFromObject(object)
	if err := t.Client.Get(ctx, key, object); err != nil {
		return false, "", fmt.Errorf("read TrussiumRuntime %s: %w", key, err)
	}
	if err := t.Client.Get(ctx, key, service); err != nil {
		return false, "", fmt.Errorf("read Service %s: %w", key, err)
	}
	done, seen := settled(object)
	return done && service.Spec.Type == kind, fmt.Sprintf("the Service is of type %s; %s", service.Spec.Type, seen), nil
}

//go:build linux

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/network"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/statedir"
)

// readyPoll is the pause between two looks at something that is not ready yet.
const readyPoll = 50 * time.Millisecond

// requestTimeout bounds one look.
const requestTimeout = 2 * time.Second

func newClient(dir statedir.Dir) (*kubernetes.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", dir.Kubeconfig("supervisor"))
	if err != nil {
		return nil, fmt.Errorf("read the supervisor's kubeconfig: %w", err)
	}
	config.Timeout = requestTimeout
	config.QPS = -1
	return kubernetes.NewForConfig(config)
}

// poll looks until ready returns nil or ctx ends; the error then carries the last look's.
func poll(ctx context.Context, what string, ready func(context.Context) error) error {
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; last seen: %w", what, context.Cause(ctx), err)
		case <-time.After(readyPoll):
		}
	}
}

// apiReady wants a ready API server that has made the default namespace.
func apiReady(client kubernetes.Interface) func(context.Context) error {
	return func(ctx context.Context) error {
		if _, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
			return err
		}
		_, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return err
	}
}

// podsStartable wants the node ready and the default ServiceAccount made, without which no
// pod is admitted.
func podsStartable(client kubernetes.Interface) func(context.Context) error {
	return func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, network.NodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := nodeReady(node); err != nil {
			return err
		}
		_, err = client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	}
}

func nodeReady(node *corev1.Node) error {
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady {
			return fmt.Errorf("node %s still has the taint %s", node.Name, taint.Key)
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			if condition.Status == corev1.ConditionTrue {
				return nil
			}
			return fmt.Errorf("node %s is not ready: %s: %s", node.Name, condition.Reason, condition.Message)
		}
	}
	return errors.New("node " + node.Name + " has no Ready condition yet")
}

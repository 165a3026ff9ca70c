package kind

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	kindcluster "sigs.k8s.io/kind/pkg/cluster"

	"github.com/trussiumhq/trussium-operator/matrix/cluster"
)

// create makes the node and Kubernetes on it. If that fails or ctx ends, nothing of it stays.
func (c *Cluster) create(ctx context.Context, image string, host Host) error {
	release, err := c.network.hold()
	if err != nil {
		return err
	}
	defer release()
	if err := c.deleteNodes(); err != nil { // left by a process that was killed
		return fmt.Errorf("remove what is left of a former cluster: %w", err)
	}
	if !c.state.Retain {
		if err := c.bind(); err != nil {
			return err
		}
	}
	created := make(chan error, 1)
	go func() {
		created <- c.kind.Create(c.state.Name,
			kindcluster.CreateWithV1Alpha4Config(host.config(c.state.Kubernetes)),
			kindcluster.CreateWithNodeImage(image),
			kindcluster.CreateWithKubeconfigPath(c.Kubeconfig()),
			kindcluster.CreateWithWaitForReady(readyTimeout),
			kindcluster.CreateWithRetain(true), // the reason of a failure is in the node's logs
			kindcluster.CreateWithDisplayUsage(false),
			kindcluster.CreateWithDisplaySalutation(false))
	}()
	select {
	case err = <-created:
	case <-ctx.Done():
		err = ctx.Err()
		// The library can't be cancelled. Without its node every command of it fails, and it returns.
		for done := false; !done; {
			err = errors.Join(err, c.deleteNodes())
			select {
			case <-created:
				done = true
			case <-time.After(pollInterval):
			}
		}
	}
	if err == nil {
		return c.begin()
	}
	if ctx.Err() == nil {
		err = fmt.Errorf("%w%s%s", err, c.lastWords(), hint(host))
	}
	release() // so that the network can be removed
	return errors.Join(err, c.Stop(ctx))
}

// hint says what is known to keep a node from starting on such a host.
func hint(host Host) string {
	if !host.Restricted {
		return ""
	}
	return "\nprocesses of this machine lack CAP_SYS_RESOURCE: an engine that hands it out to containers fails; " +
		"`go run ./tools/engine COMMAND` starts one that does not (docs/kind.md)"
}

// lastWords are the end of what a node that did not come up has logged.
func (c *Cluster) lastWords() string {
	ctx, cancel := context.WithTimeout(context.Background(), engineTimeout)
	defer cancel()
	out, err := c.state.Engine.ask(ctx, "exec", c.node(), "journalctl", "--no-pager", "--lines=15", "--unit=kubelet", "--unit=containerd")
	if err != nil {
		return ""
	}
	return "\nthe end of the node's log:\n" + out
}

// fill loads the images and waits until the cluster's DNS answers.
func (c *Cluster) fill(ctx context.Context, spec cluster.Spec) error {
	nodes, err := c.kind.ListInternalNodes(c.state.Name)
	if err != nil {
		return err
	}
	if spec.Progress != nil && len(spec.Images) > 0 {
		spec.Progress(fmt.Sprintf("loading %d images into the node", len(spec.Images)))
	}
	if err := loadImages(ctx, filepath.Join(c.dir, "images"), nodes, spec.Images, spec.Mirrors); err != nil {
		return err
	}
	return c.awaitDNS(ctx)
}

// awaitDNS waits for the pods of the cluster's DNS.
func (c *Cluster) awaitDNS(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return fmt.Errorf("read the cluster's kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("set up the cluster's client: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, dnsTimeout)
	defer cancel()
	for {
		pods, err := client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: "k8s-app=kube-dns"})
		seen := "there are no pods"
		if err != nil {
			seen = err.Error()
		} else if len(pods.Items) > 0 {
			if seen = notReady(pods.Items); seen == "" {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the cluster's DNS is not ready: %s: %w", seen, ctx.Err())
		case <-time.After(pollInterval):
		}
	}
}

// notReady names the first pod that is not ready, and what it waits for; empty if all are.
func notReady(pods []corev1.Pod) string {
	for _, pod := range pods {
		ready := slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
		})
		if !ready {
			return fmt.Sprintf("pod %s is %s", pod.Name, pod.Status.Phase)
		}
	}
	return ""
}

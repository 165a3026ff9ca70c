package cell

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	corev1 "k8s.io/api/core/v1"

	"github.com/trussiumhq/trussium-operator/matrix/artifact"
)

// pullFault says which pod can't get an image that the registry does not deny to have: a fault of
// the cluster or of the registry, which is no failure of the product. Empty if there is none. An
// image that nobody has is the product's mistake.
func (r *run) pullFault(ctx context.Context) string {
	if r.target.Client == nil {
		return ""
	}
	var pods corev1.PodList
	if err := r.target.Client.List(ctx, &pods); err != nil {
		return "" // what the step saw has to do
	}
	for i := range pods.Items {
		for image, message := range waitingForImage(&pods.Items[i]) {
			if r.offered(ctx, image) {
				return fmt.Sprintf("the pod %s/%s can't get the image %s: %s", pods.Items[i].Namespace, pods.Items[i].Name, image, message)
			}
		}
	}
	return ""
}

// waitingForImage are the images that containers of the pod can't get, with what the kubelet says.
func waitingForImage(pod *corev1.Pod) map[string]string {
	images := map[string]string{}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		waiting := status.State.Waiting
		if waiting == nil || waiting.Reason != "ErrImagePull" && waiting.Reason != "ImagePullBackOff" {
			continue
		}
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			if container.Name == status.Name {
				images[container.Image] = waiting.Message
			}
		}
	}
	return images
}

// offered tells that the registry has the image, or can't say that it has not.
func (r *run) offered(ctx context.Context, image string) bool {
	where, err := name.ParseReference(r.env.Local(image))
	if err != nil {
		return false
	}
	_, err = remote.Head(where, remote.WithContext(ctx), remote.WithTransport(artifact.Transport()))
	var answer *transport.Error
	return !errors.As(err, &answer) || answer.StatusCode != http.StatusNotFound
}

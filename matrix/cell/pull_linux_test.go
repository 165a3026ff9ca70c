package cell

import (
	"context"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
)

// An image that the registry has, and a pod does not get, is the fault of the cluster. One that
// nobody has is the fault of whoever asks for it.
func TestPullFault(t *testing.T) {
	const there, missing = "ghcr.io/example/there:1", "ghcr.io/example/missing:1"
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	local := func(ref string) string {
		return strings.TrimPrefix(server.URL, "http://") + strings.TrimPrefix(ref, "ghcr.io")
	}
	image, err := random.Image(100, 1)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(local(there))
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, image); err != nil {
		t.Fatal(err)
	}
	cluster, err := embedded.Start(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	r := &run{env: Environment{Local: local}}
	if fault := r.pullFault(t.Context()); fault != "" {
		t.Errorf("without a cluster: %s", fault)
	}
	if r.target.Client, err = client.New(cluster.RESTConfig(), client.Options{}); err != nil {
		t.Fatal(err)
	}
	waits := func(name, image, reason string) {
		t.Helper()
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: image}}},
		}
		if err := r.target.Client.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "a", Image: image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "no space left on device"}},
		}}
		if err := r.target.Client.Status().Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	waits("starting", there, "ContainerCreating")
	waits("mistaken", missing, "ImagePullBackOff")
	if fault := r.pullFault(t.Context()); fault != "" {
		t.Errorf("an image that nobody has: %s", fault)
	}
	waits("unlucky", there, "ErrImagePull")
	if fault, want := r.pullFault(t.Context()), "the pod default/unlucky can't get the image "+there+": no space left on device"; fault != want {
		t.Errorf("got %q, want %q", fault, want)
	}
	server.Close()
	if fault := r.pullFault(t.Context()); !strings.Contains(fault, "can't get the image") {
		t.Errorf("a registry that is not there: got %q", fault)
	}
}

package check

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// insiderNamespace holds the matrix's own pods, apart from what it observes.
const insiderNamespace = "trussium-matrix"

const (
	// insiderPort is the port of tools/inside.
	insiderPort = 8080
	// insiderTimeout is how long a pod of the matrix's own may take to run, and the Service's name to be known.
	insiderTimeout = 2 * time.Minute
	// reportTimeout is how long its report may take.
	reportTimeout = 30 * time.Second
)

// InsideLoad is a client in a pod that asks the Service of a runtime by its name.
type InsideLoad struct {
	target Target
	name   string
}

// StartInsideLoad starts a client of the image of tools/inside, and returns when it asks. It asks as
// clients do: by the Service's name in the cluster's DNS, on a new connection each time.
func StartInsideLoad(ctx context.Context, t Target, image, runtime string) (*InsideLoad, error) {
	service, _ := t.Subject.kind(kindService)
	live := corev1.Service{}
	if err := t.Client.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: service.NameFor(runtime)}, &live); err != nil {
		return nil, fmt.Errorf("read the Service of runtime %s: %w", runtime, err)
	}
	port, err := servicePort(&live, t.Subject.Runtime.Port)
	if err != nil {
		return nil, err
	}
	url := fmt.Sprintf("http://%s.%s.svc.cluster.local:%d%s", live.Name, live.Namespace, port, t.Subject.Runtime.Paths[0])
	l := &InsideLoad{target: t}
	pod, err := t.createInsider(ctx, "client-", image, "load", url)
	if err != nil {
		return nil, err
	}
	l.name = pod.Name
	// What the client needs before it can ask is not the operator's doing, and so not counted.
	asks, seen, err := t.eventually(ctx, insiderTimeout, func(ctx context.Context) (bool, string, error) {
		status, body, err := l.get(ctx, "/ready")
		return status == http.StatusOK, fmt.Sprintf("status %d: %s", status, body), err
	})
	if err == nil && !asks {
		err = fmt.Errorf("the client in pod %s/%s gets no answer from %s: %s", insiderNamespace, l.name, url, seen)
	}
	if err == nil {
		var status int
		var body string
		if status, body, err = l.get(ctx, "/start"); err == nil && status != http.StatusOK {
			err = fmt.Errorf("start the client in pod %s/%s: status %d: %s", insiderNamespace, l.name, status, body)
		}
	}
	if err != nil {
		l.remove()
		return nil, err
	}
	return l, nil
}

// Stop ends the client and returns what it saw. A report that can't be had is one with Lost.
func (l *InsideLoad) Stop() TrafficReport {
	defer l.remove()
	ctx, cancel := context.WithTimeout(context.Background(), reportTimeout)
	defer cancel()
	var report TrafficReport
	told, seen, err := l.target.eventually(ctx, reportTimeout, func(ctx context.Context) (bool, string, error) {
		status, body, err := l.get(ctx, "/stop")
		if err != nil || status != http.StatusOK {
			return false, fmt.Sprintf("status %d: %s", status, body), err
		}
		return true, body, json.Unmarshal([]byte(body), &report)
	})
	if err != nil || !told {
		return TrafficReport{Lost: fmt.Sprintf("the client in pod %s/%s does not tell what it saw: %s", insiderNamespace, l.name, seen)}
	}
	return report
}

func (l *InsideLoad) get(ctx context.Context, path string) (status int, body string, err error) {
	return l.target.get(ctx, insiderNamespace, "pods", fmt.Sprintf("http:%s:%d", l.name, insiderPort), path)
}

func (l *InsideLoad) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), reportTimeout)
	defer cancel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: insiderNamespace, Name: l.name}}
	_ = l.target.Client.Delete(ctx, pod, client.GracePeriodSeconds(0)) // else the end of the cluster removes it
}

// servicePort is the number of a Service's port that is given by name or number.
func servicePort(service *corev1.Service, wanted string) (int32, error) {
	for _, port := range service.Spec.Ports {
		if port.Name == wanted || intstr.FromInt32(port.Port) == intstr.Parse(wanted) {
			return port.Port, nil
		}
	}
	return 0, fmt.Errorf("the Service %s/%s has no port %s", service.Namespace, service.Name, wanted)
}

// createInsider makes a pod of the image of tools/inside. It runs as that says, and is confined.
func (t Target) createInsider(ctx context.Context, prefix, image string, args ...string) (*corev1.Pod, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: insiderNamespace}}
	if err := client.IgnoreAlreadyExists(t.Client.Create(ctx, namespace)); err != nil {
		return nil, fmt.Errorf("create namespace %s: %w", insiderNamespace, err)
	}
	grace := int64(1)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: prefix, Namespace: insiderNamespace},
		Spec: corev1.PodSpec{
			Containers:                    []corev1.Container{insiderContainer(image, args...)},
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: &grace,
			AutomountServiceAccountToken:  new(false),
		},
	}
	if err := t.Client.Create(ctx, pod); err != nil {
		return nil, fmt.Errorf("create a pod of %s in %s: %w", strings.Join(args, " "), insiderNamespace, err)
	}
	return pod, nil
}

func insiderContainer(image string, args ...string) corev1.Container {
	return corev1.Container{
		Name: "inside", Image: image, Args: args,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), RunAsNonRoot: new(true),
			Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
}

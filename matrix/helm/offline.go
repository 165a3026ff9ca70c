package helm

import (
	"context"
	"errors"
	"fmt"
	"io"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
	kubefake "helm.sh/helm/v3/pkg/kube/fake"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Offline installs and upgrades releases in no cluster: Helm merges values, renders charts and
// makes its release records as it always does, but keeps them in memory, and what it sends to the
// API server goes nowhere.
type Offline struct {
	client *Client
}

// NewOffline returns an empty cluster that isn't there, of a Kubernetes version like 1.37.2 (empty:
// the newest that Helm knows).
func NewOffline(namespace, kubernetes string) (*Offline, error) {
	capabilities := *chartutil.DefaultCapabilities
	if kubernetes != "" {
		version, err := chartutil.ParseKubeVersion(kubernetes)
		if err != nil {
			return nil, fmt.Errorf("render charts for Kubernetes %q: %w", kubernetes, err)
		}
		capabilities.KubeVersion = *version
	}
	records := driver.NewMemory()
	records.SetNamespace(namespace)
	return &Offline{client: &Client{namespace: namespace, config: &action.Configuration{
		Releases:     storage.Init(records),
		KubeClient:   &kubefake.PrintingKubeClient{Out: io.Discard, LogOutput: io.Discard},
		Capabilities: &capabilities,
		Log:          func(string, ...any) {},
	}}}, nil
}

// Rendered is a revision of a release with all that Helm makes of its chart.
type Rendered struct {
	Release
	// Hooks are the objects that are no part of the manifest.
	Hooks []Hook
	// RecordBytes is the size of the record of this revision as Helm stores it in a Secret.
	RecordBytes int
}

// Hook is an object that Helm makes at an event.
type Hook struct {
	// Events are those of Helm's annotation, pre-upgrade for example.
	Events   []string
	Manifest string
}

// Install is `helm install NAME CHART --create-namespace`.
func (o *Offline) Install(ctx context.Context, name string, chart *Chart, values map[string]any) (Rendered, error) {
	if _, err := o.client.Install(ctx, name, chart.copy(), values); err != nil {
		return Rendered{}, err
	}
	return o.rendered(name)
}

// Upgrade is `helm upgrade NAME CHART`, with the flag that mode stands for.
func (o *Offline) Upgrade(ctx context.Context, name string, chart *Chart, mode Values, values map[string]any) (Rendered, error) {
	if _, err := o.client.Upgrade(ctx, name, chart.copy(), mode, values); err != nil {
		return Rendered{}, err
	}
	return o.rendered(name)
}

func (o *Offline) rendered(name string) (Rendered, error) {
	stored, err := o.client.config.Releases.Last(name)
	if err != nil {
		return Rendered{}, fmt.Errorf("read the record of release %s: %w", name, err)
	}
	size, err := recordBytes(stored)
	if err != nil {
		return Rendered{}, fmt.Errorf("measure the record of release %s: %w", name, err)
	}
	rendered := Rendered{Release: toRelease(stored), RecordBytes: size}
	for _, hook := range stored.Hooks {
		var events []string
		for _, event := range hook.Events {
			events = append(events, event.String())
		}
		rendered.Hooks = append(rendered.Hooks, Hook{Events: events, Manifest: hook.Manifest})
	}
	return rendered, nil
}

// recordBytes lets Helm's own driver make the Secret of a record, and looks at it.
func recordBytes(stored *release.Release) (int, error) {
	catch := &secretCatcher{}
	if err := driver.NewSecrets(catch).Create(stored.Name, stored); err != nil {
		return 0, err
	}
	if catch.secret == nil || len(catch.secret.Data["release"]) == 0 {
		return 0, errors.New("the driver of Helm made no Secret with a record")
	}
	return len(catch.secret.Data["release"]), nil
}

// secretCatcher keeps the Secret that is to be created.
type secretCatcher struct {
	corev1client.SecretInterface
	secret *corev1.Secret
}

func (c *secretCatcher) Create(_ context.Context, secret *corev1.Secret, _ metav1.CreateOptions) (*corev1.Secret, error) {
	c.secret = secret
	return secret, nil
}

// Values returns a copy of the chart's default values.
func (c *Chart) Values() map[string]any {
	return runtime.DeepCopyJSON(c.chart.Values)
}

// copy protects the chart: Helm replaces its default values with reused ones.
func (c *Chart) copy() *Chart {
	duplicate := *c.chart
	duplicate.Values = c.Values()
	return &Chart{Digest: c.Digest, chart: &duplicate}
}

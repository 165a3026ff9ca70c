package helm

import (
	"context"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
)

const namespace = "somewhere"

// version is a chart whose value a is set to what it is called, with one object and one hook.
func version(name string) *Chart {
	template := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}\n" +
		"data: {a: {{ .Values.a }}, kubernetes: {{ .Capabilities.KubeVersion.Version }}, lookup: {{ lookup \"v1\" \"Namespace\" \"\" \"\" | toJson | quote }}}\n"
	hook := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hook, annotations: {helm.sh/hook: \"pre-upgrade,pre-rollback\"}}\n"
	return &Chart{chart: &chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: "v2", Name: "example", Version: name, KubeVersion: ">=1.25.0-0"},
		Templates: []*chart.File{{Name: "templates/a.yaml", Data: []byte(template)}, {Name: "templates/hook.yaml", Data: []byte(hook)}},
		Values:    map[string]any{"a": name, "nested": map[string]any{"b": name}},
	}}
}

func offline(t *testing.T) *Offline {
	t.Helper()
	o, err := NewOffline(namespace, "1.31.4")
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOfflineUpgradesTreatValuesAsHelmDoes(t *testing.T) {
	for _, test := range []struct {
		mode Values
		set  map[string]any
		want string
	}{
		{DefaultValues, nil, "2.0.0"},
		{ReuseValues, nil, "1.0.0"},
		{ResetThenReuseValues, nil, "2.0.0"},
		{DefaultValues, map[string]any{"a": "mine"}, "mine"},
		{ReuseValues, map[string]any{"a": "mine"}, "mine"},
		{ResetThenReuseValues, map[string]any{"a": "mine"}, "mine"},
	} {
		o := offline(t)
		newer := version("2.0.0")
		installed, err := o.Install(context.Background(), "it", version("1.0.0"), test.set)
		if err != nil {
			t.Fatal(err)
		}
		upgraded, err := o.Upgrade(context.Background(), "it", newer, test.mode, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := "data: {a: " + test.want + ", kubernetes: v1.31.4, lookup: \"{}\"}"; !strings.Contains(upgraded.Manifest, want) {
			t.Errorf("%s over %v: the manifest has no %q:\n%s", test.mode, test.set, want, upgraded.Manifest)
		}
		if installed.Revision != 1 || upgraded.Revision != 2 || upgraded.ChartVersion != "2.0.0" || upgraded.Status != "deployed" {
			t.Errorf("the revisions are %+v and %+v", installed.Release, upgraded.Release)
		}
		if len(upgraded.Hooks) != 1 || strings.Join(upgraded.Hooks[0].Events, " ") != "pre-upgrade pre-rollback" || !strings.Contains(upgraded.Hooks[0].Manifest, "name: hook") {
			t.Errorf("the hooks are %+v", upgraded.Hooks)
		}
		if got := newer.Values()["a"]; got != "2.0.0" {
			t.Errorf("%s changed the chart's own value to %v", test.mode, got)
		}
	}
}

// The record is what Helm's driver stores: Helm reads it back from a Secret of that size.
func TestRecordBytes(t *testing.T) {
	o := offline(t)
	small, err := o.Install(context.Background(), "small", version("1.0.0"), nil)
	if err != nil {
		t.Fatal(err)
	}
	large, err := o.Install(context.Background(), "large", version("1.0.0"), map[string]any{"text": strings.Repeat("0123456789", 1000)})
	if err != nil {
		t.Fatal(err)
	}
	if small.RecordBytes < 500 || small.RecordBytes > 3000 {
		t.Errorf("the record of a small chart has %d bytes", small.RecordBytes)
	}
	if large.RecordBytes <= small.RecordBytes {
		t.Errorf("10 kB of values make a record of %d bytes from one of %d", large.RecordBytes, small.RecordBytes)
	}
}

func TestOfflineRefusesWhatTheClusterWould(t *testing.T) {
	if _, err := NewOffline(namespace, "new"); err == nil || !strings.Contains(err.Error(), `"new"`) {
		t.Errorf("a version that is none: %v", err)
	}
	old, err := NewOffline(namespace, "1.24.0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.Install(context.Background(), "it", version("1.0.0"), nil); err == nil || !strings.Contains(err.Error(), "kubeVersion") {
		t.Errorf("a chart for a newer Kubernetes: %v", err)
	}
}

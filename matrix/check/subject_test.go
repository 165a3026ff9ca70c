package check

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
)

const kioskCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: kiosks.fair.example.com}
spec:
  group: fair.example.com
  names: {kind: Kiosk, plural: kiosks}
  versions:
  - {name: v1beta1, storage: false}
  - name: v1
    storage: true
    schema: {openAPIV3Schema: {properties: {spec: {properties: {notice: {type: object}}}}}}
`

// kiosk is another operator than ours.
func kiosk(t *testing.T) Subject {
	t.Helper()
	subject, err := NewSubject(compat.Operator{Resource: compat.Resource{
		CRD:      "kiosks.fair.example.com",
		Spec:     map[string]any{"image": "$image", "counters": "$replicas"},
		Features: []compat.Feature{{Field: "notice", Value: map[string]any{"enabled": true}}, {Field: "roof", Value: true}},
		Managed: []compat.Managed{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "$name"}, {APIVersion: "apps/v1", Kind: "Deployment", Name: "$name"},
			{APIVersion: "v1", Kind: "ConfigMap", Name: "$name-notice", Feature: "notice"},
		},
	}}, "kiosk-operator", [][]byte{[]byte("kind: Other"), []byte(kioskCRD)})
	if err != nil {
		t.Fatal(err)
	}
	return subject
}

// What is declared and what the CRD says make the operator that is judged.
func TestSubject(t *testing.T) {
	subject := kiosk(t)
	if subject.Kind.String() != "fair.example.com/v1, Kind=Kiosk" || subject.Plural != "kiosks" || subject.Namespace() != "kiosk-operator-system" {
		t.Errorf("got %+v", subject)
	}
	crd := object(t, kioskCRD)
	if features := subject.FeaturesOf(&crd); !cmp.Equal(features, []string{"notice"}) {
		t.Errorf("features of the CRD: got %q", features)
	}
	target := Target{Subject: subject, Namespace: "fair", RuntimeRepository: "example.com/kiosk", RuntimeTag: "1.0.0", Features: []string{"notice"}}
	runtime := target.RuntimeObject("a", 2)
	want := map[string]any{"image": "example.com/kiosk:1.0.0", "counters": int64(2), "notice": map[string]any{"enabled": true}}
	if diff := cmp.Diff(want, runtime.Object["spec"]); diff != "" || runtime.GetKind() != "Kiosk" {
		t.Errorf("a runtime is %s with (-want +got):\n%s", runtime.GetKind(), diff)
	}
	names := func(runtime *unstructured.Unstructured) []string {
		var names []string
		for _, kind := range subject.kindsOf(runtime) {
			names = append(names, kind.resource+"/"+kind.NameFor(runtime.GetName()))
		}
		return names
	}
	if got := names(runtime); !cmp.Equal(got, []string{"configmaps/a", "deployments/a", "configmaps/a-notice"}) {
		t.Errorf("its objects are %q", got)
	}
	set(t, runtime, false, "spec", "notice", "enabled")
	if got := names(runtime); !cmp.Equal(got, []string{"configmaps/a", "deployments/a"}) {
		t.Errorf("without the feature its objects are %q", got)
	}
	if got := kindNames(subject.gentle()); got != "ConfigMap" {
		t.Errorf("gentle are %s", got)
	}
	if err := subject.Serves(); !errors.Is(err, ErrNotApplicable) {
		t.Errorf("an operator without a Service serves: %v", err)
	}
	for says, crds := range map[string][][]byte{"has no CRD kiosks.fair.example.com": nil, "lacks its group": {[]byte("metadata: {name: kiosks.fair.example.com}")}} {
		if _, err := NewSubject(subject.Operator, "kiosk-operator", crds); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("CRDs %s: got %v", crds, err)
		}
	}
}

// A change is seen by its fields, and can be taken back.
func TestShowsAndUndo(t *testing.T) {
	service := object(t, "{kind: Service, spec: {type: ClusterIP, ports: [{port: 80}]}}")
	fields := map[string]any{"spec": map[string]any{"type": "NodePort", "extra": map[string]any{"deep": true}}}
	if done, told := shows(&service, fields); done || told != `Service has spec.extra.deep=absent, spec.type="ClusterIP"` {
		t.Errorf("before the change: %v, %s", done, told)
	}
	back := map[string]any{"spec": map[string]any{"type": "ClusterIP", "extra": map[string]any{"deep": nil}}}
	if diff := cmp.Diff(back, undo(&service, nil, fields)); diff != "" {
		t.Errorf("the way back (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"type": "ClusterIP"}, undo(&service, []string{"spec"}, map[string]any{"type": "NodePort"})); diff != "" {
		t.Errorf("the way back below spec (-want +got):\n%s", diff)
	}
	set(t, &service, "NodePort", "spec", "type")
	set(t, &service, true, "spec", "extra", "deep")
	if done, told := shows(&service, fields); !done {
		t.Errorf("after the change: %s", told)
	}
}

// A rollout is over when all pods are new, and none is left over.
func TestRolling(t *testing.T) {
	for text, over := range map[string]bool{
		"{observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 3}": true,
		"{observedGeneration: 1, replicas: 3, updatedReplicas: 3, availableReplicas: 3}": false,
		"{observedGeneration: 2, replicas: 4, updatedReplicas: 3, availableReplicas: 3}": false,
		"{observedGeneration: 2, replicas: 3, updatedReplicas: 2, availableReplicas: 3}": false,
		"{observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 2}": false,
	} {
		deployment := object(t, "{kind: Deployment, metadata: {name: a, generation: 2}, spec: {replicas: 3}, status: "+text+"}")
		if told := rolling(&deployment); (told == "") != over {
			t.Errorf("%s: %q", text, told)
		}
	}
}

func TestStartedVersion(t *testing.T) {
	log := []byte("no JSON\n{\"msg\":\"other\",\"version\":\"0\"}\n{\"msg\":\"open\",\"at\":{\"port\":8080},\"version\":\"1.1.0\"}\n")
	line := compat.StartLine{Line: map[string]any{"msg": "open", "at": map[string]any{"port": int64(8080)}}, Version: "version"}
	if version, found := startedVersion(log, line); !found || version != "1.1.0" {
		t.Errorf("got %q, %v", version, found)
	}
	line.Line["msg"] = "closed"
	if version, found := startedVersion(log, line); found {
		t.Errorf("a line that is not there says %q", version)
	}
}

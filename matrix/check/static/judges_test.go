package static

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/check/static/crdschema"
	"github.com/trussiumhq/trussium-operator/matrix/compat"
)

func objects(t *testing.T, manifest string) []object {
	t.Helper()
	found, err := documents([]byte(manifest))
	must(t, err)
	var all []object
	for _, document := range found {
		all = append(all, objectOf(document, nil))
	}
	return all
}

func TestWhatAnUpgradeDeletes(t *testing.T) {
	kept := "{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, namespace: " + namespace + "}}\n---\n"
	before := kept + `{apiVersion: v1, kind: ConfigMap, metadata: {name: gone}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: spared, annotations: {helm.sh/resource-policy: keep}}}
`
	compare := func(before, after string) string {
		r := compareImmutable(installed(objects(t, before), namespace), installed(objects(t, after), namespace))
		return strings.Join(append(r.Failures, r.Seen...), "\n")
	}
	// The namespace of the release can be left out.
	told := compare(before, "{apiVersion: v1, kind: ConfigMap, metadata: {name: kept}}")
	for _, want := range []string{"deletes ConfigMap gone", "leaves ConfigMap spared"} {
		if !strings.Contains(told, want) {
			t.Errorf("%q is not in:\n%s", want, told)
		}
	}
	if strings.Contains(told, "ConfigMap kept") {
		t.Errorf("an object that stays is told of:\n%s", told)
	}
	const crd = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: examples.example.com}}"
	red(t, "deletes CustomResourceDefinition examples.example.com, and what users created",
		compareImmutable(installed(objects(t, crd), namespace), nil))
}

func TestImmutableFieldsOfOtherKinds(t *testing.T) {
	for _, test := range []struct{ before, after, says string }{
		{
			"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None}}",
			"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {}}",
			`Service a: spec.clusterIP can't be changed, was "None", is absent`,
		},
		{
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: b}, roleRef: {name: x}}",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: b}, roleRef: {name: y}}",
			`RoleBinding b/a: roleRef can't be changed`,
		},
		{
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}}}}",
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: c}}}}}",
			"Deployment a selects a=b, and its pods have a=c",
		},
	} {
		red(t, test.says, compareImmutable(installed(objects(t, test.before), namespace), installed(objects(t, test.after), namespace)))
	}
}

func TestDeclaredTemplateRevisions(t *testing.T) {
	same := []workload{{Template: map[string]any{"a": "b"}}, {Template: map[string]any{"a": "b"}}}
	other := []workload{{Template: map[string]any{"a": "c"}}, {Template: map[string]any{"a": "c"}}}
	names := []string{"first", "second"}
	green(t, compareTemplates(names, same, same, 1, 1))
	red(t, `template.a was "b", is "c" (2 runtimes, the first is: first)`, compareTemplates(names, same, other, 1, 1))
	green(t, compareTemplates(names, same, other, 1, 2))
	red(t, "is declared to change from revision 1 to 2, and does not", compareTemplates(names, same, same, 1, 2))
	red(t, `error was absent, is "no"`, compareTemplates(names[:1], same[:1], []workload{{Template: same[0].Template, Error: "no"}}, 1, 1))
}

func TestRenderedObjectsAreJudged(t *testing.T) {
	const deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {spec: {containers: [{name: a, image: %s}]}}}}"
	usual := objects(t, fmt.Sprintf(deployment, "a:2"))
	judge := func(manifest string) []string {
		return judgeRendered(way{}, objects(t, manifest), usual, namespace).Failures
	}
	for manifest, says := range map[string]string{
		fmt.Sprintf(deployment, "a:1"):                                                              "the images are [a:1], a fresh installation has [a:2]",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}":                                    "Deployment a is not rendered",
		fmt.Sprintf(deployment, "a:2") + "\n---\n" + fmt.Sprintf(deployment, "a:2"):                 "Deployment a is rendered twice",
		fmt.Sprintf(deployment, "a:2") + "\n---\n{apiVersion: v1, kind: ConfigMap}":                 "has no name",
		strings.Replace(fmt.Sprintf(deployment, "a:2"), "spec: {", "spec: {replica: 1, ", 1):        `unknown field "spec.replica"`,
		strings.Replace(fmt.Sprintf(deployment, "a:2"), "spec: {", "spec: {replicas: many, ", 1):    "spec.replicas",
		fmt.Sprintf(deployment, "a:2") + "\n---\n{apiVersion: v1, kind: Nothing, metadata: {a: b}}": "has no name",
	} {
		if failures := judge(manifest); !strings.Contains(strings.Join(failures, "\n"), says) {
			t.Errorf("%s\nsays %q, want %q", manifest, failures, says)
		}
	}
	if failures := judge(fmt.Sprintf(deployment, "a:2") + "\n---\n{apiVersion: example.com/v1, kind: Example, metadata: {name: a}, spec: {free: 1}}"); len(failures) > 0 {
		t.Errorf("a kind of others is refused: %q", failures)
	}
	if _, err := documents([]byte("a: 1\na: 2\n")); err == nil {
		t.Error("a key that stands twice is accepted")
	}
}

// A registry that does not answer says nothing about the product.
func TestARegistryThatFailsIsNoVerdict(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	e := edge(t, "1.0.4", "")
	e.Local = func(string) string { return strings.TrimPrefix(server.URL, "http://") + "/a:1" }
	if r, err := JudgeImages(t.Context(), e); err == nil || len(r.Failures) > 0 {
		t.Errorf("the verdict is %v, the error %v", r.Failures, err)
	}
	found, err := head(t.Context(), "a b", "a b")
	must(t, err)
	red(t, `image "a b" can't be pulled: could not parse reference`, judgeImages([]image{found}))
}

// The corpus has what users can have, and no more.
func TestCorpus(t *testing.T) {
	definitions, err := crdsOf(release(t, "").Chart)
	must(t, err)
	definition := definitions[compat.DefaultOperator().Resource.CRD]
	schema, err := crdschema.New(storageVersion(definition).Schema.OpenAPIV3Schema)
	must(t, err)
	c, err := corpusOf(t.Context(), compat.DefaultOperator().Resource, definition, schema, release(t, "").Tree)
	must(t, err)
	var names []string
	specs := map[string][]string{}
	for _, m := range c.members {
		names = append(names, m.name)
		specs[m.name] = append(specs[m.name], asJSON(m.object["spec"]))
	}
	for _, name := range []string{
		"every field", "runtime-full.yaml", "runtime-minimal.yaml", "scaled.yaml", "the smallest", "spec.image.tag", "spec.provider.credentialsSecretRef.key",
		"spec.scheduling.tolerations[].effect", "spec.networkPolicy", "status.conditions[].reason",
	} {
		if !slices.Contains(names, name) {
			t.Errorf("no object is named %q", name)
		}
	}
	for _, want := range []struct{ name, part string }{
		{"spec.replicas", `"replicas":0`}, {"spec.replicas", `"replicas":1000`}, {"spec.service.type", `"type":"LoadBalancer"`},
		{"spec.image.tag", `"tag":"` + strings.Repeat("a", 128) + `"`}, {"spec.imagePullSecrets", `"imagePullSecrets":[]`}, {"spec.autoscaling", `"autoscaling":{`},
	} {
		if !slices.ContainsFunc(specs[want.name], func(spec string) bool { return strings.Contains(spec, want.part) }) {
			t.Errorf("no %s has %s: %q", want.name, want.part, specs[want.name])
		}
	}
	// Each needs another field beside it, or is no URL.
	if want := []string{"spec.autoscaling.minReplicas", "spec.networkPolicy.enabled", "spec.provider.baseURL"}; !slices.Equal(c.left, want) {
		t.Errorf("left out are %q, want %q", c.left, want)
	}
}

func TestWithoutSourceThereIsNothingToJudge(t *testing.T) {
	e := edge(t, "1.0.4", "")
	e.Target.Tree = nil
	for _, judge := range []Judge{JudgeRBAC, JudgeTemplates} {
		if _, err := judge(t.Context(), e); !errors.Is(err, check.ErrNotApplicable) {
			t.Errorf("without a source tree the error is %v", err)
		}
	}
	e.Target.Tree = NewTree(t.TempDir(), Tools{})
	for _, judge := range []Judge{JudgeRBAC, JudgeTemplates} {
		if _, err := judge(t.Context(), e); !errors.Is(err, check.ErrNotApplicable) {
			t.Errorf("with an empty source tree the error is %v", err)
		}
	}
}

// An earlier chart that does not even install can't be looked at; that is no fault of the newer one.
func TestASourceThatDoesNotRenderIsNoVerdict(t *testing.T) {
	broken := edge(t, "1.0.4", "")
	broken.Source.Chart = mutatedChart(t, edit("templates/deployment.yaml", "  replicas: {{", "  replicas: {{ fail \"no\" }}{{"))
	for _, judge := range []Judge{JudgeValueModes, JudgeImmutableFields, JudgeReleaseRecord, JudgeImages} {
		if r, err := judge(t.Context(), broken); err == nil || len(r.Failures) > 0 {
			t.Errorf("the verdict is %v, the error %v", r.Failures, err)
		}
	}
	broken.Source, broken.Target = broken.Target, broken.Source
	for _, judge := range []Judge{JudgeValueModes, JudgeImmutableFields, JudgeReleaseRecord, JudgeImages, JudgeRBAC} {
		r, err := judge(t.Context(), broken)
		must(t, err)
		red(t, "no", r)
	}
}

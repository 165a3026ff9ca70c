package charts_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/trussiumhq/trussium-operator/charts/valuestable"
)

// change sets a value. What it shows must not be rendered without it, what it hides must.
type change struct {
	// given are the other values that it needs to have an effect.
	given string
	// set is the value.
	set          string
	shows, hides string
}

var changes = map[string]change{
	"replicaCount":     {set: "replicaCount: 7", shows: "replicas: 7"},
	"image.repository": {set: "image: {repository: registry.example/operator}", shows: `image: "registry.example/operator:1.0.5"`},
	"image.tag":        {set: `image: {tag: "9.9"}`, shows: `trussium-operator:9.9"`},
	"image.digest":     {given: "image: {tag: ignored}", set: "image: {digest: " + digest + "}", shows: `trussium-operator@` + digest + `"`, hides: "trussium-operator:ignored"},
	"image.pullPolicy": {set: "image: {pullPolicy: Always}", shows: "imagePullPolicy: Always"},
	"imagePullSecrets": {set: "imagePullSecrets: [{name: registry}]", shows: "imagePullSecrets:\n        - name: registry"},
	"nameOverride":     {set: "nameOverride: other", shows: `app.kubernetes.io/name: "other"`, hides: `app.kubernetes.io/name: "trussium-operator"`},
	"fullnameOverride": {set: "fullnameOverride: other", shows: "name: other-controller-manager\n", hides: "trussium-operator-controller-manager"},

	"commonLabels":      {set: "commonLabels: {team: blue}", shows: "team: blue"},
	"commonAnnotations": {set: "commonAnnotations: {contact: blue}", shows: "contact: blue"},
	"podLabels":         {set: "podLabels: {tier: control}", shows: "tier: control"},
	"podAnnotations":    {set: "podAnnotations: {scrape: never}", shows: "scrape: never"},

	"serviceAccount.create":      {set: "serviceAccount: {create: false}", shows: "serviceAccountName: default", hides: "kind: ServiceAccount\nmetadata:\n  name: trussium-operator-controller-manager"},
	"serviceAccount.automount":   {set: "serviceAccount: {automount: false}", shows: "automountServiceAccountToken: false"},
	"serviceAccount.annotations": {set: "serviceAccount: {annotations: {role: reader}}", shows: "role: reader"},
	"serviceAccount.name":        {set: "serviceAccount: {name: existing.one}", shows: "serviceAccountName: existing.one"},

	"podSecurityContext": {set: "podSecurityContext: {runAsUser: 4242}", shows: "runAsUser: 4242"},
	"securityContext":    {set: "securityContext: {privileged: false}", shows: "privileged: false"},
	"resources":          {set: "resources: {limits: {memory: 1Gi}}", shows: "memory: 1Gi", hides: "memory: 128Mi"},

	"watchNamespace":         {set: "watchNamespace: inference", shows: "--watch-namespace=inference"},
	"logLevel":               {set: "logLevel: DEBUG", shows: "--log-level=DEBUG"},
	"leaderElection.enabled": {set: "leaderElection: {enabled: false}", shows: "--leader-elect=false", hides: "- --leader-elect\n"},
	"crds.upgrade":           {set: "crds: {upgrade: false}", hides: "crd-upgrade"},

	"metrics.service.enabled": {set: "metrics: {service: {enabled: false}}", shows: "--metrics-bind-address=0", hides: "kind: Service\n"},
	"metrics.service.type":    {set: "metrics: {service: {type: NodePort}}", shows: "type: NodePort"},
	"metrics.service.port":    {set: "metrics: {service: {port: 9443}}", shows: "port: 9443"},

	"metrics.serviceMonitor.enabled":  {set: "metrics: {serviceMonitor: {enabled: true}}", shows: "kind: ServiceMonitor"},
	"metrics.serviceMonitor.labels":   {given: monitored, set: "metrics: {serviceMonitor: {labels: {release: prometheus}}}", shows: "release: prometheus"},
	"metrics.serviceMonitor.interval": {given: monitored, set: "metrics: {serviceMonitor: {interval: 1m30s}}", shows: "interval: 1m30s"},
	"metrics.serviceMonitor.insecureSkipVerify": {
		given: monitored, set: "metrics: {serviceMonitor: {insecureSkipVerify: false}}", shows: "insecureSkipVerify: false",
	},

	"podDisruptionBudget.enabled": {set: "podDisruptionBudget: {enabled: true}", shows: "kind: PodDisruptionBudget"},
	"podDisruptionBudget.maxUnavailable": {
		given: "podDisruptionBudget: {enabled: true}", set: "podDisruptionBudget: {maxUnavailable: 50%}", shows: "maxUnavailable: 50%",
	},

	"priorityClassName": {set: "priorityClassName: system-cluster-critical", shows: `priorityClassName: "system-cluster-critical"`},
	"nodeSelector":      {set: "nodeSelector: {pool: control}", shows: "nodeSelector:\n        pool: control"},
	"tolerations":       {set: "tolerations: [{key: control}]", shows: "tolerations:\n        - key: control"},
	"affinity":          {set: "affinity: {nodeAffinity: {}}", shows: "nodeAffinity: {}"},
	"topologySpreadConstraints": {
		set: "topologySpreadConstraints: [{maxSkew: 3, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]", shows: "maxSkew: 3",
	},
}

const (
	digest    = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	monitored = "metrics: {serviceMonitor: {enabled: true}}"
)

func TestEveryValueHasAnEffect(t *testing.T) {
	rows, err := valuestable.Rows(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range rows {
		documented = append(documented, row.Key)
		change, tested := changes[row.Key]
		if !tested {
			t.Errorf("%s is a value whose effect is not tested", row.Key)
			continue
		}
		t.Run(row.Key, func(t *testing.T) {
			before := text(renderRelease(t, load(t), change.given))
			after := text(renderRelease(t, load(t), merged(t, change.given, change.set)))
			if shows := change.shows; shows != "" && (strings.Contains(before, shows) || !strings.Contains(after, shows)) {
				t.Errorf("%q is not rendered because of it:\n%s", shows, after)
			}
			if hides := change.hides; hides != "" && (!strings.Contains(before, hides) || strings.Contains(after, hides)) {
				t.Errorf("%q is not left out because of it:\n%s", hides, after)
			}
			if change.shows+change.hides == "" {
				t.Error("the effect is not tested")
			}
		})
	}
	for key := range changes {
		if !slices.Contains(documented, key) {
			t.Errorf("%s is tested and is no value", key)
		}
	}
}

// merged is the YAML of one set of values on top of another.
func merged(t *testing.T, below, above string) string {
	t.Helper()
	content, err := yaml.Marshal(merge(parse(t, below), parse(t, above)))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func merge(below, above map[string]any) map[string]any {
	for key, value := range above {
		section, isSection := value.(map[string]any)
		old, wasSection := below[key].(map[string]any)
		if isSection && wasSection {
			value = merge(old, section)
		}
		below[key] = value
	}
	return below
}

// commonLabels and commonAnnotations are for inventories, which miss nothing.
func TestCommonMetadataIsOnEverything(t *testing.T) {
	objects := render(t, load(t), `
commonLabels: {team: blue, app.kubernetes.io/version: mine}
commonAnnotations: {contact: blue, own: common}
serviceAccount: {annotations: {own: account}}
podAnnotations: {own: pod}
podDisruptionBudget: {enabled: true}
metrics: {serviceMonitor: {enabled: true}}`)
	for name, object := range objects {
		if object.GetLabels()["team"] != "blue" || object.GetAnnotations()["contact"] != "blue" {
			t.Errorf("%s has labels %v and annotations %v", name, object.GetLabels(), object.GetAnnotations())
		}
		if version := object.GetLabels()["app.kubernetes.io/version"]; version == "mine" && object.GetKind() != "Pod" {
			t.Errorf("%s lost its version to a common label", name)
		}
	}
	if own := objects["ServiceAccount/trussium-operator-controller-manager"].GetAnnotations()["own"]; own != "account" {
		t.Errorf("the ServiceAccount is annotated with %q, its own annotation is account", own)
	}
	for name, template := range podTemplates(t, objects) {
		metadata := template["metadata"].(map[string]any)
		labels, annotations := metadata["labels"].(map[string]any), metadata["annotations"].(map[string]any)
		if labels["team"] != "blue" || annotations["contact"] != "blue" || annotations["own"] != "pod" {
			t.Errorf("the Pod of %s has labels %v and annotations %v", name, labels, annotations)
		}
	}
}

// Placement and rights are those of all Pods: a cluster that has no place for the hook's Pod
// would keep the operator from being upgraded.
func TestAllPodsAreAlike(t *testing.T) {
	templates := podTemplates(t, render(t, load(t), `
imagePullSecrets: [{name: registry}]
priorityClassName: system-cluster-critical
nodeSelector: {pool: control}
tolerations: [{key: control}]
affinity: {nodeAffinity: {}}`))
	if len(templates) != 3 {
		t.Fatalf("%d Pods, want those of the Deployment, the hook and the test", len(templates))
	}
	want := templates[deploymentName]
	for name, template := range templates {
		for _, field := range []string{
			"imagePullSecrets", "priorityClassName", "nodeSelector", "tolerations", "affinity", "securityContext", "enableServiceLinks",
		} {
			got, wanted := template["spec"].(map[string]any)[field], want["spec"].(map[string]any)[field]
			if wanted == nil || !equal(t, got, wanted) {
				t.Errorf("%s of %s is %v, the operator's is %v", field, name, got, wanted)
			}
		}
		for _, field := range []string{"image", "imagePullPolicy", "command", "resources", "securityContext"} {
			got, wanted := container(t, template)[field], container(t, want)[field]
			if wanted == nil || !equal(t, got, wanted) {
				t.Errorf("%s of the container of %s is %v, the operator's is %v", field, name, got, wanted)
			}
		}
	}
}

func equal(t *testing.T, a, b any) bool {
	t.Helper()
	left, errLeft := yaml.Marshal(a)
	right, errRight := yaml.Marshal(b)
	if errLeft != nil || errRight != nil {
		t.Fatal(errLeft, errRight)
	}
	return string(left) == string(right)
}

// A release that is upgraded with --reuse-values brings the values of its own
// time: whatever came later is missing, and sections may be null.
func TestAnyValueMayBeMissing(t *testing.T) {
	for _, path := range paths("", load(t).Values) {
		for _, state := range []string{"missing", "null"} {
			t.Run(path+" "+state, func(t *testing.T) {
				loaded := load(t)
				section, keys := loaded.Values, strings.Split(path, ".")
				for _, key := range keys[:len(keys)-1] {
					section = section[key].(map[string]any)
				}
				// With --reuse-values the old release's values take the place of the defaults.
				delete(section, keys[len(keys)-1])
				if state == "null" {
					section[keys[len(keys)-1]] = nil
				}
				objects := render(t, loaded, "")
				if objects[deploymentName] == nil {
					t.Errorf("no Deployment among %v", names(objects))
				}
			})
		}
	}
	t.Run("nothing at all", func(t *testing.T) {
		loaded := load(t)
		loaded.Values = map[string]any{}
		if objects := render(t, loaded, ""); objects[deploymentName] == nil {
			t.Errorf("no Deployment among %v", names(objects))
		}
	})
}

// paths are those of all values, sections too.
func paths(prefix string, values map[string]any) []string {
	var result []string
	for key, value := range values {
		result = append(result, prefix+key)
		if section, isSection := value.(map[string]any); isSection {
			result = append(result, paths(prefix+key+".", section)...)
		}
	}
	slices.Sort(result)
	return result
}

// Published charts limit the operator's CPU. People who have taken that limit away, with a null,
// must not be left with a limit of 0, nor be refused.
func TestNullTakesAResourceAway(t *testing.T) {
	objects := render(t, load(t), "resources: {limits: {cpu: null, memory: 1Gi}, requests: {cpu: null}}")
	got := container(t, podTemplates(t, objects)[deploymentName])["resources"]
	want := map[string]any{"limits": map[string]any{"memory": "1Gi"}, "requests": map[string]any{"memory": "64Mi"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	for values, want := range map[string]string{
		"replicaCount: two":                                       "at '/replicaCount': got string, want null or integer",
		"replicaCount: -1":                                        "at '/replicaCount': minimum: got -1, want 0",
		"replicas: 2":                                             "at '': additional properties 'replicas' not allowed",
		"image: registry.example/operator":                        "at '/image': got string, want null or object",
		"image: {name: operator}":                                 "at '/image': additional properties 'name' not allowed",
		"image: {tag: 1.0}":                                       "at '/image/tag': got number, want null or string",
		"image: {tag: registry.example/operator}":                 "at '/image/tag': 'registry.example/operator' does not match pattern",
		"image: {digest: 0123}":                                   "at '/image/digest': got number, want null or string",
		"image: {digest: sha256:12}":                              "at '/image/digest': 'sha256:12' does not match pattern",
		"image: {pullPolicy: Sometimes}":                          "at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'",
		"imagePullSecrets: [registry]":                            "at '/imagePullSecrets/0': got string, want object",
		"imagePullSecrets: [{secret: registry}]":                  "at '/imagePullSecrets/0': missing property 'name'",
		"fullnameOverride: Trussium":                              "at '/fullnameOverride': 'Trussium' does not match pattern",
		"commonLabels: {replicas: 2}":                             "at '/commonLabels/replicas': got number, want string",
		"podAnnotations: {scrape: true}":                          "at '/podAnnotations/scrape': got boolean, want string",
		"serviceAccount: {create: 'yes'}":                         "at '/serviceAccount/create': got string, want null or boolean",
		"serviceAccount: {labels: {}}":                            "at '/serviceAccount': additional properties 'labels' not allowed",
		"serviceAccount: {name: The Account}":                     "at '/serviceAccount/name': 'The Account' does not match pattern",
		"podSecurityContext: restricted":                          "at '/podSecurityContext': got string, want null or object",
		"securityContext: []":                                     "at '/securityContext': got array, want null or object",
		"resources: {cpu: 100m}":                                  "at '/resources': additional properties 'cpu' not allowed",
		"resources: {limits: 1Gi}":                                "at '/resources/limits': got string, want null or object",
		"watchNamespace: [a, b]":                                  "at '/watchNamespace': got array, want null or string",
		"watchNamespace: a,b":                                     "at '/watchNamespace': 'a,b' does not match pattern",
		"logLevel: loud":                                          "at '/logLevel': value must be one of '', 'DEBUG', 'INFO', 'WARN', 'ERROR'",
		"leaderElection: {enable: true}":                          "at '/leaderElection': additional properties 'enable' not allowed",
		"crds: {upgrade: never}":                                  "at '/crds/upgrade': got string, want null or boolean",
		"crds: {install: true}":                                   "at '/crds': additional properties 'install' not allowed",
		"metrics: {enabled: true}":                                "at '/metrics': additional properties 'enabled' not allowed",
		"metrics: {service: {port: 99999}}":                       "at '/metrics/service/port': maximum: got 99,999, want 65,535",
		"metrics: {service: {type: ExternalName}}":                "at '/metrics/service/type': value must be one of 'ClusterIP', 'NodePort', 'LoadBalancer'",
		"metrics: {service: {annotations: {}}}":                   "at '/metrics/service': additional properties 'annotations' not allowed",
		"metrics: {serviceMonitor: {interval: 30}}":               "at '/metrics/serviceMonitor/interval': got number, want null or string",
		"metrics: {serviceMonitor: {interval: often}}":            "at '/metrics/serviceMonitor/interval': 'often' does not match pattern",
		"metrics: {serviceMonitor: {namespace: x}}":               "at '/metrics/serviceMonitor': additional properties 'namespace' not allowed",
		"podDisruptionBudget: {maxUnavailable: half}":             "at '/podDisruptionBudget/maxUnavailable': 'half' does not match pattern",
		"podDisruptionBudget: {minAvailable: 1}":                  "at '/podDisruptionBudget': additional properties 'minAvailable' not allowed",
		"priorityClassName: 5":                                    "at '/priorityClassName': got number, want null or string",
		"nodeSelector: {gpu: true}":                               "at '/nodeSelector/gpu': got boolean, want string",
		"tolerations: {key: gpu}":                                 "at '/tolerations': got object, want null or array",
		"affinity: zone":                                          "at '/affinity': got string, want null or object",
		"topologySpreadConstraints: [{maxSkew: wide}]":            "at '/topologySpreadConstraints/0/maxSkew': got string, want null or integer",
		"securityContext: {readOnlyRootFileSystem: true}":         "at '/securityContext': additional properties 'readOnlyRootFileSystem' not allowed",
		"tolerations: [{keys: gpu}]":                              "at '/tolerations/0': additional properties 'keys' not allowed",
		"{replicaCount: two, image: {pullPolicy: Sometimes}}":     "at '/image/pullPolicy'",
		"{replicaCount: two, image: {tag: good}, watching: here}": "additional properties 'watching' not allowed",
	} {
		_, err := tryRender(t, load(t), values)
		if err == nil {
			t.Errorf("%q is accepted", values)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is refused with\n%v\nwhich lacks %q", values, err, want)
		}
	}
}

// A chart of which this is a part hands over its global values.
func TestGlobalValuesAreAccepted(t *testing.T) {
	render(t, load(t), "global: {imageRegistry: registry.example}")
}

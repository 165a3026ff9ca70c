package charts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/git"
)

// modes are what `helm upgrade` can do with the values of the installed release.
var modes = map[string]func(*action.Upgrade){
	"reset":            func(upgrade *action.Upgrade) { upgrade.ResetValues = true },
	"reuse":            func(upgrade *action.Upgrade) { upgrade.ReuseValues = true },
	"reset-then-reuse": func(upgrade *action.Upgrade) { upgrade.ResetThenReuseValues = true },
}

// extract loads the chart of a release from the commit that it was cut from.
func extract(t *testing.T, commit string) *chart.Chart {
	t.Helper()
	dir := t.TempDir()
	if err := (git.Repository{Dir: ".."}).Extract(t.Context(), commit, dir); err != nil {
		t.Fatal(err)
	}
	loaded, err := loader.Load(filepath.Join(dir, "charts", chartDir))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// upgrade installs a chart with values and upgrades the release to the checkout's chart.
func upgrade(t *testing.T, from *chart.Chart, values string, mode func(*action.Upgrade)) (before, after *release.Release) {
	t.Helper()
	config := helm()
	before, err := install(config, from, parse(t, values))
	if err != nil {
		t.Fatal(err)
	}
	client := action.NewUpgrade(config)
	client.Namespace = namespace
	mode(client)
	if after, err = client.Run(releaseName, load(t), nil); err != nil {
		t.Fatal(err)
	}
	return before, after
}

// From every release, with its own values and with ones that people have set.
func TestUpgradeFromEveryRelease(t *testing.T) {
	file, err := compat.Load("../compatibility.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, earlier := range file.OperatorReleases {
		from := extract(t, earlier.Commit)
		for mode, choose := range modes {
			t.Run(earlier.Version+" "+mode, func(t *testing.T) {
				before, after := upgrade(t, from, "", choose)
				keepsWhatIsImmutable(t, objectsOf(t, before), objectsOf(t, after))
			})
			t.Run(earlier.Version+" "+mode+" with values", func(t *testing.T) {
				const values = "{replicaCount: 3, serviceAccount: {name: operator}, metrics: {service: {port: 9443}}, resources: {limits: {memory: 256Mi}}}"
				before, after := upgrade(t, from, values, choose)
				keepsWhatIsImmutable(t, objectsOf(t, before), objectsOf(t, after))
				kept := mode != "reset"
				for _, choice := range []string{"replicas: 3", "serviceAccountName: operator", "port: 9443", "memory: 256Mi"} {
					if got := strings.Contains(after.Manifest, choice); got != kept {
						t.Errorf("%q is rendered: %v, want %v", choice, got, kept)
					}
				}
			})
		}
	}
}

// keepsWhatIsImmutable compares what an upgrade and a rollback can't change or must not delete.
func keepsWhatIsImmutable(t *testing.T, before, after map[string]*unstructured.Unstructured) {
	t.Helper()
	for name, old := range installed(before) {
		now := after[name]
		if now == nil {
			// An account that was named in values which are forgotten.
			if old.GetKind() != "ServiceAccount" {
				t.Errorf("the upgrade deletes %s", name)
			}
			continue
		}
		for _, path := range [][]string{{"metadata", "namespace"}, {"spec", "selector"}, {"roleRef"}} {
			oldField, _, _ := unstructured.NestedFieldNoCopy(old.Object, path...)
			newField, _, _ := unstructured.NestedFieldNoCopy(now.Object, path...)
			if diff := cmp.Diff(oldField, newField); diff != "" {
				t.Errorf("%s of %s (-before +after):\n%s", strings.Join(path, "."), name, diff)
			}
		}
	}
	if job := after["Job/trussium-operator-crd-upgrade"]; job == nil {
		t.Errorf("no hook upgrades the CustomResourceDefinition: %v", names(after))
	}
}

// The values of published charts have the meaning that they had, in whatever way they are
// carried over. The charts themselves are not in this repository.
func TestPublishedValuesKeepTheirMeaning(t *testing.T) {
	content, err := os.ReadFile("testdata/published-values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	asDefaults := &chart.Chart{Metadata: load(t).Metadata, Values: parse(t, string(content))}
	withoutAny := &chart.Chart{Metadata: load(t).Metadata}
	for name, upgraded := range map[string]func() (*release.Release, *release.Release){
		"its defaults, reused": func() (*release.Release, *release.Release) { return upgrade(t, asDefaults, "", modes["reuse"]) },
		"set, reused": func() (*release.Release, *release.Release) {
			return upgrade(t, withoutAny, string(content), modes["reuse"])
		},
		"set, reset and reused": func() (*release.Release, *release.Release) {
			return upgrade(t, withoutAny, string(content), modes["reset-then-reuse"])
		},
		"given again": func() (*release.Release, *release.Release) { return nil, renderRelease(t, load(t), string(content)) },
	} {
		t.Run(name, func(t *testing.T) {
			_, after := upgraded()
			rendered := text(after)
			for _, want := range []string{
				"name: trussium-controller-manager\n", `image: "mirror.example/trussium-operator:1.0.5"`, "imagePullPolicy: Always", "- name: mirror\n",
				"kind: ServiceAccount\nmetadata:\n  name: operator\n", "example.com/role: operator", "replicas: 3", "example.com/scrape: never",
				"example.com/team: blue", "runAsUser: 4242", "memory: 256Mi", "cpu: 50m", "--leader-elect", "type: NodePort", "port: 9443",
				"kind: ServiceMonitor", "interval: 15s", "insecureSkipVerify: false", "example.com/pool: control", "key: example.com/control",
				"podAntiAffinity: {}", "--watch-namespace=inference", "kind: Role\nmetadata:\n  name: trussium-manager-role\n  namespace: inference",
			} {
				if !strings.Contains(rendered, want) {
					t.Errorf("%q is not rendered:\n%s", want, rendered)
				}
			}
		})
	}
}

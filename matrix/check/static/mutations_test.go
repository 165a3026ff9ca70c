package static

import (
	"crypto/rand"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ggcr "github.com/google/go-containerregistry/pkg/registry"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/registry"

	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/check/mutation"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/helm"
)

// Each mutation of the candidate turns exactly the check red that must notice it.
func TestMutations(t *testing.T) {
	const (
		role       = "files/manager-role.yaml"
		deployment = "templates/deployment.yaml"
		crd        = "crds/runtime.trussium.io_trussiumruntimes.yaml"
		helpers    = "templates/_helpers.tpl"
	)
	tests := []struct {
		name string
		// chart edits files of the candidate's chart, tree files of its source.
		chart, tree func(files) files
		red         check.Check
		says        string
	}{
		{
			name:  "the role lacks a verb",
			chart: edit(role, "  - trussiumruntimes/status\n  verbs:\n  - get\n", "  - trussiumruntimes/status\n  verbs:\n"),
			red:   RBACCoversCode, says: "get trussiumruntimes/status.runtime.trussium.io in all namespaces is needed by operator/controller",
		},
		{
			name:  "the role has a resource too many",
			chart: edit(role, "  - serviceaccounts\n", "  - serviceaccounts\n  - pods\n"),
			red:   RBACCoversCode, says: "get, list, patch, update, watch pods in all namespaces, and no code needs it",
		},
		{
			name: "leases of all namespaces are granted",
			chart: edit("templates/leader-election-role.yaml",
				"kind: RoleBinding", "kind: ClusterRoleBinding", "kind: Role\n", "kind: ClusterRole\n", "  namespace: {{ .Release.Namespace }}\n  labels", "  labels"),
			red: RBACCoversCode, says: "leases.coordination.k8s.io in all namespaces, and no code needs it",
		},
		{
			name: "a role that is not the chart's is granted",
			chart: edit("templates/serviceaccount.yaml", "automountServiceAccountToken", "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\n"+
				"metadata:\n  name: all\nroleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\n  name: cluster-admin\nsubjects:\n"+
				"- kind: ServiceAccount\n  name: {{ include \"trussium-operator.serviceAccountName\" . }}\n  namespace: {{ .Release.Namespace }}\n#"),
			red: RBACCoversCode, says: "ClusterRoleBinding all grants ClusterRole cluster-admin, whose rules are not in the chart",
		},
		{
			name: "the code caches a kind and has no marker for it",
			tree: edit("operator/controller/doc.go", "// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=create;delete;get;list;patch;update;watch\n", ""),
			chart: edit(role, "- apiGroups:\n  - autoscaling\n  resources:\n  - horizontalpodautoscalers\n  verbs:\n  - create\n  - delete\n  - get\n"+
				"  - list\n  - patch\n  - update\n  - watch\n", ""),
			red: RBACCoversCode, says: "get, list, watch horizontalpodautoscalers.autoscaling in all namespaces is needed by the operator's caches",
		},
		{
			name:  "a rule of the whole object is new",
			chart: edit(crd, "        x-kubernetes-validations:\n        - message: 'metadata.name", "        x-kubernetes-validations:\n        - rule: self.spec.provider.model.size() > 0\n        - message: 'metadata.name"),
			red:   CRDCompatible, says: "a rule is new: self.spec.provider.model.size() > 0",
		},
		{
			name:  "a bound of a single value is tightened",
			chart: edit(crd, "                maximum: 1000\n                minimum: 0\n", "                maximum: 999\n                minimum: 0\n"),
			red:   StoredObjectsValid, says: "spec.replicas: Invalid value: 1000",
		},
		{
			name:  "the selector has one label more",
			chart: edit(helpers, "app.kubernetes.io/instance: {{ .Release.Name | quote }}\n", "app.kubernetes.io/instance: {{ .Release.Name | quote }}\napp.kubernetes.io/part-of: trussium\n"),
			red:   ImmutableFields, says: "Deployment trussium-operator-controller-manager: spec.selector can't be changed",
		},
		{
			name:  "a value of this release is read without its parent",
			chart: edit(deployment, "  replicas: {{", "  minReadySeconds: {{ .Values.crds.upgrade | ternary 0 1 }}\n  replicas: {{"),
			red:   ValueModesRender, says: "--reuse-values, over no values: chart 1.0.5",
		},
		{
			name:  "a pod names an image that nobody pushed",
			chart: edit(deployment, "      containers:\n", "      initContainers:\n      - name: wait\n        image: ghcr.io/trussiumhq/wait:1\n      containers:\n"),
			red:   ImagesExist, says: `image "ghcr.io/trussiumhq/wait:1" can't be pulled: the registry does not have it`,
		},
		{
			name: "the pod template has one annotation more",
			tree: edit("operator/desired/deployment.go", "	checksum := map[string]string{", "	checksum := map[string]string{\"example.com/new\": \"x\", "),
			red:  TemplateGolden, says: `template.metadata.annotations.example.com/new was absent, is "x"`,
		},
		{
			name: "the chart carries a large file",
			chart: func(f files) files {
				content := make([]byte, 700<<10)
				_, _ = rand.Read(content) // it never fails
				f["files/large"] = string(content)
				return f
			},
			red: ReleaseRecordSize, says: "less than 819200 are wanted",
		},
	}
	proven := map[string][]string{}
	for _, test := range tests {
		proven[test.red.ID] = append(proven[test.red.ID], test.name)
		t.Run(test.name, func(t *testing.T) {
			mutated := edge(t, "0.3.1", "")
			if test.chart != nil {
				mutated.Target.Chart = mutatedChart(t, test.chart)
			}
			if test.tree != nil {
				mutated.Target.Tree = mutatedTree(t, test.tree)
			}
			for _, c := range Checks {
				r, err := c.Judge(t.Context(), mutated)
				if err != nil {
					t.Fatalf("%s: %v", c.ID, err)
				}
				isRed := r.Outcome() == evidence.Failed
				if c.ID == test.red.ID {
					mutation.Record(t, c.ID, test.name, isRed, r.Failures, test.says)
				} else if isRed {
					t.Errorf("%s is red, too: %v", c.ID, r.Failures)
				}
			}
		})
	}
	var ids []string
	for _, c := range Checks {
		ids = append(ids, c.ID)
	}
	must(t, mutation.Missing(ids, proven))
}

// files are texts by their path.
type files map[string]string

// edit replaces texts, given in pairs, in one file.
func edit(file string, pairs ...string) func(files) files {
	return func(f files) files {
		f[file] = strings.NewReplacer(pairs...).Replace(f[file])
		return f
	}
}

// mutatedChart is the checkout's chart after an edit, packaged, pushed and pulled as any other.
func mutatedChart(t *testing.T, mutate func(files) files) *helm.Chart {
	t.Helper()
	prepareLab(t)
	source := filepath.Join(lab.places.Repository, "charts", "trussium-operator")
	before := readFiles(t, source, ".")
	dir := t.TempDir()
	writeFiles(t, dir, changed(t, before, mutate))
	loaded, err := loader.LoadDir(dir)
	must(t, err)
	archive, err := chartutil.Save(loaded, t.TempDir())
	must(t, err)
	content, err := os.ReadFile(archive)
	must(t, err)
	server := httptest.NewServer(ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	ref := strings.TrimPrefix(server.URL, "http://") + "/charts/trussium-operator:" + loaded.Metadata.Version
	client, err := registry.NewClient(registry.ClientOptPlainHTTP(), registry.ClientOptCredentialsFile(filepath.Join(t.TempDir(), "registry.json")))
	must(t, err)
	_, err = client.Push(content, ref)
	must(t, err)
	chart, err := lab.charts.Pull(ref)
	must(t, err)
	return chart
}

// mutatedTree is what the operator is built from in the checkout, after an edit.
func mutatedTree(t *testing.T, mutate func(files) files) *Tree {
	t.Helper()
	before := readFiles(t, lab.places.Repository, "go.mod", "go.sum", "api", "charts", "operator")
	dir := t.TempDir()
	writeFiles(t, dir, changed(t, before, mutate))
	return NewTree(dir, Tools{Repository: lab.places.Repository, CacheDir: t.TempDir()})
}

// changed fails the test if the edit changes nothing.
func changed(t *testing.T, before files, mutate func(files) files) files {
	t.Helper()
	after := files{}
	for path, content := range before {
		after[path] = content
	}
	after = mutate(after)
	for path := range after {
		if before[path] != after[path] {
			return after
		}
	}
	t.Fatal("the mutation changes nothing")
	return nil
}

func readFiles(t *testing.T, root string, paths ...string) files {
	t.Helper()
	read := files{}
	for _, path := range paths {
		must(t, filepath.WalkDir(filepath.Join(root, path), func(file string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(root, file)
			read[relative] = string(content)
			return err
		}))
	}
	return read
}

func writeFiles(t *testing.T, root string, all files) {
	t.Helper()
	for path, content := range all {
		file := filepath.Join(root, path)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(content), 0o644))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

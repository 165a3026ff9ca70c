package static

import (
	"maps"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix/git/gittest"
)

// What the checks read of a source tree is in its digest, markers in comments too; what they don't
// read is not, so that an edit there keeps results valid.
func TestTreeDigest(t *testing.T) {
	files := map[string]string{
		"go.mod":                            "module example.com/operator\n",
		"internal/controller/controller.go": "package controller\n\n// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list\n\nconst a = 1\n",
		"api/v1/types.go":                   "package v1\n",
		"other/other.go":                    "package other\n",
	}
	digest := func(path, content string) string {
		t.Helper()
		dir := t.TempDir()
		changed := maps.Clone(files)
		if path != "" {
			changed[path] = content
		}
		gittest.Write(t, dir, changed)
		got, err := NewTree(dir, Tools{}).Digest()
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	before := digest("", "")
	for path, content := range map[string]string{
		"go.mod":                            "module example.com/operator\n\ngo 1.26\n",
		"internal/controller/controller.go": "package controller\n\n// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get\n\nconst a = 1\n",
		"internal/controller/new.go":        "package controller\n",
		"api/v1/types.go":                   "package v1\n\n// A is new.\ntype A struct{}\n",
		"charts/operator/values.yaml":       "a: 1\n",
	} {
		if digest(path, content) == before {
			t.Errorf("a change of %s does not change the digest", path)
		}
	}
	for _, path := range []string{"other/other.go", "README.md", "internal/controller/controller_test.go", "api/v1/types_test.go"} {
		if digest(path, "package changed\n") != before {
			t.Errorf("a change of %s changes the digest", path)
		}
	}
}

package artifact

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix/contentkey"
	"github.com/trussiumhq/trussium-operator/matrix/git/gittest"
)

// sourceFiles are a repository of the shape of this one, with programs that build in a second.
func sourceFiles(version string) map[string]string {
	return map[string]string{
		"go.mod":                      "module github.com/trussiumhq/trussium-operator\n\ngo 1.26.0\n",
		"go.sum":                      "",
		"operator/main.go":            "package main\n\nimport \"github.com/trussiumhq/trussium-operator/operator/manager\"\n\nfunc main() { println(manager.Version) }\n",
		"operator/manager/version.go": "package manager\n\n// Version is set by the linker.\nvar Version = \"unset\"\n",
		"tools/runtimesim/main.go":    "package main\n\nfunc main() {}\n",
		"charts/trussium-operator/Chart.yaml": "apiVersion: v2\nname: trussium-operator\ndescription: A chart to test with.\nversion: " + version +
			"\nappVersion: " + version + "\n",
		"charts/trussium-operator/values.yaml":              "replicas: 1\n",
		"charts/trussium-operator/templates/configmap.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: test\n",
		"charts/trussium-operator/crds/crd.yaml":            "kind: CustomResourceDefinition\n",
	}
}

// newRepository makes a repository whose only commit holds the files.
func newRepository(t *testing.T, files map[string]string) (dir, commit string) {
	t.Helper()
	dir = gittest.Init(t)
	return dir, commitFiles(t, dir, files)
}

func commitFiles(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	gittest.Write(t, dir, files)
	gittest.Run(t, dir, "add", "-A")
	gittest.Run(t, dir, "commit", "-q", "--allow-empty", "-m", "change")
	return gittest.Run(t, dir, "rev-parse", "HEAD")
}

// progressLog collects progress.
type progressLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *progressLog) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *progressLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// binaryFile is a file with some content in place of a program.
func binaryFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// testImage is an artifact made of a file with the content.
func testImage(t *testing.T, s store, ref, content string) Artifact {
	t.Helper()
	image, err := s.putImage(contentkey.Of(map[string]string{"content": content}), imageSpec{Path: "/program", User: "1:1", Arch: "amd64"}, binaryFile(t, content))
	if err != nil {
		t.Fatal(err)
	}
	return image.artifact(ref)
}

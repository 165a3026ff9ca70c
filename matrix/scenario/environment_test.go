package scenario

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnvironmentHidesKubectl(t *testing.T) {
	with, without := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(with, "kubectl"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	list := string(os.PathListSeparator)
	inherited := []string{"HOME=/home/me", "KUBECONFIG=/home/me/.kube/config", "PATH=" + with + list + without, "NO_PROXY=a=b"}
	want := []string{"HOME=/home/me", "PATH=" + without, "NO_PROXY=a=b", "KUBECONFIG=/cell/kubeconfig"}
	if diff := cmp.Diff(want, environment(inherited, "/cell/kubeconfig")); diff != "" {
		t.Errorf("unexpected environment (-want +got):\n%s", diff)
	}
}

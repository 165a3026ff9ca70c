package e2e

import (
	"errors"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/yaml"
)

// hookTimeout is how long Helm waits for hooks by default.
const hookTimeout = 5 * time.Minute

func helm(t *testing.T) *action.Configuration {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(true)
	kubeconfig, inNamespace, cache := cluster.Kubeconfig(), namespace, t.TempDir()
	flags.KubeConfig, flags.Namespace, flags.CacheDir = &kubeconfig, &inNamespace, &cache
	config := &action.Configuration{}
	if err := config.Init(flags, namespace, "secret", func(string, ...any) {}); err != nil {
		t.Fatal(err)
	}
	return config
}

func load(t *testing.T, dir string) *chart.Chart {
	t.Helper()
	loaded, err := loader.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func parse(t *testing.T, values string) map[string]any {
	t.Helper()
	parsed := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

func tryInstall(t *testing.T, from *chart.Chart, values string, options ...func(*action.Install)) error {
	t.Helper()
	install := action.NewInstall(helm(t))
	install.ReleaseName, install.Namespace, install.CreateNamespace, install.Timeout = releaseName, namespace, true, hookTimeout
	for _, option := range options {
		option(install)
	}
	_, err := install.Run(from, parse(t, values))
	return err
}

func install(t *testing.T, from *chart.Chart, values string, options ...func(*action.Install)) {
	t.Helper()
	if err := tryInstall(t, from, values, options...); err != nil {
		t.Fatalf("helm install: %v", err)
	}
}

func tryUpgrade(t *testing.T, to *chart.Chart, values string, options ...func(*action.Upgrade)) error {
	t.Helper()
	upgrade := action.NewUpgrade(helm(t))
	upgrade.Namespace, upgrade.Timeout = namespace, hookTimeout
	for _, option := range options {
		option(upgrade)
	}
	_, err := upgrade.Run(releaseName, to, parse(t, values))
	return err
}

func upgrade(t *testing.T, to *chart.Chart, values string, options ...func(*action.Upgrade)) {
	t.Helper()
	if err := tryUpgrade(t, to, values, options...); err != nil {
		t.Fatalf("helm upgrade: %v", err)
	}
}

func rollBack(t *testing.T, revision int) {
	t.Helper()
	rollback := action.NewRollback(helm(t))
	rollback.Version, rollback.Timeout = revision, hookTimeout
	if err := rollback.Run(releaseName); err != nil {
		t.Fatalf("helm rollback to revision %d: %v", revision, err)
	}
}

func helmTest(t *testing.T) {
	t.Helper()
	test := action.NewReleaseTesting(helm(t))
	test.Namespace, test.Timeout = namespace, hookTimeout
	if _, err := test.Run(releaseName); err != nil {
		t.Fatalf("helm test: %v", err)
	}
}

func releaseStatus(t *testing.T) release.Status {
	t.Helper()
	last, err := action.NewGet(helm(t)).Run(releaseName)
	if err != nil {
		t.Fatal(err)
	}
	return last.Info.Status
}

// uninstall removes the release, if there is one, and waits until its objects are gone.
func uninstall(t *testing.T) {
	t.Helper()
	client := action.NewUninstall(helm(t))
	client.Wait, client.Timeout = true, hookTimeout
	if _, err := client.Run(releaseName); err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
		t.Errorf("helm uninstall: %v", err)
	}
}

package manager_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
	"github.com/trussiumhq/trussium-operator/operator/election"
	"github.com/trussiumhq/trussium-operator/operator/manager"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

var (
	restConfig *rest.Config
	api        client.Client
)

func TestMain(m *testing.M) {
	operatortest.Main(m, embedded.Options{}, func(config *rest.Config, client client.Client) { restConfig, api = config, client })
}

// generatedRules are the rules of a role as the chart ships it.
func generatedRules(t *testing.T, file string) []rbacv1.PolicyRule {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "charts", "trussium-operator", "files", file))
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.Unmarshal(content, &role); err != nil {
		t.Fatal(err)
	}
	return role.Rules
}

// userWith makes a user that has the rules, through a role of the same name.
func userWith(t *testing.T, name string, rules []rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}
	for _, object := range []client.Object{role, binding} {
		if err := api.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	return impersonate(name)
}

func impersonate(user string) *rest.Config {
	config := rest.CopyConfig(restConfig)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	return config
}

// runManager runs the operator until the test ends, and returns its probe URL and its log.
func runManager(t *testing.T, config *rest.Config, options manager.Options) (url string, lines *logBuffer) {
	t.Helper()
	options.ProbeAddress = freeAddress(t)
	if options.MetricsAddress == manager.DefaultOptions().MetricsAddress {
		options.MetricsAddress = "0"
	}

	lines = &logBuffer{}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- manager.Run(ctx, config, options, logr.FromSlogHandler(slog.NewJSONHandler(lines, nil)))
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the manager ended with: %v", err)
			}
		case <-time.After(operatortest.Patience):
			t.Errorf("the manager did not end within %s", operatortest.Patience)
		}
	})
	return "http://" + options.ProbeAddress, lines
}

// freeAddress is where nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().String()
}

// logBuffer collects log lines of several goroutines.
type logBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *logBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(line)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func probe(url string) (int, string, error) {
	response, err := http.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

func isReady(url string) func() error {
	return func() error {
		code, body, err := probe(url + "/readyz")
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d: %s", code, body)
		}
		return err
	}
}

func TestAManagerThatCannotListAKindIsNeverReady(t *testing.T) {
	complete := generatedRules(t, "manager-role.yaml")
	lacking := slices.DeleteFunc(slices.Clone(complete), func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.Resources, "deployments")
	})
	if len(lacking) == len(complete) {
		t.Fatal("the generated role has no rule for Deployments")
	}
	leases := rbacv1.PolicyRule{
		APIGroups: []string{coordinationv1.GroupName},
		Resources: []string{"leases"},
		Verbs:     []string{"get", "create", "update"},
	}
	config := userWith(t, "lacks-deployments", append(lacking, leases))

	options := manager.DefaultOptions()
	options.LeaderElect = true
	options.LeaderElectionNamespace = "default"
	url, lines := runManager(t, config, options)

	want := "deployments.apps: list forbidden\n"
	operatortest.Eventually(t, "/readyz names the kind and the verb alone", func() error {
		code, body, err := probe(url + "/readyz")
		if err == nil && (code != http.StatusServiceUnavailable || body != want) {
			err = fmt.Errorf("%d: %s", code, body)
		}
		return err
	})
	if code, body, err := probe(url + "/healthz"); err != nil || code != http.StatusOK {
		t.Errorf("/healthz says %d %q (%v), want 200: a restart would not help", code, body, err)
	}
	for _, part := range []string{`"resource":"deployments.apps"`, `"verb":"list"`} {
		if !strings.Contains(lines.String(), part) {
			t.Errorf("the log does not hold %s:\n%s", part, lines)
		}
	}
	lease := &coordinationv1.Lease{}
	err := api.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: election.LeaseName}, lease)
	if !apierrors.IsNotFound(err) {
		t.Errorf("an unready manager took the Lease: %v (%v)", lease.Spec.HolderIdentity, err)
	}

	// Granting the right is enough; nobody has to restart anything.
	role := &rbacv1.ClusterRole{}
	if err := api.Get(t.Context(), client.ObjectKey{Name: "lacks-deployments"}, role); err != nil {
		t.Fatal(err)
	}
	role.Rules = append(complete, leases)
	if err := api.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the manager is ready once the right is granted", isReady(url))
	operatortest.Eventually(t, "it takes the Lease", func() error {
		return api.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: election.LeaseName}, lease)
	})
}

// With a namespace to watch the operator needs no right outside of it.
func TestWatchingOneNamespaceNeedsARoleOnly(t *testing.T) {
	const user, namespace = "one-namespace", "kube-node-lease"
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user},
		Rules:      generatedRules(t, "manager-role.yaml"),
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	for _, object := range []client.Object{role, binding} {
		if err := api.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	options := manager.DefaultOptions()
	options.WatchNamespace = namespace
	url, _ := runManager(t, impersonate(user), options)
	operatortest.Eventually(t, "the operator is ready", isReady(url))

	inside := runtimeIn(namespace)
	outside := runtimeIn("default")
	for _, runtime := range []*v1alpha1.TrussiumRuntime{outside, inside} {
		if err := api.Create(t.Context(), runtime); err != nil {
			t.Fatal(err)
		}
	}
	operatortest.Eventually(t, "the runtime in the namespace has a status", func() error {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(inside), inside); err != nil {
			return err
		}
		if len(inside.Status.Conditions) == 0 || inside.Status.Conditions[0].Reason != "ReferencesResolved" {
			return fmt.Errorf("conditions %v", inside.Status.Conditions)
		}
		return nil
	})
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(outside), outside); err != nil {
		t.Fatal(err)
	}
	if len(outside.Status.Conditions) > 0 {
		t.Errorf("the runtime outside was reconciled: %v", outside.Status.Conditions)
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	for want, spoil := range map[string]func(*manager.Options){
		"--watch-namespace":           func(options *manager.Options) { options.WatchNamespace = "Not a namespace" },
		"--health-probe-bind-address": func(options *manager.Options) { options.ProbeAddress = "" },
	} {
		options := manager.DefaultOptions()
		spoil(&options)
		err := manager.Run(t.Context(), restConfig, options, logr.Discard())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that names %s", err, want)
		}
	}
}

func runtimeIn(namespace string) *v1alpha1.TrussiumRuntime {
	return &v1alpha1.TrussiumRuntime{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "rt"},
		Spec: v1alpha1.TrussiumRuntimeSpec{
			Image:    v1alpha1.ImageSpec{Repository: "ghcr.io/trussiumhq/trussium", Tag: "1.27.0"},
			Provider: v1alpha1.ProviderSpec{Type: v1alpha1.ProviderOllama, Model: "llama3.2"},
		},
	}
}

func TestAWaitingReplicaIsReadyAndTakesOver(t *testing.T) {
	namespace := "kube-public"
	options := manager.DefaultOptions()
	options.LeaderElect = true
	options.LeaderElectionNamespace = namespace

	holder := func() (string, error) {
		lease := &coordinationv1.Lease{}
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: election.LeaseName}, lease); err != nil {
			return "", err
		}
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
			return "", fmt.Errorf("the Lease has no holder")
		}
		return *lease.Spec.HolderIdentity, nil
	}

	var first string
	t.Run("the leader stops", func(t *testing.T) {
		leader, _ := runManager(t, restConfig, options)
		operatortest.Eventually(t, "the first replica is ready", isReady(leader))
		operatortest.Eventually(t, "it holds the Lease", func() (err error) {
			first, err = holder()
			return err
		})
	})
	waiting, _ := runManager(t, restConfig, options)
	operatortest.Eventually(t, "the second replica is ready", isReady(waiting))
	operatortest.Eventually(t, "it holds the Lease", func() error {
		second, err := holder()
		if err == nil && second == first {
			err = fmt.Errorf("still held by %s", first)
		}
		return err
	})
}

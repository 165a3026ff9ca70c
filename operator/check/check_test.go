package check_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
	"github.com/trussiumhq/trussium-operator/operator/check"
	"github.com/trussiumhq/trussium-operator/operator/crds"
	"github.com/trussiumhq/trussium-operator/operator/election"
	"github.com/trussiumhq/trussium-operator/operator/manager"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

// brief bounds the wait for a leader that does not come.
const brief = 2 * time.Second

var (
	restConfig *rest.Config
	api        client.Client
)

func TestMain(m *testing.M) {
	operatortest.Main(m, embedded.Options{}, func(config *rest.Config, client client.Client) { restConfig, api = config, client })
}

// operator makes a user with the rights that the chart gives to the operator, but for those on
// one resource.
func operator(t *testing.T, name, without string) *rest.Config {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, file := range []string{"manager-role.yaml", "leader-election-role.yaml"} {
		content, err := os.ReadFile(filepath.Join("..", "..", "charts", "trussium-operator", "files", file))
		if err != nil {
			t.Fatal(err)
		}
		generated := &rbacv1.ClusterRole{}
		if err := yaml.Unmarshal(content, generated); err != nil {
			t.Fatal(err)
		}
		for _, rule := range generated.Rules {
			if rule.Resources[0] != without {
				role.Rules = append(role.Rules, rule)
			}
		}
	}
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
	config := rest.CopyConfig(restConfig)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
	return config
}

func expect(t *testing.T, config *rest.Config, options check.Options, wantReport, wantError string) {
	t.Helper()
	var report strings.Builder
	err := check.Run(t.Context(), config, options, &report)
	if wantError == "" && err != nil || wantError != "" && (err == nil || !strings.Contains(err.Error(), wantError)) {
		t.Errorf("error %v, want %q", err, wantError)
	}
	if report.String() != wantReport {
		t.Errorf("report %q, want %q", &report, wantReport)
	}
}

const (
	rightsOK = "ok: the operator may list and watch all that it depends on\n"
	leaderOK = "ok: an operator leads\n"
)

func TestAnOperatorThatWorks(t *testing.T) {
	namespace := operatortest.Namespace(t, api)
	config := operator(t, "works", "")
	options := manager.DefaultOptions()
	options.LeaderElect, options.LeaderElectionNamespace = true, namespace
	options.MetricsAddress, options.ProbeAddress = "0", "127.0.0.1:0"
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx, config, options, logr.Discard()) }()
	expect(t, config, check.Options{LeaderElect: true, LeaderElectionNamespace: namespace, Timeout: operatortest.Patience}, rightsOK+leaderOK, "")

	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	expect(t, config, check.Options{LeaderElect: true, LeaderElectionNamespace: namespace, Timeout: brief}, rightsOK,
		"no operator holds Lease "+namespace+"/"+election.LeaseName)
	expect(t, config, check.Options{LeaderElectionNamespace: namespace, Timeout: brief}, rightsOK, "")
}

// A leader that was killed keeps the Lease, and an operator without a right never takes it.
func TestAnOperatorThatIsDead(t *testing.T) {
	namespace := operatortest.Namespace(t, api)
	config := operator(t, "dead", "")
	options := check.Options{LeaderElect: true, LeaderElectionNamespace: namespace, Timeout: brief}
	expect(t, config, options, rightsOK, "no operator holds Lease")
	now := metav1.NewMicroTime(time.Now().Add(time.Hour))
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: election.LeaseName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("pod-1"), RenewTime: &now},
	}
	if err := api.Create(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	expect(t, config, options, rightsOK, "pod-1 holds Lease "+namespace+"/"+election.LeaseName+" and has not renewed it")
}

func TestMissingRights(t *testing.T) {
	config := operator(t, "blind", "networkpolicies")
	expect(t, config, check.Options{}, "", "the operator may not watch networkpolicies.networking.k8s.io in all namespaces")
	expect(t, config, check.Options{WatchNamespace: "inference"}, "", "the operator may not list networkpolicies.networking.k8s.io in namespace inference")
	expect(t, config, check.Options{LeaderElect: true}, "", "--leader-election-namespace must name")
	leaseless := operator(t, "leaseless", "leases")
	expect(t, leaseless, check.Options{LeaderElect: true, LeaderElectionNamespace: "default", Timeout: brief}, rightsOK, "read Lease default/"+election.LeaseName)
}

// The last test: it takes the CustomResourceDefinition away.
func TestWithoutTheCRD(t *testing.T) {
	config := operator(t, "crdless", "")
	scheme := api.Scheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "trussiumruntimes.runtime.trussium.io"}}
	if err := api.Delete(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := crds.Apply(context.Background(), restConfig); err != nil {
			t.Error(err)
		}
	})
	operatortest.Eventually(t, "the API is gone", func() error {
		var report strings.Builder
		if err := check.Run(t.Context(), config, check.Options{}, &report); err == nil {
			return context.DeadlineExceeded
		}
		return nil
	})
	expect(t, config, check.Options{}, "", "the cluster does not serve runtime.trussium.io/v1alpha1, Kind=TrussiumRuntime: run `manager crds apply`")
}

// Package trial gives the suite something to judge: a cluster with the runtime images that
// scenarios roll between, and one release of the operator in it.
package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/cluster"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/helm"
	"github.com/trussiumhq/trussium-operator/matrix/scenario"
)

// Options describe a stage.
type Options struct {
	// Provider makes the cluster.
	Provider cluster.Provider
	// Dir is the absolute path of the folder for the stage's state and logs.
	Dir string
	// Kubernetes is the version without a leading v. Empty: the provider's default.
	Kubernetes string
	// Images are the runtime images that the scenarios roll between.
	Images Images
	// Artifacts are offered beside the runtime images.
	Artifacts []artifact.Artifact
	// Retain lets the cluster outlive the process; the images don't.
	Retain bool
	// Progress receives one line of text for each step that takes long. May be nil.
	Progress func(string)
}

// Stage is a running cluster that can pull the runtime images.
type Stage struct {
	// Cluster is the cluster; Stop of the stage ends it.
	Cluster cluster.Cluster
	// Values name the images to the scenarios.
	Values   scenario.Values
	registry *artifact.Registry
	dir      string
	progress func(string)
}

// Start starts a cluster. Its images are served until ctx ends or the stage is stopped.
func Start(ctx context.Context, o Options) (*Stage, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	registry, err := artifact.Serve(ctx, append(o.Images.Artifacts(), o.Artifacts...)...)
	if err != nil {
		return nil, fmt.Errorf("offer the images: %w", err)
	}
	live, err := o.Provider.Start(ctx, cluster.Spec{
		Name: "trussium-scenarios", Dir: filepath.Join(o.Dir, "cluster"), Kubernetes: o.Kubernetes,
		Mirrors: registry.Mirrors(), Images: refs(append(o.Images.Artifacts(), o.Artifacts...)), Retain: o.Retain, Progress: o.Progress,
	})
	if err != nil {
		return nil, errors.Join(err, registry.Close())
	}
	return &Stage{Cluster: live, Values: o.Images.values(), registry: registry, dir: o.Dir, progress: o.Progress}, nil
}

// refs are the references of the artifacts that are images.
func refs(artifacts []artifact.Artifact) []string {
	var images []string
	for _, a := range artifacts {
		if !a.IsChart() {
			images = append(images, a.Ref)
		}
	}
	return images
}

// Stop ends the cluster, unless it was to be retained, and what serves its images.
func (s *Stage) Stop(ctx context.Context) error {
	return errors.Join(s.Cluster.Stop(ctx), s.registry.Close())
}

// Install installs the release of the operator as `helm install` does and waits until it leads. With a
// namespace, which is made, the operator works in that one only.
func (s *Stage) Install(ctx context.Context, operator check.Subject, release artifact.Release, namespace string) error {
	config, err := clientcmd.BuildConfigFromFlags("", s.Cluster.Kubeconfig())
	if err != nil {
		return fmt.Errorf("read the cluster's kubeconfig: %w", err)
	}
	target, err := check.Target{Subject: operator, Release: operator.Name, OperatorNamespace: operator.Namespace()}.Connect(config)
	if err != nil {
		return err
	}
	var values map[string]any
	if namespace != "" {
		values = map[string]any{operator.Chart.WatchNamespace: namespace}
		if err := target.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			return fmt.Errorf("create namespace %s: %w", namespace, err)
		}
	}
	client, err := helm.New(s.Cluster.Kubeconfig(), operator.Namespace(), filepath.Join(s.dir, "helm"), true, func(string, ...any) {})
	if err != nil {
		return err
	}
	chart, err := client.Pull(s.registry.Local(release.Chart.Ref))
	if err != nil {
		return err
	}
	s.progress("helm install " + operator.Name + " " + release.Version)
	if _, err := client.Install(ctx, operator.Name, chart, values); err != nil {
		return err
	}
	s.progress("waiting for the operator to lead")
	leads, err := check.AwaitHandover(ctx, target, &check.Snapshot{}, release.Image.Ref)
	if err != nil {
		return err
	}
	if leads.Outcome() != evidence.Passed {
		return fmt.Errorf("operator %s does not start: %s", release.Version, leads.Reason())
	}
	return nil
}

// member is the user that Member makes.
const member = "scenarios"

// Member returns the path of a kubeconfig whose user has the rights of the Role in roleFile in
// the namespace, and no others.
func (s *Stage) Member(ctx context.Context, namespace, roleFile string) (string, error) {
	path, err := s.member(ctx, namespace, roleFile)
	if err != nil {
		return "", fmt.Errorf("make a user with the rights of %s in namespace %s: %w", roleFile, namespace, err)
	}
	return path, nil
}

func (s *Stage) member(ctx context.Context, namespace, roleFile string) (string, error) {
	content, err := os.ReadFile(roleFile)
	if err != nil {
		return "", err
	}
	var role rbacv1.Role
	if err := yaml.UnmarshalStrict(content, &role); err != nil {
		return "", err
	}
	kubeconfig, err := clientcmd.LoadFromFile(s.Cluster.Kubeconfig())
	if err != nil {
		return "", err
	}
	config, err := clientcmd.NewDefaultClientConfig(*kubeconfig, nil).ClientConfig()
	if err != nil {
		return "", err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	if _, err := client.RbacV1().Roles(namespace).Create(ctx, &role, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: member}},
	}
	if _, err := client.RbacV1().RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	for _, user := range kubeconfig.AuthInfos {
		user.Impersonate, user.ImpersonateGroups = member, []string{"system:authenticated"}
	}
	path := filepath.Join(s.dir, "kubeconfig-"+member)
	return path, clientcmd.WriteToFile(*kubeconfig, path)
}

package e2e

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/checkout"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
	"github.com/trussiumhq/trussium-operator/operator/manager"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

// Tags of the runtime image. No registry has tagMissing.
const (
	tagA       = "1.27.0"
	tagB       = "1.30.0"
	tagC       = "1.31.0"
	tagBroken  = tagB + "-" + string(artifact.VariantNeverReady)
	tagMissing = "1.99.0"
)

// atOnce is how many tests run at the same time: they wait for pods, not for processors.
const atOnce = 20

// operatorUser has the rights that the chart gives to the operator.
const operatorUser = "operator"

var (
	restConfig  *rest.Config
	api         client.Client
	clientset   *kubernetes.Clientset
	operatorLog logBuffer
)

func TestMain(m *testing.M) {
	registry, err := serveImages(context.Background())
	if err != nil {
		giveUp("build the runtime images", err)
	}
	if err := runAtOnce(atOnce); err != nil {
		giveUp("set the number of parallel tests", err)
	}
	options := embedded.Options{Node: true, Mirrors: registry.Mirrors()}
	operatortest.Main(m, options, func(config *rest.Config, client client.Client) {
		restConfig, api = config, client
		if clientset, err = kubernetes.NewForConfig(config); err != nil {
			giveUp("connect to the cluster", err)
		}
		if err := startOperator(context.Background()); err != nil {
			giveUp("start the operator", err)
		}
	})
}

func giveUp(doing string, err error) {
	fmt.Fprintf(os.Stderr, "e2e: %s: %v\n", doing, err)
	os.Exit(1)
}

// runAtOnce sets how many tests run in parallel, unless the command line does.
func runAtOnce(tests int) error {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", fmt.Sprint(tests))
}

// serveImages builds the runtime images and offers them for as long as the tests run.
func serveImages(ctx context.Context) (*artifact.Registry, error) {
	places, err := checkout.Find()
	if err != nil {
		return nil, err
	}
	builder := artifact.Builder{
		Repository: places.Repository,
		CacheDir:   places.CacheDir,
		Progress:   func(line string) { fmt.Fprintln(os.Stderr, line) },
	}
	var images []artifact.Artifact
	for _, runtime := range []struct {
		tag     string
		variant artifact.Variant
	}{{tagA, artifact.VariantNone}, {tagB, artifact.VariantNone}, {tagC, artifact.VariantNone}, {tagB, artifact.VariantNeverReady}} {
		image, err := builder.Runtime(ctx, runtime.tag, runtime.variant)
		if err != nil {
			return nil, err
		}
		images = append(images, image)
	}
	return artifact.Serve(ctx, images...)
}

// startOperator runs the operator until this process ends.
func startOperator(ctx context.Context) error {
	if err := grantRights(ctx); err != nil {
		return err
	}
	config := rest.CopyConfig(restConfig)
	config.Impersonate = rest.ImpersonationConfig{UserName: operatorUser, Groups: []string{"system:authenticated"}}
	options := manager.DefaultOptions()
	options.MetricsAddress = "0"
	options.ProbeAddress = "127.0.0.1:0"
	go func() {
		err := manager.Run(ctx, config, options, logr.FromSlogHandler(slog.NewJSONHandler(&operatorLog, nil)))
		giveUp("run the operator", fmt.Errorf("it ended: %w", err))
	}()
	return nil
}

// grantRights gives operatorUser the role that the chart ships.
func grantRights(ctx context.Context) error {
	content, err := os.ReadFile(filepath.Join("..", "..", "charts", "trussium-operator", "files", "manager-role.yaml"))
	if err != nil {
		return err
	}
	role := &rbacv1.ClusterRole{}
	if err := yaml.Unmarshal(content, role); err != nil {
		return err
	}
	role.Name = operatorUser
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: operatorUser},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: operatorUser},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: operatorUser}},
	}
	for _, object := range []client.Object{role, binding} {
		if err := api.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// logBuffer collects the lines of the operator's log.
type logBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *logBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(line)
}

// about are the lines that hold text.
func (b *logBuffer) about(text string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found strings.Builder
	for line := range strings.Lines(b.buffer.String()) {
		if strings.Contains(line, text) {
			found.WriteString(line)
		}
	}
	return found.String()
}

package embeddedtest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
)

var shared *embedded.Cluster

func TestMain(m *testing.M) {
	Main(m, embedded.Options{}, func(c *embedded.Cluster) { shared = c })
}

func TestMainGivesAnAPIServerOfTheDefaultVersion(t *testing.T) {
	client, err := kubernetes.NewForConfig(shared.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if want := "v" + embedded.DefaultKubernetes; version.GitVersion != want {
		t.Errorf("the API server says it is %s, want %s", version.GitVersion, want)
	}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "written-"}}
	created, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), configMap, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if created.UID == "" {
		t.Error("the API server gave the object no UID")
	}
}

package manager_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/matrix/gobuild"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

// The real program, in a process of its own whose whole memory can be searched.
func TestSecretValues(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "manager")
	if err := (gobuild.Program{Dir: root, Package: "./operator"}).Build(t.Context(), program, nil); err != nil {
		t.Fatal(err)
	}

	// Without garbage collection, what was in the memory once is still there.
	test := newValueTest(t, program, "GOGC=off")
	test.live(t)
	found := inMemory(t, test.process, test.value, test.control)
	if forms := found[test.value]; len(forms) > 0 {
		t.Errorf("values of Secrets are in the memory of the operator: %v", forms)
	}
	test.checkControl(t, found)
	test.checkOutput(t, test.value)
}

// valueTest is an operator in a process of its own, Secrets, and runtimes that refer
// to some of them.
type valueTest struct {
	namespace string
	process   *os.Process
	log       *logBuffer
	secrets   []string
	runtimes  []string

	// value is in the data of every Secret.
	value string
	// control is in the runtimes, in all forms: what the operator must have in memory.
	control string
}

func newValueTest(t *testing.T, program string, environment ...string) *valueTest {
	t.Helper()
	test := &valueTest{namespace: operatortest.Namespace(t, api), value: marker(), control: marker()}
	for i := range 50 {
		test.secrets = append(test.secrets, "s"+rand.String(12))
		test.create(t, test.secret(i))
	}
	for i := range 6 {
		test.runtimes = append(test.runtimes, "r"+rand.String(12))
		test.create(t, test.runtime(i))
	}
	test.process, test.log = startProcess(t, program, environment)
	return test
}

// secret is one with a new value. The values begin at different bytes, for other base64.
func (test *valueTest) secret(i int) *corev1.Secret {
	padded := func(text string) string { return rand.String(i%3) + text }
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: test.namespace, Name: test.secrets[i]},
		Data:       map[string][]byte{"key": []byte(padded(test.value))},
		StringData: map[string]string{"text": padded(test.value)},
	}
}

// runtime refers to three Secrets of its own.
func (test *valueTest) runtime(i int) *v1alpha1.TrussiumRuntime {
	runtime := runtimeIn(test.namespace)
	runtime.Name = test.runtimes[i]
	runtime.Spec.Provider.CredentialsSecretRef = &v1alpha1.SecretKeyReference{Name: test.secrets[3*i], Key: "key"}
	runtime.Spec.ImagePullSecrets = []v1alpha1.SecretReference{{Name: test.secrets[3*i+1]}, {Name: test.secrets[3*i+2]}}
	annotations := map[string]string{"example.com/control": test.control}
	for before := range 3 {
		annotations[fmt.Sprintf("example.com/control-%d", before)] =
			base64.StdEncoding.EncodeToString([]byte(strings.Repeat("c", before) + test.control))
	}
	runtime.Spec.PodMetadata = &v1alpha1.PodMetadata{Annotations: annotations}
	return runtime
}

func (test *valueTest) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := api.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// live lets the Secrets be found, change, go and come back, and the operator see it.
func (test *valueTest) live(t *testing.T) {
	test.wait(t, metav1.ConditionTrue, "ReferencesResolved")
	for i := range test.secrets {
		change := test.secret(i)
		operatortest.Change(t, api, &corev1.Secret{ObjectMeta: change.ObjectMeta}, func(secret *corev1.Secret) {
			secret.Data, secret.StringData, secret.Annotations = change.Data, change.StringData, change.Annotations
		})
	}
	for i := range test.runtimes {
		if err := api.Delete(t.Context(), test.secret(3*i+i%3)); err != nil {
			t.Fatal(err)
		}
	}
	test.wait(t, metav1.ConditionFalse, "SecretNotFound")
	for i := range test.runtimes {
		test.create(t, test.secret(3*i+i%3))
	}
	test.wait(t, metav1.ConditionTrue, "ReferencesResolved")
}

func (test *valueTest) wait(t *testing.T, status metav1.ConditionStatus, reason string) {
	t.Helper()
	for _, name := range test.runtimes {
		key := client.ObjectKey{Namespace: test.namespace, Name: name}
		operatortest.WaitCondition(t, api, key, v1alpha1.ConditionConfigurationValid, status, reason)
	}
}

// checkControl shows that the search finds what is there.
func (test *valueTest) checkControl(t *testing.T, found map[string][]string) {
	t.Helper()
	if got, want := found[test.control], forms(test.control); len(got) != len(want) {
		t.Errorf("the search finds %v of what the operator works with, want all of %v", got, want)
	}
}

// checkOutput searches what the operator told: its log, and all that it wrote.
func (test *valueTest) checkOutput(t *testing.T, text string) {
	t.Helper()
	output := map[string][]byte{"log": []byte(test.log.String())}
	for name, list := range map[string]client.ObjectList{
		"runtimes":         &v1alpha1.TrussiumRuntimeList{},
		"events":           &eventsv1.EventList{},
		"Deployments":      &appsv1.DeploymentList{},
		"ConfigMaps":       &corev1.ConfigMapList{},
		"Services":         &corev1.ServiceList{},
		"service accounts": &corev1.ServiceAccountList{},
	} {
		if err := api.List(t.Context(), list, client.InNamespace(test.namespace)); err != nil {
			t.Fatal(err)
		}
		content, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		output[name] = content
	}
	for name, content := range output {
		if !strings.Contains(string(content), test.runtimes[0]) {
			t.Errorf("the %s name no runtime, so that there was nothing to search:\n%s", name, content)
		}
		if found := formsIn(content, text); len(found) > 0 {
			t.Errorf("the %s hold values of Secrets: %v", name, found)
		}
	}
}

// startProcess runs the operator with the rights of the chart until the test ends.
func startProcess(t *testing.T, program string, environment []string) (*os.Process, *logBuffer) {
	t.Helper()
	user := userWith(t, "process-"+rand.String(8), generatedRules(t, "manager-role.yaml"))
	address := freeAddress(t)
	command := exec.Command(program, "--kubeconfig", kubeconfig(t, user),
		"--metrics-bind-address", "0", "--health-probe-bind-address", address, "--log-level", "DEBUG")
	command.Env = append(os.Environ(), environment...)
	log := &logBuffer{}
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // also when the tests are killed
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		hang := time.AfterFunc(operatortest.Patience, func() { _ = command.Process.Kill() })
		defer hang.Stop()
		if err := command.Wait(); err != nil {
			t.Errorf("the operator ended with: %v\n%s", err, log)
		}
	})
	operatortest.Eventually(t, "the operator is ready", isReady("http://"+address))
	return command.Process, log
}

func kubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	content := clientcmdapi.NewConfig()
	content.Clusters["test"] = &clientcmdapi.Cluster{
		Server:                   config.Host,
		CertificateAuthority:     config.CAFile,
		CertificateAuthorityData: config.CAData,
	}
	content.AuthInfos["test"] = &clientcmdapi.AuthInfo{
		ClientCertificate:     config.CertFile,
		ClientCertificateData: config.CertData,
		ClientKey:             config.KeyFile,
		ClientKeyData:         config.KeyData,
		Token:                 config.BearerToken,
		Impersonate:           config.Impersonate.UserName,
		ImpersonateGroups:     config.Impersonate.Groups,
	}
	content.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	content.CurrentContext = "test"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*content, file); err != nil {
		t.Fatal(err)
	}
	return file
}

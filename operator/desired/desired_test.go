package desired_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/desired"
)

var update = flag.Bool("update", false, "write the golden files anew")

// runtime reads a TrussiumRuntime as the API server stores it, defaults included.
func runtime(t *testing.T, file string) *v1alpha1.TrussiumRuntime {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	runtime := &v1alpha1.TrussiumRuntime{}
	if err := yaml.UnmarshalStrict(content, runtime); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	runtime.Namespace = "inference"
	runtime.UID = types.UID("00000000-0000-0000-0000-000000000001")
	return runtime
}

func TestGoldenFiles(t *testing.T) {
	for _, name := range []string{"minimal", "full", "scaled"} {
		runtime := runtime(t, name+".yaml")
		deployment, err := desired.Deployment(runtime, nil)
		if err != nil {
			t.Fatal(err)
		}
		account, err := desired.ServiceAccount(runtime, nil)
		if err != nil {
			t.Fatal(err)
		}
		policy, err := desired.NetworkPolicy(runtime)
		if err != nil {
			t.Fatal(err)
		}
		configurations := map[string]any{
			"configmap":           desired.ConfigMap(runtime),
			"serviceaccount":      account,
			"service":             desired.Service(runtime),
			"deployment":          deployment,
			"poddisruptionbudget": desired.PodDisruptionBudget(runtime),
		}
		if desired.HasNetworkPolicy(runtime) {
			configurations["networkpolicy"] = policy
		}
		if desired.HasAutoscaler(runtime) {
			configurations["horizontalpodautoscaler"] = desired.HorizontalPodAutoscaler(runtime)
		}
		for kind, configuration := range configurations {
			t.Run(name+" "+kind, func(t *testing.T) {
				got, err := yaml.Marshal(configuration)
				if err != nil {
					t.Fatal(err)
				}
				file := filepath.Join("testdata", name+"."+kind+".golden.yaml")
				if *update {
					if err := os.WriteFile(file, got, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), string(got)); diff != "" {
					t.Errorf("%s differs. A change of the pod template restarts every runtime; "+
						"if it is meant, run the test with -update (-golden +built):\n%s", file, diff)
				}
			})
		}
	}
}

func TestConfigChecksum(t *testing.T) {
	data := func(provider string) map[string]string {
		return map[string]string{
			"TRUSSIUM_ENVIRONMENT":    "production",
			"TRUSSIUM_RUNTIME__HOST":  "0.0.0.0",
			"TRUSSIUM_RUNTIME__PORT":  "9000",
			"TRUSSIUM_PROVIDER__NAME": provider,
		}
	}
	tests := []struct {
		name string
		data map[string]string
		want string
	}{
		{"published, ollama", data("ollama"), "3101cca9ee753f423c32a7471a06f6dec96b78e409cbb20c8406669744b317a9"},
		{"published, openai", data("openai"), "a6750ba3c20e89e7fcb19e828e257fa4cbc2867f2b6733a8e675af96ab3a188d"},
		{"nothing is the hash of nothing", nil, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	}
	for _, test := range tests {
		if got := desired.ConfigChecksum(test.data); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
	// Lengths are bytes and part of the encoding: entries can't run into each other.
	if desired.ConfigChecksum(map[string]string{"a": "1;1:b:1:2"}) == desired.ConfigChecksum(map[string]string{"a": "1", "b": "2"}) {
		t.Error("different data has the same checksum")
	}
}

func TestImage(t *testing.T) {
	tests := []struct {
		image v1alpha1.ImageSpec
		want  string
	}{
		{v1alpha1.ImageSpec{Repository: "ghcr.io/trussiumhq/trussium", Tag: "1.27.0"}, "ghcr.io/trussiumhq/trussium:1.27.0"},
		{v1alpha1.ImageSpec{Repository: "localhost:5000/trussium", Digest: "sha256:ab"}, "localhost:5000/trussium@sha256:ab"},
	}
	for _, test := range tests {
		runtime := &v1alpha1.TrussiumRuntime{Spec: v1alpha1.TrussiumRuntimeSpec{Image: test.image}}
		if got := desired.Image(runtime); got != test.want {
			t.Errorf("%+v gives %s, want %s", test.image, got, test.want)
		}
	}
}

func TestPullSecretsOfOthersAreKept(t *testing.T) {
	tests := []struct {
		name     string
		wanted   []string
		remember string
		live     []string
		want     []string
	}{
		{name: "ours come first, in the order of the spec", wanted: []string{"b", "a"}, live: []string{"platform"}, want: []string{"b", "a", "platform"}},
		{name: "none wanted, none set before: the list is not ours", live: []string{"platform"}},
		{name: "ours is there and not remembered as ours", wanted: []string{"a"}, live: []string{"a", "platform"}, want: []string{"a", "platform"}},
		{name: "one dropped, the platform's stays", wanted: []string{"a"}, remember: "a,b", live: []string{"a", "b", "platform"}, want: []string{"a", "platform"}},
		{name: "the last dropped, the platform's stays", remember: "a", live: []string{"a", "platform"}, want: []string{"platform"}},
		{name: "the last dropped, none left", remember: "a", live: []string{"a"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			runtime := runtime(t, "minimal.yaml")
			for _, name := range test.wanted {
				runtime.Spec.ImagePullSecrets = append(runtime.Spec.ImagePullSecrets, v1alpha1.SecretReference{Name: name})
			}
			live := &corev1.ServiceAccount{}
			if test.remember != "" {
				live.Annotations = map[string]string{desired.AnnotationPullSecrets: test.remember}
			}
			for _, name := range test.live {
				live.ImagePullSecrets = append(live.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
			}
			account, err := desired.ServiceAccount(runtime, live)
			if err != nil {
				t.Fatal(err)
			}
			if noted := account.Annotations[desired.AnnotationPullSecrets]; noted != strings.Join(test.wanted, ",") {
				t.Errorf("noted as the operator's: %q, want %v", noted, test.wanted)
			}
			var got []string
			for _, reference := range account.ImagePullSecrets {
				got = append(got, *reference.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("pull secrets (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOneTolerationIsCarriedOver(t *testing.T) {
	runtime := runtime(t, "minimal.yaml")
	runtime.Spec.Scheduling = &v1alpha1.SchedulingSpec{Tolerations: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}}
	deployment, err := desired.Deployment(runtime, nil)
	if err != nil {
		t.Fatal(err)
	}
	if tolerations := deployment.Spec.Template.Spec.Tolerations; len(tolerations) != 1 || *tolerations[0].Key != "gpu" {
		t.Errorf("tolerations %v, want the one of the spec", tolerations)
	}
}

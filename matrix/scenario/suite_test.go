package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

func TestScenariosByLabel(t *testing.T) {
	for _, test := range []struct {
		selector string
		want     string
	}{
		{"level=smoke,feature=runtime-image", "config-rollout-is-no-upgrade roll-back roll-forward"},
		{"feature in (autoscaling,network-policy)", "autoscaling network-policy"},
		{"level=none", ""},
	} {
		if got := strings.Join(Names(labelled(t, test.selector)), " "); got != test.want {
			t.Errorf("selector %q matches %q, want %q", test.selector, got, test.want)
		}
	}
}

func labelled(t *testing.T, selector string) []Scenario {
	t.Helper()
	parsed, err := labels.Parse(selector)
	if err != nil {
		t.Fatal(err)
	}
	found, err := Suite{Dir: suiteDir}.Scenarios(parsed)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestSupported(t *testing.T) {
	optional := labelled(t, "feature in (autoscaling,network-policy,scaling)")
	for version, want := range map[string]string{
		"0.3.1":      "scale-to-zero",
		"0.7.0":      "network-policy scale-to-zero",
		"0.9.0":      "autoscaling network-policy scale-to-zero",
		"0.10.0":     "autoscaling network-policy scale-to-zero",
		"0.9.0-rc.1": "network-policy scale-to-zero",
	} {
		supported, err := Supported(optional, version)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(Names(supported), " "); got != want {
			t.Errorf("%s supports %q, want %q", version, got, want)
		}
	}
	for _, wrong := range []string{"", "v1.0.0", "1.0"} {
		if _, err := Supported(optional, wrong); err == nil {
			t.Errorf("version %q is accepted", wrong)
		}
	}
	if _, err := Supported([]Scenario{{Name: "unlabelled"}}, "1.0.0"); err == nil || !strings.Contains(err.Error(), "unlabelled") {
		t.Errorf("a scenario without the label gives the error %v", err)
	}
}

func TestScenariosRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no scenario":   {nil, "no scenario in"},
		"another name":  {map[string]string{"a/chainsaw-test.yaml": "metadata: {name: b}"}, `the test is named "b", its folder "a"`},
		"no valid YAML": {map[string]string{"a/chainsaw-test.yaml": "metadata: ["}, "a/chainsaw-test.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range test.files {
				write(t, filepath.Join(dir, file), content)
			}
			if _, err := (Suite{Dir: dir}).Scenarios(labels.Everything()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want the words %q", err, test.want)
			}
		})
	}
}

func TestDigest(t *testing.T) {
	digest := func(t *testing.T, dir, name string) string {
		t.Helper()
		digest, err := Suite{Dir: dir}.Digest(name)
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	before := digest(t, suiteDir, "roll-forward")
	if !strings.HasPrefix(before, "sha256:") || len(before) != len("sha256:")+64 {
		t.Errorf("digest %q, want sha256: and 64 digits", before)
	}
	for _, test := range []struct {
		file    string
		changes bool
	}{
		{"roll-forward/chainsaw-test.yaml", true},
		{"roll-forward/more.yaml", true},
		{"steps/settled.yaml", true},
		{".chainsaw.yaml", true},
		{"values.yaml", true},
		{"roll-back/chainsaw-test.yaml", false},
		{"roll-forward/README.md", false},
	} {
		t.Run(test.file, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(suiteDir)); err != nil {
				t.Fatal(err)
			}
			if digest(t, dir, "roll-forward") != before {
				t.Fatal("a copy of the suite has another digest")
			}
			write(t, filepath.Join(dir, test.file), "changed")
			if changed := digest(t, dir, "roll-forward") != before; changed != test.changes {
				t.Errorf("digest changed: %v, want %v", changed, test.changes)
			}
		})
	}
	if _, err := (Suite{Dir: suiteDir}).Digest("steps"); err == nil {
		t.Error("a folder without a scenario has a digest")
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

package triage

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
)

func TestOperatorContract(t *testing.T) {
	got, err := OperatorContract()
	if err != nil {
		t.Fatal(err)
	}
	want := Contract{
		User: "10001:10001", Port: "9000/tcp", StopSignal: "SIGTERM",
		Variables: []string{
			"TRUSSIUM_ENVIRONMENT", "TRUSSIUM_PROVIDER__API_KEY", "TRUSSIUM_PROVIDER__BASE_URL", "TRUSSIUM_PROVIDER__NAME",
			"TRUSSIUM_RUNTIME__GRACEFUL_SHUTDOWN_SECONDS", "TRUSSIUM_RUNTIME__HOST", "TRUSSIUM_RUNTIME__PORT",
			"TRUSSIUM_TIMEOUTS__PROVIDER_REQUEST_SECONDS", "TRUSSIUM_TIMEOUTS__STREAM_IDLE_SECONDS",
		},
		Routes: []string{"/health/live", "/health/ready", "/v1/capabilities/availability"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// sound is an image as the operator expects it, after a change.
func sound(change func(*Config)) Image {
	config := Config{
		User: "10001:10001", Ports: []string{"9000/tcp"}, Entrypoint: []string{"/app/trussium"}, Cmd: []string{"serve"},
		Env: map[string]string{"PATH": "/bin"}, Labels: map[string]string{},
	}
	if change != nil {
		change(&config)
	}
	return Image{State: ImagePresent, Digest: "sha256:" + strings.Repeat("a", 64), Platforms: []Platform{{"linux/amd64", config}, {"linux/arm64", config}}}
}

func TestClassify(t *testing.T) {
	contract, err := OperatorContract()
	if err != nil {
		t.Fatal(err)
	}
	same := sound(nil)
	for name, test := range map[string]struct {
		before, after Image
		notes         string
		newest        string
		want          compat.Impact
		says          string
	}{
		"the newest, unchanged":        {same, same, "Faster.", "v1.31.0", compat.ImpactRepresentative, "no change of the contract was found, and no release is newer"},
		"not the newest, unchanged":    {same, same, "Faster.", "v1.35.0", compat.ImpactRoutine, "no change of the contract was found, and v1.35.0 is newer"},
		"another user":                 {same, sound(func(c *Config) { c.User = "0" }), "", "v1.31.0", compat.ImpactContractChange, "the image differs in user"},
		"a user that was there before": {sound(func(c *Config) { c.User = "trussium" }), sound(func(c *Config) { c.User = "trussium" }), "", "v1.31.0", compat.ImpactRepresentative, ""},
		"the user that is expected":    {sound(func(c *Config) { c.User = "0" }), same, "", "v1.31.0", compat.ImpactRepresentative, ""},
		"another port":                 {same, sound(func(c *Config) { c.Ports = []string{"8080/tcp"} }), "", "v1.31.0", compat.ImpactContractChange, "the image differs in port"},
		"another stop signal":          {same, sound(func(c *Config) { c.StopSignal = "SIGINT" }), "", "v1.31.0", compat.ImpactContractChange, "the image differs in stop signal"},
		"the same stop signal, said":   {same, sound(func(c *Config) { c.StopSignal = "SIGTERM" }), "", "v1.31.0", compat.ImpactRepresentative, ""},
		"another entrypoint":           {same, sound(func(c *Config) { c.Entrypoint = []string{"/bin/sh"} }), "", "v1.31.0", compat.ImpactContractChange, "the image differs in entrypoint"},
		"a default of a variable":      {same, sound(func(c *Config) { c.Env = map[string]string{"TRUSSIUM_RUNTIME__PORT": "8080"} }), "", "v1.31.0", compat.ImpactContractChange, "the image differs in default of TRUSSIUM_RUNTIME__PORT"},
		"a variable of no interest":    {same, sound(func(c *Config) { c.Env = map[string]string{"PATH": "/usr/bin"} }), "", "v1.31.0", compat.ImpactRepresentative, ""},
		"a label of the contract":      {same, sound(func(c *Config) { c.Labels = map[string]string{"io.trussium.contract": "2"} }), "", "v1.31.0", compat.ImpactContractChange, "the image differs in label `io.trussium.contract`"},
		"a label of no interest":       {same, sound(func(c *Config) { c.Labels = map[string]string{"org.opencontainers.image.created": "x"} }), "", "v1.31.0", compat.ImpactRepresentative, ""},
		"a platform less":              {same, Image{State: ImagePresent, Platforms: same.Platforms[:1]}, "", "v1.31.0", compat.ImpactContractChange, "the image differs in platforms"},
		"a platform more":              {Image{State: ImagePresent, Platforms: same.Platforms[:1]}, same, "", "v1.31.0", compat.ImpactRepresentative, ""},
		"one platform differs": {same, Image{State: ImagePresent, Platforms: []Platform{same.Platforms[0], {"linux/arm64", sound(func(c *Config) { c.User = "0" }).Platforms[1].Config}}},
			"", "v1.31.0", compat.ImpactContractChange, "the image differs in user"},
		"no image to compare with":     {Image{State: ImageMissing}, same, "", "v1.31.0", compat.ImpactRepresentative, ""},
		"no image to compare, another": {Image{State: ImageUnknown}, sound(func(c *Config) { c.User = "0" }), "", "v1.31.0", compat.ImpactContractChange, "user"},
		"notes of a change":            {same, same, "- `TRUSSIUM_RUNTIME__PORT` was renamed.\n", "v1.31.0", compat.ImpactContractChange, "the release notes speak of a change of TRUSSIUM_RUNTIME__PORT"},
		"notes of a longer variable":   {same, same, "- TRUSSIUM_RUNTIME__PORTS was renamed.\n", "v1.31.0", compat.ImpactRepresentative, ""},
		"notes of a route":             {same, same, "/health/ready no longer answers 200\n", "v1.31.0", compat.ImpactContractChange, "/health/ready"},
		"notes of another route":       {same, same, "/health/readyz was removed\n", "v1.31.0", compat.ImpactRepresentative, ""},
		"notes without a change":       {same, same, "Documents TRUSSIUM_RUNTIME__PORT.\n", "v1.31.0", compat.ImpactRepresentative, ""},
		"breaking notes":               {same, same, "## BREAKING CHANGES\n", "v1.31.0", compat.ImpactContractChange, "breaking change"},
		"notes of the signal":          {same, same, "SIGINT instead of SIGTERM stops it\n", "v1.31.0", compat.ImpactContractChange, "stop signal"},
	} {
		t.Run(name, func(t *testing.T) {
			diff := contract.compare(side{version: "v1.30.0", image: test.before}, side{version: "v1.31.0", image: test.after}, []Release{{Version: "v1.31.0", Notes: test.notes}})
			impact, reason := diff.classify("v1.31.0", test.newest)
			if impact != test.want || !strings.Contains(reason, test.says) {
				t.Errorf("it is %s because %s; want %s because %s", impact, reason, test.want, test.says)
			}
		})
	}
}

// TestUndetermined checks that what could not be looked at is said.
func TestUndetermined(t *testing.T) {
	contract, _ := OperatorContract()
	for name, test := range map[string]struct {
		before, after side
		want          []string
	}{
		"both images": {side{version: "v1.30.0", image: sound(nil)}, side{version: "v1.31.0", image: sound(nil)}, []string{"9 environment variables", "read-only root"}},
		"no image":    {side{version: "v1.30.0", image: sound(nil)}, side{version: "v1.31.0", image: Image{State: ImageMissing}}, []string{"User, port, stop signal"}},
		"no baseline": {side{}, side{version: "v1.31.0", image: sound(nil)}, []string{"no earlier release is validated"}},
		"no image of the baseline": {side{version: "v1.30.0", image: Image{State: ImageUnknown, Problem: "no route"}}, side{version: "v1.31.0", image: sound(nil)},
			[]string{"its image could not be looked at (`no route`)"}},
	} {
		got := strings.Join(contract.compare(test.before, test.after, nil).undetermined, "\n")
		for _, want := range test.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: it says %q, want %q", name, got, want)
			}
		}
	}
}

func TestRemarks(t *testing.T) {
	odd := sound(func(c *Config) {
		c.Labels = map[string]string{revisionLabel: "1234", versionLabel: "1.29.0", simulatedLabel: "true"}
	})
	got := strings.Join(remarks(side{version: "v1.31.0", commit: "5678", image: odd}), "\n")
	for _, want := range []string{"built from commit `1234`", "is version `1.29.0`", "is a simulator"} {
		if !strings.Contains(got, want) {
			t.Errorf("it remarks %q, want %q", got, want)
		}
	}
	fine := sound(func(c *Config) {
		c.Labels = map[string]string{revisionLabel: "5678", versionLabel: "v1.31.0"}
	})
	if got := remarks(side{version: "v1.31.0", commit: "5678", image: fine}); len(got) > 0 {
		t.Errorf("it remarks %q about an image as it should be", got)
	}
}

// TestLabelDescriptionsFit checks what GitHub would refuse.
func TestLabelDescriptionsFit(t *testing.T) {
	for key := range maps.Keys(labelTexts) {
		label, color := NewLabel(key)
		if len(label.Description) > 100 || len(label.Name) > 50 || len(color) != 6 {
			t.Errorf("the label %+v does not fit", label)
		}
		if got := labelNames([]Label{{Name: "other"}, {Name: label.Name}, {Name: "renamed", Description: label.Description}}, key); !cmp.Equal(got, []string{"renamed", label.Name}) {
			t.Errorf("the names of %s are %q", key, got)
		}
	}
}

package artifact

import (
	"errors"
	"slices"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func imageConfig(t *testing.T, artifact Artifact) *v1.ConfigFile {
	t.Helper()
	image, err := artifact.Image()
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestSimulatedRuntime(t *testing.T) {
	dir, _ := newRepository(t, sourceFiles("0.4.0"))
	builder, _ := newBuilder(t, dir)
	digests := map[string]bool{}
	for _, test := range []struct {
		variant Variant
		tag     string
		cmd     []string
	}{
		{VariantNone, "1.30.0", []string{"--version=1.30.0"}},
		{VariantNeverReady, "1.30.0-never-ready", []string{"--version=1.30.0-never-ready", "--never-ready"}},
		{VariantExits, "1.30.0-exits", []string{"--version=1.30.0-exits", "--exit-code=2"}},
		{VariantSlowDrain, "1.30.0-slow-drain", []string{"--version=1.30.0-slow-drain", "--drain=20"}},
	} {
		artifact, err := builder.Runtime(t.Context(), "1.30.0", test.variant)
		if err != nil {
			t.Fatal(err)
		}
		if artifact.Ref != RuntimeRepository+":"+test.tag || !artifact.Simulated {
			t.Errorf("%s: got %+v, want it simulated", test.tag, artifact)
		}
		config := imageConfig(t, artifact).Config
		if !slices.Equal(config.Cmd, test.cmd) || !slices.Equal(config.Entrypoint, []string{"/trussium"}) || config.User != "10001:10001" {
			t.Errorf("%s: got %v %v as %s", test.tag, config.Entrypoint, config.Cmd, config.User)
		}
		if _, exposed := config.ExposedPorts["9000/tcp"]; !exposed || config.Labels[simulatedLabel] != "true" {
			t.Errorf("%s: got ports %v and labels %v", test.tag, config.ExposedPorts, config.Labels)
		}
		digests[artifact.Digest] = true
	}
	if len(digests) != 4 {
		t.Errorf("got %d digests, want one per variant", len(digests))
	}
	if _, err := builder.Runtime(t.Context(), "1.30.0", "melts"); !errors.Is(err, ErrInput) {
		t.Errorf("an unknown variant: got %v, want bad input", err)
	}
}

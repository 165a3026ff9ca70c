package artifact

import (
	"bytes"
	"debug/elf"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/trussiumhq/trussium-operator/matrix/git/gittest"
)

var testProvenance = Provenance{Version: "0.4.0", Revision: strings.Repeat("a", 40), Created: time.Date(2026, 3, 4, 5, 6, 7, 0, time.FixedZone("", 3600))}

func imageDigest(t *testing.T, image v1.Image) string {
	t.Helper()
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func onlyLayer(t *testing.T, image v1.Image) string {
	t.Helper()
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Layers) != 1 {
		t.Fatalf("got %d layers, want one", len(manifest.Layers))
	}
	return manifest.Layers[0].Digest.String()
}

// TestReleasedOperator checks that the image of a release holds the very file that the matrix runs, for each
// platform, and says where it comes from.
func TestReleasedOperator(t *testing.T) {
	dir, _ := newRepository(t, sourceFiles("0.4.0"))
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		builder, _ := newBuilder(t, dir)
		builder.Arch = arch
		released, err := builder.ReleasedOperator(t.Context(), testProvenance)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Image(released.Image); err != nil {
			t.Errorf("%s: the image is not valid: %v", arch, err)
		}
		if got := released.Platform.String(); got != "linux/"+arch {
			t.Errorf("%s: got the platform %s", arch, got)
		}
		config, err := released.Image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Architecture != arch || config.Created.Format(time.RFC3339) != "2026-03-04T04:06:07Z" {
			t.Errorf("%s: got the architecture %s and the time %s", arch, config.Architecture, config.Created)
		}
		want := v1.Config{Entrypoint: []string{"/manager"}, User: "65532:65532", Labels: map[string]string{
			"org.opencontainers.image.title":    "trussium-operator",
			"org.opencontainers.image.version":  "0.4.0",
			"org.opencontainers.image.source":   "https://github.com/trussiumhq/trussium-operator",
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.revision": strings.Repeat("a", 40),
			"org.opencontainers.image.created":  "2026-03-04T04:06:07Z",
		}}
		if diff := cmp.Diff(want, config.Config); diff != "" {
			t.Errorf("%s: config (-want +got):\n%s", arch, diff)
		}

		checkout, err := builder.Checkout(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tested, err := checkout.Image.Image()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := onlyLayer(t, released.Image), onlyLayer(t, tested); got != want {
			t.Errorf("%s: got the layer %s, want that of the matrix's image, %s", arch, got, want)
		}
		if imageDigest(t, released.Image) == checkout.Image.Digest {
			t.Errorf("%s: the release's image has the digest of the matrix's, though its labels say more", arch)
		}
		requireStatic(t, binaryIn(t, checkout.Image), machine)

		// Another machine builds the same; here it is another cache and another folder.
		clone := t.TempDir()
		gittest.Run(t, clone, "clone", "-q", dir, ".")
		other, _ := newBuilder(t, clone)
		other.Arch = arch
		again, err := other.ReleasedOperator(t.Context(), testProvenance)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := imageDigest(t, again.Image), imageDigest(t, released.Image); got != want {
			t.Errorf("%s: built again: got %s, want %s", arch, got, want)
		}
	}
}

// requireStatic checks that a program runs on the machine without a dynamic linker.
func requireStatic(t *testing.T, program string, machine elf.Machine) {
	t.Helper()
	file, err := elf.NewFile(bytes.NewReader([]byte(program)))
	if err != nil {
		t.Fatal(err)
	}
	if file.Machine != machine {
		t.Errorf("got a program for %s, want %s", file.Machine, machine)
	}
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			t.Errorf("the program for %s asks for a dynamic linker", machine)
		}
	}
}

func TestReleasedSimulator(t *testing.T) {
	dir, _ := newRepository(t, sourceFiles("0.4.0"))
	builder, _ := newBuilder(t, dir)
	released, err := builder.ReleasedSimulator(t.Context(), testProvenance)
	if err != nil {
		t.Fatal(err)
	}
	config, err := released.Image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	labels := config.Config.Labels
	if labels[simulatedLabel] != "true" || labels["org.opencontainers.image.title"] != "trussium-runtimesim" || labels["org.opencontainers.image.version"] != "0.4.0" {
		t.Errorf("got the labels %v, want that it is a simulator, its name and its version", labels)
	}
	if got := strings.Join(append(config.Config.Entrypoint, config.Config.Cmd...), " "); got != "/trussium --version=latest" || config.Config.User != "10001:10001" {
		t.Errorf("got the command %q and the user %q", got, config.Config.User)
	}
}

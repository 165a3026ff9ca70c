package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	helmregistry "helm.sh/helm/v3/pkg/registry"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/git/gittest"
)

// command runs the program.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = run(t.Context(), args, &out, &errOut)
	return code, out.String(), errOut.String()
}

// serve starts an empty registry.
func serve(t *testing.T) (addr string) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func repositories(t *testing.T, addr string) []string {
	t.Helper()
	parsed, err := name.NewRegistry(addr)
	if err != nil {
		t.Fatal(err)
	}
	found, err := remote.Catalog(t.Context(), parsed)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

// digestAt is the digest that the reference has at a registry.
func digestAt(t *testing.T, ref string) string {
	t.Helper()
	parsed, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	descriptor, err := remote.Get(parsed)
	if err != nil {
		t.Fatal(err)
	}
	return descriptor.Digest.String()
}

// checksums are those of the files in a release's folder, which are compared with the files.
func checksums(t *testing.T, dir string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(content)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		file, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(file)); got != sum {
			t.Errorf("%s has the checksum %s, listed is %s", name, got, sum)
		}
		sums[name] = sum
	}
	return sums
}

// TestRelease makes a release, pushes it to two registries and pulls it back.
func TestRelease(t *testing.T) {
	dir := newCheckout(t)
	first, second := serve(t), serve(t)

	code, stdout, stderr := command(t, newVersion, "--dry-run", "--push", first)
	if code != exitDone || !strings.Contains(stdout, "0.5.0 can be released") {
		t.Fatalf("dry run: exit code %d\n%s%s", code, stdout, stderr)
	}
	if found := repositories(t, first); len(found) != 0 {
		t.Errorf("the dry run pushed %q", found)
	}
	if changes := gittest.Run(t, dir, "status", "--porcelain", "--ignored"); changes != "" {
		t.Errorf("the dry run left %q", changes)
	}

	code, stdout, stderr = command(t, "v"+newVersion, "--push", first, "--push", second+"/mirror")
	if code != exitDone {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if changes := gittest.Run(t, dir, "status", "--porcelain"); changes != "" {
		t.Errorf("the release left %q", changes)
	}
	dist := filepath.Join(dir, "dist")
	sums := checksums(t, dist)
	var names []string
	entries, err := os.ReadDir(dist)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
		if entry.Name() != "SHA256SUMS" && sums[entry.Name()] == "" {
			t.Errorf("%s has no checksum", entry.Name())
		}
	}
	if want := []string{
		"RELEASE-NOTES.md", "SHA256SUMS", "UPGRADE-MATRIX.md", "install.yaml",
		"trussium-operator-0.5.0-image.tar", "trussium-operator-0.5.0-linux-amd64.cdx.json", "trussium-operator-0.5.0-linux-arm64.cdx.json",
		"trussium-operator-0.5.0.tgz", "trussium-runtimesim-0.5.0-image.tar", "trussium-runtimesim-0.5.0-linux-amd64.cdx.json", "trussium-runtimesim-0.5.0-linux-arm64.cdx.json",
	}; !slices.Equal(names, want) {
		t.Errorf("got the files %q, want %q", names, want)
	}

	want := []string{"trussiumhq/charts/trussium-operator", "trussiumhq/trussium-operator", "trussiumhq/trussium-runtimesim"}
	if got := repositories(t, first); !slices.Equal(got, want) {
		t.Errorf("got the repositories %q, want %q", got, want)
	}
	for _, repository := range want {
		if got, want := digestAt(t, second+"/mirror/"+repository+":0.5.0"), digestAt(t, first+"/"+repository+":0.5.0"); got != want {
			t.Errorf("%s: the registries have %s and %s", repository, want, got)
		}
	}
	t.Run("images", func(t *testing.T) { requireImages(t, dir, first) })
	t.Run("chart", func(t *testing.T) { requireChart(t, dist, first) })
	t.Run("install.yaml", func(t *testing.T) { requireInstall(t, dist, first) })
	t.Run("notes", func(t *testing.T) { requireNotes(t, dist, first) })
	t.Run("again", func(t *testing.T) {
		// The release that is there is replaced, and what the registries have is left alone.
		if code, stdout, stderr := command(t, newVersion, "--push", first); code != exitDone {
			t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
		}
		requireSame(t, sums, checksums(t, dist))
	})
	t.Run("elsewhere", func(t *testing.T) {
		// Another machine: another folder and an empty cache.
		clone := t.TempDir()
		gittest.Run(t, clone, "clone", "-q", dir, ".")
		t.Chdir(clone)
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
		output := filepath.Join(t.TempDir(), "deep", "release")
		if code, stdout, stderr := command(t, newVersion, "--output", output); code != exitDone {
			t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
		}
		requireSame(t, sums, checksums(t, output))
	})
	t.Run("taken", func(t *testing.T) { requireNoOverwriting(t, first) })
}

func requireSame(t *testing.T, want, got map[string]string) {
	t.Helper()
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("made again, %s has the checksum %q, was %s", name, got[name], want[name])
		}
	}
}

// requireImages checks the images at a registry, and that the operator's holds what the evidence is about.
func requireImages(t *testing.T, dir, addr string) {
	head := gittest.Run(t, dir, "rev-parse", "HEAD")
	for _, repository := range []string{"trussium-operator", "trussium-runtimesim"} {
		tag, err := name.NewTag(addr + "/trussiumhq/" + repository + ":0.5.0")
		if err != nil {
			t.Fatal(err)
		}
		index, err := remote.Index(tag)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(index); err != nil {
			t.Errorf("%s is not valid: %v", tag, err)
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		requireProvenance(t, tag.String(), manifest.Annotations, head)
		var platforms []string
		for _, child := range manifest.Manifests {
			platforms = append(platforms, child.Platform.String())
			image, err := index.Image(child.Digest)
			if err != nil {
				t.Fatal(err)
			}
			config, err := image.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			requireProvenance(t, tag.String(), config.Config.Labels, head)
			if got := config.Created.UTC().Format("2006-01-02T15:04:05Z"); got != "2026-03-04T05:06:07Z" {
				t.Errorf("%s was created at %s, want the time of the commit", tag, got)
			}
			requireSBOM(t, tag.Context().Digest(child.Digest.String()), "trussium")
		}
		if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(platforms, want) {
			t.Errorf("%s: got the platforms %q, want %q", tag, platforms, want)
		}
		digest, err := index.Digest()
		if err != nil {
			t.Fatal(err)
		}
		requireSBOM(t, tag.Context().Digest(digest.String()), "trussium")
		if repository == "trussium-operator" {
			requireProven(t, dir, index, manifest.Manifests[0].Digest)
		}
	}
}

// requireProven checks that the released image has the layer of the image that the evidence is about.
func requireProven(t *testing.T, dir string, index v1.ImageIndex, amd64 v1.Hash) {
	t.Helper()
	cell, err := (evidence.Store{Dir: filepath.Join(dir, "evidence")}).Load(cellID)
	if err != nil {
		t.Fatal(err)
	}
	cache := os.Getenv("XDG_CACHE_HOME") + "/trussium-matrix"
	tested, err := (&artifact.Builder{Repository: dir, CacheDir: cache, Arch: "amd64"}).Checkout(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if tested.Image.Digest != cell.To.Image.Digest {
		t.Fatalf("the checkout's image is %s, and the evidence is about %s", tested.Image.Digest, cell.To.Image.Digest)
	}
	testedImage, err := tested.Image.Image()
	if err != nil {
		t.Fatal(err)
	}
	released, err := index.Image(amd64)
	if err != nil {
		t.Fatal(err)
	}
	want, err := testedImage.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	got, err := released.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Layers) != 1 || got.Layers[0].Digest != want.Layers[0].Digest {
		t.Errorf("got the layers %v, want the proven image's %v", got.Layers, want.Layers)
	}
}

func requireProvenance(t *testing.T, what string, annotations map[string]string, head string) {
	t.Helper()
	for key, want := range map[string]string{
		"source": "https://github.com/trussiumhq/trussium-operator", "revision": head, "version": newVersion,
		"created": "2026-03-04T05:06:07Z", "licenses": "Apache-2.0",
	} {
		if got := annotations["org.opencontainers.image."+key]; got != want {
			t.Errorf("%s: got the %s %q, want %q", what, key, got, want)
		}
	}
}

// requireSBOM checks that a bill of materials is attached to the subject.
func requireSBOM(t *testing.T, subject name.Digest, component string) {
	t.Helper()
	referrers, err := remote.Referrers(subject)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := referrers.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 {
		t.Fatalf("%s has %d referrers, want one", subject, len(manifest.Manifests))
	}
	image, err := remote.Image(subject.Context().Digest(manifest.Manifests[0].Digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	attached, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, descriptor := range attached.Layers {
		layer, err := remote.Layer(subject.Context().Digest(descriptor.Digest.String()))
		if err != nil {
			t.Fatal(err)
		}
		reader, err := layer.Compressed()
		if err != nil {
			t.Fatal(err)
		}
		var document struct {
			BOMFormat string `json:"bomFormat"`
			Metadata  struct {
				Component struct{ Name, Version string } `json:"component"`
			} `json:"metadata"`
		}
		if err := json.NewDecoder(reader).Decode(&document); err != nil {
			t.Fatal(err)
		}
		if own := document.Metadata.Component; document.BOMFormat != "CycloneDX" || !strings.HasPrefix(own.Name, component) || own.Version != newVersion {
			t.Errorf("%s: got the document %+v", subject, document)
		}
	}
}

// requireChart pulls the chart as `helm pull` does, and renders it with the images that were pushed with it.
func requireChart(t *testing.T, dist, addr string) {
	client, err := helmregistry.NewClient(helmregistry.ClientOptPlainHTTP(), helmregistry.ClientOptCredentialsFile(filepath.Join(t.TempDir(), "registry.json")))
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := client.Pull(addr + "/trussiumhq/charts/trussium-operator:0.5.0")
	if err != nil {
		t.Fatal(err)
	}
	cell, err := (evidence.Store{Dir: "evidence"}).Load(cellID)
	if err != nil {
		t.Fatal(err)
	}
	if pulled.Manifest.Digest != cell.To.Chart.Digest {
		t.Errorf("got the chart %s, want that of the evidence, %s", pulled.Manifest.Digest, cell.To.Chart.Digest)
	}
	file, err := os.ReadFile(filepath.Join(dist, "trussium-operator-0.5.0.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(file, pulled.Chart.Data) {
		t.Error("the chart in dist is another one than the registry's")
	}
	chart, err := loader.LoadArchive(bytes.NewReader(pulled.Chart.Data))
	if err != nil {
		t.Fatal(err)
	}
	repository := addr + "/trussiumhq/trussium-operator"
	digest := digestAt(t, repository+":0.5.0")
	install := action.NewInstall(&action.Configuration{})
	install.ReleaseName, install.Namespace, install.DryRun, install.ClientOnly = "trussium-operator", "test", true, true
	install.KubeVersion = &chartutil.KubeVersion{Version: "v1.37.2", Major: "1", Minor: "37"}
	rendered, err := install.Run(chart, map[string]any{"image": map[string]any{"repository": repository, "digest": digest}})
	if err != nil {
		t.Fatal(err)
	}
	text := rendered.Manifest
	for _, hook := range rendered.Hooks {
		text += "\n---\n" + hook.Manifest
	}
	images := imagesIn(t, text)
	if len(images) < 2 {
		t.Errorf("got the images %q, want those of the operator and of the hook", images)
	}
	for _, image := range images {
		if !strings.HasSuffix(image, "@"+digest) || digestAt(t, image) != digest {
			t.Errorf("got the image %s, want the one that was pushed, %s", image, digest)
		}
	}
}

// requireInstall checks that the file installs what was released.
func requireInstall(t *testing.T, dist, addr string) {
	content, err := os.ReadFile(filepath.Join(dist, "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, object := range objects(t, string(content)) {
		kinds = append(kinds, object.GetKind())
		if object.GetAnnotations()["helm.sh/hook"] != "" {
			t.Errorf("%s %s is a hook, which kubectl would run as it is", object.GetKind(), object.GetName())
		}
	}
	if kinds[0] != "Namespace" || kinds[1] != "CustomResourceDefinition" || !slices.Contains(kinds, "Deployment") {
		t.Errorf("got the kinds %q", kinds)
	}
	digest := digestAt(t, addr+"/trussiumhq/trussium-operator:0.5.0")
	if images, want := imagesIn(t, string(content)), []string{artifact.OperatorRepository + "@" + digest}; !slices.Equal(images, want) {
		t.Errorf("got the images %q, want %q", images, want)
	}
}

// objects are the objects in a stream of YAML.
func objects(t *testing.T, text string) []unstructured.Unstructured {
	t.Helper()
	var found []unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if object.Object != nil {
			found = append(found, object)
		}
	}
	return found
}

// imagesIn are the images of all containers in a stream of YAML.
func imagesIn(t *testing.T, text string) []string {
	t.Helper()
	var images []string
	for _, object := range objects(t, text) {
		raw, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var deployment appsv1.Deployment
		var job batchv1.Job
		var pod corev1.Pod
		switch object.GetKind() {
		case "Deployment":
			err = json.Unmarshal(raw, &deployment)
		case "Job":
			err = json.Unmarshal(raw, &job)
		case "Pod":
			err = json.Unmarshal(raw, &pod)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, container := range slices.Concat(deployment.Spec.Template.Spec.Containers, job.Spec.Template.Spec.Containers, pod.Spec.Containers) {
			images = append(images, container.Image)
		}
	}
	return images
}

func requireNotes(t *testing.T, dist, addr string) {
	content, err := os.ReadFile(filepath.Join(dist, "RELEASE-NOTES.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"- Better in every way.", "## Commits since 0.4.0", "- Prove it (", "- Become better (", "0.4.0 → 0.5.0 on Kubernetes 1.37.2",
		digestAt(t, addr+"/trussiumhq/trussium-operator:0.5.0"), digestAt(t, addr+"/trussiumhq/trussium-runtimesim:0.5.0"), digestAt(t, addr+"/trussiumhq/charts/trussium-operator:0.5.0"),
	} {
		if !strings.Contains(string(content), want) {
			t.Errorf("the notes do not hold %q", want)
		}
	}
	if strings.Contains(string(content), "Release 0.4.0") {
		t.Error("the notes tell of the release before")
	}
}

// requireNoOverwriting puts something else in the place of an image, and releases again.
func requireNoOverwriting(t *testing.T, addr string) {
	tag, err := name.NewTag(addr + "/trussiumhq/trussium-runtimesim:0.5.0")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, empty.Image); err != nil {
		t.Fatal(err)
	}
	other := digestAt(t, tag.String())
	code, stdout, _ := command(t, newVersion, "--push", serve(t), "--push", addr)
	if code != exitRefused || !strings.Contains(stdout, tag.String()+" is "+other+" already") || !strings.Contains(stdout, "choose another one") {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
	if got := digestAt(t, tag.String()); got != other {
		t.Errorf("what was there has become %s", got)
	}
}

// TestRefusals breaks one thing after the other that a release depends on.
func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(t *testing.T, dir string)
		says   string
	}{
		{"a change that is not committed", func(t *testing.T, dir string) {
			gittest.Write(t, dir, map[string]string{"docs/more.md": "text\n"})
		}, "the checkout differs from its commit: ?? docs/more.md"},
		{"evidence that is not committed", func(t *testing.T, dir string) {
			replace(t, filepath.Join(dir, "evidence", cellID+".json"), `"key": "key"`, `"key": "other"`)
		}, "the checkout differs from its commit: M evidence/" + cellID + ".json"},
		{"a generated file", func(t *testing.T, dir string) {
			gittest.Write(t, dir, map[string]string{"api/source.txt": "another text\n"})
			gittest.Commit(t, dir, "Change the source")
		}, "generated files are out of date: api/generated.txt"},
		{"the report", func(t *testing.T, dir string) {
			replace(t, filepath.Join(dir, "UPGRADE-MATRIX.md"), "tested", "tested twice")
			gittest.Commit(t, dir, "Embellish the report")
		}, "generated files are out of date: UPGRADE-MATRIX.md"},
		{"the operator", func(t *testing.T, dir string) {
			replace(t, filepath.Join(dir, "operator", "main.go"), "println(", "println(1, ")
			gittest.Commit(t, dir, "Change the operator")
		}, "it is about the operator image sha256:"},
		{"the chart", func(t *testing.T, dir string) {
			replace(t, filepath.Join(dir, artifact.ChartPath, "values.yaml"), "replicaCount: 1", "replicaCount: 2")
			gittest.Commit(t, dir, "Change the chart")
		}, "it is about the chart sha256:"},
		{"the checks", func(t *testing.T, dir string) {
			gittest.Write(t, dir, map[string]string{"matrix/check.go": "package matrix // changed\n", "matrix/check_test.go": "package matrix\n"})
			gittest.Commit(t, dir, "Change the checks")
		}, "what it rests on has changed since: matrix/check.go\n"},
		{"the history", func(t *testing.T, dir string) {
			// The same files, by commits of another time.
			t.Setenv("GIT_COMMITTER_DATE", "2026-03-05T05:06:07Z")
			gittest.Run(t, dir, "rebase", "-q", "--force-rebase", "HEAD~2")
		}, ", which does not belong to the history of this one"},
		{"the changelog", func(t *testing.T, dir string) {
			replace(t, filepath.Join(dir, "CHANGELOG.md"), "0.5.0", "Unreleased")
			gittest.Commit(t, dir, "Change the changelog")
		}, "CHANGELOG.md has no section for 0.5.0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := newCheckout(t)
			test.change(t, dir)
			addr := serve(t)
			code, stdout, stderr := command(t, newVersion, "--push", addr)
			if code != exitRefused || !strings.Contains(stdout, "0.5.0 can't be released:\n✗ ") || !strings.Contains(stdout, test.says) {
				t.Errorf("exit code %d, want %d and %q\n%s%s", code, exitRefused, test.says, stdout, stderr)
			}
			if found := repositories(t, addr); len(found) != 0 {
				t.Errorf("it pushed %q", found)
			}
			if _, err := os.Stat(filepath.Join(dir, "dist")); !os.IsNotExist(err) {
				t.Errorf("it wrote dist (%v)", err)
			}
		})
	}
}

// TestAllRefusalsAtOnce asks for a version that the checkout is not.
func TestAllRefusalsAtOnce(t *testing.T) {
	newCheckout(t)
	code, stdout, _ := command(t, "0.6.0")
	if code != exitRefused {
		t.Errorf("exit code %d, want %d", code, exitRefused)
	}
	for _, want := range []string{
		`Chart.yaml has the version "0.5.0", not 0.6.0`, `Chart.yaml has the appVersion "0.5.0", not 0.6.0`, "CHANGELOG.md has no section for 0.6.0",
		"✗ compatibility.yaml claims no combination of operator 0.6.0 as tested",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("it does not say %q:\n%s", want, stdout)
		}
	}
}

func TestBadInput(t *testing.T) {
	dir := newCheckout(t)
	gittest.Write(t, dir, map[string]string{"mine/letter.txt": "Dear reader\n"})
	for says, args := range map[string][]string{
		"name the version":                          {},
		`"latest" is not a version`:                 {"latest"},
		"unknown flag: --frob":                      {"--frob"},
		`mirror "ghcr.io=https://ghcr.io": leave`:   {newVersion, "--push", "https://ghcr.io"},
		"mine holds files that are not a release's": {newVersion, "--output", "mine"},
		"unknown command":                           {"images", "extra"},
	} {
		code, stdout, stderr := command(t, args...)
		if code != exitInput || !strings.Contains(stderr, says) || stdout != "" {
			t.Errorf("release %q: exit code %d, want %d and %q\n%s%s", args, code, exitInput, says, stdout, stderr)
		}
	}
	if content, err := os.ReadFile(filepath.Join(dir, "mine", "letter.txt")); err != nil || string(content) != "Dear reader\n" {
		t.Errorf("the letter is %q, %v", content, err)
	}
	replace(t, filepath.Join(dir, "compatibility.yaml"), `version: "0.4.0"`, "version: 0.40")
	if code, _, stderr := command(t, newVersion); code != exitInput || !strings.Contains(stderr, "compatibility.yaml:3:12: ") {
		t.Errorf("a mistake in the compatibility file: exit code %d\n%s", code, stderr)
	}
	t.Chdir(t.TempDir())
	if code, _, stderr := command(t, newVersion); code != exitInput || !strings.Contains(stderr, "not in a checkout") {
		t.Errorf("outside of a checkout: exit code %d\n%s", code, stderr)
	}
}

// TestFaults checks that faults of the surroundings are told from refusals.
func TestFaults(t *testing.T) {
	dir := newCheckout(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	listener.Close()
	code, _, stderr := command(t, newVersion, "--push", addr)
	if code != exitInfrastructure || !strings.Contains(stderr, addr) {
		t.Errorf("a registry that is not there: exit code %d\n%s", code, stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "dist")); !os.IsNotExist(err) {
		t.Errorf("it wrote dist (%v)", err)
	}
	gittest.Write(t, dir, map[string]string{"api/doc.go": "package api\n\n//go:generate cp missing.txt generated.txt\n"})
	gittest.Commit(t, dir, "Break the generator")
	if code, _, stderr := command(t, newVersion); code != exitInfrastructure || !strings.Contains(stderr, "api/doc.go:3") {
		t.Errorf("a broken generator: exit code %d\n%s", code, stderr)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if code := run(ctx, []string{newVersion}, &out, &out); code != exitInterrupted {
		t.Errorf("interrupted: exit code %d\n%s", code, out.String())
	}
}

// TestImages builds the images of a checkout with a change.
func TestImages(t *testing.T) {
	dir := newCheckout(t)
	head := gittest.Run(t, dir, "rev-parse", "HEAD")
	gittest.Write(t, dir, map[string]string{"docs/more.md": "text\n"})
	output := t.TempDir()
	code, stdout, stderr := command(t, "images", "--output", output)
	if code != exitDone {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	for file, ref := range map[string]string{
		"trussium-operator-0.5.0-image.tar":   artifact.OperatorRepository + ":0.5.0",
		"trussium-runtimesim-0.5.0-image.tar": artifact.SimulatorRepository + ":0.5.0",
	} {
		content, err := os.ReadFile(filepath.Join(output, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{ref, head + "-dirty"} {
			if !bytes.Contains(content, []byte(want)) {
				t.Errorf("%s does not hold %s", file, want)
			}
		}
		if !strings.Contains(stdout, ref+"@sha256:") {
			t.Errorf("it does not tell the digest of %s:\n%s", ref, stdout)
		}
	}
}

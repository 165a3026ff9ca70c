package sbom

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/trussiumhq/trussium-operator/matrix/checkout"
	"github.com/trussiumhq/trussium-operator/matrix/gobuild"
)

var subject = Subject{Name: "some-program", Version: "1.2.3", Created: time.Date(2026, 3, 4, 5, 6, 7, 0, time.FixedZone("", 3600))}

// buildProgram builds a program that is made of two modules.
func buildProgram(t *testing.T) string {
	t.Helper()
	working, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	root, err := checkout.Root(working)
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module example.com/root\n\ngo 1.26.0\n\nrequire (\n\tgithub.com/Masterminds/semver/v3 v3.5.0\n\tgithub.com/google/uuid v1.6.0\n)\n",
		"go.sum": string(sums),
		"cmd/program/main.go": "package main\n\nimport (\n\t\"github.com/Masterminds/semver/v3\"\n\t\"github.com/google/uuid\"\n)\n\n" +
			"func main() { println(semver.MustParse(\"1.2.3\").String(), uuid.Nil.String()) }\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "program")
	if err := (gobuild.Program{Dir: dir, Package: "./cmd/program"}).Build(t.Context(), file, nil); err != nil {
		t.Fatal(err)
	}
	return file
}

// describe is the document about the file.
func describe(t *testing.T, file string) (document []byte, decoded *cdx.BOM) {
	t.Helper()
	document, err := CycloneDX(file, subject)
	if err != nil {
		t.Fatal(err)
	}
	decoded = &cdx.BOM{}
	if err := cdx.NewBOMDecoder(bytes.NewReader(document), cdx.BOMFileFormatJSON).Decode(decoded); err != nil {
		t.Fatal(err)
	}
	return document, decoded
}

// components are the versions of what the program is made of, by name.
func components(bom *cdx.BOM) map[string]string {
	versions := map[string]string{}
	for _, component := range *bom.Components {
		versions[component.Name] = component.Version
	}
	return versions
}

func TestComponents(t *testing.T) {
	file := buildProgram(t)
	document, bom := describe(t, file)
	out, err := exec.Command("go", "env", "GOVERSION").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"github.com/Masterminds/semver/v3": "v3.5.0",
		"github.com/google/uuid":           "v1.6.0",
		"std":                              strings.TrimPrefix(strings.TrimSpace(string(out)), "go"),
	}
	if diff := cmp.Diff(want, components(bom)); diff != "" {
		t.Errorf("components (-want +got):\n%s", diff)
	}
	if refs := *(*bom.Dependencies)[0].Dependencies; len(refs) != len(want) {
		t.Errorf("the program depends on %q, want all of the components", refs)
	}
	for _, component := range *bom.Components {
		// h1:NIvaJDMOsjHA8n1jAhLSgzrAzy1Hgr+hNrb57e+94F0= in go.sum.
		if want := "348bda24330eb231c0f27d630212d2833ac0cf2d4782bfa136b6f9edefbde05d"; component.Name == "github.com/google/uuid" && (*component.Hashes)[0].Value != want {
			t.Errorf("uuid: got the hash %s, want %s", (*component.Hashes)[0].Value, want)
		}
	}
	if again, _ := describe(t, file); !bytes.Equal(document, again) {
		t.Error("described again, the document differs")
	}
	requireValid(t, document)
}

func TestSubject(t *testing.T) {
	file := buildProgram(t)
	_, bom := describe(t, file)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	own := bom.Metadata.Component
	if own.Name != "some-program" || own.Version != "1.2.3" || bom.Metadata.Timestamp != "2026-03-04T04:06:07Z" {
		t.Errorf("got %s %s of %s", own.Name, own.Version, bom.Metadata.Timestamp)
	}
	if got := (*own.Hashes)[0].Value; got != hex.EncodeToString(sum[:]) {
		t.Errorf("got the hash %s, want that of the program, %x", got, sum)
	}
	if got := (*own.Licenses)[0].License.ID; got != "Apache-2.0" {
		t.Errorf("got the licence %s", got)
	}
	if want := "pkg:golang/example.com/root@v1.2.3#cmd/program"; own.PackageURL != want {
		t.Errorf("got the package URL %s, want %s", own.PackageURL, want)
	}
	if !slices.Contains(*own.Properties, cdx.Property{Name: "go:build:CGO_ENABLED", Value: "0"}) {
		t.Errorf("got the properties %v, want the settings of the build", *own.Properties)
	}
}

// TestPackageURL checks the cases that are spelled differently in a URL than in a go.mod.
func TestPackageURL(t *testing.T) {
	for _, test := range []struct{ module, version, want string }{
		{"github.com/Masterminds/semver/v3", "v3.5.0", "pkg:golang/github.com/Masterminds/semver/v3@v3.5.0"},
		{"github.com/docker/cli", "v29.7.2+incompatible", "pkg:golang/github.com/docker/cli@v29.7.2%2Bincompatible"},
		{"gopkg.in/yaml.v3", "v3.0.1", "pkg:golang/gopkg.in/yaml.v3@v3.0.1"},
		{"std", "1.26.8", "pkg:golang/std@1.26.8"},
	} {
		if got := packageURL(test.module, test.version, ""); got != test.want {
			t.Errorf("%s %s: got %s, want %s", test.module, test.version, got, test.want)
		}
	}
}

// requireValid validates a document against the schema of its format.
func requireValid(t *testing.T, document []byte) {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "schema")
	compiler := jsonschema.NewCompiler()
	for url, name := range map[string]string{
		"http://cyclonedx.org/schema/bom-1.6.schema.json":  "bom-1.6.schema.json",
		"http://cyclonedx.org/schema/spdx.schema.json":     "spdx.schema.json",
		"http://cyclonedx.org/schema/jsf-0.82.schema.json": "jsf-0.82.schemax.json",
	} {
		if err := compiler.AddResource(url, readJSON(t, filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := compiler.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(value); err != nil {
		t.Error(err)
	}
	delete(value.(map[string]any), "bomFormat")
	if err := schema.Validate(value); err == nil {
		t.Error("the schema accepts a document of no format")
	}
}

func readJSON(t *testing.T, file string) any {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	value, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestNotAGoProgram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := CycloneDX(file, subject); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v, want an error that names the file", err)
	}
}

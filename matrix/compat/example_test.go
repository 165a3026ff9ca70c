package compat_test

import (
	"os"
	"strings"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
)

// TestDocumentedExample checks that the example of the documentation is a valid file.
func TestDocumentedExample(t *testing.T) {
	const document = "../../docs/compatibility-file.md"
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(data), "```yaml\n")
	example, _, closed := strings.Cut(rest, "```\n")
	if !found || !closed {
		t.Fatalf("%s has no YAML example", document)
	}
	if _, err := compat.Parse("example.yaml", []byte(example)); err != nil {
		t.Error(err)
	}
}

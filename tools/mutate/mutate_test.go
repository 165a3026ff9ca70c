package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// These tests try neither equal numbers nor zero, and ignore the second result.
const (
	subject = `package subject

const zero = 0

type builder struct{ parts []string }

func build() *builder { return &builder{} }

func (b *builder) WithParts(parts ...string) *builder { b.parts = append(b.parts, parts...); return b }

func greater(a, b int) (int, int) {
	calls := zero
	if a < b && !(b == 0) {
		a = b
	}
	calls++
	return a, calls
}

func name(parts []string) string {
	result := build().WithParts("first").WithParts(parts...)
	switch {
	case len(result.parts) > 1:
		return "many"
	}
	return "one"
}
`
	tests = `package subject

import "testing"

func TestSubject(t *testing.T) {
	if first, _ := greater(1, 2); first != 2 {
		t.Error("not the second")
	}
	if first, _ := greater(2, 1); first != 2 {
		t.Error("not the first")
	}
	if name(nil) != "one" || name([]string{"second"}) != "many" {
		t.Error("wrong name")
	}
}
`
)

func TestWhatTheTestsDoNotNoticeIsListed(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module example.com/subject\n\ngo 1.26\n", "subject.go": subject, "subject_test.go": tests,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := run(t.Context(), &out, "", []string{folder}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"subject.go:16: without calls++",
		"subject.go:13: <= for < in a < b",
		"subject.go:3: 1 for 0",
		"subject.go:13: 1 for 0",
		"16 changes: 12 noticed, 4 not noticed, 0 do not compile",
		"",
	}
	got := strings.Split(strings.ReplaceAll(out.String(), folder+string(filepath.Separator), ""), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

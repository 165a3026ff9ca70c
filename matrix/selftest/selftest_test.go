package selftest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	output := strings.Join([]string{
		`{"Action":"start","Package":"p"}`,
		`{"Action":"run","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: mutation turned red: quiet: idle writes\n"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: mutation turned red: quiet: idle writes\n"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:4: mutation turned red: handover: two: pods\n"}`,
		`{"Action":"pass","Package":"p","Test":"TestA"}`,
		`{"Action":"run","Package":"p","Test":"TestB"}`,
		`{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:5: green in spite of it\n"}`,
		`{"Action":"fail","Package":"p","Test":"TestB"}`,
		`go: updates to go.mod needed`,
	}, "\n")
	var ran []string
	mutations, failures, err := read(strings.NewReader(output), func(test string) { ran = append(ran, test) })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]string{"quiet": {"idle writes"}, "handover": {"two: pods"}}, mutations); diff != "" {
		t.Errorf("mutations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"    b_test.go:5: green in spite of it", "go: updates to go.mod needed"}, failures); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"p TestA", "p TestB"}, ran); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

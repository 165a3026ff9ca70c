package compat

import "testing"

func TestNearest(t *testing.T) {
	keys := []string{"from", "runtime", "rollback", "rollbackReason", "crds", "id"}
	for word, want := range map[string]string{
		"rolback":        "rollback",
		"rollbackreason": "rollbackReason",
		"form":           "from",
		"crd":            "crds",
		"runtimes":       "runtime",
		"timeout":        "",
		"xy":             "",
		"":               "",
	} {
		if got := nearest(word, keys); got != want {
			t.Errorf("nearest(%q): got %q, want %q", word, got, want)
		}
	}
}

func TestEditDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"from", "form", 2}, {"same", "same", 0}} {
		if got := editDistance(test.a, test.b); got != test.want {
			t.Errorf("editDistance(%q, %q): got %d, want %d", test.a, test.b, got, test.want)
		}
	}
}

package contentkey

import "testing"

func TestOf(t *testing.T) {
	base := Of(map[string]string{"a": "1", "b": "2"})
	if again := Of(map[string]string{"b": "2", "a": "1"}); again != base || len(base) != 64 {
		t.Errorf("the same inputs: got %s and %s", base, again)
	}
	for name, other := range map[string]map[string]string{
		"another value":       {"a": "1", "b": "3"},
		"another name":        {"a": "1", "c": "2"},
		"values exchanged":    {"a": "2", "b": "1"},
		"one more input":      {"a": "1", "b": "2", "c": ""},
		"the border moved":    {"a": "11:b", "b": "2"},
		"an input left out":   {"a": "1"},
		"no inputs":           {},
		"one input swallowed": {"a": "11:b1:2"},
	} {
		if Of(other) == base {
			t.Errorf("%s: got the same key", name)
		}
	}
}

package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// broken makes documents that differ in one place from a valid one.
func broken(t testing.TB, change func(*Cell)) string {
	t.Helper()
	cell := sample()
	change(cell)
	content, err := Marshal(cell)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestUnmarshalIsStrict(t *testing.T) {
	valid := broken(t, func(*Cell) {})
	replace := func(old, with string) string {
		if !strings.Contains(valid, old) {
			t.Fatalf("the valid document lacks %q", old)
		}
		return strings.Replace(valid, old, with, 1)
	}
	count := -1
	for name, test := range map[string]struct{ content, want string }{
		"nothing":         {"", "1:1: not an evidence document: "},
		"no JSON":         {"{\n  no", "2:4: not an evidence document: "},
		"another type":    {`["a"]`, "1:1: not an evidence document: "},
		"cut off":         {valid[:len(valid)-4], "not an evidence document: "},
		"other version":   {replace("evidence.trussium.io/v1", "evidence.trussium.io/v9"), `2:3: an evidence document of evidence.trussium.io/v1 "Cell" is wanted, this one is evidence.trussium.io/v9 "Cell"`},
		"other kind":      {replace(`"Cell"`, `"Shell"`), `3:3: an evidence document`},
		"unknown field":   {replace(`"key"`, `"kez"`), `5:3: not an evidence document: /kez: unknown object member name`},
		"case of a field": {replace(`"key"`, `"Key"`), `5:3: not an evidence document: /Key: unknown object member name`},
		"repeated field":  {replace(`"verdict": "passed"`, `"verdict": "failed", "verdict": "passed"`), `not an evidence document: /verdict: duplicate object member name`},
		"type of a field": {replace(`"limits": [`, `"limits": 7, "x": [`), `not an evidence document: /cluster/limits: `},
		"something after": {valid + "{}", "not an evidence document: "},
		"no id":           {broken(t, func(c *Cell) { c.ID = "" }), `4:3: the id is ""`},
		"id as path":      {broken(t, func(c *Cell) { c.ID = "../x" }), `4:3: the id is "../x"`},
		"verdict":         {replace(`"verdict": "passed"`, `"verdict": "splendid"`), `3: the verdict is "splendid"`},
		"verdict null":    {replace(`"verdict": "passed"`, `"verdict": null`), `3: the verdict is ""`},
		"no reason":       {broken(t, func(c *Cell) { c.Verdict = Refuted }), `3: the verdict is failed without a reason`},
		"not ended":       {broken(t, func(c *Cell) { c.Finished = nil }), `3: the verdict is passed, although the cell has not ended`},
		"nothing proven":  {broken(t, func(c *Cell) { c.Steps = nil }), `3: the verdict is passed, although no check passed`},
		"step failed": {broken(t, func(c *Cell) { c.Record(Step{ID: "traffic", Outcome: Failed, Reason: "r"}) }),
			`3: the verdict is passed, although the step traffic failed`},
		"step without id":     {broken(t, func(c *Cell) { c.Steps[0].ID = "" }), `7: a step has no id`},
		"step twice":          {broken(t, func(c *Cell) { c.Steps = append(c.Steps, c.Steps[0]) }), `7: the step quiet is there twice`},
		"step outcome":        {broken(t, func(c *Cell) { c.Steps[0].Outcome = "fine" }), `7: the outcome of the step quiet is "fine"`},
		"step without reason": {broken(t, func(c *Cell) { c.Steps[0].Outcome = Skipped }), `7: the step quiet is skipped without a reason`},
		"step time":           {broken(t, func(c *Cell) { c.Steps[0].Seconds = -1 }), `7: the step quiet took less`},
		"negative count":      {broken(t, func(c *Cell) { c.Disruption("upgrade").PodsReplaced = &count }), `7: a count of a disruption is negative`},
		"more failed": {broken(t, func(c *Cell) { d := c.Disruption("upgrade"); d.Requests, d.FailedRequests = new(1), new(2) }),
			`7: 2 of 1 requests failed`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Unmarshal([]byte(test.content))
			var invalid *Error
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("error is %v, want one that tells %q", err, test.want)
			}
			checkPosition(t, []byte(test.content), invalid)
		})
	}
}

// checkPosition checks that the error is about a place in the document.
func checkPosition(t *testing.T, content []byte, invalid *Error) {
	t.Helper()
	lines := bytes.Split(content, []byte("\n"))
	if invalid.Line < 1 || invalid.Line > len(lines) || invalid.Column < 1 || invalid.Column > len(lines[invalid.Line-1])+1 {
		t.Errorf("%v: there is no such place", invalid)
	}
}

func TestStoreNamesTheFileAndThePlace(t *testing.T) {
	store := Store{Dir: t.TempDir()}
	if err := os.WriteFile(store.Path("a--b"), []byte("{\n  \"kind\": 1,}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := store.Path("a--b") + ":2:"
	if _, err := store.Load("a--b"); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("Load says %v, want %s", err, want)
	}
	if _, err := store.All(); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("All says %v, want %s", err, want)
	}
}

// FuzzUnmarshal checks that no input makes the reader panic or name a place outside of the document, and that what it
// accepts is kept as it is by the store.
func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(broken(f, func(*Cell) {})))
	f.Add([]byte(broken(f, func(c *Cell) {
		c.Verdict, c.Finished = Unfinished, nil
		c.Through = []Release{{Version: "0.5.0"}}
		d := c.Disruption("upgrade")
		d.Requests, d.LongestGapSeconds = new(3), new(0.25)
	})))
	for _, content := range []string{"", "{", "[]", "null", `{"apiVersion":"evidence.trussium.io/v1","kind":"Cell"}`, "{\"apiVersion\":\n\"evidence.trussium.io/v1\",\"kind\":\"Cell\",\"id\":\"a\",\"verdict\":\"unfinished\",\"steps\":[{}]}", "\xef\xbb\xbf{}", "{\"kind\":\"\xff\"}", "{\"\\r\""} {
		f.Add([]byte(content))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		cell, err := Unmarshal(content)
		if err != nil {
			var invalid *Error
			if !errors.As(err, &invalid) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("%q is more than one line", err)
			}
			checkPosition(t, content, invalid)
			return
		}
		// What is accepted is JSON for other programs too.
		if !json.Valid(content) {
			t.Error("not JSON, and accepted")
		}
		written, err := Marshal(cell)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Unmarshal(written)
		if err != nil {
			t.Fatalf("what was written is refused: %v\n%s", err, written)
		}
		if diff := cmp.Diff(cell, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("what was written is read differently: %s", diff)
		}
	})
}

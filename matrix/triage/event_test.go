package triage_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix/triage"
	"github.com/trussiumhq/trussium-operator/matrix/triage/githubtest"
)

func TestLoadEvent(t *testing.T) {
	server, err := githubtest.New(githubtest.GitHubCom, "", &githubtest.World{})
	if err != nil {
		t.Fatal(err)
	}
	dispatched, err := server.Description().DispatchEvent("runtime-release", map[string]any{"version": "v1.31.0", "more": []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ content, want, wrong string }{
		"dispatched":        {string(dispatched), "v1.31.0", ""},
		"released":          {`{"action":"published","release":{"tag_name":"v1.31.1"}}`, "v1.31.1", ""},
		"the last of two":   {`{"client_payload":{"version":"v1.1.0","version":"v1.2.0"}}`, "v1.2.0", ""},
		"empty":             {"", "", ":1:1: the event is not valid JSON: unexpected end of JSON input"},
		"cut off":           {"{\n  \"client_payload\": {", "", ":2:21: the event is not valid JSON"},
		"a list":            {"[1]", "", ":1:1: the event is a JSON array, not an object"},
		"a payload of text": {"{\n\"client_payload\": \"v1.31.0\"}", "", ":2:27: client_payload is a JSON string, not an object"},
		"no release":        {`{"action": "x"}`, "", ":1:1: the event names no release"},
		"no version":        {"{\n \"client_payload\": {\"tag\": \"v1.31.0\"}}", "", ":2:20: client_payload.version is missing"},
		"a number":          {"{\n \"ü\": \"ü\", \"client_payload\": {\n  \"version\": 1.31}}", "", ":3:14: client_payload.version is not text"},
		"no name":           {`{"client_payload": {"version" :  "latest"}}`, "", `:1:34: client_payload.version is "latest", which is not the name of a release`},
		"a hostile name":    {`{"client_payload": {"version": "v1.0.0\u001b[31m\n../../x"}}`, "", `:1:32: client_payload.version is "v1.0.0�[31m ../../x"`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "event.json")
			if err := os.WriteFile(path, []byte(test.content), 0o644); err != nil {
				t.Fatal(err)
			}
			got, err := triage.LoadEvent(path)
			if test.wrong == "" {
				if err != nil || got != test.want {
					t.Errorf("got %q, %v, want %q", got, err, test.want)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), path+test.wrong) {
				t.Errorf("got %v, want %s%s", err, path, test.wrong)
			}
		})
	}
	large := filepath.Join(t.TempDir(), "event.json")
	if err := os.WriteFile(large, []byte(`{"x":"`+strings.Repeat("y", 1<<20)+`"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := triage.LoadEvent(large); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("a large file: %v", err)
	}
	if _, err := triage.LoadEvent(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestPlanFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	plan := triage.Plan{Steps: []triage.Step{
		{Action: triage.Create, Version: "v1.31.0", Proposal: &triage.Proposal{Version: "v1.31.0", Body: "the proposal\n"}},
		{Action: triage.Close, Version: "v1.29.0", Issue: 12, Closing: &triage.Closing{Comment: "the reason"}},
		{Action: triage.Nothing, Version: "v1.28.0"},
	}}
	paths, err := plan.Write(dir)
	if err != nil || len(paths) != 3 {
		t.Fatalf("got %v, %v", paths, err)
	}
	for name, want := range map[string]string{"v1.31.0.md": "the proposal\n", "close-12.md": "the reason\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
	// The next plan replaces these files, and no others.
	if err := os.WriteFile(filepath.Join(dir, "v1.0.0.md"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := (triage.Plan{}).Write(dir); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 || entries[0].Name() != "plan.json" || entries[1].Name() != "v1.0.0.md" {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
	// A plan that lists other people's files is not believed.
	outside := filepath.Join(filepath.Dir(dir), "kept")
	if err := os.WriteFile(outside, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "plan.json"), []byte(`{"files":["../kept"]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := (triage.Plan{}).Write(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("a file outside of the folder was removed: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "plan.json"), []byte(`plan`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Write(dir); err == nil || !strings.Contains(err.Error(), "is not a plan of triage") {
		t.Errorf("somebody else's plan.json: %v", err)
	}
}

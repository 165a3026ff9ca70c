package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/trussiumhq/trussium-operator/matrix/triage/githubtest"
)

const triageToken = "github_pat_ThatMustNeverBeSeen"

// triageBench is a GitHub and a registry that triage is run against as a program.
type triageBench struct {
	t     *testing.T
	world *githubtest.World
	// server is GitHub, file the compatibility file, out the folder for the texts.
	server      *githubtest.Server
	file, out   string
	flags       []string
	transcripts strings.Builder
}

func newTriageBench(t *testing.T) *triageBench {
	b := &triageBench{t: t, world: &githubtest.World{Runtime: "trussiumhq/trussium", Proposals: "trussiumhq/trussium-operator"}}
	images := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(images.Close)
	address := strings.TrimPrefix(images.URL, "http://")
	for minor := 27; minor <= 32; minor++ {
		published := time.Now().Add(time.Duration(minor-40) * 24 * time.Hour).UTC().Truncate(time.Second)
		release := &githubtest.Release{Tag: fmt.Sprintf("v1.%d.0", minor), Created: published, Published: published, Notes: "Faster.\n"}
		b.world.Releases = append(b.world.Releases, release)
		image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: "amd64", Author: release.Tag, Config: v1.Config{
			User: "10001:10001", ExposedPorts: map[string]struct{}{"9000/tcp": {}}, Entrypoint: []string{"/app"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		ref, err := name.NewTag(fmt.Sprintf("%s/mirror/trussiumhq/trussium:1.%d.0", address, minor))
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(ref, image); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if b.server, err = githubtest.New(githubtest.EnterpriseServer, "http://github.test", b.world); err != nil {
		t.Fatal(err)
	}
	b.server.Actors[triageToken] = githubtest.Maintainer
	github := httptest.NewServer(b.server)
	t.Cleanup(func() {
		github.Close()
		for _, violation := range b.server.Violations() {
			t.Errorf("not as GitHub describes it: %s", violation)
		}
	})
	b.file = filepath.Join(t.TempDir(), "compatibility.yaml")
	if err := os.WriteFile(b.file, []byte(base), 0o600); err != nil {
		t.Fatal(err)
	}
	b.out = filepath.Join(t.TempDir(), "out")
	b.flags = []string{"-f", b.file, "--github-url", github.URL, "--mirror", "ghcr.io=" + address + "/mirror", "--out", b.out}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	for _, variable := range []string{tokenVariable, apiVariable, repositoryVariable} {
		t.Setenv(variable, "")
	}
	return b
}

// run runs matrix triage and checks its exit code.
func (b *triageBench) run(code int, args ...string) string {
	b.t.Helper()
	var output bytes.Buffer
	if got := run(context.Background(), append([]string{"triage"}, args...), &output, &output); got != code {
		b.t.Errorf("matrix triage %v: exit code %d, want %d\n%s", args, got, code, output.String())
	}
	b.transcripts.WriteString(output.String())
	return output.String()
}

func TestTriage(t *testing.T) {
	b := newTriageBench(t)
	// The dry run needs no token, and writes nothing but files.
	output := b.run(exitGreen, b.flags...)
	for _, want := range []string{"create v1.31.0: no decision; routine", "create v1.32.0: no decision; representative", "Nothing was changed.", "v1.31.0.md", "2 releases are decided and without a proposal"} {
		if !strings.Contains(output, want) {
			t.Errorf("it says\n%s\nwant %q", output, want)
		}
	}
	var stdout bytes.Buffer
	if code := run(context.Background(), append([]string{"triage", "-o", "json"}, b.flags...), &stdout, io.Discard); code != exitGreen {
		t.Errorf("with -o json the exit code is %d", code)
	}
	var result triageResult
	if err := json.Unmarshal(stdout.Bytes(), &result); err != nil || result.Applied || len(result.Files) != 3 || len(result.Plan.Steps) != 4 {
		t.Errorf("with -o json it prints\n%s\n%v", stdout.String(), err)
	}
	if b.server.Writes() != 0 || len(b.world.Issues) != 0 {
		t.Error("the dry run wrote to GitHub")
	}
	if text, err := os.ReadFile(filepath.Join(b.out, "v1.32.0.md")); err != nil || !strings.Contains(string(text), "ghcr.io/trussiumhq/trussium:1.32.0") {
		t.Errorf("the proposal reads %q, %v", text, err)
	}
	if output := b.run(exitInput, append(b.flags, "--apply")...); !strings.Contains(output, "--apply needs a token") {
		t.Errorf("it says %q", output)
	}

	t.Setenv(tokenVariable, triageToken)
	event := filepath.Join(t.TempDir(), "event.json")
	content, err := b.server.Description().DispatchEvent("runtime-release", map[string]string{"version": "v1.31.0"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(event, content, 0o644); err != nil {
		t.Fatal(err)
	}
	if output := b.run(exitGreen, append(b.flags, "--apply", "--event", event)...); !strings.Contains(output, "✓ create v1.31.0 #1") || len(b.world.Issues) != 1 {
		t.Errorf("it says %q, and there are %d issues", output, len(b.world.Issues))
	}
	b.run(exitGreen, append(b.flags, "--apply")...)
	writes := b.server.Writes()
	if output := b.run(exitGreen, append(b.flags, "--apply")...); !strings.Contains(output, "Nothing had to be changed.") || b.server.Writes() != writes {
		t.Errorf("the second run says\n%s", output)
	}

	// A decision closes the proposal.
	b.run(exitGreen, "decide", "v1.31.0", "-f", b.file, "--not-selected", "--reason", "It is routine.")
	if output := b.run(exitGreen, append(b.flags, "--apply")...); !strings.Contains(output, "✓ close v1.31.0 #1: not selected") || !b.world.Issue(1).Closed {
		t.Errorf("it says\n%s", output)
	}
	// An event may come before the release is listed.
	b.world.Releases = b.world.Releases[:4]
	if output := b.run(exitInfrastructure, append(b.flags, "--event", event)...); !strings.Contains(output, "triage v1.31.0: the runtime's repository does not list it") {
		t.Errorf("it says\n%s", output)
	}

	if strings.Contains(b.transcripts.String(), triageToken) {
		t.Error("the token was printed")
	}
	for _, dir := range []string{b.out, filepath.Dir(b.file), os.Getenv("XDG_CACHE_HOME")} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			if bytes.Contains(content, []byte(triageToken)) {
				t.Errorf("the token is in %s", path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestTriageWithoutImages checks that releases whose images can't be looked at are not proposed,
// and that the run says so by its exit code.
func TestTriageWithoutImages(t *testing.T) {
	b := newTriageBench(t)
	output := b.run(exitInfrastructure, append(b.flags, "--image", "127.0.0.1:1/trussium")...)
	if !strings.Contains(output, "the images of v1.31.0, v1.32.0 could not be looked at") || !strings.Contains(output, "wait v1.31.0: its image could not be looked at") {
		t.Errorf("it says\n%s", output)
	}
}

func TestTriageBadInput(t *testing.T) {
	b := newTriageBench(t)
	event := filepath.Join(t.TempDir(), "event.json")
	if err := os.WriteFile(event, []byte("{\n \"client_payload\": {\"version\": 1}}"), 0o644); err != nil {
		t.Fatal(err)
	}
	plain := os.Getenv(tokenVariable)
	for says, args := range map[string][]string{
		event + ":2:32: client_payload.version is not text": {"--event", event},
		"read the event: open":                              {"--event", event + ".none"},
		`the repository "x": write OWNER/NAME`:              {"--repository", "x"},
		`the repository "a/b/c": write OWNER/NAME`:          {"--runtime-repository", "a/b/c"},
		"write https://HOST":                                {"--github-url", "github.com"},
		`mirror "x": write HOST=HOST[:PORT][/PREFIX]`:       {"--mirror", "x"},
		`the repository of the images "x": write HOST/PATH`: {"--image", "x"},
		"nowhere.yaml":     {"-f", "nowhere.yaml"},
		"unknown command":  {"extra"},
		"unknown flag":     {"--frob"},
		`--output "x"`:     {"-o", "x"},
		"name a release":   {"decide"},
		"give one of":      {"decide", "v1.31.0"},
		"give one of --":   {"decide", "v1.31.0", "--validated", "--not-selected"},
		`--impact "big"`:   {"decide", "v1.31.0", "--validated", "--impact", "big"},
		"for one release":  {"decide", "v1.31.0", "v1.32.0", "--validated", "--digest", "sha256:0"},
		"decide 1.31.0":    {"decide", "1.31.0", "--validated", "-f", b.file},
		"does not list v9": {"decide", "v1.31.0", "--superseded-by", "v9.0.0", "-f", b.file},
	} {
		if output := b.run(exitInput, args...); !strings.Contains(output, says) {
			t.Errorf("matrix triage %v says %q, want %q", args, output, says)
		}
	}
	t.Setenv(tokenVariable, triageToken)
	if output := b.run(exitInput, "--github-url", "http://github.test"); !strings.Contains(output, "a token is not sent without encryption") {
		t.Errorf("it says %q", output)
	}
	t.Setenv(tokenVariable, "two\nlines"+plain)
	if output := b.run(exitInput); !strings.Contains(output, "a character that no token has") || strings.Contains(output, "lines") {
		t.Errorf("it says %q", output)
	}
}

// TestDecideWrites checks what happens to the file itself.
func TestDecideWrites(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "real.yaml"), filepath.Join(dir, "compatibility.yaml")
	if err := os.WriteFile(target, []byte(base), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	b := &triageBench{t: t}
	b.run(exitGreen, "decide", "v1.33.0", "v1.31.0", "-f", link, "--not-selected")
	content, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	row := "- version: v1.%d.0\n  imageTag: \"1.%[1]d.0\"\n  contractImpact: routine\n  decision: not-selected\n"
	if want := strings.Replace(base, "upgrades:\n", fmt.Sprintf(row, 31)+fmt.Sprintf(row, 33)+"upgrades:\n", 1); string(content) != want {
		t.Errorf("the file is\n%s", content)
	}
	info, err := os.Stat(target)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if linked, err := os.Lstat(link); err != nil || linked.Mode()&fs.ModeSymlink == 0 {
		t.Error("the link was replaced")
	}
	if output := b.run(exitGreen, "decide", "v1.31.0", "-f", link, "--not-selected"); !strings.Contains(output, "says so already") {
		t.Errorf("it says %q", output)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("the folder holds %v", entries)
	}
	// A mistake in one release changes nothing at all.
	before, _ := os.ReadFile(target)
	b.run(exitInput, "decide", "v1.34.0", "bad", "-f", link, "--not-selected")
	if after, _ := os.ReadFile(target); !bytes.Equal(before, after) {
		t.Error("half of the decisions were written")
	}
}

package gobuild

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// module writes a small Go module and returns its folder.
func module(t *testing.T, source string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "hello")
	write(t, filepath.Join(dir, "go.mod"), "module example.com/hello\n\ngo 1.26\n")
	write(t, filepath.Join(dir, "main.go"), source)
	return dir
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

const hello = "package main\n\nvar version = \"none\"\n\nfunc main() { println(\"hello\", version) }\n"

func TestCachedBuildsOnceForManyCallers(t *testing.T) {
	dir, cache := module(t, hello), t.TempDir()
	program := Program{Dir: dir, LDFlags: "-X main.version=1.2.3"}
	var builds sync.Map
	var group sync.WaitGroup
	paths := make([]string, 3)
	for i := range paths {
		group.Go(func() {
			path, err := program.Cached(context.Background(), cache, func(text string) {
				if strings.Contains(text, "resolving modules") {
					builds.Store(i, true)
				}
			})
			if err != nil {
				t.Error(err)
			}
			paths[i] = path
		})
	}
	group.Wait()
	count := 0
	builds.Range(func(any, any) bool { count++; return true })
	if count != 1 {
		t.Errorf("three callers built %d times, want 1", count)
	}
	if paths[0] != paths[1] || paths[0] != paths[2] {
		t.Errorf("callers got different files: %v", paths)
	}
	out, err := exec.Command(paths[0]).CombinedOutput()
	if err != nil || string(out) != "hello 1.2.3\n" {
		t.Errorf("the program prints %q (%v), want \"hello 1.2.3\"", out, err)
	}
}

func TestKeyFollowsContent(t *testing.T) {
	dir := module(t, hello)
	program := Program{Dir: dir}
	key := func(p Program) string {
		t.Helper()
		k, err := p.Key(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	before := key(program)
	if other := key(Program{Dir: module(t, hello)}); other != before {
		t.Errorf("the same content in another folder has key %s, want %s", other, before)
	}
	write(t, filepath.Join(dir, "main_test.go"), "package main\n")
	if key(program) != before {
		t.Error("a test file changed the key of the program")
	}
	if key(Program{Dir: dir, LDFlags: "-X main.version=2"}) == before {
		t.Error("linker flags did not change the key")
	}
	write(t, filepath.Join(dir, "other.go"), "package main\n")
	if key(program) == before {
		t.Error("a new source file did not change the key")
	}
}

func TestSameSourceGivesSameBytes(t *testing.T) {
	var files [2][]byte
	for i := range files {
		dir := module(t, hello)
		out := filepath.Join(t.TempDir(), "program")
		if err := (Program{Dir: dir}).Build(context.Background(), out, nil); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		files[i] = content
	}
	if string(files[0]) != string(files[1]) {
		t.Error("two builds of the same source in two folders differ")
	}
}

// What is compiled together is not compiled again when one program of it is built.
func TestCompile(t *testing.T) {
	dir := module(t, hello)
	for file, content := range map[string]string{
		"first/main.go": "package main\n\nimport \"example.com/hello/shared\"\n\nfunc main() { shared.Print() }\n", "second/main.go": hello,
		"shared/shared.go": "package shared\n\nfunc Print() { println(1) }\n",
	} {
		write(t, filepath.Join(dir, file), content)
	}
	t.Setenv("GOCACHE", t.TempDir())
	programs := []Program{{Dir: dir, Package: "./first"}, {Dir: dir, Package: "./second"}}
	compiled := func(program Program) string {
		cmd := program.command(t.Context(), append(append([]string{"build", "-v", "-o", os.DevNull}, program.flags()...), program.pkg())...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	if err := Compile(t.Context(), programs, t.TempDir(), nil); err != nil {
		t.Fatal(err)
	}
	for _, program := range programs {
		if again := compiled(program); again != "" {
			t.Errorf("compiled again for %s:\n%s", program.pkg(), again)
		}
	}
	programs[1].Package = "./nothing"
	if err := Compile(t.Context(), programs, t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("a package that is not there: %v", err)
	}
}

func TestBuildErrorShowsTheCompilersMessage(t *testing.T) {
	dir, out := module(t, "package main\n\nfunc main() { undefined() }\n"), filepath.Join(t.TempDir(), "program")
	err := (Program{Dir: dir}).Build(context.Background(), out, nil)
	if err == nil || !strings.Contains(err.Error(), "main.go:3:15: undefined: undefined") {
		t.Errorf("error is %v, want the compiler's message with its position", err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(out)); len(entries) != 0 {
		t.Errorf("a failed build left %v", entries)
	}
}

// What a killed build left goes with the next one of the same program. Those of others may be going on.
func TestCachedRemovesWhatAKilledBuildLeft(t *testing.T) {
	program, cache := Program{Dir: module(t, hello)}, t.TempDir()
	key, err := program.Key(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	killed := filepath.Join(cache, "bin", temporaryPrefix("hello-"+key[:16])+"123")
	other := filepath.Join(cache, "bin", temporaryPrefix("other-"+key[:16])+"123")
	write(t, filepath.Join(killed, "go-build1", "half.a"), "half")
	write(t, filepath.Join(other, "half.a"), "half")
	if _, err := program.Cached(t.Context(), cache, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(killed); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what the killed build left: %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("the build of another program: %v", err)
	}
}

// A build that is cancelled while it runs ends soon and leaves no file.
func TestCancelEndsTheBuild(t *testing.T) {
	dir := module(t, hello)
	// A package that takes long to compile, so that the cancellation comes in the middle.
	var source strings.Builder
	source.WriteString("package main\n\nvar table = map[string]int{\n")
	for i := range 200_000 {
		fmt.Fprintf(&source, "\t\"key%d\": %d,\n", i, i)
	}
	source.WriteString("}\n")
	write(t, filepath.Join(dir, "table.go"), source.String())
	cache := t.TempDir()
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	time.AfterFunc(time.Second, cancel)
	start := time.Now()
	if _, err := (Program{Dir: dir}).Cached(ctx, cache, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled build says %v", err)
	}
	if time.Since(start) > time.Minute {
		t.Error("a cancelled build hung")
	}
	for _, folder := range []string{temp, filepath.Join(cache, "bin")} {
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if !strings.HasSuffix(entry.Name(), ".lock") {
				t.Errorf("a cancelled build left %s", filepath.Join(folder, entry.Name()))
			}
		}
	}
}

// Command reduce writes the part of GitHub's published description of its API that triage uses, so
// that tests run without a network. It takes the description from the npm package @octokit/openapi,
// with npm as it is set up on this machine:
//
//	go run ./matrix/triage/githubtest/reduce
//
// What is kept says where it is from: the package, its version and its hash are in info.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

const (
	npmPackage = "@octokit/openapi"
	npmVersion = "23.0.2"
	integrity  = "sha512-pV8M7L9GY23AybNvTmo2nyjmpmnt6+2sRE/tqr0ZLQcPS4lnw7u5eZGNmwRNkBC3D7gZXbFx5AHzLUVRBXGDhg=="

	directory = "matrix/triage/githubtest/description"
)

// descriptions are those of github.com and of the oldest GitHub Enterprise Server in the package.
var descriptions = []string{"api.github.com.json", "ghes-3.17.json"}

// operations are the requests of package github.
var operations = map[string][]string{
	"/repos/{owner}/{repo}/releases":                       {"get"},
	"/repos/{owner}/{repo}/git/ref/{ref}":                  {"get"},
	"/repos/{owner}/{repo}/git/tags/{tag_sha}":             {"get"},
	"/repos/{owner}/{repo}/labels":                         {"get", "post"},
	"/repos/{owner}/{repo}/issues":                         {"get", "post"},
	"/repos/{owner}/{repo}/issues/{issue_number}":          {"patch"},
	"/repos/{owner}/{repo}/issues/{issue_number}/labels":   {"post"},
	"/repos/{owner}/{repo}/issues/{issue_number}/comments": {"get", "post"},
	"/repos/{owner}/{repo}/issues/comments/{comment_id}":   {"delete"},
}

// schemas are kept besides those that the operations refer to: refusals that no operation lists,
// and the event that starts a run.
var schemas = []string{"basic-error", "webhook-repository-dispatch-sample"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "reduce:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	archive, err := download(ctx)
	if err != nil {
		return err
	}
	for _, name := range descriptions {
		full, err := extract(archive, "package/generated/"+name)
		if err != nil {
			return err
		}
		reduced, err := reduce(full)
		if err != nil {
			return fmt.Errorf("reduce %s: %w", name, err)
		}
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path, reduced, 0o644); err != nil {
			return err
		}
		fmt.Printf("wrote %s (%d KiB)\n", path, len(reduced)>>10)
	}
	return nil
}

// download fetches the package and checks its hash.
func download(ctx context.Context) ([]byte, error) {
	dir, err := os.MkdirTemp("", "openapi-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "npm", "pack", npmPackage+"@"+npmVersion, "--pack-destination", dir)
	cmd.Stderr = &stderr
	if _, err := cmd.Output(); err != nil {
		return nil, fmt.Errorf("npm pack %s@%s: %w\n%s", npmPackage, npmVersion, err, stderr.String())
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(files) != 1 {
		return nil, fmt.Errorf("npm pack left %d archives in %s, want one", len(files), dir)
	}
	archive, err := os.ReadFile(files[0])
	if err != nil {
		return nil, err
	}
	sum := sha512.Sum512(archive)
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); got != integrity {
		return nil, fmt.Errorf("%s@%s has the hash %s, want %s", npmPackage, npmVersion, got, integrity)
	}
	return archive, nil
}

func extract(archive []byte, name string) ([]byte, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	files := tar.NewReader(unzipped)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("the package has no %s", name)
		}
		if err != nil {
			return nil, err
		}
		if header.Name == name {
			return io.ReadAll(files)
		}
	}
}

type object = map[string]any

// reduce keeps the operations, and what they refer to.
func reduce(full []byte) ([]byte, error) {
	var document object
	if err := json.Unmarshal(full, &document); err != nil {
		return nil, err
	}
	all := document["components"].(object)
	paths, components := object{}, object{}
	var pending []string
	keep := func(value any) any {
		value = strip(value)
		pending = append(pending, references(value)...)
		return value
	}
	for path, methods := range operations {
		item := object{}
		for _, method := range methods {
			operation, ok := document["paths"].(object)[path].(object)[method]
			if !ok {
				return nil, fmt.Errorf("there is no %s %s", method, path)
			}
			kept := keep(operation).(object)
			for _, response := range kept["responses"].(object) {
				describe(response.(object))
			}
			item[method] = kept
		}
		paths[path] = item
	}
	for _, name := range schemas {
		pending = append(pending, "#/components/schemas/"+name)
	}
	for len(pending) > 0 {
		reference := pending[0]
		pending = pending[1:]
		kind, name, _ := strings.Cut(strings.TrimPrefix(reference, "#/components/"), "/")
		if _, ok := components[kind]; !ok {
			components[kind] = object{}
		}
		if _, done := components[kind].(object)[name]; done {
			continue
		}
		value, ok := all[kind].(object)[name]
		if !ok {
			return nil, fmt.Errorf("there is no %s", reference)
		}
		kept := keep(value).(object)
		if kind == "responses" {
			describe(kept)
		}
		components[kind].(object)[name] = kept
	}
	info := document["info"].(object)
	info["x-source"] = object{"package": npmPackage, "version": npmVersion, "integrity": integrity}
	return write(object{
		"openapi": document["openapi"], "info": info, "servers": document["servers"], "paths": paths, "components": components,
	})
}

// describe gives a response the description back that it must have.
func describe(response object) {
	if _, refers := response["$ref"]; !refers {
		response["description"] = ""
	}
}

// strip takes away what is only for readers, and extensions other than that of paths.
func strip(value any) any {
	switch value := value.(type) {
	case object:
		out := object{}
		for key, child := range value {
			_, text := child.(string)
			prose := text && (key == "description" || key == "title")
			extension := strings.HasPrefix(key, "x-") && key != "x-multi-segment"
			if !prose && !extension && key != "example" && key != "examples" && key != "externalDocs" {
				out[key] = strip(child)
			}
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, child := range value {
			out[i] = strip(child)
		}
		return out
	default:
		return value
	}
}

func references(value any) []string {
	var all []string
	switch value := value.(type) {
	case object:
		for key, child := range value {
			if reference, ok := child.(string); ok && key == "$ref" {
				all = append(all, reference)
				continue
			}
			all = append(all, references(child)...)
		}
	case []any:
		for _, child := range value {
			all = append(all, references(child)...)
		}
	}
	return all
}

// write gives one line to each path and component, so that a newer version shows what changed.
func write(document object) ([]byte, error) {
	var out bytes.Buffer
	var walk func(value any, depth int) error
	walk = func(value any, depth int) error {
		fields, ok := value.(object)
		if !ok || depth == 0 {
			line, err := json.Marshal(value)
			out.Write(line)
			return err
		}
		out.WriteString("{")
		for i, key := range slices.Sorted(maps.Keys(fields)) {
			if i > 0 {
				out.WriteString(",")
			}
			fmt.Fprintf(&out, "\n%q: ", key)
			below := depth - 1
			if key == "paths" {
				below = 1
			}
			if key == "info" || key == "servers" {
				below = 0
			}
			if err := walk(fields[key], below); err != nil {
				return err
			}
		}
		out.WriteString("\n}")
		return nil
	}
	err := walk(document, 3)
	out.WriteString("\n")
	return out.Bytes(), err
}

package scenario

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

const (
	// testFile makes a folder a scenario. The name is chainsaw's.
	testFile = "chainsaw-test.yaml"
	// configurationFile holds the named timeouts that all scenarios share.
	configurationFile = ".chainsaw.yaml"
	// valuesFile holds the values that a run need not give.
	valuesFile = "values.yaml"
	// sinceLabel names the first release of the operator that a scenario is for.
	sinceLabel = "since"
)

// Suite is a folder with one sub-folder per scenario, and beside them what they share.
type Suite struct {
	// Dir is the path of the folder.
	Dir string
}

// Scenario is one chainsaw test.
type Scenario struct {
	// Name is the name of the test and of its folder.
	Name string
	// Labels say what it is about (feature), how long it takes (level: smoke or full), and which
	// release of the operator it is for at the earliest (since).
	Labels map[string]string
}

// Supported are the scenarios for which the release of the operator is new enough, by its
// version without a leading v.
func Supported(scenarios []Scenario, version string) ([]Scenario, error) {
	release, err := semver.StrictNewVersion(version)
	if err != nil {
		return nil, fmt.Errorf("choose scenarios for operator %q: %w", version, err)
	}
	var supported []Scenario
	for _, scenario := range scenarios {
		since, err := semver.StrictNewVersion(scenario.Labels[sinceLabel])
		if err != nil {
			return nil, fmt.Errorf("scenario %s: label %s %q: %w", scenario.Name, sinceLabel, scenario.Labels[sinceLabel], err)
		}
		if !release.LessThan(since) {
			supported = append(supported, scenario)
		}
	}
	return supported, nil
}

// Names are the names of the scenarios.
func Names(scenarios []Scenario) []string {
	var names []string
	for _, scenario := range scenarios {
		names = append(names, scenario.Name)
	}
	return names
}

// Scenarios returns the scenarios whose labels match, in the order of their names.
// labels.Everything() matches all.
func (s Suite) Scenarios(selector labels.Selector) ([]Scenario, error) {
	files, err := filepath.Glob(filepath.Join(s.Dir, "*", testFile))
	if err != nil {
		return nil, fmt.Errorf("look for scenarios in %s: %w", s.Dir, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no scenario in %s: want a folder with a %s", s.Dir, testFile)
	}
	slices.Sort(files)
	var found []Scenario
	for _, file := range files {
		scenario, err := readScenario(file)
		if err != nil {
			return nil, err
		}
		if selector.Matches(labels.Set(scenario.Labels)) {
			found = append(found, scenario)
		}
	}
	return found, nil
}

func readScenario(file string) (Scenario, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return Scenario{}, fmt.Errorf("read the scenario: %w", err)
	}
	var test struct {
		Metadata struct {
			Name   string            `json:"name"`
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	if err := yaml.Unmarshal(content, &test); err != nil {
		return Scenario{}, fmt.Errorf("read the scenario %s: %w", file, err)
	}
	folder := filepath.Base(filepath.Dir(file))
	if test.Metadata.Name != folder {
		return Scenario{}, fmt.Errorf("%s: the test is named %q, its folder %q: give both one name", file, test.Metadata.Name, folder)
	}
	return Scenario{Name: folder, Labels: test.Metadata.Labels}, nil
}

// Digest identifies what the named scenario does: its own files and all that scenarios
// share. Texts for readers (*.md) don't count. It has the form sha256:<hex>.
func (s Suite) Digest(name string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(s.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path != s.Dir && filepath.Base(path) != name && isScenario(path) {
				return filepath.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() || filepath.Ext(path) == ".md" {
			return nil
		}
		relative, err := filepath.Rel(s.Dir, path)
		if err != nil {
			return err
		}
		return hashFile(h, path, filepath.ToSlash(relative))
	})
	if err == nil && !isScenario(filepath.Join(s.Dir, name)) {
		err = fmt.Errorf("there is no %s", filepath.Join(name, testFile))
	}
	if err != nil {
		return "", fmt.Errorf("hash scenario %s of %s: %w", name, s.Dir, err)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

func isScenario(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, testFile))
	return err == nil
}

// hashFile adds name, length and content, so that no two trees hash alike.
func hashFile(h hash.Hash, path, name string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fmt.Fprintf(h, "%s\n%d\n", name, len(content))
	h.Write(content)
	return nil
}

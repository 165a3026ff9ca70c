package charts_test

import (
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// maxValues bounds the values that are tried, in bytes: what a user writes is shorter.
const maxValues = 4 << 10

// refusals are how the chart says no: by the schema of its values, or by a sentence of its own.
var refusals = regexp.MustCompile(`values don't meet the specifications of the schema|execution error at \(`)

// FuzzValues checks that whatever values a user gives, the chart refuses them in words or renders
// objects that can be read: no template stumbles over a value that the schema lets pass.
func FuzzValues(f *testing.F) {
	for _, c := range changes {
		f.Add([]byte(c.set))
		if c.given != "" {
			f.Add([]byte(c.given))
		}
	}
	for _, values := range []string{
		"", "null", "[]", "image:", "image: null", "image: {tag: 1.0}", "image: {tag: \"a\\nb\"}", "resources: {limits: {cpu: 1}}", "podLabels: {a: 1}",
		"podLabels: {\"a: b\": \"c\\nd: e\"}", "metrics: {service: null}", "metrics: null", "nameOverride: \"x: y\"", "watchNamespace: \"-\"", "unknown: {a: [1, 2]}",
		"imagePullSecrets: [{}]", "tolerations: [null]", "commonLabels: {app.kubernetes.io/name: mine}", "global: {a: b}",
	} {
		f.Add([]byte(values))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		values := map[string]any{}
		if len(text) > maxValues || yaml.Unmarshal(text, &values) != nil {
			t.Skip("no values")
		}
		rendered, err := install(helm(), load(t), values)
		if err != nil {
			told := err.Error()
			if !refusals.MatchString(told) || strings.Contains(told, "nil pointer") || strings.Contains(told, "runtime error") {
				t.Errorf("the chart stumbles: %v", err)
			}
			return
		}
		for name, object := range objectsOf(t, rendered) {
			if object.GetAPIVersion() == "" || object.GetKind() == "" || object.GetName() == "" {
				t.Errorf("%s is no object: %v", name, object.Object)
			}
		}
	})
}

package check

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sort"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// unchanged fails for each place below the path in which the two objects differ.
func (r *Result) unchanged(p pair, path ...string) {
	before, _, _ := unstructured.NestedFieldNoCopy(p.before.Object, path...)
	after, _, _ := unstructured.NestedFieldNoCopy(p.after.Object, path...)
	name := ""
	for _, part := range path {
		name = join(name, part)
	}
	for _, d := range differences(name, before, after) {
		r.Fail("%s: %s", p.name, d)
	}
}

// Differences lists the leaves in which two JSON values differ, as in "spec.replicas was 1, is 2".
func Differences(before, after any) []string {
	return differences("", before, after)
}

// differences lists the leaves in which two JSON values differ, by their path.
func differences(path string, before, after any) []string {
	if reflect.DeepEqual(before, after) {
		return nil
	}
	b, bIsMap := before.(map[string]any)
	a, aIsMap := after.(map[string]any)
	if bIsMap && aIsMap {
		var out []string
		for _, key := range keys(b, a) {
			out = append(out, differences(join(path, key), b[key], a[key])...)
		}
		return out
	}
	bs, bIsSlice := before.([]any)
	as, aIsSlice := after.([]any)
	if bIsSlice && aIsSlice && len(bs) == len(as) {
		var out []string
		for i := range bs {
			out = append(out, differences(fmt.Sprintf("%s[%d]", path, i), bs[i], as[i])...)
		}
		return out
	}
	return []string{fmt.Sprintf("%s was %s, is %s", path, compact(before), compact(after))}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func keys(maps ...map[string]any) []string {
	seen := map[string]bool{}
	var out []string
	for _, m := range maps {
		for key := range m {
			if !seen[key] {
				seen[key] = true
				out = append(out, key)
			}
		}
	}
	sort.Strings(out)
	return out
}

// compact prints a value in at most 200 bytes; nil as "absent".
func compact(value any) string {
	if value == nil {
		return "absent"
	}
	content, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if len(content) > 200 {
		return string(content[:200]) + "…"
	}
	return string(content)
}

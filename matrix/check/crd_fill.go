package check

import (
	"encoding/json"
	"fmt"
	"sort"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Fill gives a value for the schema at a path like spec.image, in which every property is set. Exemplars
// are the values, by their path, of fields whose rule a schema can't be turned into a value by; nil
// leaves a field out.
func Fill(exemplars map[string]any, path string, schema *apiextensionsv1.JSONSchemaProps) any {
	if value, ok := exemplars[path]; ok {
		return runtime.DeepCopyJSONValue(value)
	}
	switch {
	case len(schema.Enum) > 0:
		var value any
		if err := json.Unmarshal(schema.Enum[0].Raw, &value); err == nil {
			return value
		}
		return nil
	case schema.XIntOrString:
		return "1"
	case schema.Type == "object" && len(schema.Properties) > 0:
		return fillObject(exemplars, path, schema)
	case schema.Type == "object":
		return map[string]any{}
	case schema.Type == "array" && schema.Items != nil && schema.Items.Schema != nil:
		return []any{Fill(exemplars, path+"[]", schema.Items.Schema)}
	case schema.Type == "boolean":
		return true
	case schema.Format == "date-time":
		return "2026-01-01T00:00:00Z"
	case schema.Type == "integer":
		if schema.Minimum != nil && *schema.Minimum > 1 {
			return int64(*schema.Minimum)
		}
		return int64(1)
	default:
		return "example"
	}
}

func fillObject(exemplars map[string]any, path string, schema *apiextensionsv1.JSONSchemaProps) map[string]any {
	object := map[string]any{}
	for name := range schema.Properties {
		property := schema.Properties[name]
		if value := Fill(exemplars, path+"."+name, &property); value != nil {
			object[name] = value
		}
	}
	return object
}

// missing lists the paths that are set in sent and not in stored.
func missing(path string, sent, stored any) []string {
	switch sent := sent.(type) {
	case map[string]any:
		object, ok := stored.(map[string]any)
		if !ok {
			return []string{path}
		}
		var out []string
		for name, value := range sent {
			out = append(out, missing(path+"."+name, value, object[name])...)
		}
		sort.Strings(out)
		return out
	case []any:
		list, ok := stored.([]any)
		if !ok || len(list) != len(sent) {
			return []string{path}
		}
		var out []string
		for i := range sent {
			out = append(out, missing(fmt.Sprintf("%s[%d]", path, i), sent[i], list[i])...)
		}
		return out
	default:
		if stored == nil {
			return []string{path}
		}
		return nil
	}
}

// leaves counts the values in a JSON tree that are neither object nor list.
func leaves(value any) int {
	count := 0
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			count += leaves(v)
		}
	case []any:
		for _, v := range value {
			count += leaves(v)
		}
	default:
		return 1
	}
	return count
}

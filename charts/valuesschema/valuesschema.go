// Package valuesschema makes the values.schema.json of a chart from one that is written by
// hand and the types of Kubernetes that it refers to. Helm itself lets an unknown field in
// such a type pass with a warning, and the API server drops it.
package valuesschema

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// kubernetes are the types that a schema may refer to, as #/definitions/<name of the type>.
var kubernetes = []reflect.Type{
	reflect.TypeFor[corev1.Affinity](),
	reflect.TypeFor[corev1.PodSecurityContext](),
	reflect.TypeFor[corev1.ResourceRequirements](),
	reflect.TypeFor[corev1.SecurityContext](),
	reflect.TypeFor[corev1.Toleration](),
	reflect.TypeFor[corev1.TopologySpreadConstraint](),
}

// Complete adds the types of Kubernetes to the definitions of the schema in file.
func Complete(file string) ([]byte, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the schema of the chart's values: %w", err)
	}
	var schema map[string]any
	if err := json.Unmarshal(content, &schema); err != nil {
		return nil, fmt.Errorf("read the schema of the chart's values from %s: %w", file, err)
	}
	definitions, ok := schema["definitions"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("read the schema of the chart's values from %s: it has no definitions", file)
	}
	for _, kind := range kubernetes {
		if err := define(definitions, kind); err != nil {
			return nil, err
		}
	}
	completed, err := json.MarshalIndent(schema, "", " ")
	return append(completed, '\n'), err
}

// define adds a struct, and those that it is made of.
func define(definitions map[string]any, kind reflect.Type) error {
	if definitions[kind.Name()] != nil {
		return nil
	}
	properties := map[string]any{}
	definitions[kind.Name()] = map[string]any{
		"title": kind.Name(), "type": orNull("object"), "additionalProperties": false, "properties": properties,
	}
	for i := range kind.NumField() {
		field := kind.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			return fmt.Errorf("describe %s: field %s has no name in JSON", kind, field.Name)
		}
		schema, err := describe(definitions, field.Type)
		if err != nil {
			return fmt.Errorf("describe %s: field %s: %w", kind, field.Name, err)
		}
		properties[name] = schema
	}
	return nil
}

func describe(definitions map[string]any, kind reflect.Type) (map[string]any, error) {
	switch kind {
	case reflect.TypeFor[resource.Quantity]():
		return map[string]any{"type": orNull("string", "number")}, nil
	case reflect.TypeFor[intstr.IntOrString]():
		return map[string]any{"type": orNull("string", "integer")}, nil
	}
	switch kind.Kind() {
	case reflect.Pointer:
		return describe(definitions, kind.Elem())
	case reflect.String:
		return map[string]any{"type": orNull("string")}, nil
	case reflect.Bool:
		return map[string]any{"type": orNull("boolean")}, nil
	case reflect.Int32, reflect.Int64:
		return map[string]any{"type": orNull("integer")}, nil
	case reflect.Slice:
		items, err := describe(definitions, kind.Elem())
		return map[string]any{"type": orNull("array"), "items": items}, err
	case reflect.Map:
		values, err := describe(definitions, kind.Elem())
		return map[string]any{"type": orNull("object"), "additionalProperties": values}, err
	case reflect.Struct:
		return map[string]any{"$ref": "#/definitions/" + kind.Name()}, define(definitions, kind)
	default:
		return nil, fmt.Errorf("%s can't be described", kind)
	}
}

// orNull is for values that may be left out, which all may.
func orNull(types ...string) []any {
	result := []any{"null"}
	for _, name := range types {
		result = append(result, name)
	}
	return result
}

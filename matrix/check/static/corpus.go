package static

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/check/static/crdschema"
	"github.com/trussiumhq/trussium-operator/matrix/compat"
)

// member is an object of the corpus, as the API server stores it under the source's CRD.
type member struct {
	name   string
	object map[string]any
}

// corpus are the objects that users of the source can have stored.
type corpus struct {
	members []member
	// left are the names of those that the source itself refuses.
	left []string
}

// corpusOf makes objects of one CRD: with every field, with each field that can be left out in
// each of its forms, with and without what makes the smallest one complete, at every bound of a
// number or a text; and the examples of the source tree. Those that the source refuses are left out.
func corpusOf(ctx context.Context, resource compat.Resource, definition *apiextensionsv1.CustomResourceDefinition, schema *crdschema.Schema, tree *Tree) (corpus, error) {
	var c corpus
	version := storageVersion(definition)
	root := version.Schema.OpenAPIV3Schema
	examples, err := tree.examples(resource.Examples, definition.Spec.Group+"/"+version.Name, definition.Spec.Names.Kind)
	if err != nil {
		return c, err
	}
	complete := func(f form) member {
		object := f.value.(map[string]any)
		object["apiVersion"] = definition.Spec.Group + "/" + version.Name
		object["kind"] = definition.Spec.Names.Kind
		object["metadata"] = map[string]any{"name": "example", "namespace": "default"}
		return member{name: cmp.Or(f.name, "the smallest"), object: object}
	}
	parts := &apiextensionsv1.JSONSchemaProps{Type: "object", Required: root.Required, Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	every := map[string]any{}
	for _, name := range []string{"spec", "status"} {
		if part, ok := root.Properties[name]; ok {
			parts.Properties[name] = part
			every[name] = check.Fill(resource.Exemplars, name, &part)
		}
	}
	for _, example := range examples {
		c.add(ctx, schema, example)
	}
	c.add(ctx, schema, complete(form{"every field", every}))
	forms := formsOf(resource.Exemplars, "", parts)
	var base map[string]any // the smallest that is accepted
	for _, f := range forms {
		if alone := complete(f); accepted(ctx, schema, alone) != nil {
			base = alone.object
			break
		}
	}
	for _, f := range forms {
		alone := complete(f)
		c.add(ctx, schema, alone, member{name: alone.name, object: over(alone.object, base)})
	}
	return c, nil
}

// add takes those of the alternatives that the schema lets be created, each object once.
func (c *corpus) add(ctx context.Context, schema *crdschema.Schema, alternatives ...member) {
	taken := false
	for _, alternative := range alternatives {
		stored := accepted(ctx, schema, alternative)
		if stored == nil {
			continue
		}
		taken = true
		known := func(m member) bool { return reflect.DeepEqual(m.object, stored) }
		if !slices.ContainsFunc(c.members, known) {
			c.members = append(c.members, member{name: alternative.name, object: stored})
		}
	}
	if !taken {
		c.left = append(c.left, alternatives[0].name)
	}
}

// accepted is the object as it is stored; nil if it is refused.
func accepted(ctx context.Context, schema *crdschema.Schema, candidate member) map[string]any {
	stored := runtime.DeepCopyJSON(candidate.object)
	schema.Prune(stored)
	schema.Default(stored)
	if schema.Validate(ctx, stored) != nil {
		return nil
	}
	return stored
}

func storageVersion(definition *apiextensionsv1.CustomResourceDefinition) apiextensionsv1.CustomResourceDefinitionVersion {
	i := slices.IndexFunc(definition.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
	return definition.Spec.Versions[max(i, 0)]
}

// examples are the objects of a kind in the tree's files that match the patterns.
func (t *Tree) examples(patterns []string, apiVersion, kind string) ([]member, error) {
	if t == nil {
		return nil, nil
	}
	var members []member
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(t.dir, pattern))
		if err != nil {
			return nil, fmt.Errorf("look for example objects: %w", err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("read an example object: %w", err)
			}
			found, err := documents(content)
			if err != nil {
				return nil, fmt.Errorf("read the example objects of %s: %w", file, err)
			}
			for _, object := range found {
				if object["apiVersion"] == apiVersion && object["kind"] == kind {
					members = append(members, member{name: filepath.Base(file), object: object})
				}
			}
		}
	}
	return members, nil
}

// form is one value of a place in a schema, named by what makes it differ from the smallest.
type form struct {
	name  string
	value any
}

// formsOf are the values of a place: the smallest, then those that differ from it in one thing.
func formsOf(exemplars map[string]any, path string, schema *apiextensionsv1.JSONSchemaProps) []form {
	switch {
	case schema.Type == "object" && len(schema.Properties) > 0:
		return objectForms(exemplars, path, schema)
	case schema.Type == "array" && schema.Items != nil && schema.Items.Schema != nil:
		var forms []form
		if schema.MinItems == nil || *schema.MinItems == 0 {
			forms = append(forms, form{path, []any{}})
		}
		for _, item := range formsOf(exemplars, path+"[]", schema.Items.Schema) {
			forms = append(forms, form{item.name, []any{item.value}})
		}
		return forms
	default:
		return leafForms(exemplars, path, schema)
	}
}

func objectForms(exemplars map[string]any, path string, schema *apiextensionsv1.JSONSchemaProps) []form {
	of := map[string][]form{}
	least := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		of[name] = formsOf(exemplars, strings.TrimPrefix(path+"."+name, "."), &property)
		if slices.Contains(schema.Required, name) {
			least[name] = of[name][0].value
		}
	}
	forms := []form{{path, least}}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		for _, f := range of[name] {
			object := runtime.DeepCopyJSON(least)
			object[name] = runtime.DeepCopyJSONValue(f.value)
			forms = append(forms, form{f.name, object})
		}
	}
	return forms
}

// leafForms are single values: all of an enumeration, and those at the bounds.
func leafForms(exemplars map[string]any, path string, schema *apiextensionsv1.JSONSchemaProps) []form {
	usual := check.Fill(exemplars, path, schema)
	if usual == nil {
		usual = check.Fill(nil, "", schema) // every-field objects have to leave it out
	}
	values := []any{usual}
	switch {
	case len(schema.Enum) > 0:
		values = nil
		for _, entry := range schema.Enum {
			var value any
			if err := json.Unmarshal(entry.Raw, &value); err == nil {
				values = append(values, value)
			}
		}
	case schema.Type == "boolean":
		values = []any{false, true}
	case schema.XIntOrString:
		values = append(values, int64(1))
	case schema.Type == "integer":
		for _, bound := range []*float64{schema.Minimum, schema.Maximum} {
			if bound != nil {
				values = append(values, int64(*bound))
			}
		}
	case schema.Type == "string":
		for _, bound := range []*int64{schema.MinLength, schema.MaxLength} {
			if bound != nil {
				values = append(values, strings.Repeat("a", int(*bound)))
			}
		}
	}
	var forms []form
	for _, value := range values {
		forms = append(forms, form{path, value})
	}
	return forms
}

// over is the base with everything in it that the object has.
func over(object, base map[string]any) map[string]any {
	merged := runtime.DeepCopyJSON(base)
	for name, value := range object {
		below, isMap := value.(map[string]any)
		under, wasMap := merged[name].(map[string]any)
		if isMap && wasMap {
			merged[name] = over(below, under)
		} else {
			merged[name] = runtime.DeepCopyJSONValue(value)
		}
	}
	return merged
}

package githubtest

import (
	"encoding/json"
	"fmt"

	"github.com/getkin/kin-openapi/openapi3"
)

// DispatchEvent is a repository_dispatch event, as GitHub describes it, with this payload.
func (d *Description) DispatchEvent(action string, payload any) ([]byte, error) {
	const schema = "webhook-repository-dispatch-sample"
	event, _ := smallest(d.document.Components.Schemas[schema].Value).(map[string]any)
	event["action"], event["client_payload"] = action, payload
	content, err := json.MarshalIndent(event, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := d.Check(schema, content); err != nil {
		return nil, fmt.Errorf("the event is not as GitHub describes it: %w", err)
	}
	return content, nil
}

// smallest is a value with no more than the schema requires.
func smallest(schema *openapi3.Schema) any {
	switch {
	case schema.Nullable:
		return nil
	case len(schema.Enum) > 0:
		return schema.Enum[0]
	case len(schema.OneOf) > 0:
		return smallest(schema.OneOf[0].Value)
	case len(schema.AnyOf) > 0:
		return smallest(schema.AnyOf[0].Value)
	case schema.Type.Is("boolean"):
		return false
	case schema.Type.Is("integer"), schema.Type.Is("number"):
		return 1
	case schema.Type.Is("array"):
		return []any{}
	case schema.Type.Is("string") && schema.Format == "date-time":
		return "2026-11-20T12:00:00Z"
	case schema.Type.Is("string"):
		return "https://github.com/trussiumhq"
	}
	out := map[string]any{}
	for _, name := range schema.Required {
		out[name] = smallest(schema.Properties[name].Value)
	}
	return out
}

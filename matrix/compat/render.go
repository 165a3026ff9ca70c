package compat

import (
	"strings"
)

// namePlaceholder stands for the name of a runtime in the name of a managed object.
const namePlaceholder = "$name"

// Placeholders are what stands for the placeholders in the spec of a runtime.
type Placeholders struct {
	// Repository and Tag are the image: $repository, $tag, and $image for REPOSITORY:TAG.
	Repository, Tag string
	// Replicas is $replicas.
	Replicas int
}

// Render is the value with its placeholders filled in. A text is replaced only if it is nothing but a placeholder.
func (p Placeholders) Render(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, item := range value {
			out[key] = p.Render(item)
		}
		return out
	case []any:
		out := []any{}
		for _, item := range value {
			out = append(out, p.Render(item))
		}
		return out
	case string:
		switch value {
		case "$repository":
			return p.Repository
		case "$tag":
			return p.Tag
		case "$image":
			return p.Repository + ":" + p.Tag
		case "$replicas":
			return int64(p.Replicas)
		}
	}
	return value
}

// The placeholders that a change of the image, or of the count of pods, changes.
var (
	ImagePlaceholders    = []string{"$repository", "$tag", "$image"}
	ReplicasPlaceholders = []string{"$replicas"}
)

// Parts are those parts of the value that hold one of the placeholders, as a merge patch; nil if none does. A list is
// taken whole.
func Parts(value any, placeholders []string) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, item := range value {
			if part := Parts(item, placeholders); part != nil {
				out[key] = part
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		for _, item := range value {
			if Parts(item, placeholders) != nil {
				return value
			}
		}
	case string:
		for _, placeholder := range placeholders {
			if value == placeholder {
				return value
			}
		}
	}
	return nil
}

// NameFor is the name of the managed object for the runtime of that name.
func (m Managed) NameFor(runtime string) string {
	return strings.ReplaceAll(m.Name, namePlaceholder, runtime)
}

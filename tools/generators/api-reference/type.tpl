{{- define "type" -}}
{{- if markdownShouldRenderType . }}

## {{ .Name }}

{{ .Doc }}
{{- with .SortedReferences }}

Appears in: {{ range $i, $type := . }}{{ if $i }}, {{ end }}{{ markdownRenderTypeLink $type }}{{ end }}
{{- end }}
{{- if or .Validation (index .Markers "kubebuilder:validation:XValidation") }}

Validation: {{ template "rules" . }}
{{- end }}
{{- if .Members }}

| Field | Type | Required | Default | Validation | Description |
| --- | --- | --- | --- | --- | --- |
{{- if .GVK }}
| `apiVersion` | string | yes | | `{{ .GVK.Group }}/{{ .GVK.Version }}` | |
| `kind` | string | yes | | `{{ .GVK.Kind }}` | |
{{- end }}
{{- range .Members }}
| `{{ .Name }}` | {{ markdownRenderType .Type }} | {{ if has "Required: {}" .Validation }}yes{{ end }} | {{ with .Default }}`{{ . | replace "{  }" "{}" }}`{{ end }} | {{ template "rules" . }} | {{ if ne .Name "metadata" }}{{ markdownRenderFieldDoc .Doc }}{{ end }} |
{{- end }}
{{- end }}
{{- if .EnumValues }}

| Value | Description |
| --- | --- |
{{- range .EnumValues }}
| `{{ .Name }}` | {{ .Doc | trim | markdownRenderFieldDoc }} |
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "gvList" -}}
<!-- Generated from api/v1alpha1 by `make generate`; edit the comments there. -->

# API reference
{{- range . }}
{{- $version := . }}

Group and version: `{{ .GroupVersionString }}`. The conditions in the status are explained in [status and events](status-and-events.md).
{{- range .SortedKinds }}
{{- template "type" ($version.TypeForKind .) }}
{{- end }}
{{- range .SortedTypes }}
{{- if not .GVK }}{{ template "type" . }}{{ end }}
{{- end }}
{{- end }}
{{ end -}}

{{- /* What is checked, of a type or of a field. CEL rules are told by their messages. */ -}}
{{- define "rules" -}}
{{- $rules := list }}
{{- range .Validation }}
{{- if not (or (hasPrefix "Required:" .) (hasPrefix "Optional:" .)) }}
{{- $rules = append $rules (. | replace "|" "\\|") }}
{{- end }}
{{- end }}
{{- range index .Markers "kubebuilder:validation:XValidation" }}
{{- $rules = append $rules .Message }}
{{- end }}
{{- join "; " $rules }}
{{- end -}}

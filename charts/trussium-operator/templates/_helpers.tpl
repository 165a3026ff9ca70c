{{/* Name of the chart, as the value of app.kubernetes.io/name. */}}
{{- define "trussium-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Prefix of every name. Short enough for the longest suffix, "-controller-manager-metrics". */}}
{{- define "trussium-operator.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 36 | trimSuffix "-" }}
{{- else -}}
{{- $name := include "trussium-operator.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 36 | trimSuffix "-" }}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 36 | trimSuffix "-" }}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "trussium-operator.managerName" -}}
{{- printf "%s-controller-manager" (include "trussium-operator.fullname" .) }}
{{- end }}

{{- define "trussium-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "trussium-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "trussium-operator.labels" -}}
{{ include "trussium-operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "trussium-operator.serviceAccountName" -}}
{{- if eq (include "trussium-operator.serviceAccountCreate" .) "true" -}}
{{- default (include "trussium-operator.managerName" .) (.Values.serviceAccount).name }}
{{- else -}}
{{- default "default" (.Values.serviceAccount).name }}
{{- end -}}
{{- end }}

{{/*
Values that are true unless they are set to false. Values carried over from an
earlier release may lack any of them, so nothing is read without its parents.
*/}}
{{- define "trussium-operator.serviceAccountCreate" -}}
{{- ne (toString (.Values.serviceAccount).create) "false" }}
{{- end }}

{{- define "trussium-operator.serviceAccountAutomount" -}}
{{- ne (toString (.Values.serviceAccount).automount) "false" }}
{{- end }}

{{- define "trussium-operator.metricsEnabled" -}}
{{- ne (toString ((.Values.metrics).service).enabled) "false" }}
{{- end }}

{{- define "trussium-operator.metricsPort" -}}
{{- ((.Values.metrics).service).port | default 8443 }}
{{- end }}

{{- define "trussium-operator.image" -}}
{{- $image := .Values.image | default dict -}}
{{- printf "%s:%s" ($image.repository | default "ghcr.io/trussiumhq/trussium-operator") ($image.tag | default .Chart.AppVersion) }}
{{- end }}

{{- define "trussium-operator.crdUpgrade" -}}
{{- ne (toString (.Values.crds).upgrade) "false" }}
{{- end }}

{{- define "trussium-operator.serviceMonitorEnabled" -}}
{{- and (eq (include "trussium-operator.metricsEnabled" .) "true") (eq (toString ((.Values.metrics).serviceMonitor).enabled) "true") }}
{{- end }}

{{- define "trussium-operator.insecureSkipVerify" -}}
{{- ne (toString ((.Values.metrics).serviceMonitor).insecureSkipVerify) "false" }}
{{- end }}

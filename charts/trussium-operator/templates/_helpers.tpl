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

{{/* Selectors are immutable: these are those of every published release. */}}
{{- define "trussium-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "trussium-operator.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/*
Labels and annotations of an object: (list . <labels> <annotations>). The object's own win
over the common ones, the chart's own labels over both.
*/}}
{{- define "trussium-operator.objectMeta" -}}
{{- $root := index . 0 -}}
{{- $chart := include "trussium-operator.selectorLabels" $root | fromYaml -}}
{{- $_ := set $chart "app.kubernetes.io/version" $root.Chart.AppVersion -}}
{{- $_ := set $chart "app.kubernetes.io/managed-by" $root.Release.Service -}}
{{- $_ := set $chart "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") -}}
labels:
  {{- merge $chart (index . 1 | default dict) ($root.Values.commonLabels | default dict) | toYaml | nindent 2 }}
{{- with merge (dict) (index . 2 | default dict) ($root.Values.commonAnnotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Labels and annotations of a Pod: (list . <labels> <annotations>). The labels given win over all others. */}}
{{- define "trussium-operator.podMeta" -}}
{{- $values := (index . 0).Values -}}
labels:
  {{- merge (index . 1) ($values.podLabels | default dict) ($values.commonLabels | default dict) | toYaml | nindent 2 }}
{{- with merge (dict) ($values.podAnnotations | default dict) ($values.commonAnnotations | default dict) (index . 2) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What all Pods of the chart have in common. */}}
{{- define "trussium-operator.podSpec" -}}
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What all containers of the chart have in common. */}}
{{- define "trussium-operator.container" -}}
image: {{ include "trussium-operator.image" . | quote }}
imagePullPolicy: {{ (.Values.image).pullPolicy | default "IfNotPresent" }}
command:
- /manager
{{- with include "trussium-operator.resources" . | fromYaml }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
Requests and limits without those that are null. A null takes away an earlier chart's default,
also one that this chart no longer has; the API server would read it as 0.
*/}}
{{- define "trussium-operator.resources" -}}
{{- $resources := deepCopy (.Values.resources | default dict) -}}
{{- range $kind := list "requests" "limits" -}}
{{- range $name, $quantity := index $resources $kind -}}
{{- if kindIs "invalid" $quantity -}}
{{- $_ := unset (index $resources $kind) $name -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $resources -}}
{{- end }}

{{- define "trussium-operator.image" -}}
{{- $image := .Values.image | default dict -}}
{{- $repository := $image.repository | default "ghcr.io/trussiumhq/trussium-operator" -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $repository $image.digest }}
{{- else -}}
{{- printf "%s:%s" $repository ($image.tag | default .Chart.AppVersion) }}
{{- end -}}
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

{{- define "trussium-operator.leaderElection" -}}
{{- ne (toString (.Values.leaderElection).enabled) "false" }}
{{- end }}

{{- define "trussium-operator.crdUpgrade" -}}
{{- ne (toString (.Values.crds).upgrade) "false" }}
{{- end }}

{{- define "trussium-operator.metricsEnabled" -}}
{{- ne (toString ((.Values.metrics).service).enabled) "false" }}
{{- end }}

{{- define "trussium-operator.insecureSkipVerify" -}}
{{- ne (toString ((.Values.metrics).serviceMonitor).insecureSkipVerify) "false" }}
{{- end }}

{{/* Values that are false unless they are set to true. */}}
{{- define "trussium-operator.serviceMonitorEnabled" -}}
{{- and (eq (include "trussium-operator.metricsEnabled" .) "true") (eq (toString ((.Values.metrics).serviceMonitor).enabled) "true") }}
{{- end }}

{{- define "trussium-operator.podDisruptionBudgetEnabled" -}}
{{- eq (toString (.Values.podDisruptionBudget).enabled) "true" }}
{{- end }}

{{- define "trussium-operator.metricsPort" -}}
{{- ((.Values.metrics).service).port | default 8443 }}
{{- end }}

{{- define "leasehold-standby.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{- else -}}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{- end -}}
{{- end -}}

{{- define "leasehold-standby.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "leasehold-standby.meta" -}}
namespace: {{ .Release.Namespace }}
{{ include "leasehold-standby.labels" . }}
{{- end -}}

{{- define "leasehold-standby.labels" -}}
labels:
  {{- include "leasehold-standby.selector" . | nindent 2 }}
  app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .Release.Service }}
  helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "leasehold-standby.account" -}}
{{- .Values.serviceAccount.name | default (ternary (include "leasehold-standby.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "leasehold-standby.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end -}}

{{- /* Not empty where the lease is a Lease of this namespace. */ -}}
{{- define "leasehold-standby.own" -}}
{{- if not (or .Values.dr.tableName .Values.dr.store) }}own{{ end -}}
{{- end -}}

{{- /* What no schema can say. */ -}}
{{- define "leasehold-standby.check" -}}
{{- if and .Values.dr.tableName .Values.dr.store -}}
{{- fail "dr.tableName and dr.store: want one of them" -}}
{{- end -}}
{{- if and .Values.dr.tableName (not .Values.dr.region) -}}
{{- fail (printf "dr.tableName %s: want dr.region, too" .Values.dr.tableName) -}}
{{- end -}}
{{- if and (eq .Values.mode "notify") (not .Values.command) -}}
{{- fail "mode notify: want command: there is nobody to tell" -}}
{{- end -}}
{{- end -}}

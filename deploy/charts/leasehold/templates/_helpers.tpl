{{- define "leasehold.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{- else -}}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{- end -}}
{{- end -}}

{{- define "leasehold.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "leasehold.meta" -}}
namespace: {{ .Release.Namespace }}
{{ include "leasehold.labels" . }}
{{- end -}}

{{- define "leasehold.labels" -}}
labels:
  {{- include "leasehold.selector" . | nindent 2 }}
  app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .Release.Service }}
  helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "leasehold.account" -}}
{{- .Values.serviceAccount.name | default (ternary (include "leasehold.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "leasehold.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end -}}

{{- define "leasehold.policy" -}}
{{- if .Values.auth.policy -}}
{{ toYaml .Values.auth.policy }}
{{- else -}}
kubernetes:
  audience: leasehold
callers:
  - name: this namespace
    subjects: ["system:serviceaccount:{{ .Release.Namespace }}:*"]
    allow:
      - {actions: [read, acquire], names: ["*"]}
{{- end -}}
{{- end -}}

{{- /* What no schema can say. */ -}}
{{- define "leasehold.check" -}}
{{- with .Values -}}
{{- if and .store.url .store.existingSecret -}}
{{- fail "store.url and store.existingSecret: want one of them" -}}
{{- end -}}
{{- if and (ne .store.type "kubernetes") (not .store.url) (not .store.existingSecret) -}}
{{- fail (printf "store.type %s: want store.url, or store.existingSecret with the URL" .store.type) -}}
{{- end -}}
{{- if and .store.url (not (hasPrefix (get (dict "kubernetes" "k8s://" "etcd" "etcd://" "postgres" "postgres") .store.type) .store.url)) -}}
{{- fail (printf "store.url %s: want a URL of store.type %s" .store.url .store.type) -}}
{{- end -}}
{{- if and (not .auth.allowAnybody) (not .tls.enabled) -}}
{{- fail "tls.enabled false: tokens would travel in the clear: want tls, or auth.allowAnybody if the network keeps others out" -}}
{{- end -}}
{{- if and .auth.policy .auth.existingSecret -}}
{{- fail "auth.policy and auth.existingSecret: want one of them" -}}
{{- end -}}
{{- if and .auth.allowAnybody (or .auth.policy .auth.existingSecret) -}}
{{- fail "auth.allowAnybody with a policy: want one of them" -}}
{{- end -}}
{{- if and (not .auth.allowAnybody) (not .auth.policy) (not .auth.existingSecret) (not .auth.kubernetes) -}}
{{- fail "auth.kubernetes false: want auth.policy or auth.existingSecret, since the policy of the chart names service accounts" -}}
{{- end -}}
{{- if and .tls.clientCA (not .tls.enabled) -}}
{{- fail "tls.clientCA needs tls.enabled" -}}
{{- end -}}
{{- end -}}
{{- end -}}

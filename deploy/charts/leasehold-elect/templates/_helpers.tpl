{{- define "leasehold-elect.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{- else -}}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{- end -}}
{{- end -}}

{{- define "leasehold-elect.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "leasehold-elect.meta" -}}
namespace: {{ .Release.Namespace }}
{{ include "leasehold-elect.labels" . }}
{{- end -}}

{{- define "leasehold-elect.labels" -}}
labels:
  {{- include "leasehold-elect.selector" . | nindent 2 }}
  app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .Release.Service }}
  helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "leasehold-elect.account" -}}
{{- .Values.serviceAccount.name | default (ternary (include "leasehold-elect.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "leasehold-elect.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end -}}

{{- define "leasehold-elect.store" -}}
{{- if .Values.store.url }}{{ .Values.store.url }}{{ else }}k8s://{{ .Release.Namespace }}{{ end -}}
{{- end -}}

{{- define "leasehold-elect.name" -}}
{{- .Values.election.name | default (include "leasehold-elect.fullname" .) -}}
{{- end -}}

{{- define "leasehold-elect.env" -}}
- name: LEASEHOLD_STORE
  {{- if .Values.store.existingSecret }}
  valueFrom:
    secretKeyRef: {name: {{ .Values.store.existingSecret }}, key: {{ .Values.store.existingSecretKey }}}
  {{- else }}
  value: {{ include "leasehold-elect.store" . | quote }}
  {{- end }}
{{- with .Values.store.env }}{{ toYaml . | nindent 0 }}{{ end }}
{{- end -}}

{{- /*
The sidecar, an element of a pod's initContainers. Kubernetes starts it before the containers, and ends it after them: the leader's
container has ended when its term ends. The pod needs the ServiceAccount, see leasehold-elect.account.
*/ -}}
{{- define "leasehold-elect.sidecar" -}}
- name: leasehold-elect
  restartPolicy: Always
  image: {{ include "leasehold-elect.image" . | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args:
    - elect
    - {{ include "leasehold-elect.name" . | quote }}
    - --as=$(POD_NAME)
    - --ttl={{ .Values.election.ttl }}
    - --listen=:{{ .Values.election.port }}
    {{- with .Values.election.podLabel }}
    - {{ printf "--pod-label=%s" . | quote }}
    {{- end }}
    {{- with .Values.election.extraArgs }}{{ toYaml . | nindent 4 }}{{ end }}
  env:
    - name: POD_NAME
      valueFrom:
        fieldRef: {fieldPath: metadata.name}
    - name: POD_NAMESPACE
      valueFrom:
        fieldRef: {fieldPath: metadata.namespace}
    {{- if dig "limits" "memory" "" .Values.resources }}
    - name: GOMEMLIMIT
      valueFrom:
        resourceFieldRef: {containerName: leasehold-elect, resource: limits.memory}
    {{- end }}
    {{- include "leasehold-elect.env" . | nindent 4 }}
  ports:
    - {name: elect, containerPort: {{ .Values.election.port }}}
  livenessProbe:
    httpGet: {path: /healthz, port: elect}
    periodSeconds: 10
    timeoutSeconds: 5
    failureThreshold: 6
  readinessProbe:
    httpGet: {path: /readyz, port: elect}
    periodSeconds: 5
    timeoutSeconds: 5
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    capabilities: {drop: [ALL]}
    seccompProfile: {type: RuntimeDefault}
  resources: {{- toYaml .Values.resources | nindent 4 }}
{{- end -}}

{{- /* What no schema can say. */ -}}
{{- define "leasehold-elect.check" -}}
{{- if and .Values.store.url .Values.store.existingSecret -}}
{{- fail "store.url and store.existingSecret: want one of them" -}}
{{- end -}}
{{- if and (eq .Values.store.type "url") (not .Values.store.url) (not .Values.store.existingSecret) -}}
{{- fail "store.type url: want store.url, or store.existingSecret with the URL" -}}
{{- end -}}
{{- if and .Values.app.port (not .Values.election.podLabel) .Values.deployment.enabled -}}
{{- fail "app.port without election.podLabel: the Service of the leader selects by it; want app.port 0, or a label" -}}
{{- end -}}
{{- end -}}

{{- define "registry.chart" -}}
{{ .Values.nameOverride | default .Chart.Name }}
{{- end }}

{{- /* Names of services have at most 63 characters, and -metrics is added. */}}
{{- define "registry.name" -}}
{{- $chart := include "registry.chart" . -}}
{{- if contains $chart .Release.Name }}{{ .Release.Name }}{{ else }}{{ printf "%s-%s" .Release.Name $chart | trunc 55 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "registry.selector" -}}
app.kubernetes.io/name: {{ include "registry.chart" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "registry.labels" -}}
{{ include "registry.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "registry.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "registry.name" .) }}{{ else }}{{ .Values.serviceAccount.name | default "default" }}{{ end -}}
{{- end }}

{{- define "registry.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "%s%s" .Chart.AppVersion (ternary "-blob" "" (ne .Values.tree.bucket.url ""))) }}
{{- end }}

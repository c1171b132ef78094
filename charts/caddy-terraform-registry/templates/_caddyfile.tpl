{{- define "registry.caddyfile" -}}
{{- if and (not .Values.tree.bucket.url) (regexMatch `(?m)^\s*tlog\s*(\{|$)` .Values.options) -}}
{{- fail "tlog without a folder would be lost with the pod: set tlog.volume.enabled=true, and the option to tlog /srv/log" -}}
{{- end -}}
{
	# Only for this pod's own commands: others could change the configuration by it.
	admin unix//tmp/admin.sock
	# The ingress has the certificate, and is the only one who may say whom it serves.
	auto_https off
	servers {
		trusted_proxies static private_ranges
		{{- with .Values.serverOptions }}
		{{- trim . | replace "\n" "\n\t\t" | printf "\n\t\t%s" }}
		{{- end }}
	}
	# Endpoints are removed while a pod ends; requests that come until then are served.
	shutdown_delay 5s
	grace_period 30s
	storage {{ .Values.storage.module | default "file_system /storage" | trim }}
	{{- with .Values.tree.bucket }}
	{{- if .url }}
	filesystem bucket blob {
		url {{ .url | quote }}
		{{- with .prefix }}
		prefix {{ . | quote }}
		{{- end }}
	}
	{{- end }}
	{{- end }}
	{{- with .Values.globalOptions }}
	{{- trim . | replace "\n" "\n\t" | printf "\n\t%s" }}
	{{- end }}
}

:8080 {
	terraform_registry {
		{{- if ne .Values.prefix "/v1" }}
		prefix {{ .Values.prefix }}
		{{- end }}
		hostname {{ .Values.hostname }}
		public_url https://{{ .Values.hostname }}
		{{- if .Values.tree.bucket.url }}
		fs bucket
		root /
		{{- if .Values.tree.bucket.redirect }}
		redirect
		{{- end }}
		{{- else }}
		root /srv/registry
		rescan 30s
		{{- end }}
		{{- with .Values.options }}
		{{- trim . | replace "\n" "\n\t\t" | printf "\n\t\t%s" }}
		{{- end }}
	}
	{{- with .Values.siteDirectives }}
	{{- trim . | replace "\n" "\n\t" | printf "\n\t%s" }}
	{{- end }}
}

# For the kubelet and Prometheus.
:9180 {
	metrics /metrics
	respond /alive 200
}
{{- end }}

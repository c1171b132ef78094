package module

import (
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/certmagic"
)

// accessLoggers are the names, below http.log.access, of the loggers that Caddy
// logs a request with: those chosen by `log_name`, those of its host, or the
// server's own. The empty one is http.log.access itself.
func accessLoggers(logs *caddyhttp.ServerLogConfig, r *http.Request) []string {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	names, mapped := mappedLoggers(logs, host)
	if !mapped {
		skipped := func(pattern string) bool { return certmagic.MatchWildcard(host, pattern) }
		if logs.SkipUnmappedHosts || slices.ContainsFunc(logs.SkipHosts, skipped) {
			return nil
		}
		names = []string{logs.DefaultLoggerName}
	}
	if chosen, ok := caddyhttp.GetVar(r.Context(), caddyhttp.AccessLoggerNameVarKey).([]any); ok {
		names = make([]string, len(chosen))
		for i := range chosen {
			names[i], _ = chosen[i].(string)
		}
	}
	return names
}

// mappedLoggers finds those of a host by its name, then by its name with
// asterisks for more and more labels. There may be none.
func mappedLoggers(logs *caddyhttp.ServerLogConfig, host string) (names []string, mapped bool) {
	labels := strings.Split(strings.ToLower(host), ".")
	for next := 0; ; next++ {
		if names, mapped := logs.LoggerNames[strings.Join(labels, ".")]; mapped || next == len(labels) {
			return names, mapped
		}
		if labels[next] != "" {
			labels[next] = "*"
		}
	}
}

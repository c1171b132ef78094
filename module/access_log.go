package module

import (
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// An accessLog writes the entries of Caddy's access log for signed links, without
// their signatures: as long as a link is good it is worth as much as a password,
// and logs get around.
//
// Caddy takes its copy of a request before any handler sees it. All that a
// handler can do is to tell it to write nothing, and write the same entry to the
// same loggers itself. What other handlers add to entries (`log_append`,
// `tracing`) cannot be read, so it is missing in these. Where credentials are
// logged on purpose (`log_credentials`), entries are left to Caddy.
type accessLog struct {
	logger *zap.Logger // what Caddy calls http.log.access
}

// httpApp is Caddy's app, whose loggers access logs belong to. Caddy advises
// modules not to ask for another one's logger, but what goes to a log is decided
// when the logger is made, by the module it is made for.
type httpApp struct{}

func (httpApp) CaddyModule() caddy.ModuleInfo { return caddy.ModuleInfo{ID: "http"} }

func newAccessLog(ctx caddy.Context) *accessLog {
	return &accessLog{ctx.Logger(httpApp{}).Named("log.access")}
}

// serve is the registry's own serve, but that the signatures of what it answers
// are not logged. Of a nil one they are: there is nothing they would open.
func (l *accessLog) serve(w http.ResponseWriter, r *http.Request, serve func(http.ResponseWriter, *http.Request) bool) (answered bool) {
	linked := strings.Contains(r.URL.RawQuery, "sig=")
	if l == nil || !linked && !strings.HasSuffix(r.URL.Path, "/download") {
		return serve(w, r)
	}
	server, _ := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if server == nil || server.Logs == nil || server.Logs.ShouldLogCredentials {
		return serve(w, r)
	}
	answer := caddyhttp.NewResponseRecorder(w, nil, nil)
	answered = true // if it panics, it is the registry that does
	defer func() {
		// The location of a module is a link, too.
		if answered && (linked || signature.MatchString(answer.Header().Get("X-Terraform-Get"))) {
			l.write(server.Logs, r, answer)
		}
	}()
	answered = serve(answer, r)
	return answered
}

// write does what Caddy's server does when a request has been handled.
func (l *accessLog) write(logs *caddyhttp.ServerLogConfig, r *http.Request, answer caddyhttp.ResponseRecorder) {
	ctx := r.Context()
	if skip, _ := caddyhttp.GetVar(ctx, caddyhttp.LogSkipVar).(bool); skip {
		return
	}
	caddyhttp.SetVar(ctx, caddyhttp.LogSkipVar, true)

	level := zapcore.InfoLevel
	if answer.Status() >= http.StatusInternalServerError {
		level = zapcore.ErrorLevel
	}
	if name, ok := caddyhttp.GetVar(ctx, caddyhttp.LogLevelVar).(string); ok {
		if wanted, err := zapcore.ParseLevel(name); err == nil && wanted >= zapcore.DebugLevel && wanted <= zapcore.ErrorLevel {
			level = wanted
		}
	}
	logger := l.logger.WithLazy(zap.Object("request", caddyhttp.LoggableHTTPRequest{Request: unsigned(r)}))
	fields := answerFields(r, answer)
	for _, name := range accessLoggers(logs, r) {
		if c := logger.Named(name).Check(level, "handled request"); c != nil {
			c.Write(fields...)
		}
	}
}

// answerFields is what an entry has beside the request.
func answerFields(r *http.Request, answer caddyhttp.ResponseRecorder) []zap.Field {
	repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer) // is wherever a server is
	user, _ := repl.GetString("http.auth.user.id")
	start, _ := caddyhttp.GetVar(r.Context(), "start_time").(time.Time)
	fields := []zap.Field{
		zap.Int("bytes_read", 0), // the registry reads no body of a request for a file
		zap.String("user_id", user),
		zap.Duration("duration", time.Since(start)),
		zap.Int("size", answer.Size()),
		zap.Int("status", answer.Status()),
		zap.Object("resp_headers", caddyhttp.LoggableHTTPHeader{Header: unsignedHeader(answer.Header())}),
	}
	if kind, _ := repl.GetString("http.terraform_registry.kind"); kind == "" {
		return fields // it panicked before it knew
	}
	return append(fields, zap.Object("terraform_registry", zapcore.ObjectMarshalerFunc(func(to zapcore.ObjectEncoder) error {
		for _, name := range []string{"kind", "address", "version", "platform"} {
			if value, _ := repl.GetString("http.terraform_registry." + name); value != "" {
				to.AddString(name, value)
			}
		}
		return nil
	})))
}

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

// signature finds signatures in URLs, and in URLs that are in the query of others.
var signature = regexp.MustCompile(`(?i)((?:[?&]|%3f|%26)sig(?:=|%3d))[^&\s"'<>]*`)

func unsignedText(s string) string { return signature.ReplaceAllString(s, "${1}REDACTED") }

// unsigned is a copy of the request as the client made it, without signatures.
func unsigned(r *http.Request) *http.Request {
	shown := r.WithContext(r.Context())
	if made, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		shown.Method, shown.RemoteAddr, shown.RequestURI = made.Method, made.RemoteAddr, made.RequestURI
	}
	shown.RequestURI = unsignedText(shown.RequestURI)
	shown.Header = unsignedHeader(r.Header)
	return shown
}

// unsignedHeader is a copy without signatures. Clients that are sent elsewhere
// put them into Referer, and proxies into headers of their own.
func unsignedHeader(h http.Header) http.Header {
	h = h.Clone()
	for _, values := range h {
		for i := range values {
			values[i] = unsignedText(values[i])
		}
	}
	return h
}

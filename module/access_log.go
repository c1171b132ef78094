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

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
)

// placeholderPrefix starts the names of the placeholders that describe a request.
const placeholderPrefix = "http.terraform_registry."

// fieldNames are the names of the placeholders, and of the fields in the access log.
var fieldNames = [...]string{"kind", "address", "version", "platform", "outcome"}

// requestField returns a field of a request; empty if the request has no such field.
func requestField(e *handlers.Exchange, name string) (value string, ok bool) {
	switch name {
	case "kind":
		return e.Kind.String(), true
	case "address":
		return e.Address(), true
	case "version":
		return e.Version, true
	case "platform":
		return e.Platform, true
	case "outcome":
		if e.Upload == nil {
			return "", true
		}
		return e.Upload.Outcome.String(), true
	}
	return "", false
}

// answered counts a request. It adds the fields of the request to its entry in the
// access log, if the server has one, and to its placeholders. It reports the result of
// an uploaded file.
func (h *Handler) answered(r *http.Request, e *handlers.Exchange) {
	h.traffic.count(e)
	if e.Upload != nil {
		h.audit(r, e)
	}
	if h.server == nil || h.server.Logs != nil { // adding a field takes as long as finding a document
		if extra, ok := r.Context().Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
			extra.Add(zap.Object("terraform_registry", loggable{e}))
		}
	}
	if repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		repl.Map(func(key string) (any, bool) {
			name, ok := strings.CutPrefix(key, placeholderPrefix)
			if !ok {
				return nil, false
			}
			return requestField(e, name)
		})
	}
}

// loggable makes the fields of an exchange only when its entry is written.
type loggable struct{ *handlers.Exchange }

// MarshalLogObject implements zapcore.ObjectMarshaler.
func (l loggable) MarshalLogObject(to zapcore.ObjectEncoder) error {
	for _, name := range fieldNames {
		if value, _ := requestField(l.Exchange, name); value != "" {
			to.AddString(name, value)
		}
	}
	return nil
}

// An accessLog writes the entries of Caddy's access log for requests with signed links,
// and for redirects to signed URLs of an object store, without the signatures. A link
// is as good as a password while it is valid, and logs are copied and shared.
//
// Caddy copies a request before any handler sees it. A handler can only make Caddy skip
// the entry, and write the same entry to the same loggers itself. Fields that other
// handlers add to entries (`log_append`, `tracing`) cannot be read and are missing. If
// credentials are logged on purpose (`log_credentials`), Caddy writes the entries.
type accessLog struct {
	logger    *zap.Logger // named http.log.access
	redirects bool        // any download may be answered with a redirect
}

// httpApp represents Caddy's HTTP app, to which the loggers of access logs belong.
// Caddy advises modules not to request another module's logger, but the entries of a
// log are selected by the module for which its logger was made.
type httpApp struct{}

func (httpApp) CaddyModule() caddy.ModuleInfo { return caddy.ModuleInfo{ID: "http"} }

func newAccessLog(ctx caddy.Context, redirects bool) *accessLog {
	return &accessLog{ctx.Logger(httpApp{}).Named("log.access"), redirects}
}

// serve calls serve of the registry or its pages, and keeps the signatures of answered
// requests out of the log. A nil log does nothing: no links are signed then.
func (l *accessLog) serve(w http.ResponseWriter, r *http.Request, serve func(http.ResponseWriter, *http.Request) bool) (answered bool) {
	if l == nil {
		return serve(w, r)
	}
	linked := hasSignature(r.URL.RawQuery)
	if !linked && !l.redirects && !strings.HasSuffix(r.URL.Path, "/download") {
		return serve(w, r)
	}
	server, _ := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if server == nil || server.Logs == nil || server.Logs.ShouldLogCredentials {
		return serve(w, r)
	}
	response := caddyhttp.NewResponseRecorder(w, nil, nil)
	answered = true // even if serve panics, since the registry was then answering
	defer func() {
		// The location of a module is a signed link, too.
		redirected := l.redirects && response.Status() == http.StatusTemporaryRedirect
		if answered && (linked || redirected || signature.MatchString(response.Header().Get("X-Terraform-Get"))) {
			l.write(server.Logs, r, response)
		}
	}()
	answered = serve(response, r)
	return answered
}

// write does the same as Caddy's server after a request.
func (l *accessLog) write(logs *caddyhttp.ServerLogConfig, r *http.Request, response caddyhttp.ResponseRecorder) {
	ctx := r.Context()
	if skip, _ := caddyhttp.GetVar(ctx, caddyhttp.LogSkipVar).(bool); skip {
		return
	}
	caddyhttp.SetVar(ctx, caddyhttp.LogSkipVar, true)

	level := zapcore.InfoLevel
	if response.Status() >= http.StatusInternalServerError {
		level = zapcore.ErrorLevel
	}
	if name, ok := caddyhttp.GetVar(ctx, caddyhttp.LogLevelVar).(string); ok {
		if configured, err := zapcore.ParseLevel(name); err == nil && configured >= zapcore.DebugLevel && configured <= zapcore.ErrorLevel {
			level = configured
		}
	}
	logger := l.logger.WithLazy(zap.Object("request", caddyhttp.LoggableHTTPRequest{Request: redactRequest(r)}))
	fields := responseFields(r, response)
	for _, name := range accessLoggers(logs, r) {
		if c := logger.Named(name).Check(level, "handled request"); c != nil {
			c.Write(fields...)
		}
	}
}

// responseFields returns the fields of an entry except for the request.
func responseFields(r *http.Request, response caddyhttp.ResponseRecorder) []zap.Field {
	repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer) // set by each server
	user, _ := repl.GetString("http.auth.user.id")
	start, _ := caddyhttp.GetVar(r.Context(), "start_time").(time.Time)
	header := redactHeader(response.Header())
	if location, _, signed := strings.Cut(header.Get("Location"), "?"); signed && response.Status() == http.StatusTemporaryRedirect {
		header.Set("Location", location+"?REDACTED") // every store has its own form of signatures
	}
	fields := []zap.Field{
		zap.Int("bytes_read", 0), // links are for reading, so an upload to one is not counted
		zap.String("user_id", user),
		zap.Duration("duration", time.Since(start)),
		zap.Int("size", response.Size()),
		zap.Int("status", response.Status()),
		zap.Object("resp_headers", caddyhttp.LoggableHTTPHeader{Header: header}),
	}
	if kind, _ := repl.GetString(placeholderPrefix + "kind"); kind == "" {
		return fields // it panicked
	}
	return append(fields, zap.Object("terraform_registry", zapcore.ObjectMarshalerFunc(func(to zapcore.ObjectEncoder) error {
		for _, name := range fieldNames {
			if value, _ := repl.GetString(placeholderPrefix + name); value != "" {
				to.AddString(name, value)
			}
		}
		return nil
	})))
}

// accessLoggers returns the names, below http.log.access, of the loggers to which Caddy
// logs a request: the loggers in `log_name`, or the loggers of the host, or the logger
// of the server. The empty name is http.log.access itself.
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

// mappedLoggers returns the loggers of a host: the loggers of its name, or else of its
// name with asterisks for the first label, the first two, and so on. A mapped host may
// have none.
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

// signature matches signatures in URLs, and in URLs in the query of URLs.
var signature = regexp.MustCompile(`(?i)((?:[?&]|%3f|%26)sig(?:=|%3d))[^&\s"'<>]*`)

// hasSignature reports whether a query may have a signature, perhaps in an escaped URL.
func hasSignature(query string) bool {
	return strings.Contains(query, "sig=") || strings.Contains(query, "sig%3D") || strings.Contains(query, "sig%3d")
}

func redact(s string) string { return signature.ReplaceAllString(s, "${1}REDACTED") }

// redactRequest returns a copy of the request as the client sent it, without
// signatures.
func redactRequest(r *http.Request) *http.Request {
	redacted := r.WithContext(r.Context())
	if original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		redacted.Method, redacted.RemoteAddr, redacted.RequestURI = original.Method, original.RemoteAddr, original.RequestURI
	}
	redacted.RequestURI = redact(redacted.RequestURI)
	redacted.Header = redactHeader(r.Header)
	return redacted
}

// redactHeader returns a copy of the header without signatures. Signatures are also in
// the Referer of clients, and in fields that proxies add.
func redactHeader(h http.Header) http.Header {
	h = h.Clone()
	for _, values := range h {
		for i := range values {
			values[i] = redact(values[i])
		}
	}
	return h
}

package module

import (
	"net/http"
	"regexp"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

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

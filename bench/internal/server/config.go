// Package server runs the real binary with a configuration made for one
// measurement, and nothing outside of a folder of its own and the loopback
// interface.
package server

import (
	"encoding/json"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
)

// A Site is what one listener serves.
type Site struct {
	Name    string
	Handler map[string]any
	TLS     bool
}

// Respond is Caddy's `respond` with a body and, if they are given, headers.
func Respond(body []byte, header http.Header) map[string]any {
	return map[string]any{"handler": "static_response", "status_code": 200, "body": string(body), "headers": header}
}

// FileServer is Caddy's `file_server`.
func FileServer(root string) map[string]any {
	return map[string]any{"handler": "file_server", "root": root}
}

// Registry is `terraform_registry`, with the rescan interval of a Caddyfile or
// none for the default.
func Registry(root, signingKey, rescan string) map[string]any {
	handler := map[string]any{
		"handler": "terraform_registry", "root": root,
		"signing_key": map[string]any{"file": signingKey},
	}
	if rescan != "" {
		handler["rescan"] = rescan
	}
	return handler
}

// Private is a registry with a tokens file, and with rules that are written as
// in a Caddyfile.
func Private(registry map[string]any, tokens string, rules []string) map[string]any {
	access := make([]any, len(rules))
	for i, rule := range rules {
		words := strings.Fields(rule)
		access[i] = map[string]any{"effect": words[0], "who": words[1], "right": words[2], "addresses": words[3:]}
	}
	handler := maps.Clone(registry)
	handler["auth"] = []any{map[string]any{"provider": "terraform_tokens", "file": tokens}}
	handler["access"] = map[string]any{"rules": access}
	return handler
}

// Mirror is a registry that fills its tree with the providers of a hostname,
// which are to be had at a URL.
func Mirror(registry map[string]any, hostname, url string) map[string]any {
	handler := maps.Clone(registry)
	handler["upstream"] = []any{map[string]any{"hostnames": []string{hostname}, "url": url}}
	return handler
}

// configuration is the JSON for sites whose listeners the process inherits
// from file descriptor 3 on. That way the kernel chooses the ports, and a
// request can be on its way before the process listens.
func (o Options) configuration() ([]byte, error) {
	servers := make(map[string]any)
	for i, site := range o.Sites {
		server := map[string]any{
			"listen":          []string{inherited(i)},
			"routes":          []any{map[string]any{"handle": []any{site.Handler}}},
			"protocols":       []string{"h1", "h2"},
			"automatic_https": map[string]any{"disable": true},
		}
		if site.TLS {
			server["tls_connection_policies"] = []any{map[string]any{}}
		}
		servers[site.Name] = server
	}
	apps := map[string]any{"http": map[string]any{"servers": servers}}
	if o.Certificate.File != "" {
		apps["tls"] = map[string]any{"certificates": map[string]any{"load_files": []any{
			map[string]any{"certificate": o.Certificate.File, "key": o.Certificate.Key},
		}}}
	}
	return json.MarshalIndent(map[string]any{
		"admin": map[string]any{
			"listen": "unix/" + o.socket(), "config": map[string]any{"persist": false},
		},
		"logging": map[string]any{"logs": map[string]any{"default": map[string]any{
			"encoder": map[string]any{"format": "json"}, // times are seconds since 1970
		}}},
		"apps": apps,
	}, "", "\t")
}

func (o Options) socket() string { return filepath.Join(o.Dir, "admin.sock") }

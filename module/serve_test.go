package module

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

func TestCommandServesHTTP1Only(t *testing.T) {
	tests := []struct {
		rule           string
		domain, listen string
		internalCerts  bool
	}{
		{"plain HTTP", "", ":8080", false},
		{"a certificate of a public authority", "registry.example.com", "", false},
		{"a certificate of Caddy's own authority", "", "localhost:8443", true},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			s, err := planSite(test.domain, test.listen, test.internalCerts)
			if err != nil {
				t.Fatal(err)
			}
			var app caddyhttp.App
			config := s.config(index.Directories{Root: t.TempDir()}, false, false)
			if err := json.Unmarshal(config.AppsRaw["http"], &app); err != nil {
				t.Fatal(err)
			}
			if got := app.Servers["registry"].Protocols; !slices.Equal(got, []string{"h1"}) {
				t.Errorf("the server speaks %q, want h1 only", got)
			}
		})
	}
}

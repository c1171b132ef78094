package module

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// What a proxy says counts where Caddy trusts it, and nowhere else.
func TestAbsoluteURLsBehindProxies(t *testing.T) {
	root := sampleTree(t)
	const routes = `"listen":[%q],"automatic_https":{"disable":true},"routes":[{"handle":[{"handler":"terraform_registry","root":%q,"signing_key":{"off":true}}]}]`
	config := fmt.Sprintf(`{
		"admin":{"disabled":true,"config":{"persist":false}},
		"storage":{"module":"file_system","root":%q},
		"apps":{"http":{"servers":{
			"trusting":{"trusted_proxies":{"source":"static","ranges":["127.0.0.1/32"]},`+routes+`},
			"plain":{`+routes+`}}}}}`, t.TempDir(), "127.0.0.1:0", root, "localhost:0", root)
	if err := caddy.Load([]byte(config), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	app, err := caddy.ActiveContext().AppIfConfigured("http")
	if err != nil {
		t.Fatal(err)
	}
	awaitLive(t)
	const path = "/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz"
	for _, test := range []struct{ rule, server, proto, host, want string }{
		{"a trusted proxy", "trusting", "https", "registry.example.com", "https://registry.example.com" + path},
		{"a trusted proxy that keeps the name", "trusting", "https", "", "https://internal:8080" + path},
		{"a trusted proxy that says nothing", "trusting", "", "", path},
		{"another", "plain", "https", "registry.example.com", path},
	} {
		t.Run(test.rule, func(t *testing.T) {
			address := app.(*caddyhttp.App).Servers[test.server].Listeners()[0].Addr().String()
			r, err := http.NewRequest(http.MethodGet, "http://"+address+"/v1/modules/acme/vpc/aws/1.0.0/download", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = "internal:8080"
			if test.proto != "" {
				r.Header.Set("X-Forwarded-Proto", test.proto)
			}
			if test.host != "" {
				r.Header.Set("X-Forwarded-Host", test.host)
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if got := answer.Header.Get("X-Terraform-Get"); got != test.want {
				header, _ := json.Marshal(answer.Header)
				t.Errorf("got %d %s, want %s", answer.StatusCode, header, test.want)
			}
		})
	}
}

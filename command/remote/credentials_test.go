package remote

import (
	"strings"
	"testing"

	svchost "github.com/hashicorp/terraform-svchost"
)

func TestTokenIn(t *testing.T) {
	for _, test := range []struct {
		rule, file, content, hostname string
		token, says                   string
	}{
		{"in a block", ".terraformrc", "credentials \"registry.example.com\" {\n  token = \"secret\"\n}\n", "registry.example.com", "secret", ""},
		{"beside other settings", ".tofurc", "plugin_cache_dir = \"$HOME/cache\"\nprovider_installation {\n  direct {}\n}\ncredentials \"registry.example.com\" {\n  token = \"secret\"\n}\n", "registry.example.com", "secret", ""},
		{"of another host, beside overrides as the manual of the clients writes them", ".terraformrc", "provider_installation {\n  dev_overrides {\n    \"hashicorp/null\" = \"/home/dev/null\"\n  }\n  direct {}\n}\n", "registry.example.com", "", ""},
		{"in one line with all", ".terraformrc", `provider_installation { direct { exclude = ["a/b"] } } credentials "registry.example.com" { token = "secret" }`, "registry.example.com", "secret", ""},
		{"as a login stores it", "credentials.tfrc.json", `{"credentials":{"registry.example.com":{"token":"secret"}}}`, "registry.example.com", "secret", ""},
		{"JSON by its content, whatever its name", ".terraformrc", `
{"credentials":{"registry.example.com":{"token":"secret"}}}`, "registry.example.com", "secret", ""},
		{"an empty file", "credentials.tfrc.json", "", "registry.example.com", "", ""},
		{"a token is no template", "credentials.tfrc.json", `{"credentials":{"registry.example.com":{"token":"$${x}"}}}`, "registry.example.com", "$${x}", ""},
		{"with a port", "credentials.tfrc.json", `{"credentials":{"registry.example.com:8443":{"token":"secret"}}}`, "registry.example.com:8443", "secret", ""},
		{"the default port is none", ".terraformrc", "credentials \"registry.example.com:443\" {\n  token = \"secret\"\n}\n", "registry.example.com", "secret", ""},
		{"a name in Unicode", ".terraformrc", "credentials \"Bücher.example\" {\n  token = \"secret\"\n}\n", "xn--bcher-kva.example", "secret", ""},
		{"of another host", ".terraformrc", "credentials \"other.example.com\" {\n  token = \"secret\"\n}\n", "registry.example.com", "", ""},
		{"of another port", ".terraformrc", "credentials \"registry.example.com:8443\" {\n  token = \"secret\"\n}\n", "registry.example.com", "", ""},
		{"after what cannot be read", ".terraformrc", "credentials \"registry.example.com\" {\n  token = \"secret\"\n}\na = [\n", "registry.example.com", "secret", ""},
		{"none", ".terraformrc", "", "registry.example.com", "", ""},
		{"a block without a token", ".terraformrc", "credentials \"registry.example.com\" {}\n", "registry.example.com", "", "its credentials for registry.example.com have no token"},
		{"as a logout leaves it", "credentials.tfrc.json", `{"credentials": {}}`, "registry.example.com", "", ""},
		{"no object of hosts", "credentials.tfrc.json", `{"credentials": {"registry.example.com": "secret"}}`, "registry.example.com", "", "cannot be read"},
		{"a token that is no text", "credentials.tfrc.json", `{"credentials":{"registry.example.com":{"token":null}}}`, "registry.example.com", "", "have no token"},
		{"a file that cannot be read", ".terraformrc", "credentials registry {\n  secret\n", "registry.example.com", "", "cannot be read"},
		{"JSON that cannot be read", "credentials.tfrc.json", `{"credentials":{"registry.example.com":{"token":"secret`, "registry.example.com", "", "cannot be read"},
	} {
		token, err := tokenIn([]byte(test.content), test.file, svchost.Hostname(test.hostname))
		if token != test.token || (err == nil) != (test.says == "") || err != nil && (!strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: got %q, %v", test.rule, token, err)
		}
	}
}

// Whatever is in a file, a token is for its own host, and errors quote nothing.
func FuzzTokenIn(f *testing.F) {
	f.Add("credentials \"registry.example.com\" {\n  token = \"secret\"\n}\n", false)
	f.Add(`{"credentials":{"registry.example.com":{"token":"secret"}}}`, true)
	f.Add("credentials \"other\" {\n  token = upper(\"x\")\n}\n", false)
	f.Fuzz(func(t *testing.T, content string, json bool) {
		file := "a"
		if json {
			file += ".json"
		}
		token, err := tokenIn([]byte(content), file, "registry.example.com")
		if token != "" && !strings.Contains(strings.ToLower(content), "registry.example.com") && !strings.Contains(content, `\`) && !strings.ContainsFunc(content, func(r rune) bool { return r > 0x7f }) {
			t.Errorf("%q has the token %q", content, token)
		}
		if err != nil && len(err.Error()) > 100 {
			t.Errorf("%v", err)
		}
	})
}

// Variables stand for hostnames as the clients read them.
func TestEnvironmentTokens(t *testing.T) {
	got := EnvironmentTokens([]string{"TF_TOKEN_registry_example_com=secret", "TF_TOKEN_my__registry_example_com=dash", "TF_TOKEN_a-b_example_com=as it is", "TF_TOKEN_xn--r8j_example_com=punycode", "TF_TOKEN_=", "TF_TOKEN_empty_com=", "HOME=/root"})
	for host, token := range map[string]string{"registry.example.com": "secret", "my-registry.example.com": "dash", "a-b.example.com": "as it is", "xn--r8j.example.com": "punycode"} {
		found := false
		for hostname, have := range got {
			found = found || string(hostname) == host && have == token
		}
		if !found {
			t.Errorf("there is no token of %s in %v", host, got)
		}
	}
	if len(got) != 4 {
		t.Errorf("got %v", got)
	}
}

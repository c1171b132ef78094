package clientconfig

import (
	"fmt"
	"strings"
	"testing"

	svchost "github.com/hashicorp/terraform-svchost"
)

func TestToken(t *testing.T) {
	for _, test := range []struct {
		rule, content, hostname string
		token, says             string
	}{
		{"in a block", "credentials \"registry.example.com\" {\n  token = \"secret\"\n}\n", "registry.example.com", "secret", ""},
		{"beside other settings", "plugin_cache_dir = \"$HOME/cache\"\nprovider_installation {\n  direct {}\n}\ncredentials \"registry.example.com\" {\n  token = \"secret\"\n}\n", "registry.example.com", "secret", ""},
		{"of another host, beside overrides as the manual of the clients writes them", "provider_installation {\n  dev_overrides {\n    \"hashicorp/null\" = \"/home/dev/null\"\n  }\n  direct {}\n}\n", "registry.example.com", "", ""},
		{"in one line with all", `provider_installation { direct { exclude = ["a/b"] } } credentials "registry.example.com" { token = "secret" }`, "registry.example.com", "secret", ""},
		{"as a login stores it", `{"credentials":{"registry.example.com":{"token":"secret"}}}`, "registry.example.com", "secret", ""},
		{"JSON after white space", `
{"credentials":{"registry.example.com":{"token":"secret"}}}`, "registry.example.com", "secret", ""},
		{"an empty file", "", "registry.example.com", "", ""},
		{"a token is no template", `{"credentials":{"registry.example.com":{"token":"$${x}"}}}`, "registry.example.com", "$${x}", ""},
		{"with a port", `{"credentials":{"registry.example.com:8443":{"token":"secret"}}}`, "registry.example.com:8443", "secret", ""},
		{"the default port is none", "credentials \"registry.example.com:443\" {\n  token = \"secret\"\n}\n", "registry.example.com", "secret", ""},
		{"a name in Unicode", "credentials \"Bücher.example\" {\n  token = \"secret\"\n}\n", "xn--bcher-kva.example", "secret", ""},
		{"of another host", "credentials \"other.example.com\" {\n  token = \"secret\"\n}\n", "registry.example.com", "", ""},
		{"of another port", "credentials \"registry.example.com:8443\" {\n  token = \"secret\"\n}\n", "registry.example.com", "", ""},
		{"after what cannot be read", "credentials \"registry.example.com\" {\n  token = \"secret\"\n}\na = [\n", "registry.example.com", "secret", ""},
		{"a block without a token", "credentials \"registry.example.com\" {}\n", "registry.example.com", "", "its credentials for registry.example.com have no token"},
		{"as a logout leaves it", `{"credentials": {}}`, "registry.example.com", "", ""},
		{"no object of hosts", `{"credentials": {"registry.example.com": "secret"}}`, "registry.example.com", "", "cannot be read"},
		{"a token that is no text", `{"credentials":{"registry.example.com":{"token":null}}}`, "registry.example.com", "", "have no token"},
		{"a file that cannot be read", "credentials registry {\n  secret\n", "registry.example.com", "", "cannot be read"},
		{"JSON that cannot be read", `{"credentials":{"registry.example.com":{"token":"secret`, "registry.example.com", "", "cannot be read"},
	} {
		token, err := Parse([]byte(test.content)).Token(svchost.Hostname(test.hostname))
		if token != test.token || (err == nil) != (test.says == "") || err != nil && (!strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: got %q, %v", test.rule, token, err)
		}
	}
}

// Whatever is in a file, a token is for its own host, and errors quote nothing.
func FuzzToken(f *testing.F) {
	f.Add("credentials \"registry.example.com\" {\n  token = \"secret\"\n}\n")
	f.Add(`{"credentials":{"registry.example.com":{"token":"secret"}}}`)
	f.Add("credentials \"other\" {\n  token = upper(\"x\")\n}\n")
	f.Fuzz(func(t *testing.T, content string) {
		token, err := Parse([]byte(content)).Token("registry.example.com")
		if token != "" && !strings.Contains(strings.ToLower(content), "registry.example.com") && !strings.Contains(content, `\`) && !strings.ContainsFunc(content, func(r rune) bool { return r > 0x7f }) {
			t.Errorf("%q has the token %q", content, token)
		}
		if err != nil && len(err.Error()) > 100 {
			t.Errorf("%v", err)
		}
	})
}

func TestHelper(t *testing.T) {
	for _, test := range []struct{ rule, content, want, says string }{
		{"in a block", "credentials_helper \"vault\" {\n  args = [\"--path\", \"a b\"]\n}\n", `vault ["--path" "a b"]`, ""},
		{"without arguments", "plugin_cache_dir = \"x\"\ncredentials_helper \"vault\" {}\n", `vault []`, ""},
		{"in JSON", `{"credentials_helper":{"vault":{"args":["x"]}}}`, `vault ["x"]`, ""},
		{"beside what cannot be read", "credentials_helper \"vault\" {}\na = [\n", `vault []`, ""},
		{"none", "credentials \"a.example.com\" {}\n", "", ""},
		{"arguments that are no list", "credentials_helper \"vault\" {\n  args = \"secret\"\n}\n", "", "args of its credentials_helper are no list of strings"},
		{"an argument that is no string", "credentials_helper \"vault\" {\n  args = [1]\n}\n", "", "are no list of strings"},
	} {
		h, err := Parse([]byte(test.content)).Helper()
		got := ""
		if h != nil {
			got = fmt.Sprintf("%s %q", h.Name, h.Args)
		}
		if got != test.want || (err == nil) != (test.says == "") || err != nil && (!strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: got %q, %v", test.rule, got, err)
		}
	}
}

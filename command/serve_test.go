package command

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
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
			config := s.config(source.Directories{Root: t.TempDir()}, false, nil)
			if err := json.Unmarshal(config.AppsRaw["http"], &app); err != nil {
				t.Fatal(err)
			}
			if got := app.Servers["registry"].Protocols; !slices.Equal(got, []string{"h1"}) {
				t.Errorf("the server speaks %q, want h1 only", got)
			}
		})
	}
}

// A tree without some or all of its folders can be served.
func TestServingATreeWithoutAllFolders(t *testing.T) {
	mirror := t.TempDir()
	for _, args := range [][]string{
		{"--root", t.TempDir()},
		{"--root", t.TempDir(), "--providers", mirror},
	} {
		cmd := new(cobra.Command)
		cli.AddTreeFlags(cmd)
		if err := cmd.ParseFlags(args); err != nil {
			t.Fatal(err)
		}
		fl := caddycmd.Flags{FlagSet: cmd.Flags()}
		located, err := cli.TreeFlags(fl)
		if err != nil {
			t.Fatal(err)
		}
		s, err := planSite("", "127.0.0.1:8080", false)
		if err != nil {
			t.Fatal(err)
		}
		if err := caddy.Validate(s.config(cli.NamedDirectories(fl, located.Root), false, nil)); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestPlanSite(t *testing.T) {
	local := []string{"localhost", "127.0.0.1", "::1"}
	tests := []struct {
		rule           string
		domain, listen string
		internalCerts  bool
		wantURL        string
		wantListen     string
		wantInternal   []string
	}{
		{"nothing is plain HTTP, as with file-server", "", "", false, "http://localhost", ":80", nil},
		{"a port", "", ":8080", false, "http://localhost:8080", ":8080", nil},
		{"an address", "", "192.0.2.1:8080", false, "http://192.0.2.1:8080", "192.0.2.1:8080", nil},
		{"a domain gets HTTPS", "registry.example.com", "", false, "https://registry.example.com", ":443", nil},
		{"a domain on another port", "registry.example.com", ":8443", false, "https://registry.example.com:8443", ":8443", nil},
		{"a domain on the HTTP port", "registry.example.com", ":80", false, "http://registry.example.com", ":80", nil},
		{"a domain no public authority knows", "registry.internal", "", false, "https://registry.internal", ":443",
			append([]string{"registry.internal"}, local...)},
		{"internal certificates", "", "", true, "https://localhost", "localhost:443", local},
		{"internal certificates on a port", "", "localhost:8443", true, "https://localhost:8443", "localhost:8443", local},
		{"internal certificates on every address", "", ":8443", true, "https://localhost:8443", ":8443", local},
		{"internal certificates on every address in full", "", "0.0.0.0:8443", true, "https://localhost:8443", "0.0.0.0:8443", local},
		{"internal certificates for an address", "", "192.0.2.1:8443", true, "https://192.0.2.1:8443", "192.0.2.1:8443",
			[]string{"192.0.2.1"}},
		{"internal certificates for IPv6", "", "[::1]:8443", true, "https://[::1]:8443", "[::1]:8443",
			[]string{"::1", "localhost", "127.0.0.1"}},
		{"internal certificates for a name", "", "registry.lan:443", true, "https://registry.lan", "registry.lan:443",
			[]string{"registry.lan"}},
		{"internal certificates for a domain", "registry.example.com", "", true, "https://registry.example.com", ":443",
			append([]string{"registry.example.com"}, local...)},
		{"internal certificates for a domain in Unicode", "bücher.example", "", true, "https://bücher.example", ":443",
			append([]string{"xn--bcher-kva.example"}, local...)},
		{"internal certificates for a domain at an address", "registry.example.com", "192.0.2.1:443", true,
			"https://registry.example.com", "192.0.2.1:443", []string{"registry.example.com", "192.0.2.1"}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			s, err := planSite(test.domain, test.listen, test.internalCerts)
			if err != nil {
				t.Fatal(err)
			}
			if s.url() != test.wantURL || s.listen != test.wantListen || !slices.Equal(s.internal, test.wantInternal) {
				t.Errorf("got %s on %s with %q, want %s on %s with %q",
					s.url(), s.listen, s.internal, test.wantURL, test.wantListen, test.wantInternal)
			}
			// Caddy accepts the configuration.
			err = caddy.Validate(s.config(source.Directories{Root: t.TempDir()}, true, nil))
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPlanSiteRefuses(t *testing.T) {
	tests := []struct {
		rule           string
		domain, listen string
		internalCerts  bool
		want           string
	}{
		{"a domain with a port", "registry.example.com:8443", "", false, "--domain: registry.example.com:8443 is a name with a port, which goes into --listen :8443"},
		{"a URL for a domain", "https://registry.example.com", "", false, "--domain: https://registry.example.com is a URL: give only the name in it"},
		{"a listener without port", "", "localhost", true, "--listen: localhost is not a host and a port"},
		{"a listener on several ports", "", ":8080-8090", false, "is not a host and a port"},
		{"a listener on a socket", "", "unix//run/registry.sock", false, "is not a host and a port"},
		{"a listener on UDP", "", "udp/:8443", false, "is not a host and a port"},
		{"a named port", "", ":http", false, "--listen: "},
		{"HTTPS on the HTTP port", "", ":80", true, "--internal-certs: the HTTP port is for plain HTTP"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			if s, err := planSite(test.domain, test.listen, test.internalCerts); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %+v, error %v, want one with %q", s, err, test.want)
			}
		})
	}
}

// At a terminal, people see warnings and errors of Caddy, and what the registry does. In a
// file or a container, and with --debug, they see all.
func TestWhatIsLogged(t *testing.T) {
	for _, test := range []struct {
		rule            string
		debug, terminal bool
		want            string
	}{
		{"in a file", false, false, `null`},
		{"at a terminal", false, true, `{"logs":{` +
			`"default":{"level":"WARN","exclude":["admin","terraform_registry","http.handlers.terraform_registry","http.log.access"]},` +
			`"registry":{"level":"INFO","include":["terraform_registry","http.handlers.terraform_registry","http.log.access"]}}}`},
		{"with --debug", true, false, `{"logs":{"default":{"level":"DEBUG"}}}`},
		{"with --debug at a terminal", true, true, `{"logs":{"default":{"level":"DEBUG"}}}`},
	} {
		logs := logging(test.debug, test.terminal)
		if got, err := json.Marshal(logs); err != nil || string(got) != test.want {
			t.Errorf("%s: %s (%v)", test.rule, got, err)
		}
		if err := caddy.Validate(&caddy.Config{Admin: &caddy.AdminConfig{Disabled: true}, Logging: logs}); err != nil {
			t.Errorf("%s: %v", test.rule, err)
		}
	}
}

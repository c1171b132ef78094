package command

import (
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// serverConfig writes a configuration in JSON with one server, and with the global option
// https_port unless that is 0. Where it has /srv/open, there
// is a tree of what hosts and mirrors something.
func serverConfig(t *testing.T, server string, httpsPort int) (file string) {
	t.Helper()
	dir := newRoots(t)
	tree := indextest.OnDisk(t, filepath.Join(dir, "open"))
	tree.Provider("acme/demo", "1.0.0", "linux_amd64")
	tree.Provider("registry.terraform.io/acme/demo", "1.0.0", "linux_amd64")
	tree.Write("modules/origin.example.net/acme/vpc/aws/1.0.0/main.tf", "# a module")
	text := `{"admin":{"disabled":true},"storage":{"module":"file_system","root":"` + dir + `"},"apps":{"http":{"https_port":` + strconv.Itoa(httpsPort) + `,"servers":{"srv0":` + strings.ReplaceAll(server, "/srv/", dir+"/") + `}}}}`
	return commandtest.Write(t, t.TempDir(), "caddy.json", text)
}

// onHTTPS is a server on the port of HTTPS with these routes.
func onHTTPS(routes ...string) string {
	return `{"listen":[":443"],"routes":[` + strings.Join(routes, ",") + `]}`
}

const terraformUpstream = `"upstream":[{"hostnames":["registry.terraform.io"]}]`

func TestClientConfig(t *testing.T) {
	registry := onSiteRoute("registry.example.com", openRegistry)
	empty := func(options string) string {
		return onSiteRoute("registry.example.com", `{"handler":"terraform_registry","root":"/srv/free",`+options+`}`)
	}
	const head = "# For ~/.terraformrc; on Windows, %APPDATA%\\terraform.rc.\n\n"
	for _, test := range []struct {
		rule, server, args string
		https              int    // Caddy's port of HTTPS; 0: 443
		want               string // the whole output
		has, lacks         []string
		notes              string
	}{
		{rule: "a registry is found by its name", server: onHTTPS(registry), want: head +
			"# Nothing is needed for the providers and modules of registry.example.com:\n# clients find it by the name.\n"},
		{rule: "a mirror", server: onHTTPS(registry), args: "--for mirror", want: head +
			`# Gets the providers of other registries from registry.example.com.
provider_installation {
  network_mirror {
    url     = "https://registry.example.com/v1/mirror/"
    exclude = ["registry.example.com/*/*"]
  }
  direct {
    # Where the public registries cannot be reached:
    # include = ["registry.example.com/*/*"]
  }
}
`},
		{rule: "a stand-in, for all that lies in the tree", server: onHTTPS(registry), args: "--for stand-in", want: head +
			`# Gets the modules of origin.example.net from registry.example.com.
host "origin.example.net" {
  services = {
    # Its providers are not here.
    "modules.v1"   = "https://registry.example.com/v1/registries/origin.example.net/modules/"
  }
}

# Gets the providers of registry.terraform.io from registry.example.com.
host "registry.terraform.io" {
  services = {
    "providers.v1" = "https://registry.example.com/v1/registries/registry.terraform.io/providers/"
    # Its modules are not here. Where the public registry can be reached:
    # "modules.v1"   = "https://registry.terraform.io/v1/modules/"
  }
}
`},
		{rule: "for what is fetched on demand too", server: onHTTPS(empty(terraformUpstream)), args: "--for stand-in", has: []string{`host "registry.terraform.io"`}},
		{rule: "for those that are named, and no others", server: onHTTPS(registry), args: "--for stand-in --hostname registry.terraform.io", has: []string{`host "registry.terraform.io"`}, lacks: []string{"origin.example.net"}},
		{rule: "for one that it has nothing of, with a note", server: onHTTPS(registry), args: "--for stand-in --hostname registry.opentofu.org",
			has: []string{"/registries/registry.opentofu.org/modules/"}, lacks: []string{"origin.example.net"}, notes: "taken to have providers and modules of registry.opentofu.org"},
		{rule: "OpenTofu has files of its own", server: onHTTPS(registry), args: "--tofu", has: []string{"# For ~/.tofurc; on Windows, %APPDATA%\\tofu.rc."}},
		{rule: "a mirror of providers that only it offers excludes none", server: onHTTPS(onSiteRoute("registry.example.com", `{"handler":"terraform_registry","root":"/srv/open","signing_key":{"off":true}}`)), args: "--for mirror", lacks: []string{"exclude"}},
		{rule: "a port that is not that of HTTPS is part of the name", server: `{"listen":[":8443"],"tls_connection_policies":[{}],"routes":[` + empty(terraformUpstream) + `]}`, args: "--for mirror",
			has: []string{`url     = "https://registry.example.com:8443/v1/mirror/"`, `exclude = ["registry.example.com:8443/*/*"]`}},
		{rule: "so it is with Caddy's own, if that is another", https: 8443, server: `{"listen":[":8443"],"routes":[` + registry + `]}`, args: "--for mirror",
			has: []string{`url     = "https://registry.example.com:8443/v1/mirror/"`, `exclude = ["registry.example.com:8443/*/*"]`}, notes: "Clients reach the registry at port 8443, which https_port sets."},
		{rule: "unless the option hostname says that it is forwarded", https: 8443, server: `{"listen":[":8443"],"routes":[` + empty(`"hostname":["registry.example.com"]`) + `]}`, args: "--for mirror",
			has: []string{`url = "https://registry.example.com/v1/mirror/"`}},
		{rule: "or the server listens on the port of HTTPS too", https: 8443, server: `{"listen":[":8443",":443"],"tls_connection_policies":[{}],"routes":[` + empty(terraformUpstream) + `]}`, args: "--for mirror",
			has: []string{`url = "https://registry.example.com/v1/mirror/"`}},
		{rule: "of several ports, Caddy's own", https: 8443, server: `{"listen":[":9443",":8443"],"tls_connection_policies":[{}],"routes":[` + empty(terraformUpstream) + `]}`, args: "--for mirror",
			has: []string{`url     = "https://registry.example.com:8443/v1/mirror/"`}, notes: "port 8443"},
		{rule: "a site without TLS is behind a proxy", server: `{"listen":[":8080"],"automatic_https":{"disable":true},"routes":[` + empty(terraformUpstream) + `]}`, args: "--for mirror",
			has: []string{`url = "https://registry.example.com/v1/mirror/"`}, notes: "The site has no TLS"},
		{rule: "the option hostname has its names", server: onHTTPS(empty(`"hostname":["tf.example.com:8443","tf.example.org"]`)), args: "--for mirror",
			has: []string{`url     = "https://tf.example.com:8443/v1/mirror/"`, `exclude = ["tf.example.com:8443/*/*"]`}},
		{rule: "--site chooses one of the names", server: onHTTPS(empty(`"hostname":["tf.example.com","tf.example.org"]`)), args: "--site tf.example.org", has: []string{"modules of tf.example.org"}},
		{rule: "--site chooses one of several registries", server: onHTTPS(registry, onSiteRoute("other.example.com", `{"handler":"terraform_registry","root":"/srv/free"}`)), args: "--site Other.example.com", has: []string{"modules of other.example.com"}},
		{rule: "a prefix", server: onHTTPS(empty(`"prefix":"/terraform"`)), args: "--for mirror", has: []string{`"https://registry.example.com/terraform/mirror/"`}},
		{rule: "services at another name are given, as discovery may not find them", server: onHTTPS(empty(`"hostname":["tf.example.com"],"public_url":"https://proxy.example.com/registry"`)),
			has: []string{"# The services of tf.example.com, which are not found by discovery", `host "tf.example.com" {`, `"modules.v1"   = "https://proxy.example.com/registry/v1/modules/"`}, lacks: []string{"Nothing is needed"}},
		{rule: "without a hostname in the configuration, that of the public URL", server: onHTTPS(`{"handle":[{"handler":"terraform_registry","root":"/srv/free","public_url":"https://tf.example.com"}]}`), has: []string{"modules of tf.example.com"}, lacks: []string{"host "}},
		{rule: "where a token is needed, it says so", server: onHTTPS(onSiteRoute("registry.example.com", closedRegistry)), has: []string{
			"# The token for registry.example.com. Setting TF_TOKEN_registry_example_com does\n# the same.\n# credentials \"registry.example.com\" {\n#   token = \"…\"\n# }\n"}},
		{rule: "with a block on request", server: onHTTPS(onSiteRoute("registry.example.com", closedRegistry)), args: "--token", has: []string{"\ncredentials \"registry.example.com\" {\n  token = \"…\"\n}\n"}},
		{rule: "or the command that stores one", server: onHTTPS(empty(`"auth":[{"provider":"terraform_tokens","file":"/srv/tokens"}],"login":{"authz":"https://id.example.com/a","token":"https://id.example.com/t","client":"c"}`)), args: "--tofu", has: []string{"unless `tofu login registry.example.com`\n# has stored one."}},
		{rule: "a stand-in gets it under the original name", server: onHTTPS(empty(`"auth":[{"provider":"terraform_tokens","file":"/srv/tokens"}],` + terraformUpstream)), args: "--for stand-in --token",
			has: []string{"\ncredentials \"registry.terraform.io\" {\n", "TF_TOKEN_registry_terraform_io", "\ncredentials \"registry.example.com\" {\n"}},
		{rule: "unless everyone may read what is mirrored", server: onHTTPS(empty(terraformUpstream + `,"access":{"rules":[{"effect":"allow","who":"anonymous","right":"read","addresses":["registry.terraform.io"]}]}`)), args: "--for stand-in",
			has: []string{"TF_TOKEN_registry_example_com"}, lacks: []string{"TF_TOKEN_registry_terraform_io"}},
		{rule: "also on request", server: onHTTPS(empty(terraformUpstream + `,"access":{"rules":[{"effect":"allow","who":"anonymous","right":"read","addresses":["registry.terraform.io"]}]}`)), args: "--for stand-in --token",
			has: []string{"TF_TOKEN_registry_example_com"}, lacks: []string{"TF_TOKEN_registry_terraform_io"}},
		{rule: "a mirror needs one if only what is the registry's own may be read without", server: onHTTPS(empty(terraformUpstream + `,"access":{"rules":[{"effect":"allow","who":"anonymous","right":"read","addresses":["*/*"]}]}`)), args: "--for mirror",
			has: []string{"TF_TOKEN_registry_example_com"}},
		{rule: "nor is one needed for that mirror", server: onHTTPS(empty(terraformUpstream + `,"access":{"rules":[{"effect":"allow","who":"anonymous","right":"read","addresses":["registry.terraform.io","*/*"]}]}`)), args: "--for mirror",
			lacks: []string{"TF_TOKEN"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			args := append(strings.Fields(test.args), "--config", serverConfig(t, test.server, test.https))
			out, errs, err := commandtest.Run(t.Context(), clientConfigCommand(remote.Network{}), args...)
			if err != nil {
				t.Fatal(err)
			}
			if test.want != "" && out != test.want {
				t.Errorf("got\n%s\nwant\n%s", out, test.want)
			}
			for _, has := range test.has {
				if !strings.Contains(out, has) {
					t.Errorf("%q is missing in\n%s", has, out)
				}
			}
			for _, lacks := range test.lacks {
				if strings.Contains(out, lacks) {
					t.Errorf("%q is in\n%s", lacks, out)
				}
			}
			if !strings.Contains(errs, test.notes) || test.notes == "" && errs != "" {
				t.Errorf("notes: %q", errs)
			}
			isClientConfiguration(t, out)
		})
	}
}

// isClientConfiguration checks that a file can be read, and its comments in a terminal.
func isClientConfiguration(t *testing.T, text string) {
	t.Helper()
	if _, problems := hclsyntax.ParseConfig([]byte(text), "", hcl.InitialPos); problems.HasErrors() {
		t.Errorf("%v in\n%s", problems, text)
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") && utf8.RuneCountInString(line) > cli.Width+1 {
			t.Errorf("a comment is too long: %s", line)
		}
	}
}

func TestClientConfigRefuses(t *testing.T) {
	two := onHTTPS(onSiteRoute("a.example.com", openRegistry), onSiteRoute("b.example.com", `{"handler":"terraform_registry","root":"/srv/free"}`))
	for _, test := range []struct{ rule, server, args, want string }{
		{"nothing to ask", "", "", "name the registry by --config or by --url"},
		{"two to ask", onHTTPS(), "--url registry.example.com", "name the registry by --config or by --url"},
		{"an argument", "", "registry.example.com", "unexpected argument: name the registry by --config or --url"},
		{"an unknown purpose", "", "--for proxy --url registry.example.com", `--for: "proxy" is none of registry, mirror and stand-in`},
		{"a hostname for a mirror", "", "--for mirror --hostname registry.terraform.io --url registry.example.com", "--hostname: it names registries to stand in for"},
		{"a site of a server", "", "--site registry.example.com --url registry.example.com", "they can only be given with --config"},
		{"no registry", onHTTPS(), "", "the configuration has no terraform_registry"},
		{"several registries", two, "", "choose one by its hostname with --site: a.example.com, b.example.com"},
		{"another site", two, "--site c.example.com", "no registry of the configuration has the hostname c.example.com, these are: a.example.com, b.example.com"},
		{"no name", onHTTPS(`{"handle":[` + openRegistry + `]}`), "", "does not say by which name clients reach the registry"},
		{"a name with a wildcard", onHTTPS(onSiteRoute("*.example.com", openRegistry)), "", "does not say by which name clients reach the registry"},
		{"a stand-in for nothing", onHTTPS(onSiteRoute("a.example.com", `{"handler":"terraform_registry","root":"/srv/free"}`)), "--for stand-in", "the registry has nothing of another one, and no upstream"},
		{"a URL without TLS", "", "--url http://registry.example.com", "--url: it must begin with https://"},
		{"a URL with a password", "", "--url https://me:secret@registry.example.com", "is not the URL of a registry"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			args := strings.Fields(test.args)
			if test.server != "" {
				args = append(args, "--config", serverConfig(t, test.server, 0))
			}
			out, errs, err := commandtest.Run(t.Context(), clientConfigCommand(remote.Network{}), args...)
			if err == nil || out != "" || !strings.Contains(errs, test.want) {
				t.Errorf("got %v, %q and %q", err, out, errs)
			}
		})
	}
}

func TestClientConfigOfAServer(t *testing.T) {
	answers := func(discovery, private int, document string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/.well-known/terraform.json":
				w.WriteHeader(discovery)
				w.Write([]byte(document))
			case "/v1/mirror/registry.terraform.io/hashicorp/null/index.json", "/cache/registry/providers/hashicorp/null/versions":
				w.WriteHeader(404)
			case "/v1/registries/a.example.com/providers/hashicorp/null/versions":
				w.WriteHeader(401)
			case "/v1/providers/hashicorp/null/versions", "/v1/registries/registry.terraform.io/providers/hashicorp/null/versions",
				"/v1/registries/registry.opentofu.org/providers/hashicorp/null/versions", "/v1/registries/b.example.com/providers/hashicorp/null/versions":
				w.WriteHeader(private)
			default:
				t.Errorf("%s is requested", r.URL.Path)
			}
		}
	}
	const ours = `{"providers.v1":"/v1/providers/","modules.v1":"/v1/modules/"}`
	for _, test := range []struct {
		rule       string
		server     http.HandlerFunc
		path, args string
		has, lacks []string
		fails      string
	}{
		{"a mirror", answers(200, 404, ours), "", "--for mirror", []string{`url     = "https://HOST/v1/mirror/"`, `exclude = ["HOST/*/*"]`}, []string{"token"}, ""},
		{"of the URL, the host counts", answers(200, 404, ours), "/v1/", "--for mirror", []string{`"https://HOST/v1/mirror/"`}, nil, ""},
		{"a stand-in for the registry of Terraform", answers(200, 404, ours), "", "--for stand-in", []string{`host "registry.terraform.io"`, `"https://HOST/v1/registries/registry.terraform.io/modules/"`}, []string{"opentofu"}, ""},
		{"or of OpenTofu", answers(200, 404, ours), "", "--for stand-in --tofu", []string{`host "registry.opentofu.org"`}, []string{"registry.terraform.io"}, ""},
		{"or for those that are named", answers(200, 404, ours), "", "--for stand-in --hostname a.example.com --hostname b.example.com", []string{`host "a.example.com"`, `host "b.example.com"`, "TF_TOKEN_a_example_com"}, []string{"registry.terraform.io", "TF_TOKEN_b_example_com"}, ""},
		{"a private one", answers(200, 401, ours), "", "--for stand-in --token", []string{"\ncredentials \"HOST\" {", "\ncredentials \"registry.terraform.io\" {"}, []string{"login"}, ""},
		{"with login", answers(200, 401, `{"providers.v1":"/v1/providers/","login.v1":{"client":"c"}}`), "", "", []string{"`terraform login HOST`"}, nil, ""},
		{"tokens on request", answers(200, 404, ours), "", "--token", []string{"\ncredentials \"HOST\" {"}, nil, ""},
		{"without discovery, by its path", answers(404, 200, ""), "/cache/registry", "", []string{`host "HOST" {`, `"https://HOST/cache/registry/modules/"`}, nil, ""},
		{"no registry", answers(404, 200, ""), "", "", nil, nil, "it is not a registry: it answered 404"},
		{"of another kind", answers(200, 200, `{"providers.v1":"/api/registry/v1/p/"}`), "", "--for mirror", nil, nil, "another kind of registry"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			server := httptest.NewTLSServer(test.server)
			defer server.Close()
			network := remote.Network{Roots: x509.NewCertPool(), Pause: time.Millisecond}
			network.Roots.AddCert(server.Certificate())
			host := server.Listener.Addr().String()
			out, errs, err := commandtest.Run(t.Context(), clientConfigCommand(network), append(strings.Fields(test.args), "--url", host+test.path)...)
			if test.fails != "" {
				if err == nil || !strings.Contains(errs, test.fails) {
					t.Errorf("got %v and %q", err, errs)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, has := range test.has {
				if has = strings.ReplaceAll(has, "HOST", host); !strings.Contains(out, has) {
					t.Errorf("%q is missing in\n%s", has, out)
				}
			}
			for _, lacks := range test.lacks {
				if strings.Contains(out, lacks) {
					t.Errorf("%q is in\n%s", lacks, out)
				}
			}
			isClientConfiguration(t, out)
		})
	}
}

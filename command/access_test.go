package command

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
)

// configFile writes a configuration in JSON with these routes and an admin API on a socket. What
// the routes name below /srv is made for the test.
func configFile(t *testing.T, routes ...string) (file string) {
	t.Helper()
	dir := newRoots(t)
	text := strings.ReplaceAll(`{
		"admin":{"listen":"unix/`+dir+`/admin","config":{"persist":false}},
		"storage":{"module":"file_system","root":"`+dir+`"},
		"apps":{"http":{"servers":{"srv0":{"listen":["unix/`+dir+`/socket"],"automatic_https":{"disable":true},
			"routes":[`+strings.Join(routes, ",")+`]}}}}}`, "/srv/", dir+"/")
	return commandtest.Write(t, t.TempDir(), "caddy.json", text)
}

// newRoots makes a folder with the roots of several registries, and a tokens file.
func newRoots(t *testing.T) (dir string) {
	t.Helper()
	tokens, _, _ := tokensFile(t)
	dir = filepath.Dir(tokens)
	for _, name := range []string{"open", "closed", "ruled", "named", "free"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// onSiteRoute is a route as the Caddyfile adapter writes it.
func onSiteRoute(host, registry string) string {
	return `{"match":[{"host":["` + host + `"]}],"terminal":true,"handle":[{"handler":"subroute","routes":[{"handle":[` + registry + `]}]}]}`
}

const (
	openRegistry = `{"handler":"terraform_registry","root":"/srv/open"}`

	closedRegistry = `{"@id":"closed","handler":"terraform_registry","root":"/srv/closed",
		"auth":[{"provider":"terraform_tokens","file":"/srv/tokens"}]}`

	ruledRegistry = `{"handler":"terraform_registry","root":"/srv/ruled","access":{"rules":[
		{"effect":"allow","who":"anonymous","right":"read","addresses":["acme/demo"]},
		{"effect":"allow","who":"ci","right":"read","addresses":["acme/*"]},
		{"effect":"deny","who":"group:guests","right":"read","addresses":["*"]},
		{"effect":"allow","who":"authenticated","right":"read","addresses":["registry.terraform.io/hashicorp"]},
		{"effect":"allow","who":"group:release team","right":"publish","addresses":["acme"]}]}}`

	managedRegistry = `{"handler":"terraform_registry","root":"/srv/ruled","access":{"rules":[
		{"effect":"allow","who":"ci","right":"publish","addresses":["acme"]},
		{"effect":"allow","who":"ops","right":"manage","addresses":["*"]}]}}`

	namedRegistry = `{"handler":"terraform_registry","root":"/srv/named","hostname":["one.example.com","{env.ACCESS_TEST_NAME}"],
		"access":{"rules":[{"effect":"allow","who":"ci","right":"read","addresses":["one.example.com/acme"]},
		{"effect":"allow","who":"jo","right":"read","addresses":["acme"]}]}}`
)

func TestAccess(t *testing.T) {
	t.Setenv("ACCESS_TEST_NAME", "two.example.com:8443")
	for _, test := range []struct {
		rule    string
		routes  []string
		args    string
		want    string
		allowed bool
	}{
		{"without rules anyone may read", []string{onSiteRoute("r.example.com", openRegistry)}, "read acme/vpc/aws",
			"allowed: there are no access rules, so everything is readable by anyone", true},
		{"without rules no one may publish", []string{onSiteRoute("r.example.com", openRegistry)}, "--as ci publish acme/vpc/aws",
			"denied: there are no access rules, and publishing and managing require one", false},
		{"nor manage", []string{onSiteRoute("r.example.com", openRegistry)}, "--as ci manage acme/vpc/aws",
			"denied: there are no access rules, and publishing and managing require one", false},
		{"the right to manage", []string{onSiteRoute("r.example.com", managedRegistry)}, "--as ops manage registry.terraform.io/hashicorp/aws",
			"allowed by rule 2: allow ops manage *", true},
		{"which includes the right to publish", []string{onSiteRoute("r.example.com", managedRegistry)}, "--as ops publish acme/vpc/aws",
			"allowed by rule 2: allow ops manage *", true},
		{"which does not include the right to manage", []string{onSiteRoute("r.example.com", managedRegistry)}, "--as ci manage acme/vpc/aws",
			"denied: no rule allows it", false},
		{"auth without access allows authenticated users", []string{onSiteRoute("r.example.com", closedRegistry)}, "--as ci read acme/vpc/aws",
			"allowed by the rule that auth implies without access: allow authenticated read *", true},
		{"auth without access denies anonymous clients", []string{onSiteRoute("r.example.com", closedRegistry)}, "read acme/vpc/aws",
			"denied: no rule allows it", false},
		{"a rule for anyone", []string{onSiteRoute("r.example.com", ruledRegistry)}, "read acme/demo",
			"allowed by rule 1: allow anonymous read acme/demo", true},
		{"a rule for anyone comes before one that denies", []string{onSiteRoute("r.example.com", ruledRegistry)}, "--as jo --group guests read acme/demo",
			"allowed by rule 1: allow anonymous read acme/demo", true},
		{"the second rule", []string{onSiteRoute("r.example.com", ruledRegistry)}, "--as ci read acme/vpc/aws",
			"allowed by rule 2: allow ci read acme/*", true},
		{"a rule that denies", []string{onSiteRoute("r.example.com", ruledRegistry)}, "--as jo -g staff -g guests read acme/vpc/aws",
			"denied by rule 3: deny group:guests read *", false},
		{"no rule", []string{onSiteRoute("r.example.com", ruledRegistry)}, "--as jo read acme/vpc/aws",
			"denied: no rule allows it", false},
		{"an empty name is an anonymous client", []string{onSiteRoute("r.example.com", ruledRegistry)}, "--as= read acme/vpc/aws",
			"denied: no rule allows it", false},
		{"a mirrored address", []string{onSiteRoute("r.example.com", ruledRegistry)}, "--as jo read registry.terraform.io/hashicorp/null",
			"allowed by rule 4: allow authenticated read registry.terraform.io/hashicorp", true},
		{"the hostname of the site is hosted", []string{onSiteRoute("r.example.com", ruledRegistry)}, "--as ci read R.example.com:8443/acme/vpc/aws",
			"allowed by rule 2: allow ci read acme/*", true},
		{"a wildcard site", []string{onSiteRoute("*.example.com", ruledRegistry)}, "--as ci read r.example.com/acme/vpc/aws",
			"allowed by rule 2: allow ci read acme/*", true},
		{"a configured hostname is hosted", []string{onSiteRoute("r.example.com", namedRegistry)}, "--as jo read two.example.com:8443/acme/vpc/aws",
			"allowed by rule 2: allow jo read acme", true},
		{"a rule for one of the hostnames is for all", []string{onSiteRoute("r.example.com", namedRegistry)}, "--as ci read two.example.com:8443/acme/vpc/aws",
			"allowed by rule 1: allow ci read one.example.com/acme", true},
		{"an address without a hostname is hosted", []string{onSiteRoute("r.example.com", namedRegistry)}, "--as ci read acme/vpc/aws",
			"allowed by rule 1: allow ci read one.example.com/acme", true},
		{"the hostname of the site is mirrored where others are configured", []string{onSiteRoute("r.example.com", namedRegistry)}, "--as jo read r.example.com/acme/vpc/aws",
			"denied: no rule allows it", false},
		{"one of several", []string{onSiteRoute("a.example.com", openRegistry), onSiteRoute("b.example.com", ruledRegistry)}, "--root /srv/ruled/ --as ci read acme/vpc/aws",
			"allowed by rule 2: allow ci read acme/*", true},
		{"one on several sites", []string{onSiteRoute("a.example.com", ruledRegistry), onSiteRoute("b.example.com", ruledRegistry)}, "--as ci read b.example.com/acme/vpc/aws",
			"allowed by rule 2: allow ci read acme/*", true},
		{"several without rules", []string{onSiteRoute("a.example.com", openRegistry), onSiteRoute("b.example.com", strings.ReplaceAll(openRegistry, "open", "free"))}, "read acme/vpc/aws",
			"allowed: there are no access rules, so everything is readable by anyone", true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			config := configFile(t, test.routes...)
			args := strings.ReplaceAll(test.args, "/srv/", rootsOf(t, config)+"/")
			out, notes, err := commandtest.Run(t.Context(), accessCommand(), append([]string{"--config", config}, strings.Fields(args)...)...)
			if out != test.want+"\n" || notes != "" {
				t.Errorf("got %q and %q, want %q", out, notes, test.want)
			}
			if test.allowed && err != nil || !test.allowed && !errors.Is(err, cli.ErrProblem) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// rootsOf returns the folder that stands in for /srv in a configuration.
func rootsOf(t *testing.T, file string) string {
	t.Helper()
	var config struct{ Storage struct{ Root string } }
	content, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(content, &config)
	}
	if err != nil {
		t.Fatal(err)
	}
	return config.Storage.Root
}

// serve runs a server with a configuration until the end of the test.
func serve(t *testing.T, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err == nil {
		err = caddy.Load(content, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t) })
}

func stop(t *testing.T) {
	t.Helper()
	if err := caddy.Stop(); err != nil {
		t.Error(err)
	}
}

// eventually fails unless a condition comes true.
func eventually(t *testing.T, condition func() (met bool, says string)) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		met, says := condition()
		if met {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(says)
		}
	}
}

// Without a configuration the running server is asked.
func TestAccessAsksTheServer(t *testing.T) {
	file := configFile(t, onSiteRoute("a.example.com", openRegistry), onSiteRoute("b.example.com", ruledRegistry))
	serve(t, file)
	roots := rootsOf(t, file)
	server := "unix/" + roots + "/admin"
	for _, test := range []struct {
		rule string
		args []string
		want string
		err  string // empty: none
	}{
		{"by a group", []string{"--as", "jo", "--group", "staff", "--group", "release team", "publish", "b.example.com/acme/vpc/aws"},
			"allowed by rule 5: allow \"group:release team\" publish acme\n", ""},
		{"by a root", []string{"--root", roots + "/ruled", "read", "acme/vpc/aws"}, "denied: no rule allows it\n", cli.ErrProblem.Error()},
		{"by no root", []string{"read", "acme/demo"}, "", "choose one by its root with --root: " + roots + "/open, " + roots + "/ruled"},
		{"a configuration's option", []string{"--adapter", "caddyfile", "read", "acme/demo"}, "", "only be given with --config"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			out, _, err := commandtest.Run(t.Context(), accessCommand(), append([]string{"--address", server}, test.args...)...)
			if out != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %q and error %v", out, err)
			}
		})
	}
}

func TestAccessOfWhatIsNoAdminAPI(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }))
	defer server.Close()
	at := server.Listener.Addr().String()
	out, _, err := commandtest.Run(t.Context(), accessCommand(), "--address", at, "read", "acme/demo")
	if out != "" || err == nil || !strings.Contains(err.Error(), "the admin API at "+at+" gives an unexpected answer: ") {
		t.Errorf("got %q and error %v", out, err)
	}
}

// A note says how a hostname was understood that the configuration does not have.
func TestAccessNotesUnknownHostnames(t *testing.T) {
	config := configFile(t, `{"handle":[`+ruledRegistry+`]}`)
	out, notes, err := commandtest.Run(t.Context(), accessCommand(), "--config", config, "--as", "ci", "read", "r.example.com/acme/vpc/aws")
	if out != "denied: no rule allows it\n" || !errors.Is(err, cli.ErrProblem) {
		t.Errorf("got %q and %v", out, err)
	}
	if want := "r.example.com is taken for the hostname of another registry: if it is one of this registry's, leave it out\n"; notes != want {
		t.Errorf("got the note %q, want %q", notes, want)
	}
}

// A group's name may have a space in it.
func TestAccessPublish(t *testing.T) {
	config := configFile(t, onSiteRoute("r.example.com", ruledRegistry))
	out, _, err := commandtest.Run(t.Context(), accessCommand(), "--config", config, "--as", "jo", "--group", "release team", "publish", "acme/vpc/aws")
	if out != "allowed by rule 5: allow \"group:release team\" publish acme\n" || err != nil {
		t.Errorf("got %q and %v", out, err)
	}
}

// A configuration may have the registry's app, which has no options, and no registry.
func TestAccessWithTheAppAlone(t *testing.T) {
	file := commandtest.Write(t, t.TempDir(), "caddy.json", `{"apps":{"terraform_registry":{}}}`)
	out, _, err := commandtest.Run(t.Context(), accessCommand(), "--config", file, "read", "acme/demo")
	if err == nil || !strings.Contains(err.Error(), "has no terraform_registry") || out != "" {
		t.Errorf("got %q and the error %v", out, err)
	}
}

// Mistakes must not look like an answer.
func TestAccessMistakes(t *testing.T) {
	stopped := "unix/" + t.TempDir() + "/admin"
	ruled := onSiteRoute("r.example.com", ruledRegistry)
	for _, test := range []struct {
		rule   string
		routes []string
		args   string
		want   string
	}{
		{"two addresses", []string{ruled}, "read acme/demo acme/vpc/aws", "give a right and an address"},
		{"an unknown right", []string{ruled}, "write acme/demo", `"write" is not a right`},
		{"a malformed address", []string{ruled}, "read acme", `"acme" is not an address`},
		{"groups of an anonymous client", []string{ruled}, "--group dev read acme/demo", "a client without a token is in no group"},
		{"a group as a user", []string{ruled}, "--as group:dev read acme/demo", "give a group with --group, as in --as NAME --group dev"},
		{"a group as a user, misspelled", []string{ruled}, "--as groups:dev read acme/demo", "give a group with --group"},
		{"no server", nil, "--address " + stopped + " read acme/demo", "start Caddy, name another address with --address"},
		{"a missing configuration", nil, "--config missing.json read acme/demo", "reading config from file"},
		{"a server and a configuration", []string{ruled}, "--address " + stopped + " read acme/demo", "--config asks a file: leave out one of them"},
		{"an unknown adapter", []string{ruled}, "--adapter nonsense read acme/demo", "unrecognized config adapter"},
		{"no registry", []string{`{"handle":[{"handler":"static_response"}]}`}, "read acme/demo", "has no terraform_registry"},
		{"a registry with an unknown option", []string{`{"handle":[{"handler":"terraform_registry","rooot":"/srv"}]}`}, "read acme/demo", `unknown field "rooot"`},
		{"a malformed rule", []string{onSiteRoute("r.example.com", strings.ReplaceAll(ruledRegistry, `"right":"publish"`, `"right":"write"`))}, "read acme/demo", "access: rule 5"},
		{"no rules in access", []string{`{"handle":[{"handler":"terraform_registry","root":"/srv/open","access":{}}]}`}, "read acme/demo", "access: it has no rule"},
		{"a malformed hostname", []string{onSiteRoute("r.example.com", strings.ReplaceAll(namedRegistry, "one.example.com\",", "a b\","))}, "read acme/demo", "hostname: "},
		{"a rule with the site's name", []string{onSiteRoute("registry.terraform.io", ruledRegistry)}, "read acme/demo", "one of this registry's: add the option"},
		{"several registries", []string{onSiteRoute("a.example.com", openRegistry), onSiteRoute("b.example.com", ruledRegistry)}, "read acme/demo",
			"choose one by its root with --root: /srv/open, /srv/ruled"},
		{"a root that no registry has", []string{onSiteRoute("a.example.com", openRegistry), ruled}, "--root /srv/free read acme/demo",
			"no registry has the root /srv/free, these are: /srv/open, /srv/ruled"},
		{"a root that several have", []string{onSiteRoute("a.example.com", openRegistry), onSiteRoute("b.example.com", strings.ReplaceAll(ruledRegistry, "/srv/ruled", "/srv/open"))},
			"--root /srv/open read acme/demo", "registries with the root /srv/open which decide differently"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			want, args := test.want, strings.Fields(test.args)
			if test.routes != nil {
				config := configFile(t, test.routes...)
				roots := rootsOf(t, config) + "/"
				want = strings.ReplaceAll(want, "/srv/", roots)
				args = append([]string{"--config", config}, strings.Fields(strings.ReplaceAll(test.args, "/srv/", roots))...)
			}
			out, _, err := commandtest.Run(t.Context(), accessCommand(), args...)
			if err == nil || errors.Is(err, cli.ErrProblem) || !strings.Contains(err.Error(), want) || out != "" {
				t.Errorf("got %q and the error %v, want %q", out, err, want)
			}
		})
	}
}

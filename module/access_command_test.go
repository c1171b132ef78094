package module

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runAccessCommand runs the command as the process would, but for its status.
func runAccessCommand(t *testing.T, args ...string) (out, notes string, err error) {
	t.Helper()
	var o, n strings.Builder
	cmd := accessCommand()
	cmd.SetOut(&o)
	cmd.SetErr(&n)
	cmd.SilenceUsage = true
	cmd.SetArgs(args)
	err = cmd.Execute()
	return o.String(), n.String(), err
}

// configFile writes a configuration in JSON with these routes.
func configFile(t *testing.T, routes ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "caddy.json")
	config := `{"apps":{"http":{"servers":{"srv0":{"listen":[":443"],"routes":[` + strings.Join(routes, ",") + `]}}}}}`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// onSite is a route as the Caddyfile adapter writes it.
func onSiteRoute(host, registry string) string {
	return `{"match":[{"host":["` + host + `"]}],"terminal":true,"handle":[{"handler":"subroute","routes":[{"handle":[` + registry + `]}]}]}`
}

const (
	openRegistry = `{"handler":"terraform_registry","root":"/srv/open"}`

	closedRegistry = `{"@id":"closed","handler":"terraform_registry","root":"/srv/closed",
		"auth":[{"provider":"terraform_tokens","file":"/nowhere/tokens"}],"signing_key":{"file":"/nowhere/key"}}`

	ruledRegistry = `{"handler":"terraform_registry","root":"/srv/ruled","auth":[{"provider":"unheard_of"}],"access":{"rules":[
		{"effect":"allow","who":"anonymous","right":"read","addresses":["acme/demo"]},
		{"effect":"allow","who":"ci","right":"read","addresses":["acme/*"]},
		{"effect":"deny","who":"group:guests","right":"read","addresses":["*"]},
		{"effect":"allow","who":"authenticated","right":"read","addresses":["registry.terraform.io/hashicorp"]},
		{"effect":"allow","who":"group:release team","right":"publish","addresses":["acme"]}]}}`

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
		{"without rules everybody reads", []string{onSiteRoute("r.example.com", openRegistry)}, "read acme/vpc/aws",
			"allowed: there are no access rules, everybody may read everything", true},
		{"without rules nobody publishes", []string{onSiteRoute("r.example.com", openRegistry)}, "--as ci publish acme/vpc/aws",
			"denied: there are no access rules, and without one nobody may publish", false},
		{"auth alone lets in those who are somebody", []string{onSiteRoute("r.example.com", closedRegistry)}, "--as ci read acme/vpc/aws",
			"allowed by the rule that auth has without access: allow authenticated read *", true},
		{"auth alone keeps the others out", []string{onSiteRoute("r.example.com", closedRegistry)}, "read acme/vpc/aws",
			"denied: no rule allows it", false},
		{"what is everybody's", []string{onSiteRoute("r.example.com", ruledRegistry)}, "read acme/demo",
			"allowed by rule 1: allow anonymous read acme/demo", true},
		{"what is everybody's is a guest's", []string{onSiteRoute("r.example.com", ruledRegistry)}, "--as jo --group guests read acme/demo",
			"allowed by rule 1: allow anonymous read acme/demo", true},
		{"the second rule", []string{onSiteRoute("r.example.com", ruledRegistry)}, "--as ci read acme/vpc/aws",
			"allowed by rule 2: allow ci read acme/*", true},
		{"a rule that denies", []string{onSiteRoute("r.example.com", ruledRegistry)}, "--as jo -g staff -g guests read acme/vpc/aws",
			"denied by rule 3: deny group:guests read *", false},
		{"no rule", []string{onSiteRoute("r.example.com", ruledRegistry)}, "--as jo read acme/vpc/aws",
			"denied: no rule allows it", false},
		{"an empty name is nobody", []string{onSiteRoute("r.example.com", ruledRegistry)}, "--as= read acme/vpc/aws",
			"denied: no rule allows it", false},
		{"another registry's", []string{onSiteRoute("r.example.com", ruledRegistry)}, "--as jo read registry.terraform.io/hashicorp/null",
			"allowed by rule 4: allow authenticated read registry.terraform.io/hashicorp", true},
		{"the site's name is the registry's", []string{onSiteRoute("r.example.com", ruledRegistry)}, "--as ci read R.example.com:8443/acme/vpc/aws",
			"allowed by rule 2: allow ci read acme/*", true},
		{"a site for many names", []string{onSiteRoute("*.example.com", ruledRegistry)}, "--as ci read r.example.com/acme/vpc/aws",
			"allowed by rule 2: allow ci read acme/*", true},
		{"a configured name is the registry's", []string{onSiteRoute("r.example.com", namedRegistry)}, "--as jo read two.example.com:8443/acme/vpc/aws",
			"allowed by rule 2: allow jo read acme", true},
		{"rules for one of the names are for all", []string{onSiteRoute("r.example.com", namedRegistry)}, "--as ci read two.example.com:8443/acme/vpc/aws",
			"allowed by rule 1: allow ci read one.example.com/acme", true},
		{"without a name it is the registry's own", []string{onSiteRoute("r.example.com", namedRegistry)}, "--as ci read acme/vpc/aws",
			"allowed by rule 1: allow ci read one.example.com/acme", true},
		{"a site is not a name where names are configured", []string{onSiteRoute("r.example.com", namedRegistry)}, "--as jo read r.example.com/acme/vpc/aws",
			"denied: no rule allows it", false},
		{"one of several", []string{onSiteRoute("a.example.com", openRegistry), onSiteRoute("b.example.com", ruledRegistry)}, "--root /srv/ruled/ --as ci read acme/vpc/aws",
			"allowed by rule 2: allow ci read acme/*", true},
		{"one on several sites", []string{onSiteRoute("a.example.com", ruledRegistry), onSiteRoute("b.example.com", ruledRegistry)}, "--as ci read b.example.com/acme/vpc/aws",
			"allowed by rule 2: allow ci read acme/*", true},
		{"several without rules", []string{onSiteRoute("a.example.com", openRegistry), onSiteRoute("b.example.com", strings.ReplaceAll(openRegistry, "open", "free"))}, "read acme/vpc/aws",
			"allowed: there are no access rules, everybody may read everything", true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			args := append([]string{"--config", configFile(t, test.routes...)}, strings.Fields(test.args)...)
			out, notes, err := runAccessCommand(t, args...)
			if out != test.want+"\n" || notes != "" {
				t.Errorf("got %q and %q, want %q", out, notes, test.want)
			}
			if test.allowed && err != nil || !test.allowed && !errors.Is(err, errDenied) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// Who asks about a name that the configuration does not know is told how it was
// understood.
func TestAccessNotesUnknownHostnames(t *testing.T) {
	config := configFile(t, `{"handle":[`+ruledRegistry+`]}`)
	out, notes, err := runAccessCommand(t, "--config", config, "--as", "ci", "read", "r.example.com/acme/vpc/aws")
	if out != "denied: no rule allows it\n" || !errors.Is(err, errDenied) {
		t.Errorf("got %q and %v", out, err)
	}
	if want := "r.example.com is taken for the name of another registry: if it is one of this registry's, leave it out\n"; notes != want {
		t.Errorf("got the note %q, want %q", notes, want)
	}
}

// A group's name may have a space in it.
func TestAccessPublish(t *testing.T) {
	config := configFile(t, onSiteRoute("r.example.com", ruledRegistry))
	out, _, err := runAccessCommand(t, "--config", config, "--as", "jo", "--group", "release team", "publish", "acme/vpc/aws")
	if out != "allowed by rule 5: allow \"group:release team\" publish acme\n" || err != nil {
		t.Errorf("got %q and %v", out, err)
	}
}

// Mistakes are not to be taken for an answer.
func TestAccessMistakes(t *testing.T) {
	t.Chdir(t.TempDir()) // where no Caddyfile is
	ruled := onSiteRoute("r.example.com", ruledRegistry)
	for _, test := range []struct {
		rule   string
		routes []string
		args   string
		want   string
	}{
		{"no address", []string{ruled}, "read", "give a right and an address"},
		{"too much", []string{ruled}, "read acme/demo acme/vpc/aws", "give a right and an address"},
		{"a right that is none", []string{ruled}, "write acme/demo", `"write" is not a right`},
		{"an address that is none", []string{ruled}, "read acme", `"acme" is not an address`},
		{"a flag that is none", []string{ruled}, "--user ci read acme/demo", "unknown flag: --user"},
		{"groups of nobody", []string{ruled}, "--group dev read acme/demo", "who is nobody is in no group"},
		{"a group as a user", []string{ruled}, "--as group:dev read acme/demo", "give a group with --group, as in --as NAME --group dev"},
		{"a group as a user, misspelled", []string{ruled}, "--as groups:dev read acme/demo", "give a group with --group"},
		{"no configuration", nil, "read acme/demo", "there is no Caddyfile in the working directory"},
		{"a configuration that is not there", nil, "--config missing.json read acme/demo", "reading config from file"},
		{"an adapter that is none", []string{ruled}, "--adapter nonsense read acme/demo", "unrecognized config adapter"},
		{"no registry", []string{`{"handle":[{"handler":"file_server"}]}`}, "read acme/demo", "has no terraform_registry"},
		{"a registry with an unknown option", []string{`{"handle":[{"handler":"terraform_registry","rooot":"/srv"}]}`}, "read acme/demo", `unknown field "rooot"`},
		{"a rule that is none", []string{onSiteRoute("r.example.com", strings.ReplaceAll(ruledRegistry, `"right":"publish"`, `"right":"write"`))}, "read acme/demo", "access: rule 5"},
		{"no rules in access", []string{`{"handle":[{"handler":"terraform_registry","access":{}}]}`}, "read acme/demo", "access: it has no rule"},
		{"a name that is none", []string{onSiteRoute("r.example.com", strings.ReplaceAll(namedRegistry, "one.example.com\",", "a b\","))}, "read acme/demo", "hostname: "},
		{"several registries", []string{onSiteRoute("a.example.com", openRegistry), onSiteRoute("b.example.com", ruledRegistry)}, "read acme/demo",
			"choose one by its root with --root: /srv/open, /srv/ruled"},
		{"a root that no registry has", []string{onSiteRoute("a.example.com", openRegistry), ruled}, "--root /srv read acme/demo",
			"no registry of the configuration has the root /srv, these are: /srv/open, /srv/ruled"},
		{"a root that several have", []string{onSiteRoute("a.example.com", openRegistry), onSiteRoute("b.example.com", strings.ReplaceAll(ruledRegistry, "/srv/ruled", "/srv/open"))},
			"--root /srv/open read acme/demo", "registries with the root /srv/open and different rules"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			args := strings.Fields(test.args)
			if test.routes != nil {
				args = append([]string{"--config", configFile(t, test.routes...)}, args...)
			}
			out, _, err := runAccessCommand(t, args...)
			if err == nil || errors.Is(err, errDenied) || !strings.Contains(err.Error(), test.want) || out != "" {
				t.Errorf("got %q and the error %v, want %q", out, err, test.want)
			}
		})
	}
}

// Registries are found wherever there are handlers, with an expanded root too.
func TestConfiguredRegistries(t *testing.T) {
	t.Setenv("ACCESS_TEST_ROOT", "/srv/expanded")
	found, err := configuredRegistries([]byte(`{"apps":{"http":{
		"servers":{"a":{
			"routes":[{"handle":[{"handler":"subroute","routes":[{"handle":[{"handler":"terraform_registry","root":"in a subroute"}]}]}]}],
			"errors":{"routes":[{"handle":[{"handler":"terraform_registry","root":"for errors"}]}]},
			"named_routes":{"x":{"handle":[{"handler":"terraform_registry","root":"{env.ACCESS_TEST_ROOT}"}]}}}}},
		"tls":{"connection_policies":[{"match":{"sni":["a"]}}]},
		"terraform_registry":{}}, "null":null}`))
	if err != nil {
		t.Fatal(err)
	}
	var roots []string
	for _, c := range found {
		roots = append(roots, c.Root)
	}
	if got := strings.Join(roots, ", "); got != "for errors, {env.ACCESS_TEST_ROOT}, in a subroute" {
		t.Errorf("got %s", got)
	}
	for _, root := range []string{"/srv/expanded", "{env.ACCESS_TEST_ROOT}"} {
		if !found[1].hasRoot(root) {
			t.Errorf("%s is not the root of %q", root, found[1].Root)
		}
	}
}

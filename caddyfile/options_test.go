package caddyfile

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

func TestUnmarshal(t *testing.T) {
	tests := []struct {
		rule  string
		block string
		want  module.Handler
	}{
		{"root", `root /srv/terraform`, module.Handler{Root: "/srv/terraform"}},
		{"a quoted root has spaces", `root "/srv/my terraform"`, module.Handler{Root: "/srv/my terraform"}},
		{"placeholders are kept", `root {env.ROOT}`, module.Handler{Root: "{env.ROOT}"}},
		{"providers", `providers mirror`, module.Handler{Providers: "mirror"}},
		{"modules", `modules /srv/modules`, module.Handler{Modules: "/srv/modules"}},
		{"keys", `keys /srv/keys`, module.Handler{Keys: "/srv/keys"}},
		{"fs", `fs archive`, module.Handler{FileSystem: "archive"}},
		{"repeated hostnames add up", "hostname a.example.com b.example.com\nhostname c.example.com",
			module.Handler{Hostnames: []string{"a.example.com", "b.example.com", "c.example.com"}}},
		{"prefix", `prefix /terraform`, module.Handler{Prefix: "/terraform"}},
		{"public_url", `public_url https://a.example.com`, module.Handler{PublicURL: "https://a.example.com"}},
		{"signing_key without passphrase", `signing_key key.asc`,
			module.Handler{SigningKey: &module.SigningKey{File: "key.asc"}}},
		{"signing_key with passphrase", `signing_key key.asc "pass phrase"`,
			module.Handler{SigningKey: &module.SigningKey{File: "key.asc", Passphrase: "pass phrase"}}},
		{"signing_key off", `signing_key off`, module.Handler{SigningKey: &module.SigningKey{Off: true}}},
		{"signing_key in a file named off", `signing_key ./off`,
			module.Handler{SigningKey: &module.SigningKey{File: "./off"}}},
		{"signatures prefer", `signatures prefer`, module.Handler{Signatures: "prefer"}},
		{"signatures require", `signatures require`, module.Handler{Signatures: "require"}},
		{"rescan", `rescan 90s`, module.Handler{Rescan: caddy.Duration(90 * time.Second)}},
		{"rescan in days", `rescan 1d`, module.Handler{Rescan: caddy.Duration(24 * time.Hour)}},
		{"rescan off", `rescan off`, module.Handler{Rescan: -1}},
		{"poll", `poll 2s`, module.Handler{Poll: caddy.Duration(2 * time.Second)}},
		{"redirect", `redirect`, module.Handler{Redirect: caddy.Duration(15 * time.Minute)}},
		{"redirect for a time", `redirect 1h`, module.Handler{Redirect: caddy.Duration(time.Hour)}},
		{"poll off", `poll off`, module.Handler{Poll: -1}},
		{"auth with the syntax of a provider", "auth terraform_tokens /etc/caddy/tokens",
			module.Handler{AuthRaw: []json.RawMessage{json.RawMessage(`{"file":"/etc/caddy/tokens","provider":"terraform_tokens"}`)}}},
		{"several authentication providers, in order", "auth terraform_oidc https://a.example.com {\n\taudience a\n}\nauth terraform_tokens b",
			module.Handler{AuthRaw: []json.RawMessage{
				json.RawMessage(`{"audience":["a"],"issuer":"https://a.example.com","provider":"terraform_oidc"}`),
				json.RawMessage(`{"file":"b","provider":"terraform_tokens"}`),
			}}},
		{"access", "access {\n\tallow ci read acme registry.terraform.io/*\n\tdeny anonymous publish *\n\tallow group:platform manage *\n}",
			module.Handler{Access: &module.Access{Rules: []module.AccessRule{
				{Effect: "allow", Who: "ci", Right: "read", Addresses: []string{"acme", "registry.terraform.io/*"}},
				{Effect: "deny", Who: "anonymous", Right: "publish", Addresses: []string{"*"}},
				{Effect: "allow", Who: "group:platform", Right: "manage", Addresses: []string{"*"}},
			}}}},
		{"a rule with a hostname of the registry", "hostname r.example.com\npublic_url https://r.example.com\naccess {\n\tallow ci read r.example.com/acme\n}",
			module.Handler{Hostnames: []string{"r.example.com"}, PublicURL: "https://r.example.com", Access: &module.Access{Rules: []module.AccessRule{
				{Effect: "allow", Who: "ci", Right: "read", Addresses: []string{"r.example.com/acme"}},
			}}}},
		{"access by other placeholders", "access {\n\tsubject {http.request.header.Remote-User}\n\tgroups {http.request.header.Remote-Groups}\n\tallow group:dev read *\n}",
			module.Handler{Access: &module.Access{
				Subject: "{http.request.header.Remote-User}", Groups: "{http.request.header.Remote-Groups}",
				Rules: []module.AccessRule{{Effect: "allow", Who: "group:dev", Right: "read", Addresses: []string{"*"}}},
			}}},
		{"placeholders where words are checked", "signatures {env.S}\naccess {\n\tallow {env.WHO} {env.RIGHT} {env.NS} registry.terraform.io/{env.NS}\n}\nusage {\n\tby {env.BY}\n\tkeep 90d\n}", module.Handler{
			Signatures: "{env.S}",
			Access:     &module.Access{Rules: []module.AccessRule{{Effect: "allow", Who: "{env.WHO}", Right: "{env.RIGHT}", Addresses: []string{"{env.NS}", "registry.terraform.io/{env.NS}"}}}},
			Usage:      &module.Usage{By: "{env.BY}", Keep: caddy.Duration(90 * 24 * time.Hour)},
		}},
		{"links", `links 5m`, module.Handler{Links: caddy.Duration(5 * time.Minute)}},
		{"login", "login {\n\tclient terraform-cli\n\tsecret {env.S}\n\tissuer https://login.example.com\n\tauthz /authorize\n\ttoken /token\n\tports 20000 20010\n\tscopes openid groups\n\tscopes email\n}\nlinks 15m",
			module.Handler{Links: caddy.Duration(15 * time.Minute), Login: &module.Login{
				Client: "terraform-cli", Secret: "{env.S}", Issuer: "https://login.example.com", Authz: "/authorize", Token: "/token",
				Ports: []int{20000, 20010}, Scopes: []string{"openid", "groups", "email"},
			}}},
		{"upstream", "upstream a.example.com b.example.com {\n\tmirror https://m.example.com/\n\tallow x/* y\n\tallow z\n\tdeny x/y\n\tplatforms linux_amd64\n\tmax_held 500GiB\n\tversions_ttl 1m\n\tmin_age 3d\n\tsignatures prefer\n\ttoken {env.T}\n\ttimeout 5s\n\tprivate files.example.com\n}",
			module.Handler{Upstreams: []*module.Upstream{{
				Hostnames: []string{"a.example.com", "b.example.com"}, Mirror: "https://m.example.com/",
				Allow: []string{"x/*", "y", "z"}, Deny: []string{"x/y"}, Platforms: []string{"linux_amd64"}, MaxHeld: 500 << 30,
				VersionsTTL: caddy.Duration(time.Minute), MinAge: caddy.Duration(72 * time.Hour), Signatures: "prefer",
				Token: "{env.T}", Timeout: caddy.Duration(5 * time.Second), Private: []string{"files.example.com"},
			}}}},
		{"upstream with modules", "upstream a.example.com {\n\tmodules\n}\nupstream b.example.com {\n\tmirror https://m.example.com/\n\tmodules https://b.example.com/v1/modules/\n\thost git.example.com:8443 {\n\t\tuser u\n\t\ttoken {env.T}\n\t\tallow git.example.com:8443/acme/* git.example.com:8443/{env.TEAM}\n\t\tallow git.example.com:8443/x/vpc.git\n\t}\n\thost files.example.com\n\ttimeout 5s\n}",
			module.Handler{Upstreams: []*module.Upstream{
				{Hostnames: []string{"a.example.com"}, Modules: true},
				{Hostnames: []string{"b.example.com"}, Mirror: "https://m.example.com/", Modules: true, ModulesURL: "https://b.example.com/v1/modules/", Timeout: caddy.Duration(5 * time.Second), Hosts: []*module.UpstreamHost{
					{Name: "git.example.com:8443", User: "u", Token: "{env.T}", Allow: []string{"git.example.com:8443/acme/*", "git.example.com:8443/{env.TEAM}", "git.example.com:8443/x/vpc.git"}}, {Name: "files.example.com"},
				}},
			}}},
		{"upstreams without a block", "upstream a.example.com\nupstream b.example.com",
			module.Handler{Upstreams: []*module.Upstream{{Hostnames: []string{"a.example.com"}}, {Hostnames: []string{"b.example.com"}}}}},
		{"an option after a block", "access {\n\tallow ci read *\n}\nlinks 1h", module.Handler{
			Links:  caddy.Duration(time.Hour),
			Access: &module.Access{Rules: []module.AccessRule{{Effect: "allow", Who: "ci", Right: "read", Addresses: []string{"*"}}}},
		}},
		{"pages", "ui", module.Handler{UI: new(module.UI)}},
		{"pages below a path", "ui /registry", module.Handler{UI: &module.UI{Path: "/registry"}}},
		{"pages with a name, a logo and links", "ui /registry {\n\tname \"Acme platform\"\n\tlogo /etc/logo.svg\n\tlink \"Ask in #infra\" https://chat.example.com/infra\n\tlink Handbook /handbook\n}\nlinks 1h", module.Handler{Links: caddy.Duration(time.Hour), UI: &module.UI{
			Path: "/registry", Name: "Acme platform", Logo: "/etc/logo.svg",
			Links: []module.UILink{{Text: "Ask in #infra", URL: "https://chat.example.com/infra"}, {Text: "Handbook", URL: "/handbook"}},
		}}},
		{"git with its defaults", "git", module.Handler{Git: new(module.Git)}},
		{"git", "git {\n\thost github.com {\n\t\ttoken {env.TOKEN}\n\t\tallow github.com/acme/* github.com/other/vpc\n\t\twebhook {env.SECRET}\n\t}\n\thost git.example.com:8443 {\n\t\twebhook s\n\t}\n\tprivate git.example.com 10.0.0.1\n\tpoll 1m\n}\nlinks 1h", module.Handler{
			Links: caddy.Duration(time.Hour), Git: &module.Git{
				Hosts: []*module.GitHost{
					{Name: "github.com", Token: "{env.TOKEN}", Allow: []string{"github.com/acme/*", "github.com/other/vpc"}, Webhook: "{env.SECRET}"},
					{Name: "git.example.com:8443", Webhook: "s"},
				},
				Private: []string{"git.example.com", "10.0.0.1"}, Poll: caddy.Duration(time.Minute),
			},
		}},
		{"publish with its defaults", "publish", module.Handler{Publish: new(module.Publish)}},
		{"publish with an empty block", "publish {\n}", module.Handler{Publish: new(module.Publish)}},
		{"usage", "usage", module.Handler{Usage: &module.Usage{}}},
		{"usage", "usage {\n\tby subject\n\tkeep 90d\n}\nlinks 1h", module.Handler{
			Links: caddy.Duration(time.Hour), Usage: &module.Usage{By: "subject", Keep: caddy.Duration(90 * 24 * time.Hour)},
		}},
		{"tlog", "tlog", module.Handler{Tlog: &module.Tlog{}}},
		{"tlog", "tlog /srv/log {\n\torigin registry.example.com/log\n\tkey {env.KEY}\n\trequire\n}\nlinks 1h", module.Handler{
			Links: caddy.Duration(time.Hour), Tlog: &module.Tlog{Folder: "/srv/log", Origin: "registry.example.com/log", Key: "{env.KEY}", Require: true},
		}},
		{"publish", "publish {\n\tmax_size 700MiB\n\tstaging 2d\n\tmax_staged 50GiB\n\tmax_staged_each 5GiB\n}\nlinks 1h", module.Handler{
			Publish: &module.Publish{MaxSize: 700 << 20, Staging: caddy.Duration(48 * time.Hour), MaxStaged: 50 << 30, MaxStagedEach: 5 << 30}, Links: caddy.Duration(time.Hour),
		}},
		{"an empty block", ``, module.Handler{}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			var got module.Handler
			if err := unmarshal(dispenser(test.block), &got); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	tests := []struct {
		rule  string
		block string
		want  string
	}{
		{"an unknown option", `watch`, "unrecognized subdirective 'watch', the allowed ones are: root, providers,"},
		{"no root", `root`, "wrong argument count or unexpected line ending after 'root'"},
		{"two roots in a line", `root a b`, "wrong argument count"},
		{"two roots", "root a\nroot b", "root is already specified"},
		{"an empty root", `root ""`, "root is empty"},
		{"no hostname", `hostname`, "wrong argument count"},
		{"a signing key without its file", `signing_key`, "wrong argument count"},
		{"a signing key with an empty file", `signing_key ""`, "wrong argument count"},
		{"a signing key with three arguments", `signing_key key.asc pass phrase`, "wrong argument count"},
		{"a passphrase without a key", `signing_key off secret`, "wrong argument count"},
		{"two signing keys", "signing_key a.asc\nsigning_key off", "signing_key is already specified"},
		{"no signatures", `signatures`, "wrong argument count"},
		{"pages below two paths", "ui /a /b", "wrong argument count"},
		{"pages with two names", "ui {\n\tname a\n\tname b\n}", "name is already specified"},
		{"pages with an empty name", "ui {\n\tname \"\"\n}", "name is empty"},
		{"a link without a URL", "ui {\n\tlink Handbook\n}", "wrong argument count"},
		{"an unknown word of the pages", "ui {\n\ttitle x\n}", "unrecognized word 'title' in ui, the allowed ones are: name, logo, link"},
		{"unknown signatures", `signatures always`, "signatures is either prefer or require, not 'always'"},
		{"no interval", `rescan`, "wrong argument count"},
		{"two intervals", `rescan 1m 2m`, "wrong argument count"},
		{"an interval without unit", `rescan 300`, "rescan: time: missing unit in duration"},
		{"an interval of zero", `rescan 0s`, "rescan must be positive"},
		{"a negative interval", `rescan -1m`, "rescan must be positive"},
		{"a poll of zero", `poll 0s`, "poll must be positive, not '0s': use 'poll off' for no other instances"},
		{"auth without a provider", `auth`, "auth needs the name of an authentication provider, such as terraform_tokens or terraform_oidc"},
		{"auth with an unknown provider", `auth terraform_token /etc/caddy/tokens`, "there is no authentication provider 'terraform_token': this server has http_basic, terraform_oidc, terraform_tokens"},
		{"an authentication provider without its argument", `auth terraform_tokens`, "terraform_tokens needs one argument, the file that has the tokens"},
		{"access with arguments", `access ci {` + "\n}", "wrong argument count"},
		{"access without a rule", "access {\n}", "access has no rule, so nothing could be read"},
		{"access twice", "access {\n\tallow ci read *\n}\naccess {\n\tallow ci read *\n}", "access is already specified"},
		{"an unknown word in access", "access {\n\tpermit ci read *\n}", "unrecognized word 'permit' in access, the allowed ones are: subject, groups, allow, deny"},
		{"a rule without address", "access {\n\tallow ci read\n}", "address"},
		{"a rule with an unknown right", "access {\n\tallow ci write *\n}", "write"},
		{"a rule for any subject", "access {\n\tallow * read *\n}", "anonymous"},
		{"a rule with the hostname of public_url", "public_url https://r.example.com:8443\naccess {\n\tsubject {a}\n\tallow ci read acme\n\tdeny jo read other r.example.com/acme\n\tallow jo read *\n}\nlinks 1m",
			"access: rule 2: the hostname in the pattern \"r.example.com/acme\" is that of public_url, so it is one of this registry's: add the option `hostname r.example.com`, or write \"acme\", which matches under every hostname of this registry, at Testfile:6"},
		{"a rule with the hostname of public_url alone", "access {\n\tallow ci read R.Example.com\n}\npublic_url https://r.example.com", "write \"*/*\", which matches under every hostname of this registry, at Testfile:3"},
		{"groups: instead of group:", "access {\n\tallow groups:devs read acme\n}", "\"groups:devs\" is not a group: write \"group:devs\", at Testfile:3"},
		{"two subjects", "access {\n\tsubject {a}\n\tsubject {b}\n\tallow ci read *\n}", "subject is already specified"},
		{"an empty subject", "access {\n\tsubject \"\"\n\tallow ci read *\n}", "subject is empty"},
		{"links without a unit", `links 15`, "links: time: missing unit in duration"},
		{"links that expire at once", `links 0s`, "links must be positive"},
		{"login with an argument", "login cli", "unexpected argument 'cli'"},
		{"login without a block", "login", "the client is missing"},
		{"login without a client", "login {\n\tauthz /a\n}", "the client is missing"},
		{"an unknown word in login", "login {\n\tport 1\n}", "unrecognized subdirective 'port', the allowed ones are: client,"},
		{"a client without its ID", "login {\n\tclient\n}", "wrong argument count"},
		{"an empty client", "login {\n\tclient \"\"\n}", "client is empty"},
		{"two clients", "login {\n\tclient a\n\tclient b\n}", "client is already specified"},
		{"two lines of ports", "login {\n\tports 10000 10010\n\tports 10000 10010\n}", "ports is already specified"},
		{"one port", "login {\n\tports 10000\n}", "ports takes two numbers"},
		{"a range of ports", "login {\n\tports 10000-10010\n}", "ports takes two numbers"},
		{"ports by name", "login {\n\tports low high\n}", "'low' is not a number"},
		{"equal ports", "login {\n\tports 10000 10000\n}", "10000 is not lower than 10000"},
		{"no scopes", "login {\n\tscopes\n}", "wrong argument count"},
		{"a word of login with a block", "login {\n\tscopes a {\n\t\tb\n\t}\n}", "scopes does not have a block"},

		{"upstream without a hostname", `upstream`, "upstream needs the hostnames to mirror, such as registry.terraform.io"},
		{"an unknown word in upstream", "upstream a.example.com {\n\tversion 1\n}", "unrecognized word 'version' in upstream, the allowed ones are: mirror, url,"},
		{"two URLs of an upstream", "upstream a.example.com {\n\turl https://a\n\turl https://b\n}", "url is already specified"},
		{"allow without a pattern", "upstream a.example.com {\n\tallow\n}", "wrong argument count"},
		{"versions_ttl without a unit", "upstream a.example.com {\n\tversions_ttl 10\n}", "versions_ttl: time: missing unit in duration"},
		{"max_held that is not a size", "upstream a.example.com {\n\tmax_held lots\n}", "max_held: 'lots' is not a size, write it like 500GiB"},
		{"max_held of zero", "upstream a.example.com {\n\tmax_held 0\n}", "max_held: '0' is not a size"},
		{"two sizes", "upstream a.example.com {\n\tmax_held 1GB\n\tmax_held 1GB\n}", "max_held is already specified"},
		{"min_age of zero", "upstream a.example.com {\n\tmin_age 0s\n}", "min_age must be positive"},
		{"modules twice", "upstream a.example.com {\n\tmodules\n\tmodules\n}", "modules is already specified"},
		{"two URLs of modules", "upstream a.example.com {\n\tmodules https://a https://b\n}", "wrong argument count"},
		{"an empty URL of modules", "upstream a.example.com {\n\tmodules \"\"\n}", "wrong argument count"},
		{"host without a name", "upstream a.example.com {\n\thost {\n\t\ttoken x\n\t}\n}", "host needs one name, such as git.example.com"},
		{"two hosts in one", "upstream a.example.com {\n\thost a b\n}", "host needs one name"},
		{"an unknown word in host", "upstream a.example.com {\n\thost a {\n\t\tpassword x\n\t}\n}", "unrecognized word 'password' in host, the allowed ones are: user, token, allow"},
		{"a key for SSH, over which nothing is fetched", "upstream a.example.com {\n\thost a {\n\t\tssh_key /k\n\t}\n}", "unrecognized word 'ssh_key' in host, the allowed ones are: user, token, allow"},
		{"a host that allows nothing", "upstream a.example.com {\n\thost a.example.com {\n\t\tallow\n\t}\n}", "wrong argument count"},
		{"a host that allows repositories of another", "upstream a.example.com {\n\thost github.com {\n\t\ttoken x\n\t\tallow github.com/acme/* acme/vpc\n\t}\n}", "allow: \"acme/vpc\" is no pattern of repositories of github.com: write"},
		{"a host that allows a path with dots", "upstream a.example.com {\n\thost github.com {\n\t\tallow github.com/acme/../x\n\t}\n}", "allow: \"github.com/acme/../x\" is no pattern of repositories of github.com"},
		{"two tokens of a host", "upstream a.example.com {\n\thost a {\n\t\ttoken x\n\t\ttoken y\n\t}\n}", "token is already specified"},
		{"a token of a host that is empty", "upstream a.example.com {\n\thost a {\n\t\ttoken \"\"\n\t}\n}", "token is empty"},
		{"git with an argument", `git github.com`, "git has no argument: repositories are named in the registry.hcl of modules"},
		{"an unknown word in git", "git {\n\turl https://a\n}", "unrecognized word 'url' in git, the allowed ones are: host, private, poll"},
		{"an unknown word in a host of git", "git {\n\thost github.com {\n\t\tsecret x\n\t}\n}", "unrecognized word 'secret' in host, the allowed ones are: user, token, webhook, allow"},
		{"a token of a host of git that is for all repositories", "git {\n\thost github.com {\n\t\ttoken x\n\t}\n}", "the host github.com has a token and no allow: name the repositories that it is for"},
		{"two polls of git", "git {\n\tpoll 1m\n\tpoll 1m\n}", "poll is already specified"},
		{"a poll of git without a unit", "git {\n\tpoll 10\n}", "poll: time: missing unit in duration"},
		{"no private host", "git {\n\tprivate\n}", "wrong argument count"},
		{"publish with an argument", `publish on`, "wrong argument count"},
		{"publish twice", "publish\npublish", "publish is already specified"},
		{"an unknown word in usage", "usage {\n\tfor ever\n}", "unrecognized word 'for' in usage, the allowed ones are: by, keep, at Testfile:3"},
		{"usage by what is not known", "usage {\n\tby address\n}", "usage: by is either subject or group, not \"address\", at Testfile:3"},
		{"a rule with a placeholder and a wrong word", "access {\n\tallow {env.WHO} write acme\n}", "\"write\""},
		{"a rule with placeholders and no pattern", "access {\n\tallow {env.WHO} {env.RIGHT}\n}", "there must be a pattern of addresses"},
		{"usage by a placeholder that is kept for no day", "usage {\n\tby {env.BY}\n\tkeep 1h\n}", "usage: keep is 1h0m0s"},
		{"usage that is kept for no day", "usage {\n\tkeep 1h\n}", "usage: keep is 1h0m0s, which is not between 1d and 3660d, at Testfile:3"},
		{"usage that is kept twice", "usage {\n\tkeep 1d\n\tkeep 2d\n}", "keep is already specified"},
		{"an argument of usage", "usage on", "wrong argument count"},
		{"an unknown word in tlog", "tlog {\n\trequired\n}", "unrecognized word 'required' in tlog, the allowed ones are: origin, key, require, at Testfile:3"},
		{"a value of require in tlog", "tlog {\n\trequire on\n}", "wrong argument count"},
		{"tlog that is off", "tlog off", "leave tlog out to have no log"},
		{"two folders of a log", "tlog /a /b", "wrong argument count"},
		{"two names of a log", "tlog {\n\torigin a\n\torigin b\n}", "origin is already specified"},
		{"no name of a log", "tlog {\n\torigin\n}", "wrong argument count"},
		{"an unknown word in publish", "publish {\n\tkeep 1h\n}", "unrecognized word 'keep' in publish, the allowed ones are: max_size, staging, max_staged, max_staged_each, at Testfile:3"},
		{"max_size without a size", "publish {\n\tmax_size\n}", "wrong argument count"},
		{"max_size that is not a size", "publish {\n\tmax_size large\n}", "max_size: 'large' is not a size, write it like 500GiB, at Testfile:3"},
		{"max_size of zero", "publish {\n\tmax_size 0\n}", "max_size: '0' is not a size"},
		{"two maximum sizes", "publish {\n\tmax_size 1GB\n\tmax_size 2GB\n}", "max_size is already specified"},
		{"two limits of what is staged", "publish {\n\tmax_staged 1GB\n\tmax_staged 2GB\n}", "max_staged is already specified"},
		{"no room for a token", "publish {\n\tmax_staged_each 0\n}", "max_staged_each: '0' is not a size"},
		{"staging without a unit", "publish {\n\tstaging 24\n}", "staging: time: missing unit in duration"},
		{"two staging times", "publish {\n\tstaging 1h\n\tstaging 1h\n}", "staging is already specified"},
		{"staging that is shorter than an upload", "publish {\n\tstaging 59s\n}", "staging: 59s is not between 1m0s and 720h0m0s, at Testfile:3"},
		{"staging that never ends", "publish {\n\tstaging 31d\n}", "staging: 744h0m0s is not between 1m0s and 720h0m0s"},
		{"an option with a block", "root /srv {\n\tproviders a\n}", "root does not have a block"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			var h module.Handler
			err := unmarshal(dispenser(test.block), &h)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got error %v, want one with %q", err, test.want)
			}
			if !strings.Contains(err.Error(), "at Testfile:") {
				t.Errorf("error %q does not have the position", err)
			}
		})
	}
}

// Options have the same names in a Caddyfile and in JSON.
func TestOptionsAreFieldsOfTheHandler(t *testing.T) {
	fields := make(map[string]bool)
	handler := reflect.TypeFor[module.Handler]()
	for i := range handler.NumField() {
		if tag := handler.Field(i).Tag.Get("json"); tag != "" {
			fields[strings.TrimSuffix(tag, ",omitempty")] = true
		}
	}
	for _, o := range options(new(module.Handler)) {
		if !fields[o.name] {
			t.Errorf("%s is not a field of the handler", o.name)
		}
		delete(fields, o.name)
	}
	for name := range fields {
		t.Errorf("%s cannot be set in a Caddyfile", name)
	}
}

func dispenser(block string) *caddyfile.Dispenser {
	return caddyfile.NewTestDispenser("terraform_registry {\n" + block + "\n}")
}

// The comment of the package, which is also the reference's syntax, has every option.
func TestSyntaxHasEveryOption(t *testing.T) {
	source, err := os.ReadFile("directive.go")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, m := range regexp.MustCompile(`(?m)^//\t    (\w+)`).FindAllStringSubmatch(string(source), -1) {
		documented = append(documented, m[1])
	}
	if got, want := strings.Join(slices.Compact(documented), ", "), names(options(new(module.Handler))); got != want {
		t.Errorf("documented are %s\nwant           %s", got, want)
	}
}

// The documented syntax has every word of every block.
func TestSyntaxHasEveryWord(t *testing.T) {
	source, err := os.ReadFile("directive.go")
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string][]string) // by the path of the block
	var path []string
	for _, m := range regexp.MustCompile(`(?m)^//\t    +(.+)$`).FindAllStringSubmatch(string(source), -1) {
		words := strings.Fields(m[1])
		if words[0] == "}" {
			path = path[:len(path)-1]
			continue
		}
		block := strings.Join(path, " ")
		documented[block] = append(documented[block], strings.Split(words[0], "|")...)
		if words[len(words)-1] == "{" {
			path = append(path, words[0])
			if words[0] == "auth" {
				path = append(path[:len(path)-1], words[1])
			}
		}
	}
	for _, test := range []struct{ path, block string }{
		{"terraform_oidc", "auth terraform_oidc https://a.example.com {\n\tnothing\n}"},
		{"access", "access {\n\tnothing\n}"},
		{"login", "login {\n\tnothing\n}"},
		{"upstream", "upstream a.example.com {\n\tnothing\n}"},
		{"upstream host", "upstream a.example.com {\n\thost b.example.com {\n\t\tnothing\n\t}\n}"},
		{"git", "git {\n\tnothing\n}"},
		{"git host", "git {\n\thost b.example.com {\n\t\tnothing\n\t}\n}"},
		{"ui", "ui {\n\tnothing\n}"},
		{"publish", "publish {\n\tnothing\n}"},
		{"tlog", "tlog {\n\tnothing\n}"},
		{"usage", "usage {\n\tnothing\n}"},
	} {
		err := unmarshal(dispenser(test.block), new(module.Handler))
		if err == nil {
			t.Errorf("%s accepts any word", test.path)
			continue
		}
		_, list, _ := strings.Cut(err.Error(), "the allowed ones are: ")
		list, _, _ = strings.Cut(list, ", at ")
		want, got := strings.Split(list, ", "), documented[test.path]
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("documented of %s are %s\nwant %s", test.path, got, want)
		}
	}
}

package pages

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/route"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

// visibleTree has the packages that hiddenRules show to everyone: enough for two pages
// of a list.
func visibleTree(t testing.TB) *indextest.Tree {
	t.Helper()
	files := indextest.New(t)
	for i := range pageItems {
		files.Write(fmt.Sprintf("modules/open/m%02d/aws/1.0.0/main.tf", i), "# a module")
	}
	for _, version := range []string{"0.9.0", "1.0.0", "1.1.0"} {
		files.Write("modules/open/vpc/aws/"+version+"/main.tf", `
variable "cidr" {}
module "vault" {
  source = "registry.example.com/secret/vault/aws"
}
terraform {
  required_providers {
    hidden = {
      source = "registry.example.com/secret/hidden"
    }
    null = {
      source = "vault.example.org/open/null"
    }
  }
}
`)
		files.Write("modules/open/vpc/aws/"+version+"/modules/zone/main.tf", `variable "zone" {}`)
		files.Write("modules/open/vpc/aws/"+version+"/README.md", "# VPC\n\nSee [the vault](/modules/secret/vault/aws) and [it](modules/zone).\n")
	}
	files.Write("modules/open/vpc/aws/registry.hcl", "withdrawn \"0.9.0\" {\n  reason = \"old\"\n}\n")
	files.Provider("open/demo", "1.0.0", "linux_amd64").Docs("index.md", "# Demo\n\n[hidden](../../secret/hidden)\n", "resources/thing.md", "# Thing\n")
	files.Provider("registry.terraform.io/open/null", "3.2.0", "linux_amd64")
	return files
}

var hiddenRules = []string{
	"deny anonymous read open/hidden open/vpc/google open/hidden/*",
	"deny stranger read open/hidden open/vpc/google open/hidden/*",
	"allow anonymous read open registry.terraform.io/open",
	"allow stranger read other",
	"allow reader read *",
}

// hide adds packages that hiddenRules hide. If the registry's own name is not
// configured, packages under it are hidden too.
func hide(files *indextest.Tree, configured bool) {
	for _, dir := range []string{"secret/vault/aws", "open/hidden/aws", "open/vpc/google", "registry.terraform.io/secret/vault/aws", "vault.example.org/open/vpc/aws"} {
		for _, version := range []string{"0.1.0", "0.2.0", "1.0.0", "2.0.0"} {
			files.Write("modules/"+dir+"/"+version+"/main.tf", `
variable "combination" {}
resource "demo_thing" "one" {}
module "vpc" {
  source  = "registry.example.com/open/vpc/aws"
  version = "~> 1.0"
}
terraform {
  required_providers {
    demo = {
      source  = "registry.example.com/open/demo"
      version = "< 1.0"
    }
  }
}
`)
			files.Write("modules/"+dir+"/"+version+"/README.md", "# Vault of cidr\n\nOpens with a word.\n")
			files.Write("modules/"+dir+"/"+version+"/modules/zone/main.tf", `variable "zone" {}`)
			files.Write("modules/"+dir+"/"+version+"/examples/complete/main.tf", `# all`)
		}
		files.Write("modules/"+dir+"/registry.hcl", "withdrawn \"0.1.0\" {\n  reason = \"The combination leaked.\"\n}\ndeprecated \"0.2.0\" {\n  reason = \"Old.\"\n}\n")
	}
	for _, name := range []string{"secret/hidden", "open/hidden", "registry.terraform.io/secret/hidden", "vault.example.org/open/null"} {
		for _, version := range []string{"0.1.0", "0.2.0", "1.0.0"} {
			files.Provider(name, version, "linux_amd64", "darwin_arm64").Docs("index.md", "# Hidden\n", "resources/thing.md", "# Thing\n", "guides/combination.md", "# The combination\n")
		}
		files.Write("providers/"+name+"/registry.hcl", "withdrawn \"0.1.0\" {\n  reason = \"The combination leaked.\"\n}\n")
	}
	files.Write("modules/registry.example.com/secret/vault/aws/3.0.0/main.tf", "# merged")
	files.Write("modules/registry.example.com/secret/vault/aws/registry.hcl", "withdrawn \"1.0.0\" {\n  reason = \"The combination leaked.\"\n}\n")
	files.Write("modules/secret/withdrawn/aws/1.0.0/main.tf", "# nothing of it is offered")
	files.Write("modules/secret/withdrawn/aws/registry.hcl", "withdrawn \">= 0\" {\n  reason = \"The combination leaked.\"\n}\n")
	files.Write("modules/secret/broken/aws/1.0.0.zip", "what is withheld is in the report")
	if configured {
		return
	}
	files.Write("modules/registry.example.com/open/vpc/aws/2.0.0/main.tf", "# under the registry's own name")
	files.Write("modules/registry.example.com/open/vpc/aws/registry.hcl", "withdrawn \"1.0.0\" {\n  reason = \"The combination leaked.\"\n}\n")
	files.Provider("registry.example.com/open/demo", "2.0.0", "linux_amd64")
	files.Write("providers/registry.example.com/open/demo/registry.hcl", "withdrawn \"1.0.0\" {\n  reason = \"The combination leaked.\"\n}\n")
}

// The versions on record: visible to everyone by hiddenRules, and hidden.
var (
	visibleLeaves = []string{"module open/vpc/aws 1.0.0", "module open/vpc/aws 0.9.0", "provider open/demo 1.0.0 linux_amd64"}
	hiddenLeaves  = []string{
		"module secret/vault/aws 1.0.0", "module secret/vault/aws 0.1.0", "module open/hidden/aws 1.0.0", "module registry.terraform.io/secret/vault/aws 1.0.0",
		"provider secret/hidden 1.0.0 linux_amd64", "provider open/hidden 1.0.0 linux_amd64", "provider vault.example.org/open/null 1.0.0 linux_amd64",
	}
)

// everyPath returns paths of all pages and of the whole API.
func everyPath() []string {
	registries := []string{"", "/registries/registry.terraform.io", "/registries/vault.example.org", "/registries/registry.example.com", "/registries/nowhere.example.net"}
	paths := []string{
		"/", "/browse/modules", "/browse/modules?offset=30", "/browse/modules?offset=31", "/browse/modules?offset=900", "/browse/modules?namespace=open",
		"/browse/modules?namespace=secret", "/browse/modules?provider=google", "/browse/modules?registry=-", "/browse/modules?registry=vault.example.org",
		"/browse/modules?registry=registry.terraform.io", "/browse/modules?registry=registry.example.com",
		"/browse/providers", "/browse/providers?namespace=secret", "/browse/providers?registry=vault.example.org", "/browse/providers?offset=1",
		"/_registry/report", "/_registry/login?to=/modules/secret/vault/aws", "/?sign-in=/modules/secret/vault/aws",
		"/v1/modules", "/v1/modules?limit=1", "/v1/modules?limit=31", "/v1/modules?limit=30&offset=1", "/v1/modules?provider=google",
		"/v1/providers", "/v1/providers?limit=1", "/v1/providers?offset=1",
	}
	for _, registry := range registries {
		for _, place := range []string{"", "/modules/open", "/modules/open/vpc", "/modules/open/hidden", "/modules/secret", "/modules/secret/vault", "/providers/open", "/providers/secret", "/modules/secret/vault/aws/one", "/modules/open/vpc/aws/one", "/providers/open/demo/one"} {
			if registry+place != "" {
				paths = append(paths, registry+place)
			}
		}
	}
	for _, q := range []string{"vault", "combination", "word", "cidr", "zone", "secret", "open", "hidden", "vault.example.org", "demo_thing", "thing", "open/demo", "open/vpc/aws", "secret/vault/aws", "vualt", "combinatoin", "aws", "null", "leaked", "google", "open+vault", "vault+combination+secret"} {
		paths = append(paths, "/search?q="+q, "/search/modules?q="+q+"&offset=1", "/search/providers?q="+q, "/search/documentation?q="+q, "/search/suggestions?q="+q, "/search?namespace=open&q="+q, "/v1/modules/search?limit=2&q="+q, "/v1/providers/search?q="+q)
	}
	for _, registry := range registries {
		for _, m := range []string{"open/vpc/aws", "open/vpc/google", "open/hidden/aws", "secret/vault/aws", "secret/withdrawn/aws", "secret/broken/aws", "secret/nothing/aws", "SECRET/Vault/aws"} {
			m = registry + "/modules/" + m
			for _, version := range []string{"", "/latest", "/0.1.0", "/0.2.0", "/0.9.0", "/1.0.0", "/v1.0.0", "/2.0.0", "/3.0.0", "/7.0.0"} {
				paths = append(paths, m+version)
			}
			for _, rest := range []string{
				"?tab=readme", "?tab=inputs", "?tab=resources", "?tab=used-by", "?tab=dependencies", "?tab=versions", "?tab=changes", "?tab=changes&from=0.2.0", "?tab=nothing",
				"/submodules/zone", "/examples/complete", "/files/README.md", "/files/nothing",
				"/code", "/code/README.md", "/code/modules/zone", "/code/nothing", "/code/README.md?from=0.2.0", "/code/README.md?tab=source",
			} {
				paths = append(paths, m+"/1.0.0"+rest)
			}
			paths = append(paths, m+"?tab=versions", m+"/latest?tab=dependencies", m+"/0.1.0/files/README.md", m+"/latest/submodules/zone")
		}
		for _, p := range []string{"open/demo", "open/null", "open/hidden", "secret/hidden", "secret/nothing", "Secret/HIDDEN"} {
			p = registry + "/providers/" + p
			for _, version := range []string{"", "/latest", "/0.1.0", "/0.2.0", "/1.0.0", "/2.0.0", "/3.2.0", "/7.0.0"} {
				paths = append(paths, p+version)
			}
			for _, rest := range []string{"?tab=versions", "?tab=overview", "?tab=used-by", "?tab=pages", "?tab=pages&group=Guides", "?tab=pages&q=combination", "/docs", "/docs/resources/thing", "/docs/resources/nothing"} {
				paths = append(paths, p+"/1.0.0"+rest)
			}
			paths = append(paths, p+"?tab=versions", p+"/latest/docs", p+"/0.1.0/docs")
		}
	}
	for _, page := range slices.Clone(paths) {
		if strings.HasPrefix(page, "/v1/") {
			continue
		}
		if path, query, _ := strings.Cut(page, "?"); query == "" {
			paths = append(paths, strings.TrimSuffix(path, "/")+"/feed.atom")
		}
		paths = append(paths, asMarkdown(page))
	}
	paths = append(paths, "/llms.txt", "/_registry/log", "/v1/tlog/checkpoint", "/v1/tlog/key", "/v1/tlog/consistency?from=1", "/v1/tlog/tile/0/000")
	for _, what := range append(visibleLeaves, hiddenLeaves...) {
		kind, of, _ := strings.Cut(what, " ")
		of, _, _ = strings.Cut(strings.ReplaceAll(of, " ", "/"), "/linux_amd64")
		paths = append(paths, "/v1/tlog/lookup/"+kind+"s/"+of)
	}
	for _, m := range []string{"open/vpc/aws", "open/vpc/google", "open/hidden/aws", "secret/vault/aws", "secret/withdrawn/aws", "secret/nothing/aws", "SECRET/Vault/aws"} {
		m = "/v1/modules/" + m
		paths = append(paths, m, m+"/versions", m+"/download")
		for _, version := range []string{"0.1.0", "0.9.0", "1.0.0", "2.0.0", "3.0.0", "7.0.0"} {
			paths = append(paths, m+"/"+version, m+"/"+version+"/download", m+"/"+version+"/archive.tar.gz", m+"/"+version+"/archive.zip")
		}
	}
	for _, list := range []string{"open", "secret", "nothing", "open/vpc", "open/hidden", "secret/vault"} {
		paths = append(paths, "/v1/modules/"+list, "/v1/modules/"+list+"?limit=1", "/v1/modules?namespace="+list)
	}
	for _, p := range []string{"open", "secret", "open/demo", "open/hidden", "secret/hidden", "secret/nothing"} {
		p = "/v1/providers/" + p
		paths = append(paths, p, p+"/versions", p+"/0.1.0", p+"/1.0.0", p+"/0.1.0/download/linux/amd64", p+"/1.0.0/download/linux/amd64", p+"/7.0.0/download/linux/amd64")
	}
	for _, host := range []string{"registry.example.com", "registry.terraform.io", "vault.example.org", "nowhere.example.net", "-"} {
		for _, p := range []string{"open/demo", "open/null", "open/hidden", "secret/hidden", "secret/nothing"} {
			_, name, _ := strings.Cut(p, "/")
			m := "/v1/mirror/" + host + "/" + p
			paths = append(paths, m+"/index.json")
			for _, version := range []string{"0.1.0", "1.0.0", "3.2.0", "7.0.0"} {
				paths = append(paths, m+"/"+version+".json", m+"/terraform-provider-"+name+"_"+version+"_linux_amd64.zip", m+"/terraform-provider-"+name+"_"+version+"_SHA256SUMS")
			}
		}
	}
	return paths
}

// asMarkdown returns the path of a page as Markdown.
func asMarkdown(page string) string {
	path, query, _ := strings.Cut(page, "?")
	return path + "?" + strings.TrimPrefix(query+"&format=md", "&")
}

// Hidden packages change no answer for a visitor who cannot see them: no page, no
// answer of the API, no header.
func TestWhatIsHiddenChangesNothing(t *testing.T) {
	key, err := signing.ReadKey([]byte(indextest.NewPublisher(t).PrivateKey()), "")
	if err != nil {
		t.Fatal(err)
	}
	keys := access.NewLinkKeys(time.Now())
	// How many entries a log has is no secret, so both have the same.
	var entries []string
	for _, what := range append(visibleLeaves, hiddenLeaves...) {
		entries = append(entries, "offered 2026-01-01T00:00:00Z "+what)
	}
	log := logOf(t, entries...)
	serving := func(t *testing.T, files *indextest.Tree, names ...svchost.Hostname) *Site {
		x := index.New(index.Options{Open: files.Open, Signer: key})
		t.Cleanup(func() { x.Close() })
		s := siteOf(t, indextest.Rescan(t, x), hiddenRules...)
		s.Registry.Hostnames = names
		s.Registry.Log = func() *tlog.Log { return log }
		s.Registry.Links = &access.Links{Life: time.Hour, Keys: func() *access.LinkKeys { return keys }}
		return s
	}
	type visitor struct{ user, host string }
	users, hosts := []string{"", "stranger"}, []string{"registry.example.com", "registry.terraform.io", "vault.example.org"}
	for _, test := range []struct {
		rule  string
		names []svchost.Hostname
	}{
		{"without configured names", nil},
		{"with configured names", []svchost.Hostname{"registry.example.com", "other.example.com"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			files := visibleTree(t)
			hide(files, test.names != nil)
			full, less := serving(t, files, test.names...), serving(t, visibleTree(t), test.names...)
			paths, seen := everyPath(), 0
			random := rand.New(rand.NewPCG(1, 1))
			if testing.Short() { // for the race detector, which needs few of these requests
				random.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
				paths = paths[:len(paths)/50]
			}
			for _, path := range paths {
				known := full.ask(http.MethodGet, path, "registry.example.com", "reader")
				if known.Code == http.StatusOK {
					seen++
				}
				// Each user asks for each path, at some host, and at each host a user does.
				var asking []visitor
				first := random.IntN(len(users))
				for i, host := range hosts {
					asking = append(asking, visitor{users[(first+i)%len(users)], host})
				}
				for _, v := range asking {
					is, isNot := full.ask(http.MethodGet, path, v.host, v.user), less.ask(http.MethodGet, path, v.host, v.user)
					if is.Code != isNot.Code || is.Body.String() != isNot.Body.String() || !maps.EqualFunc(is.Header(), isNot.Header(), slices.Equal) {
						t.Errorf("%s of %s as %q: %d %v\n%s\nwithout what is hidden: %d %v\n%s", path, v.host, v.user, is.Code, is.Header(), is.Body, isNot.Code, isNot.Header(), isNot.Body)
					}
					if v.host != "registry.example.com" {
						continue
					}
					head := full.ask(http.MethodHead, path, v.host, v.user)
					if head.Code != is.Code || !maps.EqualFunc(head.Header(), is.Header(), slices.Equal) {
						t.Errorf("HEAD %s as %q: %d %v, but GET %d %v", path, v.user, head.Code, head.Header(), is.Code, is.Header())
					}
					// The validator of an earlier day tells its visitor nothing.
					if tag := known.Header().Get("Etag"); tag != "" && tag != is.Header().Get("Etag") {
						if got := full.ask(http.MethodGet, path, v.host, v.user, "If-None-Match", tag); got.Code != is.Code {
							t.Errorf("%s as %q with a reader's validator: %d, and %d without", path, v.user, got.Code, is.Code)
						}
					}
				}
			}
			if seen < len(paths)/6 {
				t.Errorf("only %d of %d paths are something to those who may see it", seen, len(paths))
			}
		})
	}
}

// A page that a visitor may not see is answered in the same way whether it exists or
// not, so that the time of an answer tells nothing. Allocations differ between ways as
// times do.
func TestHiddenPagesTakeTheSameWay(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector, under which tests are short, empties pools at random: allocations cannot be compared")
	}
	files := visibleTree(t)
	hide(files, false)
	s := siteOf(t, snapshotOf(t, files), hiddenRules...)
	for _, test := range []struct{ rule, exists, missing string }{
		{"a module", "/modules/secret/vault/aws", "/modules/secret/vaulx/aws"},
		{"a module in a public namespace", "/modules/open/hidden/aws", "/modules/open/hidden/awx"},
		{"a version", "/modules/secret/vault/aws/1.0.0", "/modules/secret/vault/aws/5.0.0"},
		{"a withdrawn version", "/modules/secret/vault/aws/0.1.0", "/modules/secret/vault/aws/5.0.0"},
		{"a module of which nothing is offered", "/modules/secret/withdrawn/aws", "/modules/secret/withdrawx/aws"},
		{"a tab", "/modules/secret/vault/aws?tab=inputs", "/modules/secret/vaulx/aws?tab=inputs"},
		{"a comparison", "/modules/secret/vault/aws/1.0.0?tab=changes&from=2.0.0", "/modules/secret/vault/aws/1.0.0?tab=changes&from=5.0.0"},
		{"a submodule", "/modules/secret/vault/aws/1.0.0/submodules/zone", "/modules/secret/vault/aws/1.0.0/submodules/none"},
		{"a file", "/modules/secret/vault/aws/1.0.0/files/README.md", "/modules/secret/vault/aws/1.0.0/files/README.xx"},
		{"the code of a module", "/modules/secret/vault/aws/1.0.0/code", "/modules/secret/vaulx/aws/1.0.0/code"},
		{"a page of a file", "/modules/secret/vault/aws/1.0.0/code/README.md", "/modules/secret/vault/aws/1.0.0/code/README.xx"},
		{"a comparison of a file", "/modules/secret/vault/aws/1.0.0/code/README.md?from=2.0.0", "/modules/secret/vault/aws/1.0.0/code/README.md?from=5.0.0"},
		{"a mirrored module", "/registries/registry.terraform.io/modules/secret/vault/aws", "/registries/registry.terraform.io/modules/secret/vaulx/aws"},
		{"a hostname", "/registries/vault.example.org/providers/open/null", "/registries/vaulx.example.org/providers/open/null"},
		{"a provider", "/providers/secret/hidden", "/providers/secret/hiddex"},
		{"a namespace", "/modules/secret", "/modules/secrex"},
		{"a name", "/modules/open/hidden", "/modules/open/hiddex"},
		{"a namespace of providers", "/providers/secret", "/providers/secrex"},
		{"a registry", "/registries/vault.example.org", "/registries/vaulx.example.org"},
		{"what is no version", "/modules/secret/vault/aws/one", "/modules/secret/vaulx/aws/one"},
		{"its documentation", "/providers/secret/hidden/1.0.0/docs/resources/thing", "/providers/secret/hidden/1.0.0/docs/resources/nones"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			ways := [][2]string{{test.exists, test.missing}, {asMarkdown(test.exists), asMarkdown(test.missing)}}
			if rt, ok := route.Parse(test.exists); ok && rt.HasFeed() {
				ways = append(ways, [2]string{test.exists + "/feed.atom", test.missing + "/feed.atom"})
			}
			for _, user := range []string{"", "stranger"} {
				for _, way := range ways {
					exists, missing := s.allocations(way[0], user), s.allocations(way[1], user)
					if exists != missing {
						t.Errorf("%s as %q: %v allocations if it exists, %v if not", way[0], user, exists, missing)
					}
				}
			}
		})
	}
}

// allocations returns the fewest allocations of several answers, since pools may be
// emptied.
func (s *Site) allocations(path, user string) float64 {
	fewest := math.Inf(1)
	for range 30 {
		fewest = min(fewest, testing.AllocsPerRun(1, func() { s.get(path, user) }))
	}
	return fewest
}

// ask sends a request to the registry and its pages, as a site does.
func (s *Site) ask(method, path, host, user string, header ...string) *httptest.ResponseRecorder {
	r, w := requestOf(method, path, host, user, header...), httptest.NewRecorder()
	if s.Registry.ServeHTTP(w, r) {
		return w
	}
	return s.do(r)
}

package upstream_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
)

// Hosts of the tests of trust, besides host and codeHost.
const (
	evilHost   = "evil.example.com"   // on the internet, and not configured
	insideHost = "inside.example.com" // in the private network, and configured
)

// A network of a registry, a code host with private repositories, and an attacker who
// wants to read them.
type hostileNetwork struct {
	gitSite
	named  string       // location of the module, according to the registry
	answer http.Handler // of the registry; nil: it sends named

	reached  bool // the private network was reached
	server   *httptest.Server
	connect  func(context.Context, *net.Dialer, string, string) (net.Conn, error)
	connects []string
}

func newHostileNetwork(t *testing.T) *hostileNetwork {
	t.Helper()
	n := new(hostileNetwork)
	n.HandleFunc(host+modulePath, func(w http.ResponseWriter, r *http.Request) {
		if n.answer != nil {
			n.answer.ServeHTTP(w, r)
			return
		}
		upstreamtest.Location(n.named)(w, r)
	})
	n.HandleFunc(host+discovery, body(`{"modules.v1":"/v1/modules/"}`))
	n.server = httptest.NewUnstartedServer(n)
	n.server.EnableHTTP2 = true
	n.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	upstreamtest.StartTLS(n.server)
	t.Cleanup(n.server.Close)
	n.connect = func(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error) {
		n.mutex.Lock()
		n.connects = append(n.connects, address)
		n.mutex.Unlock()
		if strings.HasPrefix(address, evilHost) {
			d = new(net.Dialer) // as if it were on the internet
		}
		return d.DialContext(ctx, network, n.server.Listener.Addr().String())
	}
	return n
}

// private serves something of codeHost to clients with its token.
func (n *hostileNetwork) private(path string, h http.Handler) {
	n.HandleFunc(codeHost+path, func(w http.ResponseWriter, r *http.Request) {
		if user, token, _ := r.BasicAuth(); user != "git" || token != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// inside serves something to everyone in the private network.
func (n *hostileNetwork) inside(path string, h http.Handler) {
	n.HandleFunc(insideHost+path, func(w http.ResponseWriter, r *http.Request) {
		n.mutex.Lock()
		n.reached = true
		n.mutex.Unlock()
		h.ServeHTTP(w, r)
	})
}

// fetch fetches the module that the registry names, in a network of these hosts.
func (n *hostileNetwork) fetch(t *testing.T, h upstream.Host, allow ...string) (files []string, err error) {
	t.Helper()
	for _, pattern := range allow {
		r, err := h.ParseRepositories(pattern)
		if err != nil {
			t.Fatal(err)
		}
		h.Allow = append(h.Allow, r)
	}
	c := newClient(t, upstream.Origin{Hostname: host, Token: "origin's", Hosts: []upstream.Host{h}, Private: []string{insideHost}},
		upstream.Network{Roots: roots(n.server), Connect: n.connect})
	s, err := c.ModuleSource(t.Context(), vpc, "1.0.0")
	if err != nil {
		return nil, err
	}
	into := t.TempDir()
	if _, err := c.FetchModule(t.Context(), s, into); err != nil {
		return nil, err
	}
	return filesOf(t, into), nil
}

// withSubmodules returns a function that returns a repository whose only submodule is the commit
// at a URL. There is one repository for each URL.
func withSubmodules(t *testing.T, commit string) func(at string) *upstreamtest.Repository {
	t.Helper()
	made := make(map[string]*upstreamtest.Repository)
	return func(at string) *upstreamtest.Repository {
		t.Helper()
		if made[at] == nil {
			r := upstreamtest.NewRepository(t)
			r.Write("main.tf", "", ".gitmodules", "[submodule \"x\"]\n\tpath = x\n\turl = "+at+"\n")
			r.Commit()
			r.Git("update-index", "--add", "--cacheinfo", "160000,"+commit+",x")
			r.Git("commit", "--quiet", "--message", "A submodule")
			made[at] = r
		}
		return made[at]
	}
}

// The credentials of a host are used for locations that the registry itself names, and
// for the host's own redirects from them. No other server that names something on the
// host gets it.
func TestCredentialsAreForLocationsOfTheRegistry(t *testing.T) {
	secret := upstreamtest.NewRepository(t)
	secret.Write("secret.tf", "# secret\n")
	commit := secret.Commit()
	withSubmodule := withSubmodules(t, commit)
	packed := body(tarGz(t, entry{name: "secret.tf", content: "# secret\n"}))
	const repository = "git::https://" + codeHost + "/acme/secret.git"
	refs := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, service, _ := strings.Cut(r.URL.Path, ".git/")
			http.Redirect(w, r, to+"/"+service+"?"+r.URL.RawQuery, http.StatusTemporaryRedirect)
		}
	}
	for i, test := range []struct {
		rule  string
		named string   // by the registry
		allow []string // repositories of codeHost
		url   string   // of the submodule of /acme/vpc.git on codeHost, and /evil/mod.git on codeHost and evilHost
		serve func(n *hostileNetwork)
		gets  bool // the private repository
	}{
		{rule: "a repository that the registry names", named: repository, gets: true},
		{rule: "an archive that the registry names", named: "https://" + codeHost + "/acme/secret.tar.gz", gets: true},
		{rule: "a repository that is allowed", named: repository, allow: []string{codeHost + "/acme/*"}, gets: true},
		{rule: "a repository that is allowed by its name", named: repository, allow: []string{codeHost + "/acme/secret"}, gets: true},
		{rule: "a repository that is allowed by one of several patterns", named: repository, allow: []string{codeHost + "/x", codeHost + "/acme/s*"}, gets: true},
		{rule: "an archive below what is allowed", named: "https://" + codeHost + "/acme/secret/v1.tar.gz", allow: []string{codeHost + "/acme/secret"}, gets: true},
		{rule: "a repository that is not allowed", named: repository, allow: []string{codeHost + "/other/*"}},
		{rule: "an archive that is not allowed", named: "https://" + codeHost + "/acme/secret.tar.gz", allow: []string{codeHost + "/other"}},
		{rule: "a repository whose name begins with one that is allowed", named: repository, allow: []string{codeHost + "/acme/sec"}},
		{rule: "another port of the host", named: "git::https://" + codeHost + ":8443/acme/secret.git"},
		{rule: "a host below it", named: "https://sub." + codeHost + "/acme/secret.tar.gz"},
		{rule: "the name of the host in capitals", named: "git::https://GIT.Example.com:443/acme/secret.git", gets: true},
		{rule: "a user in the URL", named: "git::https://git@" + codeHost + "/acme/secret.git"},
		{rule: "letters that look like the host's", named: "git::https://gıt.example.com/acme/secret.git"},

		{rule: "a submodule of a stranger", named: "git::https://" + evilHost + "/evil/mod.git", url: "https://" + codeHost + "/acme/secret.git"},
		{rule: "a submodule of a stranger on the host", named: "git::https://" + codeHost + "/evil/mod.git", url: "https://" + codeHost + "/acme/secret.git"},
		{rule: "a relative submodule of a stranger on the host", named: "git::https://" + codeHost + "/evil/mod.git", url: "../../acme/secret.git"},
		{rule: "a submodule that is allowed, of a stranger on the host", named: "git::https://" + codeHost + "/evil/mod.git", url: "../../acme/secret.git", allow: []string{codeHost + "/acme/*"}},
		{rule: "a submodule that is allowed, of a stranger elsewhere", named: "git::https://" + evilHost + "/evil/mod.git", url: "https://" + codeHost + "/acme/secret.git", allow: []string{codeHost + "/acme/*"}},
		{rule: "a submodule over SSH", named: "git::https://" + codeHost + "/evil/mod.git", url: "git@" + codeHost + ":acme/secret.git"},
		{rule: "a submodule of one's own, without knowing whose that is", named: "git::https://" + codeHost + "/acme/vpc.git", url: "../secret.git"},
		{rule: "a submodule of what is allowed", named: "git::https://" + codeHost + "/acme/vpc.git", url: "../secret.git", allow: []string{codeHost + "/acme/*"}, gets: true},
		{rule: "a submodule of what is allowed, by its URL", named: "git::https://" + codeHost + "/acme/vpc.git", url: "https://" + codeHost + "/acme/secret.git", allow: []string{codeHost + "/acme"}, gets: true},
		{rule: "a submodule that is not allowed, of what is", named: "git::https://" + codeHost + "/acme/vpc.git", url: "../secret.git", allow: []string{codeHost + "/acme/vpc"}},
		{rule: "a submodule of what was allowed, and has moved to a stranger's host", named: "git::https://" + codeHost + "/acme/moved.git", url: "https://" + codeHost + "/acme/secret.git", allow: []string{codeHost + "/acme/*"},
			serve: func(n *hostileNetwork) {
				n.private("/acme/moved.git/", refs("https://"+evilHost+"/evil/mod.git"))
			}},
		{rule: "a submodule of what was allowed, and has moved to a stranger on the host", named: "git::https://" + codeHost + "/acme/moved.git", url: "https://" + codeHost + "/acme/secret.git", allow: []string{codeHost + "/acme/*"},
			serve: func(n *hostileNetwork) {
				n.private("/acme/moved.git/", refs("https://"+codeHost+"/evil/mod.git"))
			}},

		{rule: "a repository that the host has moved", named: "git::https://" + codeHost + "/old/vpc.git", gets: true,
			serve: func(n *hostileNetwork) { n.private("/old/vpc.git/", refs("https://"+codeHost+"/acme/secret.git")) }},
		{rule: "a repository that the host has moved to what is not allowed", named: "git::https://" + codeHost + "/old/vpc.git", allow: []string{codeHost + "/old/*"},
			serve: func(n *hostileNetwork) {
				n.Handle(codeHost+"/old/vpc.git/", refs("https://"+codeHost+"/acme/secret.git"))
			}},
		{rule: "a redirect of a stranger's repository", named: "git::https://" + evilHost + "/x.git",
			serve: func(n *hostileNetwork) { n.Handle(evilHost+"/x.git/", refs("https://"+codeHost+"/acme/secret.git")) }},
		{rule: "a redirect of a repository to a stranger and back", named: "git::https://" + codeHost + "/away.git",
			serve: func(n *hostileNetwork) {
				n.Handle(codeHost+"/away.git/", refs("https://"+evilHost+"/x.git"))
				n.Handle(evilHost+"/x.git/", refs("https://"+codeHost+"/acme/secret.git"))
			}},
		{rule: "a redirect of a stranger's archive", named: "https://" + evilHost + "/x.tar.gz",
			serve: func(n *hostileNetwork) {
				n.Handle(evilHost+"/x.tar.gz", redirect("https://"+codeHost+"/acme/secret.tar.gz"))
			}},
		{rule: "a redirect of an archive to what is not allowed", named: "https://" + codeHost + "/ours/x.tar.gz", allow: []string{codeHost + "/ours"},
			serve: func(n *hostileNetwork) {
				n.private("/ours/x.tar.gz", redirect("https://"+codeHost+"/acme/secret.tar.gz"))
			}},
		{rule: "a redirect with credentials of its own", named: "https://" + evilHost + "/x.tar.gz",
			serve: func(n *hostileNetwork) {
				n.Handle(evilHost+"/x.tar.gz", redirect("https://git:secret@"+codeHost+"/acme/secret.tar.gz"))
			}},

		{rule: "an archive that a stranger's server names", named: "https://" + evilHost + "/ask",
			serve: func(n *hostileNetwork) {
				n.Handle(evilHost+"/ask", upstreamtest.Location("https://"+codeHost+"/acme/secret.tar.gz"))
			}},
		{rule: "a repository that a stranger's server names", named: "https://" + evilHost + "/ask",
			serve: func(n *hostileNetwork) { n.Handle(evilHost+"/ask", upstreamtest.Location(repository)) }},
		{rule: "a repository that a stranger's server names after a redirect to the host", named: "https://" + evilHost + "/ask",
			serve: func(n *hostileNetwork) {
				n.Handle(evilHost+"/ask", redirect("https://"+codeHost+"/ask"))
				n.Handle(codeHost+"/ask", upstreamtest.Location(repository))
			}},
		{rule: "a repository that the host itself names", named: "https://" + codeHost + "/ask", gets: true,
			serve: func(n *hostileNetwork) { n.Handle(codeHost+"/ask", upstreamtest.Location(repository)) }},
		{rule: "a repository that is allowed, and what is not on the host names", named: "https://" + codeHost + "/ask", allow: []string{codeHost + "/acme/*"},
			serve: func(n *hostileNetwork) { n.Handle(codeHost+"/ask", upstreamtest.Location(repository)) }},
		{rule: "an answer of another host in place of the registry",
			serve: func(n *hostileNetwork) {
				n.answer = redirect("https://" + evilHost + "/says")
				n.Handle(evilHost+"/says", upstreamtest.Location(repository))
			}},
		{rule: "an answer of the registry at another path", gets: true,
			serve: func(n *hostileNetwork) {
				n.answer = redirect("/says")
				n.Handle(host+"/says", upstreamtest.Location(repository))
			}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			upstreamtest.SkipInShort(t, i)
			n := newHostileNetwork(t)
			n.named = test.named
			n.private("/acme/secret.git/", secret.Handler("/acme/secret.git"))
			n.private("/acme/secret.tar.gz", packed)
			n.private("/acme/secret/v1.tar.gz", packed)
			if test.url != "" {
				r := withSubmodule(test.url)
				n.private("/acme/vpc.git/", r.Handler("/acme/vpc.git"))
				n.Handle(codeHost+"/evil/mod.git/", r.Handler("/evil/mod.git"))
				n.Handle(evilHost+"/evil/mod.git/", r.Handler("/evil/mod.git"))
			}
			if test.serve != nil {
				test.serve(n)
			}
			h := upstream.Host{Name: codeHost, Token: "secret"}
			files, err := n.fetch(t, h, test.allow...)
			if test.gets != (err == nil) {
				t.Errorf("got %v", err)
			}
			if gets := slices.ContainsFunc(files, func(f string) bool { return strings.Contains(f, "# secret") }); gets != test.gets {
				t.Errorf("got %q", files)
			}
			for _, r := range n.requests {
				_, token, _ := r.BasicAuth()
				if token == "secret" && r.Host != codeHost || strings.Contains(r.Header.Get("Authorization"), "origin's") && r.Host != host {
					t.Errorf("%s%s got %q", r.Host, r.URL.Path, r.Header.Get("Authorization"))
				}
				if !test.gets && token == "secret" && strings.Contains(r.URL.Path, "secret") {
					t.Errorf("%s was asked for with the token", r.URL.Path)
				}
			}
			for _, address := range n.connects {
				if strings.HasSuffix(address, ":22") {
					t.Errorf("a connection was made to %s", address)
				}
			}
		})
	}
}

// A configured host may be in a private network for locations that the registry itself
// names, and for the redirects of configured hosts from them. No other server can lead
// there.
func TestPrivateNetworkIsForLocationsOfTheRegistry(t *testing.T) {
	r := upstreamtest.NewRepository(t)
	r.Write("inside.tf", "# inside\n")
	commit := r.Commit()
	withSubmodule := withSubmodules(t, commit)
	const repository = "git::https://" + insideHost + "/acme/vpc.git"
	for _, test := range []struct {
		rule    string
		named   string // by the registry
		url     string // of the submodule of /evil/mod.git on evilHost, and /acme/mod.git on insideHost
		serve   func(n *hostileNetwork)
		reaches bool
	}{
		{rule: "a repository that the registry names", named: repository, reaches: true},
		{rule: "an archive that the registry names", named: "https://" + insideHost + "/x.tar.gz", reaches: true},
		{rule: "a redirect of the registry's archive", named: "/x.tar.gz", reaches: true,
			serve: func(n *hostileNetwork) { n.Handle(host+"/x.tar.gz", redirect("https://"+insideHost+"/x.tar.gz")) }},
		{rule: "a redirect of a configured host", named: "https://" + codeHost + "/x.tar.gz", reaches: true,
			serve: func(n *hostileNetwork) {
				n.Handle(codeHost+"/x.tar.gz", redirect("https://"+insideHost+"/x.tar.gz"))
			}},
		{rule: "a submodule on the same host", named: "git::https://" + insideHost + "/acme/mod.git", url: "../../acme/vpc.git", reaches: true},
		{rule: "a location on the same host that a server names", named: "https://" + insideHost + "/ask", reaches: true,
			serve: func(n *hostileNetwork) { n.Handle(insideHost+"/ask", upstreamtest.Location("/x.tar.gz")) }},

		{rule: "a submodule of a stranger", named: "git::https://" + evilHost + "/evil/mod.git", url: "https://" + insideHost + "/acme/vpc.git"},
		{rule: "a submodule of a repository of a configured host", named: "git::https://" + codeHost + "/evil/mod.git", url: "https://" + insideHost + "/acme/vpc.git"},
		{rule: "a redirect of a stranger's archive", named: "https://" + evilHost + "/x.tar.gz",
			serve: func(n *hostileNetwork) {
				n.Handle(evilHost+"/x.tar.gz", redirect("https://"+insideHost+"/x.tar.gz"))
			}},
		{rule: "a redirect of a stranger's archive by way of a configured host", named: "https://" + evilHost + "/x.tar.gz",
			serve: func(n *hostileNetwork) {
				n.Handle(evilHost+"/x.tar.gz", redirect("https://"+codeHost+"/x.tar.gz"))
				n.Handle(codeHost+"/x.tar.gz", redirect("https://"+insideHost+"/x.tar.gz"))
			}},
		{rule: "a redirect of a stranger's repository", named: "git::https://" + evilHost + "/x.git",
			serve: func(n *hostileNetwork) {
				n.HandleFunc(evilHost+"/x.git/", func(w http.ResponseWriter, q *http.Request) {
					http.Redirect(w, q, "https://"+insideHost+"/acme/vpc.git/info/refs?"+q.URL.RawQuery, http.StatusFound)
				})
			}},
		{rule: "a location that a stranger's server names", named: "https://" + evilHost + "/ask",
			serve: func(n *hostileNetwork) { n.Handle(evilHost+"/ask", upstreamtest.Location(repository)) }},
		{rule: "a location on the registry that a stranger's server names", named: "https://" + evilHost + "/ask",
			serve: func(n *hostileNetwork) {
				n.Handle(evilHost+"/ask", upstreamtest.Location("https://"+host+"/x.tar.gz"))
				n.Handle(host+"/x.tar.gz", redirect("https://"+insideHost+"/x.tar.gz"))
			}},
		{rule: "a connection that was made for the registry", named: "git::https://" + insideHost + "/acme/mod.git", url: "https://" + evilHost + "/x.git",
			serve: func(n *hostileNetwork) {
				n.HandleFunc(evilHost+"/x.git/", func(w http.ResponseWriter, q *http.Request) {
					n.mutex.Lock()
					n.reached = false // the registry has reached it until now
					n.mutex.Unlock()
					http.Redirect(w, q, "https://"+insideHost+"/acme/vpc.git/info/refs?"+q.URL.RawQuery, http.StatusFound)
				})
			}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			n := newHostileNetwork(t)
			n.named = test.named
			n.inside("/acme/vpc.git/", r.Handler("/acme/vpc.git"))
			n.inside("/x.tar.gz", body(tarGz(t, entry{name: "inside.tf", content: "# inside\n"})))
			if test.url != "" {
				mod := withSubmodule(test.url)
				n.inside("/acme/mod.git/", mod.Handler("/acme/mod.git"))
				n.Handle(codeHost+"/evil/mod.git/", mod.Handler("/evil/mod.git"))
				n.Handle(evilHost+"/evil/mod.git/", mod.Handler("/evil/mod.git"))
			}
			if test.serve != nil {
				test.serve(n)
			}
			files, err := n.fetch(t, upstream.Host{Name: codeHost})
			if n.reached != test.reaches {
				t.Errorf("reached: %t", n.reached)
			}
			if test.reaches {
				if err != nil || !slices.ContainsFunc(files, func(f string) bool { return strings.Contains(f, "# inside") }) {
					t.Errorf("got %q, %v", files, err)
				}
				return
			}
			mustFail(t, err, upstream.ErrUnsafe, "private network")
		})
	}
}

// The origin's token is used for locations that the origin names, too, but not for
// locations that repositories of the same host name.
func TestOriginsTokenIsForItsLocations(t *testing.T) {
	secret := upstreamtest.NewRepository(t)
	secret.Write("secret.tf", "# secret\n")
	commit := secret.Commit()
	withSubmodule := withSubmodules(t, commit)
	for _, test := range []struct {
		rule, named, url string
		gets             bool
	}{
		{"a repository that it names", "git::/acme/secret.git", "", true},
		{"a submodule", "git::/evil/mod.git", "../acme/secret.git", false},
		{"a submodule of a stranger", "git::https://" + evilHost + "/evil/mod.git", "https://" + host + "/acme/secret.git", false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			n := newHostileNetwork(t)
			n.named = strings.Replace(test.named, "::/", "::https://"+host+"/", 1)
			handler := secret.Handler("/acme/secret.git")
			n.HandleFunc(host+"/acme/secret.git/", func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer origin's" {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				handler.ServeHTTP(w, r)
			})
			if test.url != "" {
				r := withSubmodule(test.url)
				n.Handle(host+"/evil/mod.git/", r.Handler("/evil/mod.git"))
				n.Handle(evilHost+"/evil/mod.git/", r.Handler("/evil/mod.git"))
			}
			if files, err := n.fetch(t, upstream.Host{Name: codeHost}); test.gets != (err == nil) {
				t.Errorf("got %q, %v", files, err)
			}
		})
	}
}

// The repositories that a pattern matches. In doubt it matches none.
func TestRepositories(t *testing.T) {
	for _, test := range []struct {
		rule, pattern, path string
		covers              bool
	}{
		{"a repository", "/acme/vpc", "/acme/vpc", true},
		{"with and without .git", "/acme/vpc", "/acme/vpc.git", true},
		{"without and with .git", "/acme/vpc.git", "/acme/vpc", true},
		{"a path below it", "/acme/vpc", "/acme/vpc.git/info/refs", true},
		{"a folder", "/acme", "/acme/vpc", true},
		{"a folder with a slash", "/acme/", "/acme/vpc", true},
		{"any name", "/acme/*", "/acme/a/b.git", true},
		{"a part of a name", "/acme/terraform-*", "/acme/terraform-vpc.git", true},
		{"everything", "/*", "/acme/vpc", true},
		{"not the folder itself", "/acme/*", "/acme", false},
		{"not a longer name", "/acme", "/acme-evil/vpc", false},
		{"not in another case", "/acme/*", "/ACME/vpc", false},
		{"not below another folder", "/acme/*", "/evil/acme/vpc", false},
		{"not with dots", "/acme/*", "/acme/../evil/vpc", false},
		{"not with escaped dots", "/acme/*", "/acme/%2e%2e/evil/vpc", false},
		{"not with dots that are escaped twice", "/acme/*", "/acme/%252e%252e/evil/vpc", false},
		{"not with an escaped slash before dots", "/acme/*", "/acme/x%2f..%2f..%2fevil", false},
		{"not with a backslash", "/acme/*", `/acme/..\evil`, false},
		{"not with an empty name", "/acme/*", "/acme//evil", false},
		{"not with dots before a semicolon, which some servers cut off", "/acme/*", "/acme/..;/evil/vpc", false},
		{"not with dots before an escaped semicolon", "/acme/*", "/acme/..%3bx=y/evil/vpc", false},
		{"not with what some servers take for a query", "/*/public", "/acme/secret.git%3f/public", false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			h := upstream.Host{Name: codeHost, Token: "secret"}
			r, err := h.ParseRepositories(codeHost + test.pattern)
			if err != nil {
				t.Fatal(err)
			}
			u, err := url.Parse("https://" + codeHost + test.path)
			if err != nil {
				t.Fatal(err)
			}
			if got := upstream.Covers(r, u); got != test.covers {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestRepositoriesRefuse(t *testing.T) {
	for _, test := range []struct{ rule, pattern string }{
		{"nothing", ""},
		{"a host alone", codeHost},
		{"a slash alone", codeHost + "/"},
		{"no host", "acme/*"},
		{"another host", "github.com/acme/*"},
		{"another port", codeHost + ":8443/acme"},
		{"any host", "*/acme"},
		{"a scheme", "https://" + codeHost + "/acme"},
		{"dots", codeHost + "/acme/../x"},
		{"an empty name", codeHost + "/acme//x"},
		{"a query", codeHost + "/acme?x"},
		{"an escape", codeHost + "/acme%2fx"},
		{"a space", codeHost + "/acme x"},
		{"a path as scp has it", codeHost + "/x:acme"},
		{"very much", codeHost + "/" + strings.Repeat("x", 512)},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if _, err := (upstream.Host{Name: codeHost}).ParseRepositories(test.pattern); err == nil || !strings.Contains(err.Error(), "is no pattern of repositories of "+codeHost) {
				t.Errorf("got %v", err)
			}
		})
	}
	for _, same := range []string{"GIT.example.com/acme", codeHost + ":443/acme"} {
		if _, err := (upstream.Host{Name: codeHost}).ParseRepositories(same); err != nil {
			t.Errorf("%s: %v", same, err)
		}
	}
}

package upstream_test

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
)

// allowed returns a host with a token for some repositories.
func allowed(t *testing.T, patterns ...string) upstream.Host {
	t.Helper()
	h := upstream.Host{Name: codeHost, Token: "secret"}
	for _, pattern := range patterns {
		r, err := h.ParseRepositories(pattern)
		if err != nil {
			t.Fatal(err)
		}
		h.Allow = append(h.Allow, r)
	}
	return h
}

// tagsOf lists the tags of a repository as NAME:OBJECT.
func tagsOf(t *testing.T, c *upstream.Client, repository string) (tags []string, err error) {
	t.Helper()
	s, err := c.Repository(repository, "")
	if err != nil {
		return nil, err
	}
	list, err := c.Tags(t.Context(), s, t.TempDir())
	for _, tag := range list {
		tags = append(tags, tag.Name+":"+tag.Object)
	}
	return tags, err
}

func TestTagsOfARepository(t *testing.T) {
	r := upstreamtest.NewRepository(t)
	h := upstreamtest.NewCodeHost(t)
	repository := h.Serve("/acme/vpc.git", r)
	r.Write("main.tf", "")
	one := r.Commit("v1.0.0", "vpc/v1.0.0")
	r.Git("tag", "--annotate", "--message", "A release", "v1.0.1")
	r.Git("tag", "blob", r.Git("rev-parse", "HEAD:main.tf"))
	r.Git("branch", "v9.0.0")
	blob := r.Git("rev-parse", "blob")
	got, err := tagsOf(t, h.Client(t), repository)
	if want := []string{"blob:" + blob, "v1.0.0:" + one, "v1.0.1:" + one, "vpc/v1.0.0:" + one}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if n := h.Asked(); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
}

func TestTagsThatCannotBeListed(t *testing.T) {
	h := upstreamtest.NewCodeHost(t)
	h.HandleFunc("/private/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	h.HandleFunc("/page/", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) })
	h.Handle("/moved/", http.RedirectHandler("https://inside.example.com/acme/vpc.git/info/refs?service=git-upload-pack", http.StatusFound))
	for _, test := range []struct {
		rule, url string
		kind      error
		says      string
	}{
		{"there is none", "https://" + codeHost + "/acme/vpc.git", upstream.ErrMalformed, "there is no such repository"},
		{"it needs a token", "https://" + codeHost + "/private/vpc.git", upstream.ErrRefused, "it needs a token: configure one"},
		{"it is a page", "https://" + codeHost + "/page/vpc", upstream.ErrMalformed, "there is no git repository"},
		{"it is in the private network, and its host is not named as such", "https://inside.example.com/acme/vpc.git", upstream.ErrUnsafe, ""},
		{"a redirect leads into the private network", "https://" + codeHost + "/moved/vpc.git", upstream.ErrUnsafe, ""},
		{"it is without TLS", "http://" + codeHost + "/acme/vpc.git", upstream.ErrMalformed, ""},
		{"it is over SSH", "ssh://git@" + codeHost + "/acme/vpc.git", upstream.ErrMalformed, ""},
		{"it is a file", "file:///etc", upstream.ErrMalformed, ""},
		{"it has a folder in it", "https://" + codeHost + "/acme/vpc.git//x", upstream.ErrMalformed, "not the URL of a repository"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			tags, err := tagsOf(t, h.Client(t), test.url)
			if len(tags) > 0 {
				t.Errorf("got %q", tags)
			}
			mustFail(t, err, test.kind, test.says)
		})
	}
}

// Whoever may write a registry.hcl names repositories, and must not read those of others with the token
// of the registry.
func TestTokensAreForAllowedRepositoriesAlone(t *testing.T) {
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte("git:secret"))
	for _, test := range []struct {
		rule, path string
		token      bool
	}{
		{"an allowed repository", "/acme/vpc.git", true},
		{"one that the pattern does not have", "/other/vpc.git", false},
		{"one whose path begins like it", "/acme-private/vpc.git", false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := upstreamtest.NewRepository(t)
			r.Write("main.tf", "")
			r.Commit("v1.0.0")
			h := upstreamtest.NewCodeHost(t)
			c := h.Client(t, allowed(t, codeHost+"/acme/*"))
			if _, err := tagsOf(t, c, h.Serve(test.path, r)); err != nil {
				t.Fatal(err)
			}
			s, err := c.Repository("https://"+codeHost+test.path, "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.FetchModule(t.Context(), s.AtTag(upstream.Tag{Name: "v1.0.0", Object: r.Git("rev-parse", "HEAD")}), t.TempDir()); err != nil {
				t.Fatal(err)
			}
			for _, q := range h.Requests("") {
				if got := q.Header.Get("Authorization"); (got == want) != test.token || got != "" && !test.token {
					t.Errorf("%s %s was sent with %q", q.Method, q.URL, got)
				}
			}
		})
	}
}

// A token is for its host, and for allowed repositories there, wherever redirects and submodules lead.
func TestTokensStayAtTheirHost(t *testing.T) {
	r := upstreamtest.NewRepository(t)
	r.Write("main.tf", "")
	commit := r.Commit("v1.0.0")
	with := func(submodule string) *upstreamtest.Repository {
		r := upstreamtest.NewRepository(t)
		r.Write("main.tf", "module \"a\" {\n  source = \"./sub\"\n}\n", ".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = "+submodule+"\n")
		r.Git("add", "--all")
		r.Git("update-index", "--add", "--cacheinfo", "160000,"+commit+",sub")
		r.Git("commit", "--quiet", "--message", "A submodule")
		r.Git("tag", "v1.0.0")
		return r
	}
	for _, test := range []struct {
		rule  string
		top   *upstreamtest.Repository // nil: it redirects to another
		to    string
		token bool // for the other repository
	}{
		{"a redirect to an allowed repository", nil, "https://" + codeHost + "/acme/other.git", true},
		{"a redirect to a repository that is not allowed", nil, "https://" + codeHost + "/secret/other.git", false},
		{"a redirect to another host", nil, "https://elsewhere.example.com/acme/other.git", false},
		{"an allowed submodule", with("../other.git"), "https://" + codeHost + "/acme/other.git", true},
		{"a submodule that is not allowed", with("../../secret/other.git"), "https://" + codeHost + "/secret/other.git", false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			h := upstreamtest.NewCodeHost(t)
			at, err := url.Parse(test.to)
			if err != nil {
				t.Fatal(err)
			}
			h.Serve(at.Path, r)
			head := commit
			if test.top != nil {
				h.Serve("/acme/vpc.git", test.top)
				head = test.top.Git("rev-parse", "HEAD")
			} else {
				h.Handle("/acme/vpc.git/", http.RedirectHandler(test.to+"/info/refs?service=git-upload-pack", http.StatusFound))
			}
			c, err := upstream.NewCodeHosts(
				upstream.CodeHosts{Hosts: []upstream.Host{allowed(t, codeHost+"/acme/*")}, Private: []string{codeHost, "elsewhere.example.com"}},
				upstream.Network{Roots: upstreamtest.Roots(h.Server), Connect: upstreamtest.Resolving(h.Server)},
			)
			if err != nil {
				t.Fatal(err)
			}
			s, err := c.Repository("https://"+codeHost+"/acme/vpc.git", "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.FetchModule(t.Context(), s.AtTag(upstream.Tag{Name: "v1.0.0", Object: head}), t.TempDir()); err != nil {
				t.Fatal(err)
			}
			asked := h.Requests(at.Path)
			if len(asked) == 0 {
				t.Fatal("the other repository was not asked")
			}
			for _, q := range asked {
				if got := q.Header.Get("Authorization"); (got != "") != test.token {
					t.Errorf("%s %s%s was sent with %q", q.Method, q.Host, q.URL, got)
				}
			}
		})
	}
}

// Hosts that are slow, or that send no end of tags, are given up.
func TestTagsOfHostsThatMisbehave(t *testing.T) {
	const advertisement = "001e# service=git-upload-pack\n0000"
	started := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		io.WriteString(w, advertisement)
		http.NewResponseController(w).Flush()
	}
	for _, test := range []struct {
		rule   string
		answer http.HandlerFunc
		kind   error
	}{
		{"it does not answer", func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() }, upstream.ErrTimeout},
		{"it stalls", func(w http.ResponseWriter, q *http.Request) { started(w); <-q.Context().Done() }, upstream.ErrTimeout},
		{"it breaks off", func(w http.ResponseWriter, _ *http.Request) { started(w); panic(http.ErrAbortHandler) }, upstream.ErrUnavailable},
		{"an endless list", func(w http.ResponseWriter, q *http.Request) {
			started(w)
			for q.Context().Err() == nil {
				if _, err := io.WriteString(w, "003d"+strings.Repeat("0", 40)+" refs/tags/v1.0\n"); err != nil {
					return
				}
			}
		}, upstream.ErrTooLarge},
	} {
		t.Run(test.rule, func(t *testing.T) {
			h := upstreamtest.NewCodeHost(t)
			h.Handle("/acme/vpc.git/", test.answer)
			timeout := time.Minute
			if test.kind == upstream.ErrTimeout {
				timeout = time.Second
			}
			c, err := upstream.NewCodeHosts(upstream.CodeHosts{Private: []string{codeHost}, Timeout: timeout}, upstream.Network{Roots: upstreamtest.Roots(h.Server), Connect: upstreamtest.Resolving(h.Server)})
			if err != nil {
				t.Fatal(err)
			}
			upstream.LimitRefs(c, 1<<20)
			tags, err := tagsOf(t, c, "https://"+codeHost+"/acme/vpc.git")
			if len(tags) > 0 {
				t.Errorf("got %q", tags)
			}
			mustFail(t, err, test.kind, "")
		})
	}
}

// A host with credentials and no repositories for them would give all of its repositories to everyone
// who may describe a module.
func TestTokensNeedRepositories(t *testing.T) {
	_, err := upstream.NewCodeHosts(upstream.CodeHosts{Hosts: []upstream.Host{{Name: codeHost, Token: "x"}}}, upstream.Network{})
	if err == nil || !strings.Contains(err.Error(), "has a token and no allow") {
		t.Errorf("got %v", err)
	}
}

// The tag of what is no commit, and of a commit without the folder, is named in the failure.
func TestTagsThatCannotBeFetched(t *testing.T) {
	r := upstreamtest.NewRepository(t)
	r.Write("vpc/main.tf", "")
	r.Commit("v1.0.0")
	r.Git("tag", "blob", r.Git("rev-parse", "HEAD:vpc/main.tf"))
	r.Git("tag", "tree", r.Git("rev-parse", "HEAD^{tree}"))
	h := upstreamtest.NewCodeHost(t)
	repository, c := h.Serve("/acme/vpc.git", r), h.Client(t)
	for _, test := range []struct{ rule, tag, folder, says string }{
		{"of a file", "blob", "vpc", "its tag blob is not of a commit"},
		{"of a folder", "tree", "vpc", "its tag tree is not of a commit"},
		{"without the folder", "v1.0.0", "subnet", `there is no folder "subnet" at its tag v1.0.0`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s, err := c.Repository(repository, test.folder)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.FetchModule(t.Context(), s.AtTag(upstream.Tag{Name: test.tag, Object: r.Git("rev-parse", test.tag)}), t.TempDir())
			mustFail(t, err, upstream.ErrMalformed, test.says)
		})
	}
}

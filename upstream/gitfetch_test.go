package upstream_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"io/fs"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
)

// codeHost is the name of a server of repositories, which may be on this machine.
const codeHost = "git.example.com"

// A gitSite is a server of repositories by path.
type gitSite struct {
	http.ServeMux
	names []string // of its certificate; nil: of upstreamtest's

	mutex    sync.Mutex
	requests []*http.Request
}

func (s *gitSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	s.requests = append(s.requests, r)
	s.mutex.Unlock()
	s.ServeMux.ServeHTTP(w, r)
}

func (s *gitSite) serve(path string, r *upstreamtest.Repository) { s.Handle(path+"/", r.Handler(path)) }

// client returns the client of an origin whose modules are on the site, under any name.
func (s *gitSite) client(t *testing.T, o upstream.Origin) *upstream.Client {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = time.Minute // more than any answer takes on a busy machine
	}
	// Nothing may remain on the disk after a fetch.
	scratch := t.TempDir()
	t.Setenv("TMPDIR", scratch)
	t.Cleanup(func() {
		if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
	server := httptest.NewUnstartedServer(s)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if s.names != nil {
		server.TLS = &tls.Config{Certificates: []tls.Certificate{upstreamtest.NewCertificate(s.names...)}}
	}
	upstreamtest.StartTLS(server)
	t.Cleanup(server.Close)
	o.Hostname, o.Private = host, append(o.Private, codeHost)
	return newClient(t, o, upstream.Network{Roots: roots(server), Connect: resolving(server)})
}

// gitSource parses a location in the form that origins use.
func gitSource(t *testing.T, location string) upstream.ModuleSource {
	t.Helper()
	s, err := upstream.ParseModuleSource(location, &url.URL{Scheme: "https", Host: host, Path: "/"})
	if err != nil {
		t.Fatal(err)
	}
	return upstream.Named(s)
}

// filesOf lists the files in a folder: names and contents, or the targets of symlinks.
func filesOf(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() && name == dir {
			return err
		}
		relative, _ := filepath.Rel(dir, name)
		relative = filepath.ToSlash(relative)
		switch e.Type() {
		case fs.ModeDir:
			if inside, err := os.ReadDir(name); err != nil || len(inside) > 0 {
				return err
			}
			files = append(files, relative+"/")
		case fs.ModeSymlink:
			target, err := os.Readlink(name)
			files = append(files, relative+" -> "+target)
			return err
		default:
			content, err := os.ReadFile(name)
			files = append(files, fmt.Sprintf("%s: %s", relative, content))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// call returns the call of a module, named after its source.
func call(source string) string {
	return fmt.Sprintf("module %q {\n  source = %q\n}\n", strings.NewReplacer(".", "_", "/", "-").Replace(source), source)
}

// The files kept of a repository are the module's folder and the files that it leads
// to.
func TestGitModulesAreFetchedWithNeededFiles(t *testing.T) {
	lfs := "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n"
	for i, test := range []struct {
		rule   string
		files  []string // names and contents in turn
		links  []string // names and targets in turn
		folder string
		want   []string
	}{
		{"everything without a folder", []string{"main.tf", "", "b/x.tf", "", ".github/x", ""}, nil, "", []string{".github/x", "b/x.tf", "main.tf"}},
		{"a folder alone", []string{"a/main.tf", "", "a/b/x.tf", "", "c/x.tf", "", "main.tf", "", "ab/x.tf", ""}, nil, "a", []string{"a/b/x.tf", "a/main.tf"}},
		{"modules that are called", []string{"a/main.tf", call("../b"), "b/main.tf", call("./c") + call("../d"), "b/c/x.tf", "", "d/x.tf", "", "e/x.tf", ""}, nil, "a", []string{"a/main.tf", "b/c/x.tf", "b/main.tf", "d/x.tf"}},
		{"modules that call each other", []string{"a/main.tf", call("../b"), "b/main.tf", call("../a")}, nil, "a", []string{"a/main.tf", "b/main.tf"}},
		{"a call from a module inside", []string{"a/main.tf", call("./m"), "a/m/main.tf", call("../../b"), "b/x.tf", ""}, nil, "a", []string{"a/m/main.tf", "a/main.tf", "b/x.tf"}},
		{"a call of the root", []string{"a/main.tf", call("../"), "main.tf", "", "b/x.tf", ""}, nil, "a", []string{"a/main.tf", "b/x.tf", "main.tf"}},
		{"calls that lead nowhere", []string{"a/main.tf", call("../no") + call("../../out") + call("acme/vpc/aws")}, nil, "a", []string{"a/main.tf"}},
		{"configuration in JSON and of OpenTofu", []string{"a/main.tf.json", `{"module":{"a":{"source":"../b"}}}`, "a/x.tofu", call("../c"), "b/x.tf", "", "c/x.tf", ""}, nil, "a", []string{"a/main.tf.json", "a/x.tofu", "b/x.tf", "c/x.tf"}},
		{"calls in a file that OpenTofu replaces", []string{"a/main.tf", call("../b"), "a/main.tofu", call("../c"), "b/x.tf", "", "c/x.tf", ""}, nil, "a", []string{"a/main.tf", "a/main.tofu", "b/x.tf", "c/x.tf"}},
		{"a call through a symlink beside", []string{"a/main.tf", call("../l/x"), "b/x/y.tf", "", "c/x.tf", ""}, []string{"l", "b"}, "a", []string{"a/main.tf", "b/x/y.tf", "l -> b"}},
		{"a call through a symlink, by its own path and by the target's", []string{"a/main.tf", call("../l/x"), "d/b/x/y.tf", call("../../c"), "d/c/x.tf", "", "c/x.tf", "", "e/x.tf", ""}, []string{"l", "d/b"}, "a", []string{"a/main.tf", "c/x.tf", "d/b/x/y.tf", "d/c/x.tf", "l -> d/b"}},
		{"calls below a file, and of names that no file has", []string{"a/main.tf", call("../README/x") + call("../"+strings.Repeat("b", 300)), "README", ""}, nil, "a", []string{"a/main.tf"}},
		{"files that configuration reads", []string{"a/main.tf", "x = file(\"${path.module}/../files/x.json\")", "files/x.json", "", "files/y.json", ""}, nil, "a", []string{"a/main.tf", "files/x.json"}},
		{"symlinks inside", []string{"a/x.tf", ""}, []string{"a/y.tf", "x.tf"}, "a", []string{"a/x.tf", "a/y.tf -> x.tf"}},
		{"symlinks to a file beside", []string{"a/x.tf", "", "common/v.tf", "", "common/w.tf", ""}, []string{"a/v.tf", "../common/v.tf"}, "a", []string{"a/v.tf -> ../common/v.tf", "a/x.tf", "common/v.tf"}},
		{"symlinks to a folder beside, and what is called through them", []string{"a/x.tf", call("./m/n"), "common/n/x.tf", call("../../b"), "b/x.tf", ""}, []string{"a/m", "../common"}, "a", []string{"a/m -> ../common", "a/x.tf", "b/x.tf", "common/n/x.tf"}},
		{"symlinks to nothing", []string{"a/x.tf", ""}, []string{"a/y", "../no"}, "a", []string{"a/x.tf", "a/y -> ../no"}},
		{"pointers of Git LFS as they are", []string{"a/x.tf", "", ".gitattributes", "*.bin filter=lfs\n", "a/x.bin", lfs}, nil, "a", []string{"a/x.bin", "a/x.tf"}},
		{"attributes without effect", []string{".gitattributes", "* export-ignore text eol=crlf ident\n", "x.tf", "# $Id$\n"}, nil, "", []string{".gitattributes", "x.tf"}},
		{"strange names", []string{"a/x.tf", "", "a/:(top)", "", "a/-x", "", "a/*", "", "a/é b", ""}, nil, "a", []string{"a/*", "a/-x", "a/:(top)", "a/x.tf", "a/é b"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			upstreamtest.SkipInShort(t, i)
			r := upstreamtest.NewRepository(t)
			r.Git("config", "uploadpack.allowFilter", "true")
			r.Write(test.files...)
			for link := range slices.Chunk(test.links, 2) {
				if err := os.Symlink(link[1], filepath.Join(r.Dir, link[0])); err != nil {
					t.Skip(err)
				}
			}
			commit := r.Commit("v1.0.0")
			s := &gitSite{}
			s.serve("/acme/vpc.git", r)
			c := s.client(t, upstream.Origin{})
			into := t.TempDir()
			location := "git::https://" + codeHost + "/acme/vpc.git"
			if test.folder != "" {
				location += "//" + test.folder
			}
			got, err := c.FetchModule(t.Context(), gitSource(t, location+"?ref=v1.0.0"), into)
			if err != nil || got.Commit != commit {
				t.Fatalf("got %v, %v", got, err)
			}
			contents := make(map[string]string)
			for file := range slices.Chunk(test.files, 2) {
				contents[file[0]] = file[1]
			}
			for i, name := range test.want {
				if !strings.Contains(name, " -> ") {
					test.want[i] += ": " + contents[name]
				}
			}
			if files := filesOf(t, into); !slices.Equal(files, test.want) {
				t.Errorf("got %q, not %q", files, test.want)
			}
			if test.folder == "" {
				return
			}
			// The same files are needed of an archive.
			if err := os.RemoveAll(filepath.Join(r.Dir, ".git")); err != nil {
				t.Fatal(err)
			}
			if err := upstream.KeepNeeded(t.Context(), r.Dir, test.folder); err != nil {
				t.Fatal(err)
			}
			if files := filesOf(t, r.Dir); !slices.Equal(files, test.want) {
				t.Errorf("of an archive: got %q, not %q", files, test.want)
			}
		})
	}
}

// However many paths a module names, git is run a few times, and asks its server a few
// times.
func TestGitRunsAFewTimes(t *testing.T) {
	real, err := exec.LookPath("git")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip(err)
	}
	r := upstreamtest.NewRepository(t)
	r.Git("config", "uploadpack.allowFilter", "true")
	var main strings.Builder
	want := 1
	for i := range 300 {
		fmt.Fprintf(&main, "a%d = file(\"${path.module}/../no/folder/%d.json\")\n", i, i)
		if i%3 == 0 {
			fmt.Fprintf(&main, "b%d = file(\"${path.module}/../files/%d.json\")\n", i, i)
			r.Write(fmt.Sprintf("files/%d.json", i), fmt.Sprint(i))
			want++
		}
	}
	r.Write("m/main.tf", main.String())
	r.Commit("v1.0.0")
	s := &gitSite{}
	s.serve("/acme/vpc.git", r)
	c := s.client(t, upstream.Origin{})
	bin := t.TempDir()
	log := filepath.Join(bin, "log")
	script := fmt.Sprintf("#!/bin/sh\n[ -z \"$GIT_PROTOCOL_FROM_USER\" ] || echo \"$@\" >>'%s'\nexec '%s' \"$@\"\n", log, real) // not for the server's git
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	into := t.TempDir()
	if _, err := c.FetchModule(t.Context(), gitSource(t, "git::https://"+codeHost+"/acme/vpc.git//m?ref=v1.0.0"), into); err != nil {
		t.Fatal(err)
	}
	if got := filesOf(t, into); len(got) != want {
		t.Errorf("got %d files, want %d", len(got), want)
	}
	runs, err := os.ReadFile(log)
	if n := strings.Count(string(runs), "\n"); err != nil || n == 0 || n > 30 {
		t.Errorf("git ran %d times, %v", n, err)
	}
	if n := len(s.requests); n > 30 {
		t.Errorf("the server was asked %d times", n)
	}
}

// Submodules in the module's folder, or called by it, are fetched at their commit.
func TestGitModulesWithSubmodules(t *testing.T) {
	// submodule returns a repository and its first commit, which is not its last.
	submodule := func(files ...string) (*upstreamtest.Repository, string) {
		r := upstreamtest.NewRepository(t)
		r.Write(append(files, "net.tf", "# 1\n")...)
		commit := r.Commit()
		r.Write("net.tf", "# 2\n")
		r.Commit("v2.0.0")
		return r, commit
	}
	flat, flatCommit := submodule()
	deep, deepCommit := submodule("x/x.tf", "")
	for i, test := range []struct {
		rule   string
		url    string // of the submodule vendor/net
		main   string // a/main.tf
		folder string
		want   []string
		kind   error
		says   string
	}{
		{"by a URL", "https://" + codeHost + "/acme/net.git", "", "", []string{"a/main.tf: ", "vendor/net/net.tf: # 1\n"}, nil, ""},
		{"by a relative URL", "../net.git", "", "", []string{"a/main.tf: ", "vendor/net/net.tf: # 1\n"}, nil, ""},
		{"one that is called", "../net.git", call("../vendor/net"), "a", []string{"a/main.tf: " + call("../vendor/net"), "vendor/net/net.tf: # 1\n"}, nil, ""},
		{"one with a folder that is called", "../net.git", call("../vendor/net/x"), "a", []string{"a/main.tf: " + call("../vendor/net/x"), "vendor/net/net.tf: # 1\n"}, nil, ""},
		{"one in a package that is called as a whole", "../net.git", call("../") + call("../vendor/net"), "a", []string{"a/main.tf: " + call("../") + call("../vendor/net"), "vendor/net/net.tf: # 1\n"}, nil, ""},
		{"one that is the module", "../net.git", "", "vendor/net", []string{"vendor/net/net.tf: # 1\n"}, nil, ""},
		{"one with the module in a folder", "../net.git", "", "vendor/net/x", []string{"vendor/net/net.tf: # 1\n", "vendor/net/x/x.tf: "}, nil, ""},
		{"one that is not needed", "https://10.0.0.1/net.git", "", "a", []string{"a/main.tf: "}, nil, ""},
		{"one in a folder that is called, but not called itself", "https://10.0.0.1/net.git", call("../vendor"), "a", []string{"a/main.tf: " + call("../vendor"), "vendor/net/"}, nil, ""},
		{"in a private network", "https://10.0.0.1/net.git", "", "", nil, upstream.ErrUnsafe, "private network"},
		{"a name in a private network", "https://private.example.com/net.git", "", "", nil, upstream.ErrUnsafe, "private network"},
		{"over SSH", "git@" + codeHost + ":acme/net.git", "", "", nil, upstream.ErrMalformed, `its submodule "vendor/net": the link to the module is an SSH address`},
		{"without TLS", "http://" + codeHost + "/acme/net.git", "", "", nil, upstream.ErrUnsafe, `its submodule "vendor/net": `},
		{"a command", "ext::sh -c touch% x", "", "", nil, upstream.ErrMalformed, `its submodule "vendor/net": `},
		{"a folder of this machine", "/etc", "", "", nil, upstream.ErrMalformed, ""},
		{"an option", "--upload-pack=touch x", "", "", nil, upstream.ErrMalformed, `its submodule "vendor/net": `},
		{"one that is not there", "../no.git", "", "", nil, upstream.ErrMalformed, "not there"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			upstreamtest.SkipInShort(t, i)
			r, net, commit := upstreamtest.NewRepository(t), flat, flatCommit
			r.Git("config", "uploadpack.allowFilter", "true") // as code hosts do: .gitmodules is fetched by itself
			if test.folder == "vendor/net/x" {
				net, commit = deep, deepCommit
			}
			r.Write("a/main.tf", test.main, ".gitmodules", "[submodule \"net\"]\n\tpath = vendor/net\n\turl = "+test.url+"\n")
			r.Commit()
			r.Git("update-index", "--add", "--cacheinfo", "160000,"+commit+",vendor/net")
			r.Git("commit", "--quiet", "--message", "A submodule")
			s := &gitSite{}
			s.serve("/acme/vpc.git", r)
			s.serve("/acme/net.git", net)
			c := s.client(t, upstream.Origin{})
			into := t.TempDir()
			location := "git::https://" + codeHost + "/acme/vpc.git"
			if test.folder != "" {
				location += "//" + test.folder
			}
			_, err := c.FetchModule(t.Context(), gitSource(t, location), into)
			if test.kind != nil {
				mustFail(t, err, test.kind, test.says)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := slices.DeleteFunc(filesOf(t, into), func(f string) bool { return strings.HasPrefix(f, ".gitmodules") })
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// A submodule that is needed and whose URL is not known is an error. Otherwise the version would stay without its files.
func TestSubmodulesWithoutTheirURL(t *testing.T) {
	net := upstreamtest.NewRepository(t)
	net.Write("net.tf", "# 1\n")
	commit := net.Commit()
	const listed = "[submodule \"net\"]\n\tpath = vendor/net\n\turl = ../net.git\n"
	for i, test := range []struct {
		rule, gitmodules string
		main             string // a/main.tf
		says             string // empty: the module is fetched
	}{
		{"none that is called is listed", "# nothing\n", call("../vendor/net"), `its submodule "vendor/net" has no URL in .gitmodules`},
		{"none with a folder that is called is listed", "# nothing\n", call("../vendor/net/x"), `its submodule "vendor/net" has no URL in .gitmodules`},
		{"one that is not needed", "# nothing\n", "", ""},
		{"a long list", strings.Repeat("# a comment\n", 6000) + listed, call("../vendor/net"), ""},
		{"a list that is too long", strings.Repeat("# a comment\n", 100_000) + listed, call("../vendor/net"), "git cannot read the repository"},
		{"a list that git cannot read", listed + "[submodule", call("../vendor/net"), "git cannot read the repository"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			upstreamtest.SkipInShort(t, i)
			r := upstreamtest.NewRepository(t)
			r.Git("config", "uploadpack.allowFilter", "true")
			r.Write("a/main.tf", test.main, ".gitmodules", test.gitmodules)
			r.Commit()
			r.Git("update-index", "--add", "--cacheinfo", "160000,"+commit+",vendor/net")
			r.Git("commit", "--quiet", "--message", "A submodule")
			s := &gitSite{}
			s.serve("/acme/vpc.git", r)
			s.serve("/acme/net.git", net)
			into := t.TempDir()
			_, err := s.client(t, upstream.Origin{}).FetchModule(t.Context(), gitSource(t, "git::https://"+codeHost+"/acme/vpc.git//a"), into)
			if test.says != "" {
				mustFail(t, err, upstream.ErrMalformed, test.says)
				return
			}
			want := []string{"a/main.tf: " + test.main}
			if test.main != "" {
				want = append(want, "vendor/net/net.tf: # 1\n")
			}
			if got := filesOf(t, into); err != nil || !slices.Equal(got, want) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// A server that fails costs limited time and space, and the failure names it.
func TestGitServersThatFail(t *testing.T) {
	r := upstreamtest.NewRepository(t)
	r.Write("main.tf", "# 1\n")
	r.Commit("v1.0.0")
	file := "100644 blob " + r.Object("x") + "\t"
	r.Git("tag", "hostile", r.GitWith("", "commit-tree", r.Tree("040000 tree "+r.Tree(file+"config")+"\t.git")))
	r.Git("tag", "parent", r.GitWith("", "commit-tree", r.Tree("040000 tree "+r.Tree(file+"x")+"\t..")))
	r.Git("tag", "symlink", r.GitWith("", "commit-tree", r.Tree("120000 blob "+r.Object("../x")+"\ta")))
	r.Git("tag", "large", r.GitWith("", "commit-tree", r.Tree("100644 blob "+r.Object(strings.Repeat("x", 2<<20))+"\ta")))
	r.Git("tag", "twice", r.GitWith("", "commit-tree", r.Tree("120000 blob "+r.Object(".")+"\ta", "040000 tree "+r.Tree(file+"x")+"\ta")))
	r.Git("tag", "long", r.GitWith("", "commit-tree", r.Tree(file+strings.Repeat("n", 256))))
	deep := r.Tree(file + "x")
	for range 101 {
		deep = r.Tree("040000 tree " + deep + "\td")
	}
	r.Git("tag", "deep", r.GitWith("", "commit-tree", deep))
	const advertisement, result = "application/x-git-upload-pack-advertisement", "application/x-git-upload-pack-result"
	answer := func(contentType string, write func(w http.ResponseWriter)) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			write(w)
		}
	}
	repeat := func(w io.Writer, begin, again string) {
		for _, err := io.WriteString(w, begin); err == nil; {
			_, err = io.WriteString(w, again)
		}
	}
	const packfile, progress = "000dpackfile\n", "0015\x02sixteen bytes..\n"
	for i, test := range []struct {
		rule  string
		info  http.HandlerFunc // nil: git's
		pack  http.HandlerFunc
		ref   string
		query string
		kind  error
		says  string
	}{
		{"no such repository", status(404), nil, "v1.0.0", "", upstream.ErrMalformed, "the origin links to a repository that is not there"},
		{"it wants credentials", status(401), nil, "v1.0.0", "", upstream.ErrRefused, "needs a token: configure one for this host"},
		{"it is broken", status(500), nil, "v1.0.0", "", upstream.ErrUnavailable, "500"},
		{"a page", body("<html>"), nil, "v1.0.0", "", upstream.ErrMalformed, "no git repository"},
		{"the old protocol", answer("text/plain", func(w http.ResponseWriter) {
			io.WriteString(w, strings.Repeat("0", 40)+"\trefs/tags/v1.0.0\n")
		}), nil, "v1.0.0", "", upstream.ErrMalformed, "old protocol"},
		{"nonsense", answer(advertisement, func(w http.ResponseWriter) { io.WriteString(w, "nonsense") }), nil, "v1.0.0", "", upstream.ErrMalformed, "git cannot read the repository"},
		{"an endless list", answer(advertisement, func(w http.ResponseWriter) {
			repeat(w, "001e# service=git-upload-pack\n0000", "003d"+strings.Repeat("0", 40)+" refs/heads/main\n")
		}), nil, "v1.0.0", "", upstream.ErrTooLarge, "limit"},
		{"an endless list in the second version of the protocol", nil, answer(result, func(w http.ResponseWriter) {
			repeat(w, "", "003d"+strings.Repeat("0", 40)+" refs/heads/main\n")
		}), "v2.0.0", "", upstream.ErrTooLarge, "list of a repository's branches and tags"},
		{"an endless pack", nil, answer(result, func(w http.ResponseWriter) { repeat(w, packfile, progress) }), "v1.0.0", "", upstream.ErrTooLarge, "limit"},
		{"an endless pack that is compressed", nil, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", result)
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			repeat(z, packfile, strings.Repeat(progress, 10_000))
		}, "v1.0.0", "", upstream.ErrTooLarge, "limit"},
		{"it breaks off", nil, answer(result, func(w http.ResponseWriter) {
			io.WriteString(w, packfile)
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}), "v1.0.0", "", upstream.ErrUnavailable, "broke off"},
		{"it stalls", nil, func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Content-Type", result)
			io.WriteString(w, packfile)
			http.NewResponseController(w).Flush()
			<-q.Context().Done()
		}, "v1.0.0", "", upstream.ErrTimeout, ""},
		{"a redirect to a private network", redirect("https://10.0.0.1/acme/vpc.git/info/refs?service=git-upload-pack"), nil, "v1.0.0", "", upstream.ErrUnsafe, "private network"},
		{"a redirect to a name in a private network", redirect("https://private.example.com/acme/vpc.git/info/refs?service=git-upload-pack"), nil, "v1.0.0", "", upstream.ErrUnsafe, "private network"},
		{"a redirect without TLS", redirect("http://" + codeHost + "/acme/vpc.git/info/refs?service=git-upload-pack"), nil, "v1.0.0", "", upstream.ErrUnsafe, "without TLS"},
		{"a redirect to a page", redirect("https://" + codeHost + "/login"), nil, "v1.0.0", "", upstream.ErrMalformed, "no git repository"},
		{"no such tag", nil, nil, "v9.0.0", "", upstream.ErrMalformed, "a tag, branch or commit that is not in the repository"},
		{"no such folder", nil, nil, "v1.0.0", "//no", upstream.ErrMalformed, `the folder "no"`},
		{"a file for a folder", nil, nil, "v1.0.0", "//main.tf/x", upstream.ErrMalformed, `the folder "main.tf/x"`},
		{"a name of git's own", nil, nil, "hostile", "", upstream.ErrMalformed, `".git/config" in the module is not a name for a file`},
		{"a name that leads out", nil, nil, "parent", "", upstream.ErrMalformed, `"../x" in the module is not a name for a file`},
		{"a symlink that leads out", nil, nil, "symlink", "", upstream.ErrMalformed, `"a" in the module is a symlink that leads out of the repository`},
		{"two files of one name", nil, nil, "twice", "", upstream.ErrMalformed, "git cannot read the repository"},
		{"a long name", nil, nil, "long", "", upstream.ErrMalformed, "nn\" in the module is not a name for a file"},
		{"deep folders", nil, nil, "deep", "", upstream.ErrMalformed, "d/d/\" in the module is not a name for a file"},
		{"more than a module may have", nil, nil, "large", "", upstream.ErrTooLarge, "the limit for the files of a module"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			upstreamtest.SkipInShort(t, i)
			s := &gitSite{}
			s.serve("/acme/vpc.git", r)
			if test.info != nil {
				s.Handle("/acme/vpc.git/info/refs", test.info)
			}
			if test.pack != nil {
				real := r.Handler("/acme/vpc.git")
				s.HandleFunc("/acme/vpc.git/git-upload-pack", func(w http.ResponseWriter, q *http.Request) {
					request, err := io.ReadAll(q.Body)
					if q.Body = io.NopCloser(bytes.NewReader(request)); err == nil && bytes.Contains(request, []byte("command=ls-refs")) && test.ref != "v2.0.0" {
						real.ServeHTTP(w, q)
						return
					}
					test.pack(w, q)
				})
			}
			s.Handle("/login", body("<html>"))
			var timeout time.Duration
			if test.kind == upstream.ErrTimeout {
				timeout = time.Second
			}
			c := s.client(t, upstream.Origin{Timeout: timeout})
			upstream.LimitRepositories(c, 4<<20)
			upstream.LimitRefs(c, 1<<20)
			upstream.LimitUnpacked(c, 1<<20)
			_, err := c.FetchModule(t.Context(), gitSource(t, "git::https://"+codeHost+"/acme/vpc.git"+test.query+"?ref="+test.ref), t.TempDir())
			mustFail(t, err, test.kind, test.says)
		})
	}
}

// All files are written to the folder for the module, so that removing the folder after
// a crash removes everything.
func TestGitWritesNowhereElse(t *testing.T) {
	r := upstreamtest.NewRepository(t)
	r.Write("main.tf", "# 1\n")
	r.Commit("v1.0.0")
	s, handler := &gitSite{}, r.Handler("/acme/vpc.git")
	into := t.TempDir()
	s.HandleFunc("/acme/vpc.git/", func(w http.ResponseWriter, q *http.Request) {
		if elsewhere, err := os.ReadDir(os.TempDir()); err != nil || len(elsewhere) > 0 {
			t.Errorf("there is %v, %v", elsewhere, err)
		}
		if inside, err := os.ReadDir(into); err != nil || len(inside) == 0 {
			t.Errorf("in the folder for the module there is nothing: %v", err)
		}
		handler.ServeHTTP(w, q)
	})
	c := s.client(t, upstream.Origin{})
	if _, err := c.FetchModule(t.Context(), gitSource(t, "git::https://"+codeHost+"/acme/vpc.git?ref=v1.0.0"), into); err != nil {
		t.Fatal(err)
	}
	if got := filesOf(t, into); !slices.Equal(got, []string{"main.tf: # 1\n"}) {
		t.Errorf("in the end there is %q", got)
	}
}

// A small pack does not fill the disk.
func TestGitModulesThatUnpackToVeryMuch(t *testing.T) {
	r := upstreamtest.NewRepository(t)
	r.Git("config", "core.bigFileThreshold", "1m") // git keeps objects packed as they are sent
	r.Git("config", "core.compression", "1")
	r.Write("main.tf", "")
	if err := os.Truncate(filepath.Join(r.Dir, "main.tf"), 257<<20); err != nil {
		t.Fatal(err)
	}
	r.Commit("v1.0.0")
	s := &gitSite{}
	s.serve("/acme/vpc.git", r)
	_, err := s.client(t, upstream.Origin{}).FetchModule(t.Context(), gitSource(t, "git::https://"+codeHost+"/acme/vpc.git?ref=v1.0.0"), t.TempDir())
	mustFail(t, err, upstream.ErrTooLarge, "the limit for the files of a module is 268435456 bytes")
}

// A renamed repository is found, and its packs are requested from the new location.
func TestGitFollowsRedirects(t *testing.T) {
	r := upstreamtest.NewRepository(t)
	r.Write("main.tf", "")
	commit := r.Commit("v1.0.0")
	s := &gitSite{}
	s.serve("/new/vpc", r)
	s.Handle("/old/", http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, "https://moved.example.com/new/vpc/info/refs?"+q.URL.RawQuery, http.StatusMovedPermanently)
	}))
	c := s.client(t, upstream.Origin{
		Private: []string{"moved.example.com"},
		Hosts:   []upstream.Host{{Name: codeHost, Token: "secret"}},
		Token:   "origin's",
	})
	got, err := c.FetchModule(t.Context(), gitSource(t, "git::https://"+codeHost+"/old/vpc.git?ref=v1.0.0"), t.TempDir())
	if err != nil || got.Commit != commit {
		t.Fatalf("got %v, %v", got, err)
	}
	for _, q := range s.requests {
		if user, token, _ := q.BasicAuth(); (q.Host == codeHost) != (user == "git" && token == "secret") {
			t.Errorf("%s%s got %q", q.Host, q.URL.Path, q.Header.Get("Authorization"))
		}
		for name := range q.Header {
			if !slices.Contains([]string{"Accept", "Accept-Encoding", "Authorization", "Content-Length", "Content-Type", "Git-Protocol", "User-Agent"}, name) {
				t.Errorf("%s%s got the header %s", q.Host, q.URL.Path, name)
			}
		}
	}
}

// The token of the origin is for its own repositories.
func TestGitTokens(t *testing.T) {
	r := upstreamtest.NewRepository(t)
	r.Write("main.tf", "")
	r.Commit("v1.0.0")
	for _, test := range []struct{ rule, host, want string }{
		{"the origin", host, "Bearer origin's"},
		{"another host", codeHost, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := &gitSite{}
			s.serve("/acme/vpc.git", r)
			c := s.client(t, upstream.Origin{Token: "origin's"})
			if _, err := c.FetchModule(t.Context(), gitSource(t, "git::https://"+test.host+"/acme/vpc.git?ref=v1.0.0"), t.TempDir()); err != nil {
				t.Fatal(err)
			}
			for _, q := range s.requests {
				if got := q.Header.Get("Authorization"); got != test.want {
					t.Errorf("got %q", got)
				}
			}
		})
	}
}

// A fetch ends when its caller cancels.
func TestGitFetchesAreCancelled(t *testing.T) {
	s := &gitSite{}
	requested := make(chan struct{})
	s.HandleFunc("/acme/vpc.git/", func(_ http.ResponseWriter, q *http.Request) {
		close(requested)
		<-q.Context().Done()
	})
	c := s.client(t, upstream.Origin{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-requested
		cancel()
	}()
	_, err := c.FetchModule(ctx, gitSource(t, "git::https://"+codeHost+"/acme/vpc.git?ref=v1.0.0"), t.TempDir())
	mustFail(t, err, context.Canceled, "")
}

// Of a large repository only the module is received, if the server supports it.
func TestGitModulesInLargeRepositories(t *testing.T) {
	r := upstreamtest.NewRepository(t)
	noise := make([]byte, 2<<20)
	rand.NewChaCha8([32]byte{}).Read(noise)
	r.Write("modules/vpc/main.tf", "# vpc\n", "large.bin", string(noise))
	r.Commit("v1.0.0")
	for _, test := range []struct {
		rule, allow string
		kind        error
	}{
		{"a server that leaves out files", "true", nil},
		{"a server that does not", "false", upstream.ErrTooLarge},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r.Git("config", "uploadpack.allowFilter", test.allow)
			s := &gitSite{}
			s.serve("/acme/vpc.git", r)
			c := s.client(t, upstream.Origin{})
			upstream.LimitRepositories(c, 1<<20)
			into := t.TempDir()
			_, err := c.FetchModule(t.Context(), gitSource(t, "git::https://"+codeHost+"/acme/vpc.git//modules/vpc?ref=v1.0.0"), into)
			if test.kind != nil {
				mustFail(t, err, test.kind, "the limit for a repository is ")
			} else if got := filesOf(t, into); err != nil || !slices.Equal(got, []string{"modules/vpc/main.tf: # vpc\n"}) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// For a moved tag, the commit is the one that it names now. Callers compare commits.
func TestGitTagsThatMove(t *testing.T) {
	r := upstreamtest.NewRepository(t)
	s := &gitSite{}
	s.serve("/acme/vpc.git", r)
	c := s.client(t, upstream.Origin{})
	for _, content := range []string{"# 1\n", "# 2\n"} {
		r.Write("main.tf", content)
		commit := r.Commit()
		r.Git("tag", "--force", "v1.0.0")
		got, err := c.FetchModule(t.Context(), gitSource(t, "git::https://"+codeHost+"/acme/vpc.git?ref=v1.0.0"), t.TempDir())
		if err != nil || got.Commit != commit {
			t.Errorf("got %v, %v", got, err)
		}
	}
}

// Repositories take long, and packages do not wait for them.
func TestGitModulesHaveSlotsOfTheirOwn(t *testing.T) {
	upstreamtest.NewRepository(t) // there is git
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, upstream.Origin{Hostname: host}, upstream.Network{})
		// reserveAll returns how many slots were free. They are taken until the test ends.
		reserveAll := func(reserve func(context.Context) (func(), error)) (n int) {
			for ; ; n++ {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				release, err := reserve(ctx)
				cancel()
				if err != nil {
					return n
				}
				t.Cleanup(release)
			}
		}
		module := func(location string) func(context.Context) (func(), error) {
			s := gitSource(t, location)
			return func(ctx context.Context) (func(), error) { return c.ReserveModule(ctx, s) }
		}
		if n := reserveAll(module("git::https://" + codeHost + "/acme/vpc.git")); n != 2 {
			t.Errorf("there are %d slots for repositories", n)
		}
		if n := reserveAll(c.ReserveDownload); n != upstream.MaxDownloads {
			t.Errorf("beside repositories there are %d slots for packages", n)
		}
		if n := reserveAll(module("https://" + codeHost + "/vpc.tar.gz")); n != 0 {
			t.Errorf("beside packages there are %d slots for archives", n)
		}
	})
}

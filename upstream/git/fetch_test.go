package git_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream/git"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
)

// served serves a repository to which git connects without a relay.
func served(t *testing.T, r *upstreamtest.Repository, change ...func(http.Handler) http.Handler) git.Source {
	t.Helper()
	handler := r.Handler("/")
	for _, c := range change {
		handler = c(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return git.Source{URL: server.URL, Name: "example.com"}
}

// first uses the first version of git's protocol, in which servers answer clients that
// do not ask for another.
func first(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Git-Protocol")
		h.ServeHTTP(w, r)
	})
}

func TestFetchFindsTheCommitOfARef(t *testing.T) {
	r := upstreamtest.NewRepository(t)
	r.Write("main.tf", "# 1\n")
	one := r.Commit("v1.0.0", "both")
	r.Git("tag", "--annotate", "--message", "A release", "v1.0.1")
	r.Git("branch", "release/1")
	r.Write("main.tf", "# 2\n")
	two := r.Commit()
	r.Write("main.tf", "# 3\n")
	three := r.Commit("v3.0.0")
	r.Git("branch", "both")
	r.Git("branch", "0123456789")
	blob := r.Git("rev-parse", "HEAD:main.tf")
	annotated := r.Git("rev-parse", "v1.0.1")
	for i, test := range []struct{ rule, ref, commit string }{
		{"none: the default branch", "", three},
		{"HEAD", "HEAD", three},
		{"a tag", "v1.0.0", one},
		{"an annotated tag", "v1.0.1", one},
		{"a tag before a branch", "both", one},
		{"a branch", "main", three},
		{"a branch with a slash", "release/1", one},
		{"a branch like a commit", "0123456789", three},
		{"a branch as in a clone", "origin/release/1", one},
		{"a whole name", "refs/heads/both", three},
		{"a commit", one, one},
		{"a commit in capitals", strings.ToUpper(one), one},
		{"a commit that is no tip", two, two},
		{"a short commit", two[:10], two},
		{"no such tag", "v9.0.0", ""},
		{"no such commit", strings.Repeat("1", 40), ""},
		{"no such short commit", "1111111", ""},
		{"a file", blob, ""},
		{"the tag itself", annotated, ""},
		{"an option", "--upload-pack=touch x", ""},
		{"a revision", "v1.0.0~1", ""},
		{"a range", "v1.0.0..v3.0.0", ""},
		{"a pattern", "v*", ""},
		{"two refs", "v1.0.0:refs/heads/x", ""},
		{"two lines", "v1.0.0\nmain", ""},
	} {
		for _, server := range []struct {
			rule   string
			change func(http.Handler) http.Handler
		}{
			{"", func(h http.Handler) http.Handler { return h }},
			{", from a server of the first protocol", first},
		} {
			if server.rule != "" && !strings.Contains(test.rule, "commit") {
				continue // names are found in the same way with any protocol
			}
			t.Run(test.rule+server.rule, func(t *testing.T) {
				upstreamtest.SkipInShort(t, i)
				s := served(t, r, server.change)
				s.Ref = test.ref
				fetched, commit, err := git.Fetch(t.Context(), s, filepath.Join(t.TempDir(), "fetched"))
				if test.commit == "" {
					if !errors.Is(err, git.ErrNoCommit) {
						t.Fatalf("got %s, %v", commit, err)
					}
					return
				}
				if err != nil || commit != test.commit {
					t.Fatalf("got %s, %v", commit, err)
				}
				if entry, ok, err := fetched.Entry(t.Context(), commit, "main.tf"); err != nil || !ok || entry.Object != r.Git("rev-parse", commit+":main.tf") {
					t.Errorf("got %v, %v, %v", entry, ok, err)
				}
			})
		}
	}
}

// A repository of the other format of IDs is fetched as well.
func TestFetchOfLongIDs(t *testing.T) {
	r := upstreamtest.NewRepository(t, "--object-format=sha256")
	r.Write("main.tf", "")
	want := r.Commit("v1.0.0")
	for _, ref := range []string{"v1.0.0", want} {
		s := served(t, r)
		s.Ref = ref
		_, commit, err := git.Fetch(t.Context(), s, filepath.Join(t.TempDir(), "fetched"))
		if err != nil || commit != want {
			t.Errorf("%s: got %s, %v", ref, commit, err)
		}
	}
}

// Only the named contents are fetched, if the server supports it.
func TestContentsAreFetchedOnDemand(t *testing.T) {
	r := upstreamtest.NewRepository(t)
	r.Write("small/main.tf", "# small\n", "large/x.bin", strings.Repeat("large", 1000))
	r.Commit("v1.0.0")
	for _, test := range []struct {
		rule   string
		allow  string
		change func(http.Handler) http.Handler
		thin   bool
	}{
		{"a server with filters", "true", nil, true},
		{"a server without", "false", nil, false},
		{"the first protocol with filters, but not by ID", "true", first, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r.Git("config", "uploadpack.allowFilter", test.allow)
			var s git.Source
			if test.change == nil {
				s = served(t, r)
			} else {
				s = served(t, r, test.change)
			}
			s.Ref = "v1.0.0"
			folder := filepath.Join(t.TempDir(), "fetched")
			fetched, commit, err := git.Fetch(t.Context(), s, folder)
			if err != nil {
				t.Fatal(err)
			}
			entry, _, err := fetched.Entry(t.Context(), commit, "small")
			if err != nil {
				t.Fatal(err)
			}
			if err := fetched.FetchContents(t.Context(), []string{entry.Object}); err != nil {
				t.Fatal(err)
			}
			files, err := fetched.Tree(t.Context(), entry.Object, 10)
			if err != nil {
				t.Fatal(err)
			}
			into := t.TempDir()
			w := git.Writer{Left: 100}
			if refused, err := w.Write(t.Context(), fetched, files.Files, into); err != nil || len(refused) > 0 {
				t.Fatal(refused, err)
			}
			if content, err := os.ReadFile(filepath.Join(into, "main.tf")); string(content) != "# small\n" {
				t.Errorf("got %q, %v", content, err)
			}
			objects := r.Git("-C", filepath.Join(folder, "sha1"), "cat-file", "--batch-all-objects", "--batch-check")
			if has := strings.Contains(objects, r.Git("rev-parse", "HEAD:large/x.bin")); has == test.thin {
				t.Errorf("the other file was fetched: %v", has)
			}
		})
	}
}

// Git does not use this process's environment and user.
func TestFetchIsSealed(t *testing.T) {
	r := upstreamtest.NewRepository(t)
	r.Write("main.tf", "")
	r.Commit("v1.0.0")
	home := t.TempDir()
	ran := filepath.Join(home, "ran")
	script := filepath.Join(home, "run.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	hooks := filepath.Join(home, "template", "hooks")
	if err := os.MkdirAll(hooks, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, hook := range []string{"reference-transaction", "post-checkout", "pre-auto-gc"} {
		if err := os.Symlink(script, filepath.Join(hooks, hook)); err != nil {
			t.Fatal(err)
		}
	}
	config := fmt.Sprintf("[init]\n\ttemplateDir = %s\n[credential]\n\thelper = %s\n[core]\n\thooksPath = %s\n\taskPass = %s\n[http]\n\textraHeader = X-Token: secret\n\tproxy = http://127.0.0.1:1\n[url \"http://127.0.0.1:1/\"]\n\tinsteadOf = http://\n",
		filepath.Dir(hooks), script, hooks, script)
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	handler := r.Handler("/")
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		for name := range q.Header {
			if !slices.Contains(seen, name) {
				seen = append(seen, name)
			}
		}
		if q.URL.Query().Get("service") != "" && q.Header.Get("X-Given") != "it's \"so\"" {
			t.Errorf("the header of the source is %q", q.Header.Get("X-Given"))
		}
		handler.ServeHTTP(w, q)
	}))
	defer server.Close()
	t.Setenv("HOME", home)
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(home, ".gitconfig"))
	t.Setenv("GIT_TEMPLATE_DIR", filepath.Dir(hooks))
	t.Setenv("GIT_ASKPASS", script)
	t.Setenv("GIT_DIR", home)
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "http.extraHeader")
	t.Setenv("GIT_CONFIG_VALUE_0", "X-Variable: secret")
	_, _, err := git.Fetch(t.Context(), git.Source{URL: server.URL, Ref: "v1.0.0", Header: `X-Given: it's "so"`}, filepath.Join(home, "fetched"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("something of the user was run")
	}
	if slices.Contains(seen, "X-Token") || slices.Contains(seen, "X-Variable") {
		t.Errorf("the server got %v", seen)
	}
}

// The answers of a server cannot lead git to another server, and no other transport is
// used.
func TestFetchGoesNowhereElse(t *testing.T) {
	r := upstreamtest.NewRepository(t)
	r.Write("main.tf", "")
	r.Commit("v1.0.0")
	reached := false
	real := served(t, r, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			reached = true
			h.ServeHTTP(w, q)
		})
	})
	redirecting := httptest.NewServer(http.RedirectHandler(real.URL+"/info/refs?service=git-upload-pack", http.StatusFound))
	defer redirecting.Close()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }))
	defer page.Close()
	for _, url := range []string{
		redirecting.URL, page.URL, "file://" + filepath.ToSlash(r.Dir), r.Dir, "ext::sh -c touch% x", "ssh://127.0.0.1/x", "https://127.0.0.1:1/", "git://127.0.0.1/x",
	} {
		if _, commit, err := git.Fetch(t.Context(), git.Source{URL: url, Ref: "v1.0.0"}, filepath.Join(t.TempDir(), "fetched")); err == nil {
			t.Errorf("%s: got %s", url, commit)
		}
	}
	if reached {
		t.Error("git followed a redirect")
	}
}

func TestSubmodulesAsTheyAreWritten(t *testing.T) {
	r := upstreamtest.NewRepository(t)
	for _, test := range []struct {
		rule, gitmodules string
		want             map[string]string
		damaged          string // the text of the error; empty: no error
	}{
		{"two", "[submodule \"a\"]\n\tpath = vendor/a\n\turl = ../a.git\n[submodule \"b.c\"]\n\tpath = b\n\turl = https://example.com/b\n", map[string]string{"vendor/a": "../a.git", "b": "https://example.com/b"}, ""},
		{"out of it", "[submodule \"a\"]\n\tpath = ../a\n\turl = ../a.git\n", nil, ""},
		{"git's own folder", "[submodule \"a\"]\n\tpath = .GIT/hooks\n\turl = ../a.git\n", nil, ""},
		{"without a URL", "[submodule \"a\"]\n\tpath = a\n", nil, ""},
		{"other configuration", "[include]\n\tpath = /etc/passwd\n[core]\n\tfsmonitor = x\n", nil, ""},
		{"an empty file", "", nil, ""},
		{"a file that git cannot read", "[submodule", nil, "git cannot read its .gitmodules"},
		{"too much", "[submodule \"a\"]\n\tpath = a\n\turl = " + strings.Repeat("a", 2000) + "\n", nil, "more than 1000 bytes"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r.Write(".gitmodules", test.gitmodules)
			commit := r.Commit()
			opened, err := git.Open(t.Context(), r.Dir)
			if err != nil {
				t.Fatal(err)
			}
			got, err := opened.Submodules(t.Context(), commit, 1000)
			if test.damaged != "" {
				if damaged, is := errors.AsType[*git.DamagedError](err); !is || !strings.Contains(damaged.Error(), test.damaged) {
					t.Errorf("got %v, %v", got, err)
				}
				return
			}
			if err != nil || fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func FuzzFetchRefs(f *testing.F) {
	for _, ref := range []string{"v1.0.0", "-x", "a..b", "a b", "@{-1}", "x.lock", "refs/heads/x", "a\x00b"} {
		f.Add(ref)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		// Git cannot be run, so a refused name is refused before.
		t.Setenv("PATH", "")
		_, _, err := git.Fetch(t.Context(), git.Source{URL: "http://127.0.0.1:1", Ref: ref}, filepath.Join(t.TempDir(), "fetched"))
		if strings.ContainsAny(ref, " \n\x00~^:?*[\\") || strings.HasPrefix(ref, "-") || strings.Contains(ref, "..") {
			if !errors.Is(err, git.ErrNoCommit) {
				t.Errorf("%q: got %v", ref, err)
			}
		}
	})
}

// Git has a whole commit, tree or delta in memory, however small it is in a pack.
func TestFetchIsBoundedInMemory(t *testing.T) {
	r := upstreamtest.NewRepository(t)
	r.Commit("v1.0.0")
	// A pack of one commit begins with the commit's type and size. The size alone is too much.
	const size, isCommit, more = 257 << 20, 1 << 4, 1 << 7
	pack := "PACK\x00\x00\x00\x02\x00\x00\x00\x01" + string([]byte{isCommit | more | size&15, more | size>>4&127, more | size>>11&127, more | size>>18&127, size >> 25})
	s := served(t, r, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			request, err := io.ReadAll(q.Body)
			if q.Body = io.NopCloser(bytes.NewReader(request)); err != nil || !bytes.Contains(request, []byte("command=fetch")) {
				h.ServeHTTP(w, q)
				return
			}
			w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
			fmt.Fprintf(w, "000dpackfile\n%04x\x01%s0000", 4+1+len(pack), pack)
		})
	})
	s.Ref = "v1.0.0"
	_, _, err := git.Fetch(t.Context(), s, filepath.Join(t.TempDir(), "fetched"))
	if err == nil || !strings.Contains(err.Error(), "over limit") {
		t.Errorf("got %v", err)
	}
}

package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// CodeHost is a host of git repositories, git.example.com, with the registry of the
// modules in them, code.example.com. git itself serves the repositories, over TLS. The
// registry stands in for the public ones. It only says in which repository and at which
// commit a version is. The public registries do so for nearly all modules. This
// registry, which has archives, does so for none.
type CodeHost struct {
	*Front
	t   *testing.T
	dir string
	env []string // for git, without the machine's configuration

	mu      sync.Mutex
	sources map[string]string // X-Terraform-Get by NAMESPACE/NAME/SYSTEM/VERSION
}

const (
	codeHostRegistry = "code.example.com"
	codeHostGit      = "git.example.com"
)

// CodeHost starts a CodeHost on the outside.
func (o *Outside) CodeHost(t *testing.T) *CodeHost {
	t.Helper()
	execPath, err := exec.Command("git", "--exec-path").Output()
	require(t, err)
	backend := filepath.Join(strings.TrimSpace(string(execPath)), executable("git-http-backend"))
	_, err = os.Stat(backend)
	require(t, err)

	h := &CodeHost{t: t, dir: t.TempDir(), sources: map[string]string{}, env: []string{
		"PATH=" + os.Getenv("PATH"),
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_CONFIG_SYSTEM=" + os.DevNull,
	}}
	repositories := &cgi.Handler{
		Path: backend,
		Root: "/",
		Dir:  h.dir,
		Env: append([]string{
			"GIT_PROJECT_ROOT=" + h.dir,
			"GIT_HTTP_EXPORT_ALL=1",
		}, h.env...),
		Stderr: t.Output(),
	}
	h.Front = o.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == codeHostGit {
			repositories.ServeHTTP(w, r)
			return
		}
		h.registry(w, r)
	}), codeHostRegistry, codeHostGit)
	return h
}

// newWorkspace returns a workspace on the outside, which trusts everything there, by
// git too.
func (o *Outside) newWorkspace(t *testing.T, configuration string) *Workspace {
	t.Helper()
	ws := newWorkspace(t, o.Origin, configuration)
	ca, err := os.ReadFile(o.Origin.CA)
	if err != nil {
		t.Fatal(err)
	}
	authorities := filepath.Join(ws.home, "outside.crt")
	writeFile(t, authorities, string(ca)+o.trusted)
	ws.Setenv("SSL_CERT_FILE", authorities)
	ws.Setenv("GIT_SSL_CAINFO", authorities)
	ws.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	ws.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
	return ws
}

// Publish makes the registry say where a version, NAMESPACE/NAME/SYSTEM/VERSION, is.
func (h *CodeHost) Publish(version, source string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sources[version] = source
}

// registry answers discovery and the module registry protocol.
func (h *CodeHost) registry(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	path, isModule := strings.CutPrefix(r.URL.Path, "/v1/modules/")
	version, isDownload := strings.CutSuffix(path, "/download")
	switch {
	case r.URL.Path == "/.well-known/terraform.json":
		fmt.Fprint(w, `{"modules.v1":"/v1/modules/"}`)
	case isModule && isDownload && h.sources[version] != "":
		w.Header().Set("X-Terraform-Get", h.sources[version])
		w.WriteHeader(http.StatusNoContent)
	case isModule && strings.HasSuffix(path, "/versions"):
		type listed struct {
			Version string `json:"version"`
		}
		var versions []listed
		for version := range h.sources {
			if v, ok := strings.CutPrefix(version, strings.TrimSuffix(path, "versions")); ok {
				versions = append(versions, listed{v})
			}
		}
		if len(versions) == 0 {
			http.NotFound(w, r)
			return
		}
		slices.SortFunc(versions, func(a, b listed) int { return strings.Compare(a.Version, b.Version) })
		json.NewEncoder(w).Encode(map[string]any{"modules": []any{map[string]any{"versions": versions}}})
	default:
		http.NotFound(w, r)
	}
}

// A Repository is a repository of a CodeHost, with the work tree of its only developer.
type Repository struct {
	URL string // https://git.example.com/NAME.git

	host *CodeHost
	bare string
	work string
}

// Repository creates a repository. Like the repositories of GitHub and GitLab, it gives
// out any commit that it has, and leaves out files that a client does not ask for.
func (h *CodeHost) Repository(name string) *Repository {
	h.t.Helper()
	r := &Repository{
		URL:  "https://" + codeHostGit + "/" + name + ".git",
		host: h,
		bare: filepath.Join(h.dir, name+".git"),
		work: filepath.Join(h.t.TempDir(), name),
	}
	r.git(h.dir, "init", "--quiet", "--bare", "--initial-branch=main", r.bare)
	for _, option := range []string{"uploadpack.allowAnySHA1InWant", "uploadpack.allowFilter"} {
		r.git(r.bare, "config", option, "true")
	}
	r.git(h.dir, "init", "--quiet", "--initial-branch=main", r.work)
	return r
}

// Commit adds these files, commits, pushes the branch main and returns the commit.
func (r *Repository) Commit(files map[string]string) string {
	r.host.t.Helper()
	for name, content := range files {
		writeFile(r.host.t, r.path(name), content)
	}
	return r.CommitAll()
}

// CommitAll commits the work tree as it is, pushes the branch main and returns the commit.
func (r *Repository) CommitAll() string {
	r.host.t.Helper()
	r.git(r.work, "add", "--all")
	r.git(r.work, "commit", "--quiet", "--message", "A change")
	r.git(r.work, "push", "--quiet", "--force", r.bare, "main")
	return r.git(r.work, "rev-parse", "HEAD")
}

// Tag sets a tag to the latest commit, whether or not there is one already.
func (r *Repository) Tag(name string) {
	r.host.t.Helper()
	r.git(r.work, "tag", "--force", name)
	r.git(r.work, "push", "--quiet", "--force", r.bare, name)
}

// Rewrite replaces the latest commit, as before a push with --force. The next Commit
// pushes it.
func (r *Repository) Rewrite() {
	r.host.t.Helper()
	r.git(r.work, "commit", "--quiet", "--amend", "--message", "Rewritten")
}

// Forget removes everything that no branch or tag leads to.
func (r *Repository) Forget() {
	r.host.t.Helper()
	r.git(r.bare, "gc", "--quiet", "--prune=now")
}

func (r *Repository) path(name string) string { return filepath.Join(r.work, filepath.FromSlash(name)) }

func (r *Repository) git(dir string, args ...string) string {
	r.host.t.Helper()
	cmd := exec.CommandContext(beforeDeadline(r.host.t), "git", args...)
	cmd.Dir, cmd.Env = dir, append(slices.Clone(r.host.env),
		"GIT_AUTHOR_NAME=Acme", "GIT_AUTHOR_EMAIL=platform@acme.example",
		"GIT_COMMITTER_NAME=Acme", "GIT_COMMITTER_EMAIL=platform@acme.example")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.host.t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return strings.TrimSpace(string(out))
}

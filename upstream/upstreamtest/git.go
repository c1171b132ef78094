package upstreamtest

import (
	"io"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Repository is a git repository in a temporary folder, made with the real git.
type Repository struct {
	Dir   string
	Clock time.Time // of the next commit

	t testing.TB
}

// NewRepository makes an empty repository. The configurations of the developer and the
// system are not used for as long as the test lasts. Without git the test is skipped,
// except in CI.
func NewRepository(t testing.TB, options ...string) *Repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	r := &Repository{t: t, Dir: t.TempDir(), Clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	r.Git(append([]string{"init", "--quiet", "--initial-branch=main", "--template="}, options...)...) // a template has many files
	return r
}

// Git runs git in the repository and returns its output.
func (r *Repository) Git(args ...string) string {
	r.t.Helper()
	return r.GitWith("", args...)
}

// GitWith is like Git, with some input.
func (r *Repository) GitWith(input string, args ...string) string {
	r.t.Helper()
	date := r.Clock.Format(time.RFC3339)
	// Each commit would start another git that looks for something to tidy up.
	cmd := exec.CommandContext(r.t.Context(), "git", append([]string{"-c", "maintenance.auto=false", "-c", "gc.auto=0"}, args...)...)
	cmd.Dir, cmd.Stdin = r.Dir, strings.NewReader(input)
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a",
		"GIT_COMMITTER_EMAIL=a@example.com", "GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Write writes files, given as names and contents in turn.
func (r *Repository) Write(namesAndContents ...string) {
	r.t.Helper()
	for pair := range slices.Chunk(namesAndContents, 2) {
		name := filepath.Join(r.Dir, filepath.FromSlash(pair[0]))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(pair[1]), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
}

// Commit commits everything, a day after the commit before, and tags it.
func (r *Repository) Commit(tags ...string) (commit string) {
	r.t.Helper()
	r.Clock = r.Clock.AddDate(0, 0, 1)
	r.Git("add", "--all", "--force")
	r.Git("commit", "--quiet", "--allow-empty", "--message", "A change")
	for _, tag := range tags {
		r.Git("tag", tag)
	}
	return r.Git("rev-parse", "HEAD")
}

// Object adds a file's content to the repository, and returns the object.
func (r *Repository) Object(content string) string {
	r.t.Helper()
	return r.GitWith(content, "hash-object", "-w", "--stdin")
}

// Tree adds a tree that git itself might not make, with entries in the form of git
// ls-tree. It returns a commit of the tree.
func (r *Repository) Tree(entries ...string) (files string) {
	r.t.Helper()
	return r.GitWith(strings.Join(entries, "\x00")+"\x00", "mktree", "-z", "--missing")
}

// SkipInShort skips most rows of a table in which git runs many times: a short run looks for data races, and the same
// goroutines work for each row.
func SkipInShort(t *testing.T, row int) {
	if t.Helper(); testing.Short() && row%5 > 0 {
		t.Skip("it takes long with the race detector")
	}
}

// programs is the folder of git's own programs.
var programs = sync.OnceValues(func() (string, error) {
	folder, err := exec.Command("git", "--exec-path").Output()
	return strings.TrimSpace(string(folder)), err
})

// Handler serves the repository at a path of a site, like git's own server.
func (r *Repository) Handler(path string) http.Handler {
	r.t.Helper()
	folder, err := programs()
	if err != nil {
		r.t.Fatal(err)
	}
	return &cgi.Handler{
		Path: filepath.Join(folder, "git-http-backend"),
		Root: path,
		Env: []string{
			"GIT_PROJECT_ROOT=" + r.Dir, "GIT_HTTP_EXPORT_ALL=1",
			"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "REMOTE_USER=",
		},
		Stderr: io.Discard,
	}
}

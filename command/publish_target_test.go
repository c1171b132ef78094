package command

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A target is a real registry that is published to, behind a server that counts the
// bytes that it is sent and can fail.
type target struct {
	*httptest.Server
	t      *testing.T
	tree   *indextest.Tree
	root   string
	handle *handlers.Registry

	mutex    sync.Mutex
	received map[string]int           // bytes of bodies, by method and name of the file
	fault    func(*http.Request) int  // the status of a failure; zero: none
	lost     func(*http.Request) bool // the answer
}

// goodToken is that of a user who may publish in acme, and read it.
const goodToken = "tfr_good"

// managersToken is that of a user who may manage acme, here and at registry.terraform.io.
const managersToken = "tfr_ops"

// newTarget starts a registry over an empty tree.
func newTarget(t *testing.T) *target {
	t.Helper()
	noClientConfiguration(t)
	r := &target{t: t, root: t.TempDir(), received: make(map[string]int)}
	r.tree = indextest.OnDisk(t, r.root)
	open := tree.Directories{Root: r.root}.Open
	x := index.New(index.Options{Open: open, Watch: true, Signer: shortKey(t)})
	x.Start()
	t.Cleanup(func() { x.Close() })
	var lock sync.Mutex // of all versions
	publisher, err := publish.New(publish.Options{
		Open:  open,
		Index: func() publish.Index { return x },
		Lock: func(context.Context, string) (func(), error) {
			lock.Lock()
			return lock.Unlock, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.handle = &handlers.Registry{
		Snapshot: x.Snapshot, Next: x.Next, Publisher: publisher,
		Rules: access.NewRules(rule(t, "allow ci publish acme"), rule(t, "allow ci read acme"),
			rule(t, "allow ops manage acme registry.terraform.io"), rule(t, "allow ops read acme")),
		Authenticate: func(q *http.Request) (access.Subject, error) {
			switch q.Header.Get("Authorization") {
			case "Bearer " + goodToken:
				return access.Subject{ID: "ci"}, nil
			case "Bearer " + managersToken:
				return access.Subject{ID: "ops"}, nil
			case "Bearer tfr_other":
				return access.Subject{ID: "other"}, nil
			}
			return access.Subject{}, nil
		},
		Links: &access.Links{Life: time.Minute, Keys: func() *access.LinkKeys { return access.NewLinkKeys(time.Now()) }},
	}
	r.Server = httptest.NewTLSServer(r)
	t.Cleanup(r.Close)
	<-x.Ready()
	return r
}

func rule(t *testing.T, text string) access.Rule {
	t.Helper()
	parsed, err := access.ParseRule(strings.Fields(text)...)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// noClientConfiguration keeps tests from the developer's tokens.
func noClientConfiguration(t *testing.T) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	for _, name := range []string{"XDG_CONFIG_HOME", "APPDATA", "TF_CLI_CONFIG_FILE", "GITHUB_ACTIONS",
		"ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", defaultIDTokenVariable} {
		t.Setenv(name, "")
	}
}

func (r *target) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	name := q.Method + " " + q.URL.Path[strings.LastIndexByte(q.URL.Path, '/')+1:]
	body := &countedBody{ReadCloser: q.Body}
	q.Body = body
	r.mutex.Lock()
	fault, lost := r.fault, r.lost
	r.mutex.Unlock()
	if lost != nil && lost(q) {
		r.handle.ServeHTTP(httptest.NewRecorder(), q)
		panic(http.ErrAbortHandler)
	}
	status := 0
	if fault != nil {
		status = fault(q)
	}
	switch {
	case status != 0:
		w.Header().Set("Connection", "close") // the client may be waiting to be asked for the body
		w.WriteHeader(status)
	case !r.handle.ServeHTTP(w, q):
		http.NotFound(w, q)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.received[name] += body.n
}

// fail has requests fail.
func (r *target) fail(fault func(*http.Request) int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.fault = fault
}

// lose has answers get lost.
func (r *target) lose(lost func(*http.Request) bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.lost = lost
}

// sent returns how many bytes of files have been sent since it was called last, by the
// names of all that requests were for.
func (r *target) sent() map[string]int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	sent := r.received
	r.received = make(map[string]int)
	return sent
}

// network is that of a command which trusts the registry.
func (r *target) network() registryNetwork {
	roots := x509.NewCertPool()
	roots.AddCert(r.Certificate())
	return registryNetwork{roots: roots, pause: time.Millisecond}
}

// to is the argument of --to for an address.
func (r *target) to(address string) string {
	return "--to=" + r.Listener.Addr().String() + "/" + address
}

// publish runs the command with the good token.
func (r *target) publish(args ...string) (out, errs string, err error) {
	r.t.Helper()
	return r.publishAs(goodToken, args...)
}

func (r *target) publishAs(token string, args ...string) (out, errs string, err error) {
	r.t.Helper()
	file := filepath.Join(r.t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return run(r.t.Context(), publishCommand(r.network()), append([]string{"--token-file", file}, args...)...)
}

// files are those in the tree below a folder, in order.
func (r *target) files(dir string) (names []string) {
	r.t.Helper()
	root := filepath.Join(r.root, dir)
	filepath.WalkDir(root, func(name string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			relative, _ := filepath.Rel(root, name)
			names = append(names, filepath.ToSlash(relative))
		}
		return nil
	})
	return names
}

type countedBody struct {
	io.ReadCloser
	n int
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n += n
	return n, err
}

// A dist is the files of a release of acme/demo by name, as GoReleaser leaves them.
type dist map[string]string

// demoName is the name of a file of version 1.2.0.
func demoName(suffix string) string { return "terraform-provider-demo_1.2.0_" + suffix }

// newDist makes version 1.2.0 for two platforms. Two builds of different marks differ.
func newDist(mark string) dist {
	d := make(dist)
	for _, platform := range []string{"linux_amd64", "darwin_arm64"} {
		d[demoName(platform+".zip")] = indextest.Zip("terraform-provider-demo_v1.2.0", "#!"+mark+platform)
	}
	d[demoName("manifest.json")] = `{"version":1,"metadata":{"protocol_versions":["6.0"]}}`
	return d.sum()
}

// sum makes SHA256SUMS over all files.
func (d dist) sum() dist {
	delete(d, demoName("SHA256SUMS"))
	sums := make(wire.Checksums)
	for name, content := range d {
		if !strings.HasSuffix(name, ".sig") {
			sums[name] = sha256.Sum256([]byte(content))
		}
	}
	d[demoName("SHA256SUMS")] = string(sums.Encode())
	return d
}

func (d dist) signed(by *indextest.Publisher) dist {
	d[demoName("SHA256SUMS.sig")] = by.Sign(d[demoName("SHA256SUMS")])
	return d
}

// folder writes the files into a new folder.
func (d dist) folder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "dist")
	for name, content := range d {
		write(t, dir, name, content)
	}
	return dir
}

// names are those of the files, in order.
func (d dist) names() (names []string) {
	for name := range d {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// status is the exit status of an error.
func status(err error) int {
	var failed *cli.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &failed) && failed.Status != nil:
		return cli.ExitUsage
	}
	return cli.ExitProblem
}

// says fails unless what was printed has all of the parts. Lines that were wrapped count as one.
func says(t *testing.T, printed string, parts ...string) {
	t.Helper()
	flat := strings.Join(strings.Fields(printed), " ")
	for _, part := range parts {
		if !strings.Contains(flat, part) {
			t.Errorf("it does not say %q:\n%s", part, printed)
		}
	}
}

// lists fails unless a table has a file, with what has become of it.
func lists(t *testing.T, table, name, result string) {
	t.Helper()
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); slices.Contains(fields, name) && strings.HasSuffix(strings.TrimSpace(line), "  "+result) {
			return
		}
	}
	t.Errorf("it does not list %s as %s:\n%s", name, result, table)
}

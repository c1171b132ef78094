package verify_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/clientconfig"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/record"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/tlogtest"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/verify"
)

const host = "registry.example.com"

// A registry has a tree, and puts it on record.
type registry struct {
	*handlers.Registry
	*indextest.Tree
	t       testing.TB
	log     *tlog.Log
	storage *tlogtest.Storage
	key     *signing.Key
	offered *index.Snapshot
}

// newRegistry returns a registry whose log was begun before anything was offered.
func newRegistry(t testing.TB) *registry {
	t.Helper()
	return newRegistryIn(t, tlogtest.New(t))
}

func newRegistryIn(t testing.TB, storage *tlogtest.Storage) *registry {
	t.Helper()
	r := &registry{t: t, Tree: indextest.New(t), storage: storage}
	var err error
	if r.key, err = signing.ReadKey([]byte(indextest.NewPublisher(t).PrivateKey()), ""); err != nil {
		t.Fatal(err)
	}
	r.log = r.storage.MustOpen(t)
	r.Registry = &handlers.Registry{
		Snapshot: func() *index.Snapshot { return r.offered },
		Log:      func() *tlog.Log { return r.log },
	}
	r.Write("modules/acme/first/any/0.0.1/main.tf", "")
	r.offer()
	return r
}

// offer scans the tree, and enters what is new.
func (r *registry) offer() {
	r.t.Helper()
	s, err := index.Scan(r.t.Context(), index.Options{Open: r.Open, Signer: r.key})
	if err != nil {
		r.t.Fatal(err)
	}
	r.offered = s
	synctest.Test(r.t.(*testing.T), func(t *testing.T) {
		recorder := record.New(record.Options{Open: r.storage.Open, Hostnames: r.Hostnames})
		recorder.Offered(s, nil)
		time.Sleep(2 * time.Minute) // folders rest
		recorder.Close()
		synctest.Wait()
	})
	if err := r.log.Refresh(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// began is the time at which everything is offered.
var began = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// A network has servers by their names.
type network struct {
	mu       sync.Mutex
	servers  map[string]http.Handler
	requests []string // METHOD URL TOKEN
}

var errNoRoute = errors.New("no route to host")

// RoundTrip implements http.RoundTripper.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	n.requests = append(n.requests, fmt.Sprintf("%s %s", r.URL, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")))
	server := n.servers[r.URL.Host]
	n.mu.Unlock()
	if server == nil {
		return nil, errNoRoute
	}
	request := httptest.NewRequestWithContext(r.Context(), r.Method, r.URL.String(), nil)
	request.Header = r.Header.Clone()
	answer := httptest.NewRecorder()
	server.ServeHTTP(answer, request)
	response := answer.Result()
	response.Request = r
	return response, nil
}

type served struct{ *registry }

func (s served) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.Registry.ServeHTTP(w, r) {
		http.NotFound(w, r)
	}
}

// A machine is of a user who runs verify in a folder.
type machine struct {
	t *testing.T
	*network
	dir      string
	cache    string
	settings clientconfig.Settings
	tokens   map[svchost.Hostname]string
	locked   strings.Builder
	calls    []string
}

func newMachine(t *testing.T, r *registry) *machine {
	t.Helper()
	m := &machine{t: t, dir: t.TempDir(), cache: t.TempDir(), network: &network{servers: map[string]http.Handler{host: served{r}}}}
	return m
}

func (m *machine) path(name string) string { return filepath.Join(m.dir, filepath.FromSlash(name)) }

func (m *machine) write(name, content string) {
	m.t.Helper()
	path := m.path(name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(content), 0o644)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// get returns what the registry serves.
func (m *machine) get(path string) []byte {
	m.t.Helper()
	answer, err := m.RoundTrip(httptest.NewRequest(http.MethodGet, "https://"+host+path, nil))
	if err != nil || answer.StatusCode != http.StatusOK {
		m.t.Fatalf("%s is not served: %v, %v", path, answer, err)
	}
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	return content
}

// module installs a module's package for a call, as init does. A second call of the same
// package gets a copy without names that begin with a dot.
func (m *machine) module(r *registry, call, source, version string) {
	m.t.Helper()
	a, sub, err := address.ParseModuleSource(source)
	if err != nil {
		m.t.Fatal(err)
	}
	v := r.offered.Module(placeOf(a)).Version(version)
	if v == nil {
		m.t.Fatalf("%s %s is not offered", source, version)
	}
	f := v.Archive.Name
	content := m.get("/v1/registries/" + string(a.Hostname) + "/modules/" + a.WithHostname("").String() + "/" + version + "/" + f)
	m.untar(bytes.NewReader(content), ".terraform/modules/"+call)
	m.called(call, source, sub, version)
}

func (m *machine) called(call, source, sub, version string) {
	m.t.Helper()
	m.calls = append(m.calls, fmt.Sprintf(`{"Key":%q,"Source":%q,"Version":%q,"Dir":%q}`, call, source, version, ".terraform/modules/"+call+"/"+sub))
	m.write(".terraform/modules/modules.json", `{"Modules":[{"Key":"","Source":"","Dir":"."},`+strings.Join(m.calls, ",")+`]}`)
}

func (m *machine) untar(r io.Reader, dir string) {
	m.t.Helper()
	z, err := gzip.NewReader(r)
	if err != nil {
		m.t.Fatal(err)
	}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			m.t.Fatal(err)
		}
		content, err := io.ReadAll(t)
		if err != nil {
			m.t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg || h.Typeflag == tar.TypeSymlink { // go-getter writes a link as an empty file
			m.write(dir+"/"+h.Name, string(content))
		}
	}
}

// provider installs a provider's package, and locks the hashes of all platforms.
func (m *machine) provider(r *registry, name, version, platform string) {
	m.t.Helper()
	a, err := address.Parse(name)
	if err != nil {
		m.t.Fatal(err)
	}
	release := r.offered.Provider(placeOf(a)).Release(version)
	if release == nil {
		m.t.Fatalf("%s %s is not offered", name, version)
	}
	if a.Hostname == "" {
		a = a.WithHostname(host)
	}
	fmt.Fprintf(&m.locked, "provider %q {\n  version = %q\n  hashes = [\n", a, version)
	for _, p := range release.Packages {
		if p.Platform.String() == platform {
			fmt.Fprintf(&m.locked, "    %q,\n", p.Hashes().Hashes[0])
			m.unzip(m.get("/v1/mirror/"+a.String()+"/"+address.PackageName(a.Name, version, p.Platform)), ".terraform/providers/"+a.String()+"/"+version+"/"+platform)
		}
		fmt.Fprintf(&m.locked, "    \"zh:%s\",\n", p.File.SHA256)
	}
	m.locked.WriteString("  ]\n}\n")
	m.write(".terraform.lock.hcl", m.locked.String())
}

func (m *machine) unzip(content []byte, dir string) {
	m.t.Helper()
	z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		m.t.Fatal(err)
	}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			m.t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			m.t.Fatal(err)
		}
		m.write(dir+"/"+f.Name, string(content))
	}
}

func placeOf(a address.Address) index.Place {
	if a.Hostname == "" || a.Hostname == host {
		return index.Place{Address: a.WithHostname(""), Hosted: true}
	}
	return index.PlaceOf(a)
}

// options returns the options of a run a day after everything was offered.
func (m *machine) options() *verify.Options {
	m.t.Helper()
	o := &verify.Options{Now: began.Add(24 * time.Hour)}
	o.Client = &verify.Client{
		Transport: m.network, Cache: verify.OpenCache(m.cache), Pause: time.Millisecond,
		Token: func(_ context.Context, h svchost.Hostname) (string, error) { return m.tokens[h], nil },
	}
	o.Settings = m.settings
	var err error
	if o.Pins, err = verify.ReadPins(m.path(verify.PinsName)); err != nil {
		m.t.Fatal(err)
	}
	return o
}

// configure sets the user's configuration of clients.
func (m *machine) configure(text string) {
	m.t.Helper()
	var err error
	m.settings, err = clientconfig.Parse([]byte(text)).Settings()
	m.must(err)
}

// verify runs verify, and keeps what it has seen.
func (m *machine) verify(change ...func(*verify.Options)) *verify.Report {
	m.t.Helper()
	o := m.options()
	for _, c := range change {
		c(o)
	}
	p, _, err := verify.ReadProject(m.dir, verify.DefaultData)
	if err != nil {
		m.t.Fatal(err)
	}
	report, pins, changed, err := verify.Run(m.t.Context(), o, []verify.Project{p})
	if err != nil {
		m.t.Fatal(err)
	}
	if changed {
		if err := verify.WritePins(m.path(verify.PinsName), pins); err != nil {
			m.t.Fatal(err)
		}
	}
	return report
}

// says fails the test unless the report has these items, as "ADDRESS VERSION STATUS" with the
// kinds of findings in their place.
func says(t *testing.T, r *verify.Report, want ...string) {
	t.Helper()
	var got []string
	for _, i := range r.Items {
		status := string(i.Status)
		var kinds []string
		for _, f := range i.Findings {
			kinds = append(kinds, string(f.Kind))
		}
		if len(kinds) > 0 {
			status = strings.Join(kinds, ", ")
		}
		got = append(got, fmt.Sprintf("%s %s %s", i.Address, i.Version, status))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		text, _ := json.MarshalIndent(r, "", " ")
		t.Errorf("got\n%s\nwant\n%s\nin\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"), text)
	}
}

// second installs a second call of a package, which is a copy without hidden files.
func (m *machine) second(call string) {
	m.t.Helper()
	if call == "vpc" {
		return
	}
	m.must(os.CopyFS(m.path(".terraform/modules/"+call), os.DirFS(m.path(vpcPackage))))
	m.remove(".terraform/modules/" + call + "/.hidden")
	m.remove(".terraform/modules/" + call + "/a/.b")
	m.called(call, vpc, "", "1.0.0")
}

func (m *machine) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) remove(name string) {
	m.t.Helper()
	if _, err := os.Lstat(m.path(name)); err != nil {
		m.t.Fatal(err)
	}
	m.must(os.RemoveAll(m.path(name)))
}

func (m *machine) replace(name, from, to string) {
	m.t.Helper()
	content, err := os.ReadFile(m.path(name))
	m.must(err)
	if !strings.Contains(string(content), from) {
		m.t.Fatalf("%s does not have %s", name, from)
	}
	m.write(name, strings.Replace(string(content), from, to, 1))
}

// linked is a package with a link.
func linked(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, h := range []tar.Header{{Name: "main.tf", Typeflag: tar.TypeReg, Size: 8, Mode: 0o644}, {Name: "link.tf", Typeflag: tar.TypeSymlink, Linkname: "main.tf"}} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			w.Write([]byte("# linked"))
		}
	}
	w.Close()
	z.Close()
	return b.String()
}

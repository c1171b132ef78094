package e2e_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Registry is a running Caddy with the registry, as users run it. It is reached
// by its hostnames through its Proxy.
type Registry struct {
	Proxy *Proxy
	Log   *Log

	// CA is the file with the certificate of the authority that clients trust: the
	// authority of this Caddy, which issues the certificates of `tls internal` sites.
	CA string

	dir     string // short: see runDir
	cmd     *exec.Cmd
	run     func(*exec.Cmd) // changes the command; nil: no change
	ended   chan struct{}   // closed when the process has
	options []string        // global options for its listeners and storage
	reloads int
	https   endpoint
	http    endpoint // zero: none
}

// startRegistry runs a Caddy with the given sites until the test ends. It
// returns once every site answers.
func startRegistry(t *testing.T, sites ...Site) *Registry {
	t.Helper()
	return startRegistryOn(t, newProxy(t), sites...)
}

// startRegistryOn is startRegistry on a network that is shared with others. The
// Caddy listens on a socket in its folder, so ports cannot conflict.
func startRegistryOn(t *testing.T, proxy *Proxy, sites ...Site) *Registry {
	t.Helper()
	r := newRegistry(t, proxy)
	r.onSocket()
	r.start(t, sites)
	return r
}

// startRegistryAs is startRegistry with a change to the process, such as fewer
// permissions.
func startRegistryAs(t *testing.T, run func(*exec.Cmd), sites ...Site) *Registry {
	t.Helper()
	r := newRegistry(t, newProxy(t))
	r.run = run
	r.onSocket()
	r.start(t, sites)
	return r
}

func (r *Registry) onSocket() {
	r.https = r.socket(0)
	r.options = []string{"auto_https disable_redirects"}
}

// socket returns the socket to listen on after a number of reloads.
func (r *Registry) socket(reloads int) endpoint {
	return endpoint{"unix", r.path(fmt.Sprintf("https%d.sock", reloads))}
}

// startRegistryOnPorts is startRegistryOn with Caddy's default listeners, HTTPS
// and HTTP, on ports that the system has chosen, as needed for certificates by
// ACME.
func startRegistryOnPorts(t *testing.T, proxy *Proxy, sites ...Site) *Registry {
	t.Helper()
	r := newRegistry(t, proxy)
	http, https := freePorts(t)
	r.http = endpoint{"tcp", net.JoinHostPort("127.0.0.1", http)}
	r.https = endpoint{"tcp", net.JoinHostPort("127.0.0.1", https)}
	r.options = []string{
		"http_port " + http,
		"https_port " + https,
		"default_bind 127.0.0.1",
	}
	r.start(t, sites)
	return r
}

func newRegistry(t *testing.T, proxy *Proxy) *Registry {
	t.Helper()
	dir, err := os.MkdirTemp(runDir, "caddy")
	if err != nil {
		t.Fatal(err)
	}
	return &Registry{
		Proxy: proxy,
		CA:    filepath.Join(dir, "data", "caddy", "pki", "authorities", "local", "root.crt"),
		dir:   dir,
	}
}

func (r *Registry) start(t *testing.T, sites []Site) {
	t.Helper()
	binary, err := caddyBinary()
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(sites, Site.hasRegistry) {
		shareSigningKey(t, r.path("data", "caddy"))
	}
	r.configure(t, sites)
	r.join(sites) // early: an authority may send requests before it serves
	if err := os.MkdirAll(r.tmp(), 0o755); err != nil {
		t.Fatal(err)
	}
	r.cmd = exec.CommandContext(beforeDeadline(t), binary, "run", "--config", r.path("Caddyfile"))
	r.cmd.Dir = r.dir
	r.cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + r.dir,
		"TMPDIR=" + r.tmp(),
		"XDG_DATA_HOME=" + r.path("data"),
		"XDG_CONFIG_HOME=" + r.path("config"),
		// For a Caddy that gets certificates by ACME, and for one that is the
		// authority and requests the challenges.
		"HTTP_PROXY=" + r.Proxy.URL,
		"HTTPS_PROXY=" + r.Proxy.URL,
		"GOGC=" + os.Getenv("GOGC"), // which .ci/run sets
	}
	if r.run != nil {
		r.run(r.cmd)
	}
	stderr, err := r.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if r.Log, err = readLog(stderr, r.path("log")); err != nil {
		t.Fatal(err)
	}
	r.ended = make(chan struct{})
	go func(log *Log, cmd *exec.Cmd, ended chan struct{}) {
		<-log.End()
		cmd.Wait()
		close(ended)
	}(r.Log, r.cmd, r.ended)
	log := r.Log
	t.Cleanup(func() {
		r.Stop(t)
		if t.Failed() {
			t.Logf("end of Caddy's log:\n%s", log.tail())
		}
	})
	r.Log.Wait(t, "it serves", func(e Entry) bool { return e.Message == "serving initial configuration" })
	r.ready(t, 0, sites)
}

// Reload gives the Caddy another set of sites, as `caddy reload` does, and
// returns once they answer.
func (r *Registry) Reload(t *testing.T, sites ...Site) {
	t.Helper()
	r.ReloadBy(t, func() {
		cmd := exec.Command(r.cmd.Path, "reload", "--force", "--config", r.path("Caddyfile"),
			"--address", "unix/"+r.path("admin.sock"))
		cmd.Env = r.cmd.Env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
		}
	}, sites...)
}

// ReloadBy is Reload by another command. The sites get another socket. The replaced
// server may accept one more connection on its own socket, and close it unanswered or
// answer it by its old configuration.
func (r *Registry) ReloadBy(t *testing.T, command func(), sites ...Site) {
	t.Helper()
	before := len(r.Log.Entries())
	r.reloads++
	r.https = r.socket(r.reloads)
	r.configure(t, sites)
	command()
	r.join(sites)
	r.ready(t, before, sites)
}

// Restart stops the Caddy and starts it again with the same storage.
func (r *Registry) Restart(t *testing.T, sites ...Site) {
	t.Helper()
	r.Stop(t)
	r.start(t, sites)
}

// join adds the sites to the network.
func (r *Registry) join(sites []Site) {
	for _, s := range sites {
		r.Proxy.Route(s.HostPort(), r.https)
		if r.http != (endpoint{}) {
			r.Proxy.Route(net.JoinHostPort(s.Host(), "80"), r.http)
		}
	}
}

// ready waits until the sites have their certificates and have scanned their
// trees after a point in the log.
func (r *Registry) ready(t *testing.T, point int, sites []Site) {
	t.Helper()
	trees := map[string]bool{}
	for _, s := range sites {
		if s.Root != "" {
			trees[s.Root+strings.Join(s.Options, "\n")] = true
		}
	}
	for _, s := range sites {
		r.Log.Wait(t, "it has a certificate for "+s.Host(), func(e Entry) bool {
			return e.Event == "cached_managed_cert" && slices.Contains(e.Data.SANs, s.Host())
		})
	}
	r.Log.WaitAfter(t, point, len(trees), "it has scanned its trees", Entry.scan)
}

// Stop stops the Caddy as a service manager does.
func (r *Registry) Stop(t *testing.T) {
	t.Helper()
	// An error means that it has already ended.
	_ = r.cmd.Process.Signal(os.Interrupt)
	select {
	case <-r.ended:
	case <-time.After(30 * time.Second):
		t.Errorf("Caddy did not stop within 30 s")
		r.cmd.Process.Kill()
		<-r.ended
	}
}

// configure writes the Caddyfile.
func (r *Registry) configure(t *testing.T, sites []Site) {
	t.Helper()
	protocols := "protocols h1 h2"
	if slices.ContainsFunc(sites, func(s Site) bool { return s.HTTP1 }) {
		protocols = "protocols h1"
	}
	global := append([]string{
		"debug", // logs when a certificate is in use
		"log {", "format json", "}",
		"admin unix/" + r.path("admin.sock"),
		"skip_install_trust",
		// Cleaning the storage at the start races with the first certificate:
		// its new folder is still empty, and would be removed.
		"storage_clean_interval off",
		"persist_config off",
		"servers {", protocols, "}",
	}, r.options...)
	if r.https.network == "unix" {
		global = append(global, "default_bind unix/"+r.https.address)
	}
	blocks := []string{"{\n" + strings.Join(global, "\n") + "\n}\n"}
	for _, s := range sites {
		blocks = append(blocks, s.Caddyfile())
	}
	writeFile(t, r.path("Caddyfile"), strings.Join(blocks, "\n"))
}

func (r *Registry) path(names ...string) string {
	return filepath.Join(append([]string{r.dir}, names...)...)
}

// tmp returns the folder for temporary files.
func (r *Registry) tmp() string { return r.path("tmp") }

// freePorts returns two free ports that no other test has got. Systems choose the ports of
// outgoing connections, and of listeners on port 0, from the range above: they would take a
// port before the server listens on it.
func freePorts(t *testing.T) (string, string) {
	t.Helper()
	var ports []string
	for tries := 0; len(ports) < 2; tries++ {
		port := strconv.Itoa(20000 + rand.IntN(12000))
		if _, taken := givenPorts.LoadOrStore(port, true); taken {
			continue
		}
		listener, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			if tries > 100 {
				t.Fatal(err)
			}
			continue
		}
		listener.Close()
		ports = append(ports, port)
	}
	return ports[0], ports[1]
}

var givenPorts sync.Map

// Response is a complete answer of the registry.
type Response struct {
	Status int
	Header http.Header
	Body   string
}

// Get requests a URL as any HTTP client does, for details that Terraform does
// not show.
func (r *Registry) Get(t *testing.T, url string) Response {
	t.Helper()
	answer, err := r.ask(url)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// ask is Get for goroutines other than the goroutine of the test.
func (r *Registry) ask(url string) (Response, error) {
	client, err := r.client()
	if err != nil {
		return Response{}, err
	}
	defer client.CloseIdleConnections()
	return fetch(client, url)
}

// client returns an HTTP client that trusts the registry and reaches it by all
// its names. It keeps its connections, all of HTTP/1.1.
func (r *Registry) client() (*http.Client, error) {
	pem, err := os.ReadFile(r.CA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return &http.Client{
		Timeout: time.Minute,
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots},
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return r.https.dial(ctx)
			},
		},
	}, nil
}

func fetch(client *http.Client, url string) (Response, error) {
	answer, err := client.Get(url)
	if err != nil {
		return Response{}, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return Response{}, fmt.Errorf("%s: %w", url, err)
	}
	return Response{Status: answer.StatusCode, Header: answer.Header, Body: string(body)}, nil
}

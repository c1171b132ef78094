package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// host is the hostname of all requests. Nothing looks it up.
const host = "registry.example.com"

// A site has one listener of a Caddy.
type site struct {
	name    string
	tls     bool
	http1   bool // without HTTP/2, as the command and the documentation configure it
	logged  bool // requests are in the log
	proxied bool // this machine is a proxy, which may say where the client comes from
	handler handler
}

// A handler is the JSON of a Caddy HTTP handler.
type handler map[string]any

func (h handler) with(option string, value any) handler {
	h = maps.Clone(h)
	h[option] = value
	return h
}

// registry serves a tree.
func (l *lab) registry(root string) handler {
	return handler{"handler": "terraform_registry", "root": root, "signing_key": map[string]any{"file": l.key.file}}
}

// respond is Caddy's `respond`.
func respond(body []byte, header http.Header) handler {
	return handler{"handler": "static_response", "status_code": 200, "body": string(body), "headers": header}
}

// reverseProxy has servers answer that listen without TLS.
func reverseProxy(addresses ...string) handler {
	var upstreams []any
	for _, address := range addresses {
		upstreams = append(upstreams, map[string]any{"dial": address})
	}
	return handler{"handler": "reverse_proxy", "upstreams": upstreams, "load_balancing": map[string]any{
		"selection_policy": map[string]any{"policy": "least_conn"},
	}}
}

func fileServer(root string) handler { return handler{"handler": "file_server", "root": root} }

// A caddy is a running Caddy of a subject.
type caddy struct {
	*process
	socket    string            // of the admin endpoint
	addresses map[string]string // by site
	started   time.Time
}

// caddy starts a subject, with one core if pinned. Its ports accept connections at
// once, and answer as soon as it serves. Files that it keeps under name are there again
// after a restart.
func (l *lab) caddy(ctx context.Context, s subject, name string, pinned bool, sites ...site) (*caddy, error) {
	dir := l.storage(s, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	// The limit for the path of a socket is 108 bytes, which TMPDIR may use up.
	c := &caddy{socket: filepath.Join(dir, "admin.sock"), addresses: make(map[string]string)}
	file := filepath.Join(dir, "caddy.json")
	if err := os.WriteFile(file, l.configuration(c.socket, sites), 0o600); err != nil {
		return nil, err
	}
	// Listeners are inherited from file descriptor 3 on: the kernel chooses the
	// ports, and a request can be under way before the process listens.
	var listeners []*os.File
	for _, site := range sites {
		f, address, err := listen()
		if err != nil {
			return nil, err
		}
		defer f.Close()
		listeners = append(listeners, f)
		c.addresses[site.name] = address
	}
	cores, env := l.cores.all, l.environment(dir)
	if pinned {
		cores, env = l.cores.server, append(env, "GOMAXPROCS=1")
	}
	if s.memory > 0 {
		env = append(env, fmt.Sprint("GOMEMLIMIT=", s.memory*9/10)) // as Caddy sets it in a container with this limit
	}
	var err error
	c.started = time.Now()
	c.process, err = start(ctx, dir, env, listeners, "taskset", "-c", cores, s.binary, "run", "--config", file)
	return c, err
}

// storage is the folder of a subject's processes of that name.
func (l *lab) storage(s subject, name string) string { return l.path(s.name + "-" + name) }

// listen opens a port that only the process with the returned file has, so that clients
// notice the end of the process.
func listen() (*os.File, string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	return f, l.Addr().String(), err
}

func (l *lab) configuration(socket string, sites []site) []byte {
	servers := make(map[string]any)
	for i, s := range sites {
		server := map[string]any{
			"listen":          []string{fmt.Sprintf("fd/%d", 3+i)},
			"routes":          []any{map[string]any{"handle": []any{s.handler}}},
			"protocols":       []string{"h1", "h2"},
			"automatic_https": map[string]any{"disable": true},
		}
		if s.http1 {
			server["protocols"] = []string{"h1"}
		}
		if s.logged {
			server["logs"] = map[string]any{}
		}
		if s.proxied {
			server["trusted_proxies"] = map[string]any{"source": "static", "ranges": []string{"127.0.0.0/8"}}
		}
		if s.tls {
			server["tls_connection_policies"] = []any{map[string]any{}}
		}
		servers[s.name] = server
	}
	files := []any{map[string]any{"certificate": l.certificate.file, "key": l.certificate.key}}
	configuration, err := json.MarshalIndent(map[string]any{
		"admin": map[string]any{"listen": "unix/" + socket, "config": map[string]any{"persist": false}},
		"apps": map[string]any{
			"http": map[string]any{"servers": servers},
			"tls":  map[string]any{"certificates": map[string]any{"load_files": files}},
		},
	}, "", "\t")
	if err != nil {
		panic(err) // maps of strings
	}
	return configuration
}

// environment keeps a process in its folder: it reads and writes no file of Caddy's on
// this machine. The certificate is the certificate of its origin.
func (l *lab) environment(dir string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "SSL_CERT_FILE=" + l.certificate.file,
		"HOME=" + dir, "XDG_DATA_HOME=" + filepath.Join(dir, "data"), "XDG_CONFIG_HOME=" + filepath.Join(dir, "config"),
	}
}

// during runs a subject with one site for as long as f takes.
func (l *lab) during(ctx context.Context, s subject, name string, h handler, f func(*caddy) error) error {
	c, err := l.caddy(ctx, s, name, false, site{name: "site", handler: h})
	if err != nil {
		return err
	}
	err = l.profiled(ctx, c, s.name+"-"+name, func() error { return f(c) })
	if s.memory > 0 {
		l.peaks[s.name] = max(l.peaks[s.name], peakMemory(c.Process.Pid))
	}
	return errors.Join(err, c.stop())
}

// An answer to a request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a *answer) ok() bool { return a.status == http.StatusOK }

func (a *answer) equals(other *answer) bool {
	return a.status == other.status && bytes.Equal(a.body, other.body)
}

// get asks a site without TLS, with an Authorization header unless it is empty.
func (c *caddy) get(ctx context.Context, site, path, authorization string) (*answer, error) {
	return c.fetch(ctx, target{address: c.addresses[site], path: path, authorization: authorization})
}

// fetch asks for a target once.
func (c *caddy) fetch(ctx context.Context, t target) (*answer, error) {
	conn, err := connect(ctx, t)
	if err != nil {
		return nil, c.failure(err)
	}
	defer conn.Close()
	return c.read(conn)
}

func (c *caddy) read(conn *connection) (*answer, error) {
	response, err := conn.ask()
	if err != nil {
		return nil, c.failure(fmt.Errorf("GET %s: %w", conn.target.path, err))
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return &answer{response.StatusCode, response.Header, body}, err
}

// await asks a site until the answer is good, and returns the time of that answer. It
// keeps its connection: the first request waits in the kernel until the process serves,
// and so is answered as soon as possible.
func (c *caddy) await(ctx context.Context, site, path string, good func(*answer) bool) (time.Time, error) {
	return c.awaitEvery(ctx, poll, site, path, good)
}

// awaitEvery is await with another time between an answer and the next request.
func (c *caddy) awaitEvery(ctx context.Context, pause time.Duration, site, path string, good func(*answer) bool) (time.Time, error) {
	const patience = 15 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := connect(ctx, target{address: c.addresses[site], path: path})
	if err != nil {
		return time.Time{}, c.failure(err)
	}
	defer conn.Close()
	for {
		a, err := c.read(conn)
		if err != nil {
			return time.Time{}, err
		}
		if good(a) {
			return time.Now(), nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return time.Time{}, c.failure(fmt.Errorf("GET %s: the last answer is %d: %s: %w", path, a.status, a.body, ctx.Err()))
		}
	}
}

// offers returns whether an index.json has that many versions; 0: there is none.
func offers(versions int) func(*answer) bool {
	return func(a *answer) bool {
		if versions == 0 {
			return a.status == http.StatusNotFound
		}
		var list struct{ Versions map[string]struct{} }
		return a.ok() && json.Unmarshal(a.body, &list) == nil && len(list.Versions) == versions
	}
}

// Some documents are answered before the first scan of a tree has ended. The details of a module
// wait for it, also if there is none.
const absentPath = "/v1/modules/none/none/none"

func isAbsent(a *answer) bool { return a.status == http.StatusNotFound }

// indexed waits until a site has scanned its tree and offers all versions of the providers, and
// returns how long after the start of the process that was.
func (c *caddy) indexed(ctx context.Context, site string, providers ...provider) (seconds float64, err error) {
	at, err := c.await(ctx, site, absentPath, isAbsent)
	if err != nil {
		return 0, err
	}
	for _, p := range providers {
		at, err = c.await(ctx, site, p.mirrorPath("index.json"), offers(len(p.versions)))
		if err != nil {
			return 0, err
		}
	}
	return at.Sub(c.started).Seconds(), nil
}

// admin asks the admin endpoint, which a process that was just started does not
// have yet.
func (c *caddy) admin(ctx context.Context, path string) ([]byte, error) {
	return c.adminRequest(ctx, http.MethodGet, path)
}

func (c *caddy) adminRequest(ctx context.Context, method, path string) ([]byte, error) {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return c.dial(ctx, "unix", c.socket)
		},
	}}
	request, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1"+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s of the admin endpoint: %s", method, path, response.Status)
	}
	return body, err
}

// heap returns the heap in bytes, garbage included.
func (c *caddy) heap(ctx context.Context) (float64, error) {
	body, err := c.admin(ctx, "/debug/vars")
	if err != nil {
		return 0, err
	}
	var vars struct {
		Memstats struct{ HeapAlloc float64 }
	}
	err = json.Unmarshal(body, &vars)
	return vars.Memstats.HeapAlloc, err
}

// liveHeap returns the heap in bytes after garbage collection. It collects until that
// changes nothing more: pools release memory at the second collection, and a scan may
// be about to end.
func (c *caddy) liveHeap(ctx context.Context) (float64, error) {
	const atLeast, atMost, same = 3, 20, 0.005
	before := 0.0
	for collections := 1; ; collections++ {
		// In this form the statistics are read before the profile is made.
		profile, err := c.admin(ctx, "/debug/pprof/heap?gc=1&debug=1")
		if err != nil {
			return 0, err
		}
		_, after, _ := bytes.Cut(profile, []byte("\n# HeapAlloc = "))
		value, _, _ := bytes.Cut(after, []byte("\n"))
		now, err := strconv.ParseFloat(string(value), 64)
		if err != nil {
			return 0, fmt.Errorf("the heap profile has no HeapAlloc: %w", err)
		}
		if collections == atMost || collections >= atLeast && math.Abs(now-before) < same*now {
			return now, nil
		}
		before = now
	}
}

// profiled calls f. With -profile it also writes a CPU profile of the server from
// then on, which takes longer than some f do: the numbers of such a run mean
// nothing.
func (l *lab) profiled(ctx context.Context, c *caddy, name string, f func() error) error {
	if l.profile == "" {
		return f()
	}
	var writing sync.WaitGroup
	writing.Go(func() {
		profile, err := c.admin(ctx, "/debug/pprof/profile?seconds=3")
		if err == nil {
			err = errors.Join(os.MkdirAll(l.profile, 0o755), os.WriteFile(filepath.Join(l.profile, name+".pprof"), profile, 0o644))
		}
		if err != nil {
			progress("profile of %s: %v", name, err)
		}
	})
	defer writing.Wait()
	return f()
}

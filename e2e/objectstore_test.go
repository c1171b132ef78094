package e2e_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// blobBinary builds Caddy with the registry and the file system of object stores, once
// per run.
var blobBinary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(runDir, executable("caddy-blob"))
	return path, goBuild(filepath.Join(repository(), "xcaddy", "blob"), path, ".", nil, "-tags", caddyTags)
})

const (
	storeKey    = "registry"
	storeSecret = "right-secret"
)

// An ObjectStore is versitygw, a server that speaks S3, over a folder, with one bucket.
// The registry reaches it through a proxy that counts its requests, and may fail.
type ObjectStore struct {
	URL string // the bucket's URL in the form of caddy.fs.blob

	proxy *httptest.Server
	dir   string // with the objects

	mutex  sync.Mutex
	counts map[string]int
	answer http.HandlerFunc // nil: the store answers
}

// newObjectStore runs a store with an empty bucket until the test ends.
func newObjectStore(t *testing.T) *ObjectStore {
	t.Helper()
	binary, err := goTool(filepath.Join(repository(), "blob", "versitygw"))
	require(t, err)
	dir, err := os.MkdirTemp(runDir, "s3")
	if err != nil {
		t.Fatal(err)
	}
	buckets, metadata, socket := filepath.Join(dir, "b"), filepath.Join(dir, "m"), filepath.Join(dir, "s")
	for _, folder := range []string{filepath.Join(buckets, "terraform"), metadata} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	server := exec.CommandContext(beforeDeadline(t), binary, "--quiet", "--keep-alive", "--port", socket, "posix", "--sidecar", metadata, buckets)
	server.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+storeKey, "ROOT_SECRET_KEY="+storeSecret)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Process.Kill(); server.Wait() })

	s := &ObjectStore{dir: filepath.Join(buckets, "terraform")}
	pass := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", r.In.Host // the signature is for this host
		},
		Transport:     &http.Transport{DialContext: onceItListens(socket), DisableCompression: true},
		FlushInterval: -1,
	}
	s.proxy = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mutex.Lock()
		if s.counts == nil {
			s.counts = make(map[string]int)
		}
		kind := r.Method
		if r.URL.Query().Has("list-type") {
			kind = "LIST"
		}
		s.counts[kind]++
		answer := s.answer
		s.mutex.Unlock()
		if answer != nil {
			answer(w, r)
			return
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(s.proxy.Close)
	s.URL = "s3://terraform?region=us-east-1&use_path_style=true&hostname_immutable=true&endpoint=" + url.QueryEscape(s.proxy.URL)
	return s
}

// onceItListens dials a socket that a process is about to listen on.
func onceItListens(socket string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		for {
			c, err := d.DialContext(ctx, "unix", socket)
			if err == nil || ctx.Err() != nil {
				return c, err
			}
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
}

// Requests returns the number of requests to the store, by method, with LIST for
// listings, and sets it to zero.
func (s *ObjectStore) Requests() map[string]int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	counts := s.counts
	s.counts = nil
	return counts
}

// Fail makes the store answer every request with an error of S3, or work again with
// status 0.
func (s *ObjectStore) Fail(status int, code string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.answer = nil; status == 0 {
		return
	}
	s.answer = func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>as told by the test</Message></Error>`, code)
	}
}

// files returns the keys of the objects.
func (s *ObjectStore) files(t *testing.T) (keys []string) {
	t.Helper()
	err := filepath.WalkDir(s.dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			key, _ := filepath.Rel(s.dir, name)
			keys = append(keys, filepath.ToSlash(key))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// Put copies the files of a tree into the bucket, as an operator does with the store's
// tools.
func (s *ObjectStore) Put(t *testing.T, files *Tree) {
	t.Helper()
	err := filepath.WalkDir(files.Dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		at, err := filepath.Rel(files.Dir, name)
		if err != nil {
			return err
		}
		put := exec.Command("curl", "--silent", "--show-error", "--fail-with-body", "--noproxy", "*",
			"--aws-sigv4", "aws:amz:us-east-1:s3", "--user", storeKey+":"+storeSecret,
			"--header", "x-amz-content-sha256: "+sha256Of(t, name), "--upload-file", name, s.proxy.URL+"/terraform/"+filepath.ToSlash(at))
		if out, err := put.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", at, err, out)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// startRegistryOnBucket runs the Caddy of object stores with sites that have the option
// `fs bucket`. With beside, it shares the storage of another one that runs already.
func startRegistryOnBucket(t *testing.T, s *ObjectStore, beside *Registry, sites ...Site) *Registry {
	t.Helper()
	r := newRegistry(t, newProxy(t))
	r.onBucket(t, s, beside)
	r.start(t, sites)
	return r
}

// onBucket makes a registry that has not started the Caddy of object stores.
func (r *Registry) onBucket(t *testing.T, s *ObjectStore, beside *Registry) {
	t.Helper()
	binary, err := blobBinary()
	if err != nil {
		t.Fatal(err)
	}
	before := r.run
	r.run = func(cmd *exec.Cmd) {
		if before != nil {
			before(cmd)
		}
		cmd.Path = binary
		cmd.Env = append(cmd.Env, "AWS_ACCESS_KEY_ID="+storeKey, "AWS_SECRET_ACCESS_KEY="+storeSecret,
			"NO_PROXY="+strings.TrimPrefix(s.proxy.URL, "http://"))
	}
	r.onSocket()
	r.options = append(r.options, "filesystem bucket blob {\nurl "+s.URL+"\n}")
	if beside != nil {
		r.options = append(r.options, `storage file_system "`+beside.path("data", "caddy")+`"`)
		r.CA = beside.CA
	}
}

// onBucket serves the bucket as a registry.
func onBucket(address string, options ...string) Site {
	return Site{Address: address, Root: "/", Options: append([]string{"fs bucket"}, options...)}
}

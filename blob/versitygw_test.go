package blob

import (
	"context"
	"errors"
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

// An s3Server is versitygw over a folder. Each folder in it is a bucket.
type s3Server struct {
	folder, metadata, socket string
	missing                  error // why there is no server
}

var gateway s3Server

func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	folder, err := os.MkdirTemp("", "blob")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	ctx, cancel := context.WithCancel(context.Background())
	stopped := gateway.start(ctx, folder)
	defer func() { cancel(); stopped() }()
	return m.Run()
}

// start runs the server until the context ends.
func (s *s3Server) start(ctx context.Context, folder string) (stopped func()) {
	credentials := filepath.Join(folder, "credentials")
	err := os.WriteFile(credentials, []byte(`[default]
aws_access_key_id = reader
aws_secret_access_key = right-secret
[wrong]
aws_access_key_id = reader
aws_secret_access_key = wrong-secret
[unknown]
aws_access_key_id = stranger
aws_secret_access_key = wrong-secret
`), 0o600)
	if err != nil {
		panic(err)
	}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") {
			os.Unsetenv(name)
		}
	}
	os.Setenv("AWS_SHARED_CREDENTIALS_FILE", credentials)
	os.Setenv("AWS_CONFIG_FILE", filepath.Join(folder, "none"))

	path, err := goTool("versitygw")
	if err != nil {
		s.missing = err
		return func() {}
	}
	s.folder, s.metadata, s.socket = filepath.Join(folder, "buckets"), filepath.Join(folder, "metadata"), filepath.Join(folder, "s3.sock")
	if err := os.Mkdir(s.folder, 0o700); err != nil {
		panic(err)
	}
	server := exec.CommandContext(ctx, path, "--quiet", "--keep-alive", "--port", s.socket, "posix", "--sidecar", s.metadata, s.folder)
	if err := os.Mkdir(s.metadata, 0o700); err != nil {
		panic(err)
	}
	server.Env = append(os.Environ(), "ROOT_ACCESS_KEY=reader", "ROOT_SECRET_KEY=right-secret")
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		s.missing = err
		return func() {}
	}
	return func() { server.Wait() }
}

// dial waits for the server to listen.
func (s *s3Server) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	var d net.Dialer
	for {
		c, err := d.DialContext(ctx, "unix", s.socket)
		if err == nil || ctx.Err() != nil {
			return c, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// A store is a bucket of the S3 server, behind a proxy that counts requests and may
// answer them itself.
type store struct {
	folder   string // of the bucket
	metadata string // of its objects, a folder for each
	url      string

	mutex  sync.Mutex
	counts map[string]int
	answer func(w http.ResponseWriter, r *http.Request, pass http.Handler) bool
}

// newStore returns an empty bucket.
func newStore(t *testing.T) *store {
	t.Helper()
	if gateway.missing != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(gateway.missing)
		}
		t.Skip(gateway.missing)
	}
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	name = name[max(0, len(name)-40):]
	name = strings.Trim(name, "-")
	s := &store{folder: filepath.Join(gateway.folder, name), metadata: filepath.Join(gateway.metadata, name), counts: make(map[string]int)}
	if err := os.Mkdir(s.folder, 0o700); err != nil {
		t.Fatal(err)
	}
	pass := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", r.In.Host // the signature is for this host
		},
		Transport:     &http.Transport{DialContext: gateway.dial, DisableCompression: true},
		FlushInterval: -1,
	}
	t.Cleanup(pass.Transport.(*http.Transport).CloseIdleConnections)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mutex.Lock()
		s.counts[requestKind(r)]++
		answer := s.answer
		s.mutex.Unlock()
		if answer == nil || !answer(w, r, pass) {
			pass.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(proxy.Close)
	s.url = fmt.Sprintf("s3://%s?region=us-east-1&use_path_style=true&hostname_immutable=true&endpoint=%s", filepath.Base(s.folder), url.QueryEscape(proxy.URL))
	return s
}

func requestKind(r *http.Request) string {
	if r.URL.Query().Has("list-type") {
		return "list"
	}
	return strings.ToLower(r.Method)
}

// requests returns the number of requests of each kind, and resets the counts.
func (s *store) requests() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	text := strings.TrimPrefix(fmt.Sprint(s.counts), "map")
	s.counts = make(map[string]int)
	return text
}

// intercept lets a function answer requests. If it returns false, the store answers.
func (s *store) intercept(answer func(w http.ResponseWriter, r *http.Request, pass http.Handler) bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.answer = answer
}

// fail answers every request with an error of S3.
func (s *store) fail(status int, code string) {
	s.intercept(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		io.Copy(io.Discard, r.Body)
		refuse(w, status, code)
		return true
	})
}

// refuse answers with an error of S3.
func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>as told by the test</Message></Error>`, code)
}

// goTool builds the tool of the module in dir and returns the executable, which stays in
// Go's build cache.
func goTool(dir string) (string, error) {
	for range 2 {
		build := exec.Command("go", "run", "-exec", "echo", "tool") // go tool would ignore the GOFLAGS of .ci/run
		build.Dir = dir
		out, err := build.Output()
		if err != nil {
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				err = fmt.Errorf("%w\n%s", err, exit.Stderr)
			}
			return "", err
		}
		// If go has linked the executable, this is a copy that it has removed again.
		path := strings.TrimSpace(string(out))
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return path, err
		}
	}
	return "", fmt.Errorf("go keeps no executable of the tool in %s", dir)
}

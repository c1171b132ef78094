package handlers_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers/mapping"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// The trees of these tests have one package, which is longer than all buffers between
// the server and its client. So its end is not read before the client reads.
const (
	slowArchive = "modules/acme/vpc/aws/1.0.0.zip"
	slowFolder  = "modules/acme/vpc/aws/1.0.0"
	slowSize    = 8 << 20
	slowBuffer  = 64 << 10
)

var slowContent = func() string {
	content := make([]byte, slowSize)
	rand.NewChaCha8([32]byte{1}).Read(content)
	return string(content)
}()

// slowZip is slowContent as a module's archive. It is packed once.
var slowZip = sync.OnceValue(func() string { return indextest.Zip("main.tf", "# a module", "data", slowContent) })

// A slowTransport connects to a server with little data in transit.
type slowTransport struct {
	name     string
	tls, two bool
}

var slowTransports = []slowTransport{
	{"HTTP 1.1", false, false},
	{"HTTP 1.1 with TLS", true, false},
	{"HTTP 2", true, true},
}

// serve starts a server and returns its URL and its client.
func (s slowTransport) serve(t *testing.T, h http.Handler) (string, *http.Client) {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = nil
	server.EnableHTTP2 = s.two
	server.Listener = smallBuffers{server.Listener}
	if s.tls {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	client := server.Client()
	client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(slowBuffer)
		}
		return conn, err
	}
	return server.URL, client
}

// smallBuffers are connections with little memory in the kernel. They stay
// *net.TCPConn, through which net/http sends files.
type smallBuffers struct{ net.Listener }

func (l smallBuffers) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		err = conn.(*net.TCPConn).SetWriteBuffer(slowBuffer)
	}
	return conn, err
}

// onDisk offers a tree on the local disk as Caddy does.
func onDisk(t *testing.T, root string) *handlers.Registry {
	t.Helper()
	return registry(scanWith(t, index.Options{Open: func() (tree.Tree, error) { return source.Directories{Root: root}.Open() }, Signer: newKey(t)}))
}

// rewrite writes other bytes to a file without a new inode.
func rewrite(t *testing.T, file string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(make([]byte, info.Size())); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// A file that is rewritten in place while a client downloads it never arrives whole,
// over any protocol, and even if its name changes.
func TestFileThatChangesDuringItsDownload(t *testing.T) {
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		rule   string
		ranges string
		folder bool // it is packed on request
		change func(t *testing.T, file string)
		whole  bool
	}{
		{rule: "nothing happens", change: func(*testing.T, string) {}, whole: true},
		{rule: "nothing happens to a range", ranges: "bytes=1000-", change: func(*testing.T, string) {}, whole: true},
		{rule: "nothing happens to a folder", folder: true, change: func(*testing.T, string) {}, whole: true},
		{rule: "rewritten", change: rewrite},
		{rule: "rewritten, a range", ranges: "bytes=1000-", change: rewrite},
		{rule: "rewritten, two ranges", ranges: "bytes=0-5000000,6000000-7000000", change: rewrite},
		{rule: "rewritten, in a folder", folder: true, change: rewrite},
		{rule: "rewritten, a range of a folder", folder: true, ranges: "bytes=1000-", change: rewrite},
		{rule: "rewritten and given its old time", change: func(t *testing.T, file string) {
			if runtime.GOOS == "windows" {
				t.Skip("there is no time of change")
			}
			info, err := os.Stat(file)
			must(t, err)
			rewrite(t, file)
			must(t, os.Chtimes(file, info.ModTime(), info.ModTime()))
		}},
		{rule: "cut off", change: func(t *testing.T, file string) { must(t, os.Truncate(file, 100)) }},
		{rule: "removed", whole: true, change: func(t *testing.T, file string) {
			if runtime.GOOS == "windows" {
				t.Skip("an open file cannot be removed")
			}
			must(t, os.Remove(file))
		}},
		{rule: "replaced", whole: true, change: func(t *testing.T, file string) {
			if runtime.GOOS == "windows" {
				t.Skip("an open file cannot be replaced")
			}
			must(t, os.WriteFile(file+".tmp", []byte("another"), 0o644))
			must(t, os.Rename(file+".tmp", file))
		}},
		{rule: "given other permissions", whole: true, change: func(t *testing.T, file string) { must(t, os.Chmod(file, 0o444)) }},
	} {
		for _, transport := range slowTransports {
			t.Run(test.rule+", "+transport.name, func(t *testing.T) {
				root := t.TempDir()
				files := indextest.OnDisk(t, root)
				path, name := "/v1/modules/acme/vpc/aws/1.0.0/archive.zip", slowArchive
				if test.folder {
					path, name = "/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz", slowFolder+"/z" // the last one in the archive
					files.Write(slowFolder+"/main.tf", "# a module").Write(name, slowContent)
				} else {
					files.Write(name, slowZip())
				}
				g := onDisk(t, root)
				answered := make(chan handlers.Exchange, 1)
				g.Answered = func(_ *http.Request, e *handlers.Exchange) { answered <- *e }
				rescanned := false
				g.Changed = func(...string) { rescanned = true }
				ended := make(chan any, 1)
				base, client := transport.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer func() {
						how := recover()
						if ended <- how; how != nil {
							panic(how)
						}
					}()
					g.ServeHTTP(w, r)
				}))

				r, err := http.NewRequest(http.MethodGet, base+path, nil)
				must(t, err)
				if test.ranges != "" {
					r.Header.Set("Range", test.ranges)
				}
				response, err := client.Do(r)
				must(t, err)
				defer response.Body.Close()
				first := make([]byte, 100)
				_, err = io.ReadFull(response.Body, first)
				must(t, err)
				test.change(t, filepath.Join(root, filepath.FromSlash(name)))
				rest, err := io.Copy(io.Discard, response.Body)
				if whole := err == nil; whole != test.whole {
					t.Fatalf("the client has got %d of %d bytes, error %v", int64(len(first))+rest, response.ContentLength, err)
				}
				if how := <-ended; test.whole && how != nil || !test.whole && how != http.ErrAbortHandler {
					t.Errorf("the handler ended with %v", how)
				}
				e := <-answered
				if e.Kind != handlers.KindModuleArchive || e.Version != "1.0.0" || e.Status != response.StatusCode || e.Bytes != response.ContentLength {
					t.Errorf("reported as %+v", e)
				}
				if rescanned == test.whole {
					t.Errorf("a scan follows: %t", rescanned)
				}
			})
		}
	}
}

// A module whose bytes are other ones than were verified never arrives whole, although its size and times
// are the same.
func TestModuleThatChangesUnseen(t *testing.T) {
	for _, size := range []int{100, 2 << 20} {
		files := indextest.New(t)
		write := func(text string) {
			files.Write(slowArchive, indextest.Zip("main.tf", text, "data", slowContent[:size]))
		}
		write("# good")
		g := registry(scan(t, files))
		var log bytes.Buffer
		g.Logger = slog.New(slog.NewTextHandler(&log, nil))
		g.Changed = func(...string) { t.Error("a scan is requested, which finds the file as it was") }
		header := make(http.Header)
		get := func(method string) (w *httptest.ResponseRecorder, brokenOff bool) {
			defer func() { brokenOff = recover() == http.ErrAbortHandler }()
			w = httptest.NewRecorder()
			r := httptest.NewRequest(method, home+"/v1/modules/acme/vpc/aws/1.0.0/archive.zip", nil)
			r.Header = header.Clone()
			g.ServeHTTP(w, r)
			return w, false
		}
		if w, brokenOff := get(http.MethodGet); brokenOff || w.Code != http.StatusOK || w.Body.Len() < size {
			t.Errorf("%d bytes: it is answered with %d and %d bytes, broken off: %t", size, w.Code, w.Body.Len(), brokenOff)
		}
		write("# evil")
		if w, brokenOff := get(http.MethodGet); !brokenOff {
			t.Errorf("%d bytes: other bytes are answered with %d and %d bytes", size, w.Code, w.Body.Len())
		}
		header.Set("Range", "bytes=10-")
		header.Set("If-Range", `"of another file"`)
		if w, brokenOff := get(http.MethodGet); !brokenOff {
			t.Errorf("%d bytes: other bytes are answered to If-Range with %d and %d bytes", size, w.Code, w.Body.Len())
		}
		header.Del("If-Range")
		if w, brokenOff := get(http.MethodGet); brokenOff || w.Code != http.StatusPartialContent {
			t.Errorf("%d bytes: a part is answered with %d, broken off: %t", size, w.Code, brokenOff)
		}
		header.Set("Range", "bytes=0-")
		if w, brokenOff := get(http.MethodGet); !brokenOff {
			t.Errorf("%d bytes: other bytes are answered as one range with %d and %d bytes", size, w.Code, w.Body.Len())
		}
		header.Del("Range")
		if w, brokenOff := get(http.MethodHead); brokenOff || w.Code != http.StatusOK {
			t.Errorf("%d bytes: a HEAD is answered with %d, broken off: %t", size, w.Code, brokenOff)
		}
		if said := log.String(); !strings.Contains(said, "file=acme/vpc/aws/1.0.0.zip") || !strings.Contains(said, "touch") {
			t.Errorf("the log says %s", said)
		}
	}
}

// A sender is a writer of HTTP/1.1 that sends files by sendfile.
type sender struct {
	*httptest.ResponseRecorder
	from []io.Reader
}

func (s *sender) ReadFrom(r io.Reader) (int64, error) {
	if limited, ok := r.(*io.LimitedReader); ok {
		s.from = append(s.from, limited.R)
	}
	return io.Copy(s.ResponseRecorder, r)
}

// Without TLS, net/http sends an *os.File without copying it, and no wrapper around the
// file may prevent that.
func TestFilesAreSentByTheKernel(t *testing.T) {
	root := t.TempDir()
	files := indextest.OnDisk(t, root)
	content := indextest.Zip("main.tf", "# a module", "data", slowContent[:1<<20])
	files.Write(slowArchive, content)
	g := onDisk(t, root)
	for _, ranges := range []string{"", "bytes=1000-900000"} {
		r := httptest.NewRequest(http.MethodGet, home+"/v1/modules/acme/vpc/aws/1.0.0/archive.zip", nil)
		r.TLS = nil
		want := content
		if ranges != "" {
			r.Header.Set("Range", ranges)
			want = content[1000:900001]
		}
		w := &sender{ResponseRecorder: httptest.NewRecorder()}
		g.ServeHTTP(w, r)
		if len(w.from) != 1 {
			t.Fatalf("%q: sent from %v", ranges, w.from)
		}
		if _, ok := w.from[0].(*os.File); !ok {
			t.Errorf("%q: sent from a %T", ranges, w.from[0])
		}
		if w.Body.String() != want {
			t.Errorf("%q: the bytes differ", ranges)
		}
	}
}

// With TLS, HTTP/1.1 would read the file into a buffer for each download.
func TestFilesAreMappedForTLS(t *testing.T) {
	root := t.TempDir()
	content := indextest.Zip("main.tf", "# a module", "data", slowContent[:1<<20])
	indextest.OnDisk(t, root).Write(slowArchive, content)
	f, err := os.Open(filepath.Join(root, filepath.FromSlash(slowArchive)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if sent, err := new(mapping.Files).Send(io.Discard, f, int64(len(content))); err != nil || sent == 0 {
		if os.Getenv("CI") != "" {
			t.Fatalf("files are not mapped in CI: %v", err)
		}
		t.Skip("files of this system or file system are not mapped")
	}
	w := &sender{ResponseRecorder: httptest.NewRecorder()}
	onDisk(t, root).ServeHTTP(w, httptest.NewRequest(http.MethodGet, home+"/v1/modules/acme/vpc/aws/1.0.0/archive.zip", nil))
	if len(w.from) != 0 {
		t.Errorf("read from %v", w.from)
	}
	if w.Body.String() != content {
		t.Errorf("got %d bytes that differ", w.Body.Len())
	}
}

// If a client leaves, the answer does not count as broken off: the server is told
// nothing.
func TestClientThatLeaves(t *testing.T) {
	root := t.TempDir()
	indextest.OnDisk(t, root).Write(slowArchive, slowZip())
	for _, transport := range slowTransports {
		t.Run(transport.name, func(t *testing.T) {
			g := onDisk(t, root)
			g.Changed = func(...string) { t.Error("a scan follows") }
			ended := make(chan any, 1)
			base, client := transport.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() { ended <- recover() }()
				g.ServeHTTP(w, r)
			}))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/modules/acme/vpc/aws/1.0.0/archive.zip", nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.CopyN(io.Discard, response.Body, 100); err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if panicked := <-ended; panicked != nil {
				t.Errorf("it panicked with %v", panicked)
			}
		})
	}
}

// A failingFile cannot be read from some offset on.
type failingFile struct {
	afero.File
	from, offset int64
}

var errRead = errors.New("input/output error")

func (f *failingFile) Read(p []byte) (int, error) {
	if f.offset >= f.from {
		return 0, errRead
	}
	n, err := f.File.Read(p)
	f.offset += int64(n)
	return n, err
}

// A failingDisk opens failing files once it fails.
type failingDisk struct {
	afero.Fs
	fails bool
}

func (d *failingDisk) Open(name string) (afero.File, error) {
	f, err := d.Fs.Open(name)
	if err == nil && d.fails {
		f = &failingFile{File: f, from: 100_000}
	}
	return f, err
}

// If a file cannot be read to its end, the answer is broken off, too, and the operator
// learns the reason.
func TestFileThatCannotBeReadToItsEnd(t *testing.T) {
	disk := &failingDisk{Fs: afero.NewMemMapFs()}
	files := indextest.On(t, disk)
	files.Write(slowArchive, indextest.Zip("main.tf", "# a module", "data", slowContent[:1<<20]))
	g := registry(scan(t, files))
	disk.fails = true
	for _, proto := range []int{1, 2} {
		var log bytes.Buffer
		g.Logger = slog.New(slog.NewTextHandler(&log, nil))
		r := httptest.NewRequest(http.MethodGet, home+"/v1/modules/acme/vpc/aws/1.0.0/archive.zip", nil)
		r.ProtoMajor = proto
		func() {
			defer func() {
				if how := recover(); how != http.ErrAbortHandler {
					t.Errorf("HTTP/%d: the handler ended with %v", proto, how)
				}
			}()
			g.ServeHTTP(httptest.NewRecorder(), r)
		}()
		if !strings.Contains(log.String(), errRead.Error()) || !strings.Contains(log.String(), "level=WARN") {
			t.Errorf("HTTP/%d: the log is %q", proto, log.String())
		}
	}
}

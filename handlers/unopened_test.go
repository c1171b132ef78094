package handlers_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// counted counts the files of a file system that are opened.
type counted struct {
	afero.Fs
	opened atomic.Int64
}

func (c *counted) Open(name string) (afero.File, error) {
	c.opened.Add(1)
	return c.Fs.Open(name)
}

func (c *counted) OpenFile(name string, flag int, perm os.FileMode) (afero.File, error) {
	c.opened.Add(1)
	return c.Fs.OpenFile(name, flag, perm)
}

// What needs no byte of a file opens none, and of a module folder lays nothing out.
func TestNothingIsOpenedForNothing(t *testing.T) {
	tree := indextest.New(t)
	tree.Provider("acme/demo", "1.0.0", "linux_amd64")
	tree.Write("modules/acme/vpc/aws/1.0.0.zip", indextest.Zip("main.tf", "# a module"))
	for _, name := range []string{"main.tf", "variables.tf", "outputs.tf", "modules/sub/main.tf"} {
		tree.Write("modules/acme/vpc/aws/1.1.0/"+name, "# "+name)
	}
	files := &counted{Fs: tree.Fs}
	g := registry(scan(t, indextest.On(t, files)))
	for _, path := range []string{
		"/v1/mirror/-/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip",
		"/v1/modules/acme/vpc/aws/1.0.0/archive.zip",
		"/v1/modules/acme/vpc/aws/1.1.0/archive.tar.gz",
	} {
		whole := do(g, http.MethodGet, path)
		etag, size := whole.Header().Get("Etag"), whole.Body.Len()
		for _, test := range []struct {
			rule, method string
			headers      []string
			want         int
			length       string
		}{
			{"HEAD", http.MethodHead, nil, 200, strconv.Itoa(size)},
			{"HEAD of a range", http.MethodHead, []string{"Range: bytes=2-5"}, 206, "4"},
			{"HEAD of a range of this file", http.MethodHead, []string{"Range: bytes=2-5", "If-Range: " + etag}, 206, "4"},
			{"HEAD of a range of another file", http.MethodHead, []string{"Range: bytes=2-5", `If-Range: "other"`}, 200, strconv.Itoa(size)},
			{"HEAD of no range", http.MethodHead, []string{"Range: bytes=99999999-"}, 416, ""},
			{"HEAD of another file", http.MethodHead, []string{`If-Match: "other"`}, 412, ""},
			{"HEAD of this file", http.MethodHead, []string{"If-Match: " + etag}, 200, strconv.Itoa(size)},
			{"HEAD of what the client has", http.MethodHead, []string{"If-None-Match: " + etag}, 304, ""},
			{"GET of what the client has", http.MethodGet, []string{"If-None-Match: " + etag}, 304, ""},
			{"the same, weakly", http.MethodGet, []string{"If-None-Match: W/" + etag}, 304, ""},
			{"GET of anything the client has not", http.MethodGet, []string{"If-None-Match: *"}, 304, ""},
		} {
			t.Run(test.rule+" "+path, func(t *testing.T) {
				before := files.opened.Load()
				w := do(g, test.method, path, test.headers...)
				if w.Code != test.want || test.length != "" && w.Header().Get("Content-Length") != test.length {
					t.Errorf("got %d with %v, want %d of %s bytes", w.Code, w.Header(), test.want, test.length)
				}
				if w.Code < 400 && w.Header().Get("Etag") != etag {
					t.Errorf("the ETag is %s, want %s", w.Header().Get("Etag"), etag)
				}
				if n := files.opened.Load() - before; n != 0 {
					t.Errorf("%d files were opened", n)
				}
			})
		}
		t.Run("what has conditions that clients do not send is as it was "+path, func(t *testing.T) {
			if w := do(g, http.MethodGet, path, "If-None-Match: "+etag, `If-Match: "other"`); w.Code != http.StatusPreconditionFailed {
				t.Errorf("If-Match comes first: got %d", w.Code)
			}
			if w := do(g, http.MethodGet, path, `If-None-Match: broken, `+etag); w.Code != http.StatusOK || w.Body.Len() != size {
				t.Errorf("no list of tags: got %d with %d bytes", w.Code, w.Body.Len())
			}
		})
	}
}

// do asks a registry with headers given as "Name: value".
func do(g *handlers.Registry, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, home+path, nil)
	for _, h := range headers {
		if name, value, ok := strings.Cut(h, ": "); ok {
			r.Header.Add(name, value)
		}
	}
	return serveRecorded(g, r)
}

// Browsers are told of every answer to take it for what it says it is.
func TestNoAnswerIsSniffed(t *testing.T) {
	tree, paths := everything(t)
	snapshot := scan(t, tree)
	plain := registry(snapshot)
	private := privately(t, registry(snapshot), "allow reader read *")
	before := &handlers.Registry{Snapshot: registry(nil).Snapshot}
	paths = append(paths, "/v1/modules/acme/vpc/aws/download", "/v1/mirror/a/b", "/v1/providers/%ff/b/versions")
	statuses := make(map[int]bool)
	for _, g := range []*handlers.Registry{plain, private, before} {
		for _, path := range paths {
			for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
				for _, headers := range [][]string{nil, {"If-None-Match: *"}, {"Range: bytes=0-1"}, {"Range: bytes=99999999-"}, {`If-Match: "x"`}, {reader}, {reader, "User-Agent: OpenTofu/1.12.6"}} {
					w := do(g, method, path, headers...)
					statuses[w.Code] = true
					if got := w.Header()["X-Content-Type-Options"]; len(got) != 1 || got[0] != "nosniff" {
						t.Errorf("%s %s with %q: %d has %q", method, path, headers, w.Code, got)
					}
				}
			}
		}
	}
	for _, status := range []int{200, 204, 206, 302, 304, 400, 401, 404, 405, 412, 416, 503} {
		if !statuses[status] {
			t.Errorf("no answer was %d", status)
		}
	}
}

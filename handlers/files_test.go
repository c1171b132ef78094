package handlers_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
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

func TestRanges(t *testing.T) {
	files, _ := everything(t)
	snapshot := scan(t, files)
	s := serve(t, registry(snapshot))
	for _, path := range []string{
		"/v1/mirror/" + ownHost + "/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip",
		"/v1/mirror/" + ownHost + "/acme/demo/terraform-provider-demo_1.0.0_SHA256SUMS.sig",
		"/v1/modules/acme/vpc/aws/1.2.0/archive.zip",
		"/v1/modules/acme/vpc/aws/1.10.0/archive.tar.gz", // packed from a folder on request
	} {
		whole := s.get(path)
		size, etag := len(whole.body), whole.Header.Get("Etag")
		s.rule("the ETag of an archive is its sha256: "+path, func(t *testing.T, s *site) {
			if want := fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(whole.body))); etag != want && !strings.HasSuffix(path, ".sig") {
				t.Errorf("got %s, want %s", etag, want)
			}
			if got := whole.Header.Get("Accept-Ranges"); got != "bytes" {
				t.Errorf("Accept-Ranges is %q", got)
			}
		})
		tests := []struct {
			rule       string
			headers    []string
			from, to   int
			wantStatus int
		}{
			{"a range is 206", []string{"Range: bytes=5-24"}, 5, 25, 206},
			{"119: a range of all bytes is 206", []string{"Range: bytes=0-"}, 0, size, 206},
			{"a range to the end is 206", []string{"Range: bytes=7-"}, 7, size, 206},
			{"a range of the last bytes is 206", []string{"Range: bytes=-9"}, size - 9, size, 206},
			{"a range beyond the end is cut", []string{"Range: bytes=3-999999999"}, 3, size, 206},
			{"a range of this file, if it is this, is 206", []string{"Range: bytes=1-2", "If-Range: " + etag}, 1, 3, 206},
			{"a range of another file is all of this one", []string{"Range: bytes=1-2", `If-Range: "another"`}, 0, size, 200},
			{"a weak If-Range is no guarantee: all of it", []string{"Range: bytes=1-2", "If-Range: W/" + etag}, 0, size, 200},
			{"a date as If-Range is no guarantee: all of it", []string{"Range: bytes=1-2", "If-Range: Fri, 02 Jan 2026 03:04:05 GMT"}, 0, size, 200},
			{"a condition comes before a range", []string{"Range: bytes=1-2", "If-None-Match: " + etag}, 0, 0, 304},
			{"If-Match of another file is 412", []string{`If-Match: "another"`}, 0, 0, 412},
			{"If-Modified-Since is ignored, since times do not identify files", []string{"If-Modified-Since: Fri, 02 Jan 2099 03:04:05 GMT"}, 0, size, 200},
		}
		for _, test := range tests {
			s.rule(test.rule+": "+path, func(t *testing.T, s *site) {
				a := s.get(path, test.headers...)
				if a.StatusCode != test.wantStatus || a.body != whole.body[test.from:test.to] {
					t.Errorf("got %d with %d bytes, want %d with %d", a.StatusCode, len(a.body), test.wantStatus, test.to-test.from)
				}
				if want := fmt.Sprintf("bytes %d-%d/%d", test.from, test.to-1, size); a.StatusCode == 206 && a.Header.Get("Content-Range") != want {
					t.Errorf("Content-Range is %q, want %q", a.Header.Get("Content-Range"), want)
				}
			})
		}
		s.rule("Answered is told the status and size: "+path, func(t *testing.T, s *site) {
			var told handlers.Exchange
			g := registry(snapshot)
			g.Answered = func(_ *http.Request, e *handlers.Exchange) { told = *e }
			for _, header := range []string{"", "Range: bytes=5-24", "Range: bytes=0-1,9-12", "Range: bytes=999999-", "Range: none", "If-None-Match: *", `If-Match: "another"`} {
				w := do(g, http.MethodGet, path, header)
				if told.Status != w.Code || w.Code < 400 && told.Bytes != int64(w.Body.Len()) {
					t.Errorf("%s: got %d with %d bytes, reported as %d with %d", header, w.Code, w.Body.Len(), told.Status, told.Bytes)
				}
			}
		})
		s.rule("two ranges are two parts: "+path, func(t *testing.T, s *site) {
			a := s.get(path, "Range: bytes=0-1,9-12")
			_, parameters, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
			if err != nil || a.StatusCode != http.StatusPartialContent {
				t.Fatalf("got %d with %v", a.StatusCode, a.Header)
			}
			parts := multipart.NewReader(strings.NewReader(a.body), parameters["boundary"])
			for _, want := range []string{whole.body[0:2], whole.body[9:13]} {
				p, err := parts.NextPart()
				if err != nil {
					t.Fatal(err)
				}
				if got, err := io.ReadAll(p); err != nil || string(got) != want {
					t.Errorf("got %q (%v), want %q", got, err, want)
				}
			}
		})
		s.rule("a range past the end is 416 and not cached: "+path, func(t *testing.T, s *site) {
			a := s.get(path, "Range: bytes="+strconv.Itoa(size)+"-")
			if a.StatusCode != http.StatusRequestedRangeNotSatisfiable || a.Header.Get("Content-Range") != fmt.Sprintf("bytes */%d", size) {
				t.Errorf("got %d with %v", a.StatusCode, a.Header)
			}
			if got := a.Header.Get("Cache-Control"); strings.Contains(got, "immutable") {
				t.Errorf("Cache-Control is %q", got)
			}
		})
	}
}

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

// A request that needs no byte of a file does not open it.
func TestFilesAreOpenedOnlyWhenNeeded(t *testing.T) {
	folders := indextest.New(t)
	folders.Provider("acme/demo", "1.0.0", "linux_amd64")
	folders.Write("modules/acme/vpc/aws/1.0.0.zip", indextest.Zip("main.tf", "# a module"))
	for _, name := range []string{"main.tf", "variables.tf", "outputs.tf", "modules/sub/main.tf"} {
		folders.Write("modules/acme/vpc/aws/1.1.0/"+name, "# "+name)
	}
	files := &counted{Fs: folders.Fs}
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
			{"HEAD of a range past the end", http.MethodHead, []string{"Range: bytes=99999999-"}, 416, ""},
			{"HEAD of another file", http.MethodHead, []string{`If-Match: "other"`}, 412, ""},
			{"HEAD of this file", http.MethodHead, []string{"If-Match: " + etag}, 200, strconv.Itoa(size)},
			{"HEAD of a cached file", http.MethodHead, []string{"If-None-Match: " + etag}, 304, ""},
			{"GET of a cached file", http.MethodGet, []string{"If-None-Match: " + etag}, 304, ""},
			{"the same, weakly", http.MethodGet, []string{"If-None-Match: W/" + etag}, 304, ""},
			{"GET if there is no such file", http.MethodGet, []string{"If-None-Match: *"}, 304, ""},
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
		t.Run("other conditions are left to net/http "+path, func(t *testing.T) {
			if w := do(g, http.MethodGet, path, "If-None-Match: "+etag, `If-Match: "other"`); w.Code != http.StatusPreconditionFailed {
				t.Errorf("If-Match comes first: got %d", w.Code)
			}
			if w := do(g, http.MethodGet, path, `If-None-Match: broken, `+etag); w.Code != http.StatusOK || w.Body.Len() != size {
				t.Errorf("an invalid list of tags: got %d with %d bytes", w.Code, w.Body.Len())
			}
		})
	}
}

// do sends a request to a registry with headers.
func do(g *handlers.Registry, method, path string, headers ...string) *httptest.ResponseRecorder {
	return serveRecorded(g, withHeaders(httptest.NewRequest(method, home+path, nil), headers...))
}

// Every answer tells browsers not to guess another media type.
func TestEveryAnswerHasNosniff(t *testing.T) {
	files, paths := everything(t)
	snapshot := scan(t, files)
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

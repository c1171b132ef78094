package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// bucketWith returns a bucket with the files of a tree.
func bucketWith(t *testing.T, files *indextest.Tree) *treetest.Bucket {
	t.Helper()
	b := new(treetest.Bucket)
	err := afero.Walk(files.Fs, ".", func(name string, info fs.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			b.Put(name, files.Read(name), info.ModTime())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// With redirect the store serves archives, and nothing else.
func TestRedirectsToTheStore(t *testing.T) {
	files, _ := everything(t)
	for minor := range 6 {
		files.Write(fmt.Sprintf("modules/acme/encoded/aws/1.%d.0.tar.gz", minor), indextest.TarGz("main.tf", "# a module"))
	}
	b := bucketWith(t, files)
	o := options(t, files)
	o.Listed = source.Directories{Root: "."}.Listed(b)
	g := registry(scanWith(t, o))
	g.Redirect = 10 * time.Minute
	changes := 0
	g.Changed = func(...string) { changes++ }
	s := serve(t, g)

	const (
		zip     = "providers/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip"
		mirror  = "/v1/mirror/" + ownHost + "/acme/demo/"
		zipURL  = mirror + "terraform-provider-demo_1.0.0_linux_amd64.zip"
		archive = "/v1/modules/acme/vpc/aws/1.2.0/archive.zip"
		folder  = "/v1/modules/acme/vpc/aws/1.10.0/archive.tar.gz"
	)
	etag := s.do(http.MethodHead, absolute(zipURL)).Header.Get("Etag")
	for _, test := range []struct {
		rule, method, path string
		headers            []string
		status             int
	}{
		{"a package is served by the store", "GET", zipURL, nil, 307},
		{"a range of it too: the client asks the store for it", "GET", zipURL, []string{"Range: bytes=5-24"}, 307},
		{"so is a module's archive", "GET", archive, nil, 307},
		{"HEAD is answered here: the URL is signed for GET", "HEAD", zipURL, nil, 200},
		{"a client that has it is told so here", "GET", zipURL, []string{"If-None-Match: " + etag}, 304},
		{"a condition that the store does not know is checked here", "GET", zipURL, []string{`If-Match: "another"`}, 412},
		{"a module's folder is packed here", "GET", folder, nil, 200},
		{"documents come from here", "GET", mirror + "1.0.0.json", nil, 200},
		{"so does SHA256SUMS", "GET", mirror + "terraform-provider-demo_1.0.0_SHA256SUMS", nil, 200},
		{"so does its signature", "GET", mirror + "terraform-provider-demo_1.0.0_SHA256SUMS.sig", nil, 200},
	} {
		s.rule(test.rule, func(t *testing.T, s *site) {
			b.Requests()
			answer := s.do(test.method, absolute(test.path), test.headers...)
			if answer.StatusCode != test.status {
				t.Fatalf("got %d %s", answer.StatusCode, answer.body)
			}
			if test.status != 307 {
				if asked := b.Requests(); test.path == zipURL && len(asked) > 0 && test.status != 412 {
					t.Errorf("the store is asked %v", asked)
				}
				return
			}
			location := answer.Header.Get("Location")
			if !strings.HasPrefix(location, "https://store.example/") || !strings.HasSuffix(location, "?expires=10m0s") {
				t.Errorf("Location is %s", location)
			}
			if got := answer.Header.Get("Cache-Control"); got != "no-store" {
				t.Errorf("Cache-Control is %s", got)
			}
		})
	}
	s.rule("the store is asked whether a file is unchanged once a minute", func(t *testing.T, s *site) {
		b.Requests()
		for range 10 {
			s.get(zipURL)
		}
		if asked := b.Requests(); asked["head"]+asked["get"] > 0 {
			t.Errorf("it is asked %v", asked)
		}
	})
	s.rule("94 what the store would send with an encoding comes from here", func(t *testing.T, s *site) {
		const name, url = "modules/acme/encoded/aws/%s.tar.gz", "/v1/modules/acme/encoded/aws/%s/archive.tar.gz"
		b.Encodings = make(map[string]string)
		for version, test := range map[string]struct {
			encoding string
			status   int
		}{
			"1.0.0": {"gzip", 200},
			"1.1.0": {"aws-chunked, GZIP", 200},
			"1.2.0": {"zstd", 200},
			"1.3.0": {"", 307},
			"1.4.0": {"identity", 307},
			"1.5.0": {"aws-chunked", 307}, // some stores keep what says how the file was sent to them
		} {
			path := fmt.Sprintf(url, version)
			b.Encodings[fmt.Sprintf(name, version)] = test.encoding
			answer := s.get(path)
			if answer.StatusCode != test.status || answer.Header.Get("Content-Encoding") != "" {
				t.Fatalf("%q: got %d %v", test.encoding, answer.StatusCode, answer.Header)
			}
			b.Requests()
			again := s.get(path, "Range: bytes=2-3")
			if asked := b.Requests(); asked["head"] > 0 {
				t.Errorf("%q: the store is asked each time: %v", test.encoding, asked)
			}
			if test.status == 307 {
				continue
			}
			if answer.body != files.Read(fmt.Sprintf(name, version)) || again.StatusCode != 206 || again.body != answer.body[2:4] {
				t.Errorf("%q: got %d bytes, then %d %q", test.encoding, len(answer.body), again.StatusCode, again.body)
			}
		}
	})
	s.rule("what has been replaced is not redirected to", func(t *testing.T, s *site) {
		other := mirror + "terraform-provider-demo_1.0.0_darwin_arm64.zip"
		name := strings.Replace(zip, "linux_amd64", "darwin_arm64", 1)
		b.Put(name, "something else", time.Now())
		if answer := s.get(other); answer.StatusCode != 503 || answer.Header.Get("Location") != "" || changes == 0 {
			t.Errorf("got %d, Location %s, %d scans", answer.StatusCode, answer.Header.Get("Location"), changes)
		}
	})
	s.rule("a store that cannot be asked is 503", func(t *testing.T, s *site) {
		b.Fail = func(operation, _ string) error {
			if operation == "sign" {
				return errors.New("no credentials")
			}
			return nil
		}
		answer := s.get(zipURL)
		if answer.StatusCode != 503 || answer.Header.Get("Retry-After") == "" || strings.Contains(answer.body, "credentials") {
			t.Errorf("got %d %s", answer.StatusCode, answer.body)
		}
	})
}

func TestADiskIsNotRedirectedTo(t *testing.T) {
	files, _ := everything(t)
	g := registry(scan(t, files))
	g.Redirect = time.Minute
	if answer := serve(t, g).get("/v1/modules/acme/vpc/aws/1.2.0/archive.zip"); answer.StatusCode != 200 {
		t.Errorf("got %d", answer.StatusCode)
	}
}

// misleading is an upstream whose packages have been broken off.
type misleading struct{ failing }

func (misleading) Misled(wire.SHA256) bool { return true }

// A store would continue what a client may have wrong.
func TestABrokenOffPackageIsNotContinuedByTheStore(t *testing.T) {
	files, _ := everything(t)
	o := options(t, files)
	b := bucketWith(t, files)
	o.Listed = source.Directories{Root: "."}.Listed(b)
	g := registry(scanWith(t, o))
	g.Redirect, g.Upstream = time.Minute, misleading{}
	s := serve(t, g)
	const zip = "/v1/mirror/registry.terraform.io/hashicorp/null/terraform-provider-null_3.2.0_linux_amd64.zip"
	for _, test := range []struct {
		rule    string
		headers []string
		status  int
	}{
		{"the whole package", nil, 307},
		{"a range", []string{"Range: bytes=5-24"}, 200},
	} {
		if answer := s.get(zip, test.headers...); answer.StatusCode != test.status {
			t.Errorf("%s: got %d", test.rule, answer.StatusCode)
		}
	}
	const stored = "providers/registry.terraform.io/hashicorp/null/terraform-provider-null_3.2.0_linux_amd64.zip"
	b.Put(stored, files.Read(stored), time.Now())
	scans := 0
	g.Next = func(context.Context, *index.Snapshot, ...index.Selection) *index.Snapshot {
		scans++
		return scanWith(t, o)
	}
	if answer := s.get(zip, "Range: bytes=5-24"); answer.StatusCode != 200 || scans != 1 {
		t.Errorf("a range of a package that was written again: got %d after %d scans", answer.StatusCode, scans)
	}
}

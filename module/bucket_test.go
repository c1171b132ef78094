package module

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

const vpcArchive = "https://registry.example.com/v1/modules/acme/vpc/aws/1.1.0/archive.tar.gz"

// bucketWithVPC returns a bucket with one module.
func bucketWithVPC() (b *treetest.Bucket, content string) {
	content = indextest.TarGz("main.tf", "# a module\n")
	b = new(treetest.Bucket)
	b.Put("modules/acme/vpc/aws/1.1.0.tar.gz", content, time.Now().Add(-time.Hour))
	return b, content
}

// Caddy makes a new value of a file system for each configuration. A reload must not
// list and read the bucket again.
func TestAnIndexOfABucketOutlivesItsConfiguration(t *testing.T) {
	b, _ := bucketWithVPC()
	first := onFileSystem(t, b)
	h := first.mustHandle(Handler{FileSystem: "archive", Root: "/", Rescan: -1, SigningKey: &SigningKey{Off: true}})
	first.mustStart()
	before := snapshot(t, h)

	second := onFileSystem(t, b)
	again := second.mustHandle(Handler{FileSystem: "archive", Root: "/", Rescan: -1, SigningKey: &SigningKey{Off: true}})
	second.mustStart()
	first.cancel()
	if again.source.index.Load() != h.source.index.Load() {
		t.Error("the second configuration has an index of its own")
	}
	if len(before.Report().Offered) != 1 || len(snapshot(t, again).Report().Offered) != 1 {
		t.Errorf("offered are %v, then %v", before.Report().Offered, snapshot(t, again).Report().Offered)
	}
}

// A reload may replace the index while files are on their way. No events tell the new one of
// them.
func TestWhatAnOldRequestPublishesIsOffered(t *testing.T) {
	for _, test := range []struct {
		rule   string
		change func(*Handler)
	}{
		{"after a reload with another rescan", func(h *Handler) { h.Rescan = caddy.Duration(time.Hour) }},
		{"after a reload with other signatures", func(h *Handler) { h.Signatures = RequireSignatures }},
		{"after a reload with the same options", func(*Handler) {}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			b, _ := bucketWithVPC()
			storage, apps := t.TempDir(), map[string]any{"caddy.filesystems": fileSystems(t, b)}
			options, token := publishingHandler(t)
			options.FileSystem, options.Root = "archive", "/"
			old := liveIn(t, storage, apps, options)[0]
			snapshot(t, old)
			test.change(&options)
			live := liveIn(t, storage, apps, options)[0]
			snapshot(t, live)
			if w, _ := put(t, old, "/v1/modules/acme/vpc/aws/1.2.0.tar.gz", token, indextest.TarGz("main.tf", "# another\n")); w.Code != http.StatusCreated {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
			before := live.source.snapshot()
			if len(before.Report().Offered) != 2 {
				t.Errorf("offered are %v", before.Report().Offered)
			}

			b.Put("modules/acme/vpc/aws/1.3.0.tar.gz", indextest.TarGz("main.tf", "# fetched\n"), time.Now().Add(-time.Hour))
			old.source.changed("modules/acme/vpc/aws")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // only a failing test takes as long
			defer cancel()
			for s := before; len(s.Report().Offered) != 3; {
				if s = old.source.next(ctx, s); s == nil {
					t.Fatal("what an old request has fetched is not offered")
				}
			}
			if s := live.source.snapshot(); len(s.Report().Offered) != 3 {
				t.Errorf("offered are %v", s.Report().Offered)
			}
		})
	}
}

// A request may change files after the index of a new configuration has scanned them, and before the old
// configuration goes. Nothing but the old index tells the new one.
func TestWhatIsPublishedDuringAReloadIsOffered(t *testing.T) {
	for _, test := range []struct {
		rule    string
		scanned bool // by the old index
	}{
		{"the old index has scanned it", true},
		{"the old index closes before it has scanned it", false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			b, _ := bucketWithVPC()
			begin := func(rescan time.Duration) (*configuration, *Handler) {
				c := onFileSystem(t, b)
				h := c.mustHandle(Handler{FileSystem: "archive", Root: "/", Rescan: caddy.Duration(rescan), Poll: -1, SigningKey: &SigningKey{Off: true}})
				c.mustStart()
				snapshot(t, h)
				return c, h
			}
			before, old := begin(time.Hour)
			_, live := begin(2 * time.Hour)
			last := live.source.snapshot()

			var hangs atomic.Bool
			hangs.Store(!test.scanned)
			b.Fail = func(string, string) error {
				if hangs.Load() {
					<-before.ctx.Done()
				}
				return nil
			}
			b.Put("modules/acme/vpc/aws/1.2.0.tar.gz", indextest.TarGz("main.tf", "# another\n"), time.Now().Add(-time.Hour))
			was := old.source.snapshot()
			old.source.changed("modules/acme/vpc/aws")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // only a failing test takes as long
			defer cancel()
			if test.scanned && old.source.next(ctx, was) == nil {
				t.Fatal("the old index has not scanned it")
			}
			before.cancel()
			for len(last.Report().Offered) != 2 {
				if last = live.source.next(ctx, last); last == nil {
					t.Fatal("the new index does not offer it")
				}
			}
		})
	}
}

// While the store is down, requests that need no file are answered, downloads are
// refused temporarily, and no file is reported as missing.
func TestABucketThatIsDown(t *testing.T) {
	b, content := bucketWithVPC()
	var down atomic.Bool
	b.Fail = func(string, string) error {
		if down.Load() {
			return errors.New("503 SlowDown")
		}
		return nil
	}
	c := onFileSystem(t, b)
	h := c.mustHandle(Handler{FileSystem: "archive", Root: "/", Rescan: -1, SigningKey: &SigningKey{Off: true}})
	c.mustStart()
	snapshot(t, h)
	down.Store(true)
	for range 2 {
		if w := get(t, h, "https://registry.example.com/v1/modules/acme/vpc/aws/versions"); w.Code != http.StatusOK {
			t.Errorf("versions: %d %s", w.Code, w.Body)
		}
		w := get(t, h, vpcArchive)
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || strings.Contains(w.Body.String(), "SlowDown") {
			t.Errorf("a download: %d %s", w.Code, w.Body)
		}
		if _, err := h.source.index.Load().Rescan(t.Context()); err == nil {
			t.Error("a scan succeeds")
		}
	}
	down.Store(false)
	if w := get(t, h, vpcArchive); w.Code != http.StatusOK || w.Body.String() != content {
		t.Errorf("afterwards: %d, %d bytes", w.Code, w.Body.Len())
	}
}

// Redirects need a store that signs URLs.
func TestRedirectNeedsAStore(t *testing.T) {
	refuses := new(treetest.Bucket)
	refuses.Fail = func(operation, _ string) error { return errors.ErrUnsupported }
	down := new(treetest.Bucket)
	down.Fail = func(string, string) error { return errors.New("no route to host") }
	for _, test := range []struct {
		name    string
		fsys    fs.FS
		handler Handler
		refused string // empty: accepted
	}{
		{"the local disk", new(treetest.Bucket), Handler{Root: t.TempDir()}, "redirect: only a tree on an object store"},
		{"a file system that is none", make(fstest.MapFS), Handler{FileSystem: "archive", Root: "/"}, "redirect: only a tree on an object store"},
		{"a store that cannot sign", refuses, Handler{FileSystem: "archive", Root: "/"}, "redirect: this store, or these credentials, cannot sign"},
		{"a store that is down", down, Handler{FileSystem: "archive", Root: "/"}, ""},
		{"a store", new(treetest.Bucket), Handler{FileSystem: "archive", Root: "/"}, ""},
		{"for too long", new(treetest.Bucket), Handler{FileSystem: "archive", Root: "/", Redirect: caddy.Duration(13 * time.Hour)}, "redirect: 13h0m0s is not between 1s and 12h0m0s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.handler.Redirect = cmp.Or(test.handler.Redirect, caddy.Duration(time.Minute))
			_, err := onFileSystem(t, test.fsys).handle(test.handler)
			if (err == nil) != (test.refused == "") || err != nil && !strings.Contains(err.Error(), test.refused) {
				t.Errorf("got error %v, want %q", err, test.refused)
			}
		})
	}
}

// Options that add files need a writable tree.
func TestOnlyDisksAndBucketsAreWrittenTo(t *testing.T) {
	for _, test := range []struct {
		name    string
		fsys    fs.FS
		handler Handler
		refused string // empty: accepted
	}{
		{"publishing to a bucket", new(treetest.Bucket), Handler{Publish: new(Publish)}, ""},
		{"publishing to another file system", make(fstest.MapFS), Handler{Publish: new(Publish)}, "publish: the file system of fs cannot be written to"},
		{"filling a bucket", new(treetest.Bucket), Handler{Upstreams: mirrored(time.Minute)}, ""},
		{"filling another file system", make(fstest.MapFS), Handler{Upstreams: mirrored(time.Minute)}, "upstream: only a tree on the local disk or in a bucket can be filled"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.handler.FileSystem, test.handler.Root = "archive", "/"
			_, err := onFileSystem(t, test.fsys).handle(test.handler)
			if (err == nil) != (test.refused == "") || err != nil && !strings.Contains(err.Error(), test.refused) {
				t.Errorf("got error %v, want %q", err, test.refused)
			}
		})
	}
}

// Trees in different buckets have separate fillers.
func TestFillersOfBuckets(t *testing.T) {
	one, two := new(treetest.Bucket), new(treetest.Bucket)
	handler := Handler{FileSystem: "archive", Root: "/", Upstreams: mirrored(time.Minute)}
	filler := func(b *treetest.Bucket) any { return onFileSystem(t, b).mustHandle(handler).registry.Upstream }
	if filler(one) == filler(two) {
		t.Error("two buckets have one filler")
	}
	if filler(one) != filler(one) {
		t.Error("one bucket has two fillers")
	}
}

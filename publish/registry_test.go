package publish_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

var (
	demo = address.Address{Namespace: "acme", Name: "demo"}
	vpc  = address.Address{Namespace: "acme", Name: "vpc", System: "aws"}
)

const (
	linuxZip  = "terraform-provider-demo_1.0.0_linux_amd64.zip"
	darwinZip = "terraform-provider-demo_1.0.0_darwin_arm64.zip"
	sums      = "terraform-provider-demo_1.0.0_SHA256SUMS"
	signature = "terraform-provider-demo_1.0.0_SHA256SUMS.sig"
	manifest  = "terraform-provider-demo_1.0.0_manifest.json"
)

// A registry is a tree on the disk or in a bucket, its index, and a publisher into it.
type registry struct {
	*publish.Publisher
	*indextest.Tree
	t      testing.TB
	root   string           // on the disk
	bucket *treetest.Bucket // nil: on the disk
	index  *index.Index
	locks  *locks
	log    *bytes.Buffer
}

// A treeKind selects a tree on the disk or in a bucket.
type treeKind struct{ bucket bool }

// eachTree runs a test over a tree on the disk and over one in a bucket.
func eachTree(t *testing.T, test func(*testing.T, treeKind)) {
	t.Run("disk", func(t *testing.T) { test(t, treeKind{}) })
	t.Run("bucket", func(t *testing.T) { test(t, treeKind{bucket: true}) })
}

// newRegistry starts a registry over an empty tree.
func (k treeKind) newRegistry(t testing.TB, change ...func(*publish.Options)) *registry {
	t.Helper()
	if k.bucket {
		return newRegistryInBucket(t, new(treetest.Bucket), change...)
	}
	return newRegistry(t, change...)
}

// newRegistry starts a registry over an empty tree on the disk.
func newRegistry(t testing.TB, change ...func(*publish.Options)) *registry {
	t.Helper()
	return newRegistryOver(t, t.TempDir(), change...)
}

// newRegistryOver starts a registry over a tree that may have files in it, as after
// a restart.
func newRegistryOver(t testing.TB, root string, change ...func(*publish.Options)) *registry {
	t.Helper()
	r := &registry{t: t, root: root, Tree: indextest.OnDisk(t, root)}
	open := source.Directories{Root: root}.Open
	r.start(index.Options{Open: open, Watch: true}, open, change...)
	return r
}

// newRegistryInBucket starts a registry over a bucket, which may have files in it.
func newRegistryInBucket(t testing.TB, b *treetest.Bucket, change ...func(*publish.Options)) *registry {
	t.Helper()
	r := &registry{t: t, bucket: b, Tree: indextest.InBucket(t, b)}
	directories := source.Directories{Root: "."}
	r.start(index.Options{Listed: directories.Listed(b)}, func() (tree.Tree, error) { return directories.OpenIn(b) }, change...)
	return r
}

// again starts another registry over the same tree, as after a restart.
func (r *registry) again(t testing.TB, change ...func(*publish.Options)) *registry {
	t.Helper()
	if r.bucket != nil {
		return newRegistryInBucket(t, r.bucket, change...)
	}
	return newRegistryOver(t, r.root, change...)
}

// newUnobserved starts a registry over a tree on the disk, without an index: no request waits
// for the index while a fault keeps it from offering anything.
func newUnobserved(t testing.TB, root string, open func() (tree.Tree, error), change ...func(*publish.Options)) *registry {
	t.Helper()
	return (&registry{t: t, root: root, Tree: indextest.OnDisk(t, root)}).unobserved(open, change...)
}

func (r *registry) unobserved(open func() (tree.Tree, error), change ...func(*publish.Options)) *registry {
	r.t.Helper()
	r.publishInto(open, append([]func(*publish.Options){withoutIndex}, change...)...)
	return r
}

// publishInto starts the publisher.
func (r *registry) publishInto(open func() (tree.Tree, error), change ...func(*publish.Options)) {
	r.t.Helper()
	r.locks, r.log = new(locks), new(bytes.Buffer)
	o := publish.Options{
		Open:   open,
		Index:  func() publish.Index { return r.index },
		Lock:   r.locks.lock,
		Logger: slog.New(slog.NewTextHandler(r.log, nil)),
	}
	for _, c := range change {
		c(&o)
	}
	var err error
	if r.Publisher, err = publish.New(o); err != nil {
		r.t.Fatal(err)
	}
}

func (r *registry) start(indexed index.Options, open func() (tree.Tree, error), change ...func(*publish.Options)) {
	r.t.Helper()
	r.index = index.New(indexed)
	r.index.Start()
	r.t.Cleanup(func() { r.index.Close() })
	r.publishInto(open, change...)
	select {
	case <-r.index.Ready():
	case <-r.t.Context().Done():
		r.t.Fatal("the index is not ready")
	}
}

// Locks are the locks of one process.
type locks struct {
	mutex sync.Mutex
	keys  map[string]chan struct{}
	fail  error
}

func (l *locks) lock(ctx context.Context, name string) (func(), error) {
	l.mutex.Lock()
	if l.fail != nil {
		defer l.mutex.Unlock()
		return nil, l.fail
	}
	if l.keys == nil {
		l.keys = make(map[string]chan struct{})
	}
	if l.keys[name] == nil {
		l.keys[name] = make(chan struct{}, 1)
	}
	key := l.keys[name]
	l.mutex.Unlock()
	select {
	case key <- struct{}{}:
		return func() { <-key }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A dist has the files of a release by name, as GoReleaser leaves them.
type dist map[string]string

// newDist makes version 1.0.0 of acme/demo for two platforms. The builds of two
// different marks differ.
func newDist(t testing.TB, mark string) dist {
	t.Helper()
	d := make(dist)
	for _, name := range []string{linuxZip, darwinZip} {
		d[name] = indextest.Zip("terraform-provider-demo_v1.0.0", "#!"+mark+name)
	}
	d[manifest] = `{"version":1,"metadata":{"protocol_versions":["6.0"]}}`
	return d.sum()
}

// sum makes SHA256SUMS over all files.
func (d dist) sum() dist {
	delete(d, sums)
	list := make(wire.Checksums)
	for name, content := range d {
		if name != signature {
			list[name] = sha256.Sum256([]byte(content))
		}
	}
	d[sums] = string(list.Encode())
	return d
}

// signed adds a publisher's signature.
func (d dist) signed(by *indextest.Publisher) dist {
	d[signature] = by.Sign(d[sums])
	return d
}

// names returns the names of the files, in order.
func (d dist) names() []string {
	var names []string
	for name := range d {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// releaseFile is a file of acme/demo.
func releaseFile(t testing.TB, version, name string) publish.File {
	t.Helper()
	f, err := publish.ParseReleaseFile(demo, version, name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// moduleFile is a package of acme/vpc/aws.
func moduleFile(t testing.TB, name string) publish.File {
	t.Helper()
	f, err := publish.ParseModuleFile(vpc, name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// metadataFile is the registry.hcl of an address.
func metadataFile(t testing.TB, a address.Address) publish.File {
	t.Helper()
	f, err := publish.ParseMetadataFile(a, tree.MetadataName)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// put uploads a file of acme/demo 1.0.0.
func (r *registry) put(name, content string) (publish.Result, error) {
	f, err := publish.ParseReleaseFile(demo, "1.0.0", name)
	if err != nil {
		return publish.Result{}, err
	}
	return r.Put(r.t.Context(), f, upload(content))
}

func upload(content string) publish.Upload {
	return publish.Upload{Body: strings.NewReader(content), Size: int64(len(content))}
}

// mustPut uploads a file, and checks the outcome.
func (r *registry) mustPut(name, content string, outcome publish.Outcome) publish.Result {
	r.t.Helper()
	result, err := r.put(name, content)
	if err != nil {
		r.t.Fatalf("%s: %v\n%s", name, err, r.log)
	}
	if result.Outcome != outcome {
		r.t.Fatalf("%s: outcome %v, want %v: %+v", name, result.Outcome, outcome, result)
	}
	return result
}

// putAll uploads the files of a release in an order. The last file publishes the
// release.
func (r *registry) putAll(d dist, order ...string) {
	r.t.Helper()
	for i, name := range order {
		outcome := publish.Waiting
		if i == len(order)-1 {
			outcome = publish.Added
		}
		r.mustPut(name, d[name], outcome)
	}
}

// offers fails unless the release is offered, with the bytes of d.
func (r *registry) offers(d dist) {
	r.t.Helper()
	release := r.index.Snapshot().Provider(index.PlaceOf(demo)).Release("1.0.0")
	if release == nil {
		r.t.Fatal("the release is not offered")
	}
	packages := 0
	for name, content := range d {
		if strings.HasSuffix(name, ".zip") {
			packages++
		}
		if got := r.Read("providers/acme/demo/1.0.0/" + name); got != content {
			r.t.Errorf("%s has other bytes", name)
		}
	}
	if len(release.Packages) != packages {
		r.t.Errorf("%d packages are offered, want %d", len(release.Packages), packages)
	}
}

// files returns the paths of all files in the tree, hidden ones too, except keys. It
// leaves out the marker of an upload in the folder of a version in a bucket.
func (r *registry) files() (paths []string) {
	r.t.Helper()
	if r.bucket != nil {
		return slices.DeleteFunc(r.bucket.Names(), func(name string) bool {
			return strings.HasPrefix(name, "keys/") || path.Base(name) == tree.UploadName
		})
	}
	for _, part := range []string{"providers", "modules"} {
		err := filepath.WalkDir(filepath.Join(r.root, part), func(name string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && !e.IsDir() {
				relative, _ := filepath.Rel(r.root, name)
				paths = append(paths, filepath.ToSlash(relative))
			}
			return err
		})
		if err != nil {
			r.t.Fatal(err)
		}
	}
	return paths
}

// holds fails unless the tree has exactly these files.
func (r *registry) holds(paths ...string) {
	r.t.Helper()
	slices.Sort(paths)
	got := r.files()
	slices.Sort(got)
	if !slices.Equal(got, paths) {
		r.t.Errorf("the tree has\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(paths, "\n  "))
	}
}

// isClean fails if a file is staged.
func (r *registry) isClean() {
	r.t.Helper()
	if r.bucket != nil {
		if left := r.files(); strings.Contains(fmt.Sprint(left), tree.StagingName) {
			r.t.Errorf("there is still %v", left)
		}
		return
	}
	for _, part := range []string{"providers", "modules"} {
		if _, err := os.Stat(filepath.Join(r.root, part, tree.StagingName)); !errors.Is(err, fs.ErrNotExist) {
			r.t.Errorf("%s/%s is still there: %v", part, tree.StagingName, r.files())
		}
	}
}

// link makes a symlink in the tree.
func (r *registry) link(target, name string) {
	r.t.Helper()
	if r.bucket != nil {
		r.t.Skip("a bucket has no symlinks")
	}
	name = filepath.Join(r.root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Symlink(filepath.FromSlash(target), name); err != nil {
		r.t.Skip("no symlinks here: ", err)
	}
}

// filesIn returns the paths of files of a release in the tree.
func filesIn(folder string, names ...string) (paths []string) {
	for _, name := range names {
		paths = append(paths, path.Join(folder, name))
	}
	return paths
}

// saying fails unless err has a kind and contains a text.
func saying(t testing.TB, err, kind error, text string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want one of kind %q with %q", err, kind, text)
	}
}

// eventually fails if a condition does not come true.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 20 s", what)
		}
	}
}

func (d dist) String() string { return fmt.Sprint(d.names()) }

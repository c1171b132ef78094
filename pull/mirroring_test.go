package pull_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	svchost "github.com/hashicorp/terraform-svchost"
	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

const (
	directory     = "providers/" + host + "/acme/demo/"
	linuxZip      = "terraform-provider-demo_1.0.0_linux_amd64.zip"
	darwinZip     = "terraform-provider-demo_1.0.0_darwin_arm64.zip"
	sums          = "terraform-provider-demo_1.0.0_SHA256SUMS"
	keysFile      = "keys/" + host + "/acme.asc"
	record        = directory + ".versions.json"
	announcedFile = directory + ".1.0.0.packages.json"
)

// A mirroring is a tree that is filled from a site.
type mirroring struct {
	*pull.Filler
	*indextest.Tree
	root treeRoot // empty: in memory
	log  *logged
}

// A treeRoot is the location of a tree.
type treeRoot struct {
	dir    string           // on the disk
	bucket *treetest.Bucket // nil: on the disk
}

func (r treeRoot) tree(t testing.TB) *indextest.Tree {
	if r.bucket != nil {
		return indextest.InBucket(t, r.bucket)
	}
	return indextest.OnDisk(t, r.dir)
}

func (r treeRoot) open() (tree.Tree, error) {
	if r.bucket != nil {
		return source.Directories{Root: "."}.OpenIn(r.bucket)
	}
	return source.Directories{Root: r.dir}.Open()
}

// A treeKind is the kind of storage of a tree.
type treeKind struct{ bucket bool }

// eachTree runs a test over a tree on the disk and over one in a bucket.
func eachTree(t *testing.T, test func(*testing.T, treeKind)) {
	t.Run("disk", func(t *testing.T) { test(t, treeKind{}) })
	t.Run("bucket", func(t *testing.T) { test(t, treeKind{bucket: true}) })
}

// root returns an empty tree.
func (k treeKind) root(t testing.TB) treeRoot {
	t.Helper()
	if k.bucket {
		return treeRoot{bucket: new(treetest.Bucket)}
	}
	return treeRoot{dir: t.TempDir()}
}

// mirror mirrors into an empty tree.
func (k treeKind) mirror(t testing.TB, c *upstream.Client, policy pull.Policy) *mirroring {
	t.Helper()
	return over(t, c, policy, k.root(t))
}

// logged has the log and the events.
type logged struct {
	mutex  sync.Mutex
	text   bytes.Buffer
	events []pull.Event
}

func (l *logged) Write(b []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(b)
}

func (l *logged) observe(e pull.Event) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.events = append(l.events, e)
}

func (l *logged) count(text string) int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return strings.Count(l.text.String(), text)
}

// observed returns the reasons of the events of a kind.
func (l *logged) observed(kind pull.EventKind) (reasons []string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, e := range l.events {
		if e.Kind == kind {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

// onDisk mirrors into an empty directory on the local disk, as the module does.
func onDisk(t testing.TB, c *upstream.Client, policy pull.Policy) *mirroring {
	t.Helper()
	return over(t, c, policy, treeRoot{dir: t.TempDir()})
}

// over mirrors into a tree that may have files in it.
func over(t testing.TB, c *upstream.Client, policy pull.Policy, root treeRoot) *mirroring {
	t.Helper()
	m := &mirroring{Tree: root.tree(t), root: root}
	return m.start(t, c, pull.Options{Sources: sourceOf(c, policy), Open: root.open})
}

// inMemory mirrors into a tree in memory.
func inMemory(t testing.TB, c *upstream.Client, policy pull.Policy, folders *indextest.Tree) *mirroring {
	t.Helper()
	m := &mirroring{Tree: folders}
	return m.start(t, c, pull.Options{Sources: sourceOf(c, policy), Open: folders.Open})
}

// fillBefore fills a file of a tree in memory by an instance that has ended since.
func fillBefore(t testing.TB, c *upstream.Client, folders *indextest.Tree, name string) {
	t.Helper()
	m := inMemory(t, c, pull.Policy{}, folders)
	m.fill(t, name)
	m.Close()
}

func sourceOf(c *upstream.Client, policy pull.Policy) map[svchost.Hostname]pull.Source {
	return map[svchost.Hostname]pull.Source{host: {Client: c, Policy: policy}}
}

func (m *mirroring) start(t testing.TB, c *upstream.Client, o pull.Options) *mirroring {
	t.Helper()
	m.log = new(logged)
	o.Logger, o.Observe = slog.New(slog.NewTextHandler(m.log, nil)), m.log.observe
	var err error
	if m.Filler, err = pull.New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// Fill fills a file that the index does not know.
func (m *mirroring) Fill(ctx context.Context, a address.Address, name string) (*pull.Filled, error) {
	return m.Filler.Fill(ctx, a, name, nil, pull.FillOptions{})
}

// Available lists packages of a release that the index does not know.
func (m *mirroring) Available(ctx context.Context, a address.Address, version string) ([]wire.Archive, error) {
	list, _, err := m.Filler.Available(ctx, a, version, nil)
	return list, err
}

// remembers reports whether a file was filled before and is still there.
func (m *mirroring) remembers(name string) bool {
	f, err := m.Fill(background(), demo, name)
	return err == nil && !f.New
}

// fill fills a file, which must succeed.
func (m *mirroring) fill(t testing.TB, name string) *pull.Filled {
	t.Helper()
	f, err := m.Fill(background(), demo, name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return f
}

// mustRefuse checks that a fill fails and leaves nothing in the tree.
func (m *mirroring) mustRefuse(t testing.TB, name string, kind error, says string) {
	t.Helper()
	before := m.files(t)
	f, err := m.Fill(background(), demo, name)
	if f != nil || !errors.Is(err, kind) || !strings.Contains(err.Error(), says) {
		t.Fatalf("got %v, %v, want: %v, saying %q", f, err, kind, says)
	}
	if m.root.dir != "" && strings.Contains(err.Error(), m.root.dir) {
		t.Errorf("it names a path: %v", err)
	}
	after := m.files(t)
	after = slices.DeleteFunc(after, func(name string) bool { return name == record })
	before = slices.DeleteFunc(before, func(name string) bool { return name == record })
	if !slices.Equal(before, after) {
		t.Errorf("the tree had %q, and now has %q", before, after)
	}
}

// files returns the paths of all files in the tree. It leaves out the markers of
// uploaded folders in a bucket.
func (m *mirroring) files(t testing.TB) (paths []string) {
	t.Helper()
	if m.root.bucket != nil {
		return slices.DeleteFunc(m.root.bucket.Names(), func(name string) bool { return path.Base(name) == tree.UploadName })
	}
	err := afero.Walk(m.Fs, ".", func(name string, info fs.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			paths = append(paths, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(paths)
	return paths
}

// mustHave checks the names of the files in the tree. It ignores the announced hashes
// of packages, which have a test of their own.
func (m *mirroring) mustHave(t testing.TB, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := slices.DeleteFunc(m.files(t), func(name string) bool { return name == announcedFile }); !slices.Equal(got, want) {
		t.Errorf("the tree has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// scan returns the index's snapshot of the tree, without a Filler.
func (m *mirroring) scan(t testing.TB) *index.Snapshot {
	t.Helper()
	open := m.Open
	if m.root.bucket != nil {
		open = m.root.open
	}
	s, err := index.Scan(background(), index.Options{
		Open:              open,
		RequireSignatures: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (m *mirroring) content(t testing.TB, f *pull.Filled) string {
	t.Helper()
	r, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

func versionsOf(t testing.TB, m *mirroring) string {
	t.Helper()
	o, err := m.Versions(background(), demo)
	if err != nil {
		t.Fatal(err)
	}
	return listedIn(o)
}

func listedIn(o pull.Offering) string {
	var list []string
	for _, v := range o.Versions {
		list = append(list, v.Version)
	}
	return strings.Join(list, " ")
}

func sumOf(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content))) }

// scanned returns the index's snapshot of an origin's tree.
func scanned(t testing.TB, folders *indextest.Tree) *index.Snapshot {
	t.Helper()
	return (&mirroring{Tree: folders}).scan(t)
}

// The origin of the tests.
type site = upstreamtest.Site

var (
	newSite   = upstreamtest.NewSite
	newAcme   = upstreamtest.NewAcme
	acme      = upstreamtest.AcmeTree
	status    = upstreamtest.Status
	body      = upstreamtest.Body
	demo      = upstreamtest.Demo
	linux     = upstreamtest.Linux
	roots     = upstreamtest.Roots
	resolving = upstreamtest.Resolving
	newClient = upstreamtest.NewClient
	mustFail  = upstreamtest.MustFail
)

const (
	host       = upstreamtest.Host
	discovery  = upstreamtest.DiscoveryPath
	versions   = upstreamtest.VersionsPath
	metadata   = upstreamtest.DownloadPath
	files      = upstreamtest.FilesPath
	zipFile    = upstreamtest.ZipPath
	sumsFile   = upstreamtest.ChecksumsPath
	sigFile    = upstreamtest.SignaturePath
	mirrorBase = upstreamtest.MirrorURL
)

func background() context.Context { return context.Background() }

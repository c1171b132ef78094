// Package indextest builds trees for tests. A call reads like the files it
// writes:
//
//	tree := indextest.New(t)
//	tree.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64").Signed(publisher)
//	tree.Keys("acme", publisher)
//	tree.Write("modules/acme/vpc/aws/1.0.0/main.tf", `output "a" { value = 1 }`)
package indextest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// A Tree is a tree of files under construction.
type Tree struct {
	Fs afero.Fs
	t  testing.TB
}

// New returns an empty tree in memory.
func New(t testing.TB) *Tree { return On(t, afero.NewMemMapFs()) }

// OnDisk returns an empty tree in a directory.
func OnDisk(t testing.TB, dir string) *Tree {
	return On(t, afero.NewBasePathFs(afero.NewOsFs(), dir))
}

// On returns a tree on a file system.
func On(t testing.TB, fs afero.Fs) *Tree { return &Tree{Fs: fs, t: t} }

// InBucket returns a tree in a bucket. Writing and reading its files is not counted, and
// does not fail.
func InBucket(t testing.TB, b *treetest.Bucket) *Tree { return On(t, b.Fs()) }

// Open opens the tree; it is a value for index.Options.Open.
func (t *Tree) Open() (tree.Tree, error) {
	return tree.Tree{
		Providers: treetest.On(t.Fs, "providers"),
		Modules:   treetest.On(t.Fs, "modules"),
		Keys:      treetest.On(t.Fs, "keys"),
	}, nil
}

// Write writes a file. Its time is long past, so that the index trusts it.
func (t *Tree) Write(name, content string) *Tree {
	t.t.Helper()
	if err := t.Fs.MkdirAll(path.Dir(name), 0o755); err != nil {
		t.t.Fatal(err)
	}
	if err := afero.WriteFile(t.Fs, name, []byte(content), 0o644); err != nil {
		t.t.Fatal(err)
	}
	long := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := t.Fs.Chtimes(name, long, long); err != nil {
		t.t.Fatal(err)
	}
	return t
}

// Read returns a file.
func (t *Tree) Read(name string) string {
	t.t.Helper()
	content, err := afero.ReadFile(t.Fs, name)
	if err != nil {
		t.t.Fatal(err)
	}
	return string(content)
}

// Remove removes a file or a folder.
func (t *Tree) Remove(name string) *Tree {
	t.t.Helper()
	if err := t.Fs.RemoveAll(name); err != nil {
		t.t.Fatal(err)
	}
	return t
}

// SourceOfTag writes the record of a module's version that was fetched from the tag of a repository. Its
// package is there, as a .tar.gz.
func (t *Tree) SourceOfTag(dir, version, commit string) *Tree {
	t.t.Helper()
	sum := sha256.Sum256([]byte(t.Read(path.Join(dir, version+".tar.gz"))))
	return t.Write(path.Join(dir, tree.SourceName(version)), fmt.Sprintf(`{"tag":"v%s","commit":%q,"package_sha256":"%x"}`, version, commit, sum))
}

// Keys writes the keys of a namespace.
func (t *Tree) Keys(namespace string, publishers ...*Publisher) *Tree {
	t.t.Helper()
	var armored strings.Builder
	for _, p := range publishers {
		armored.WriteString(p.PublicKey())
	}
	return t.Write("keys/"+namespace+".asc", armored.String())
}

// A Release is a release under construction: some packages, and perhaps other files.
type Release struct {
	tree      *Tree
	dir, base string
	version   string
	packages  []string
}

// Provider writes the packages of a release to the provider's folder.
func (t *Tree) Provider(address, version string, platforms ...string) *Release {
	t.t.Helper()
	return t.ProviderIn("providers/"+address, path.Base(address), version, platforms...)
}

// ProviderIn writes the packages of a release to any folder.
func (t *Tree) ProviderIn(dir, typ, version string, platforms ...string) *Release {
	t.t.Helper()
	r := &Release{tree: t, dir: dir, base: "terraform-provider-" + typ + "_" + version, version: version}
	for _, platform := range platforms {
		name := r.base + "_" + platform + ".zip"
		t.Write(path.Join(dir, name), ProviderZip(typ, version, platform))
		r.packages = append(r.packages, name)
	}
	return r
}

// ChecksumsName returns the path of the release's SHA256SUMS.
func (r *Release) ChecksumsName() string { return path.Join(r.dir, r.base+"_SHA256SUMS") }

// Manifest writes the release's manifest with its protocol versions.
func (r *Release) Manifest(protocols ...string) *Release {
	r.tree.t.Helper()
	r.tree.Write(path.Join(r.dir, r.base+"_manifest.json"),
		fmt.Sprintf(`{"version":1,"metadata":{"protocol_versions":["%s"]}}`, strings.Join(protocols, `","`)))
	return r
}

// Checksums writes the release's SHA256SUMS of the packages that exist now.
func (r *Release) Checksums() *Release {
	r.tree.t.Helper()
	var lines []string
	for _, name := range r.packages {
		lines = append(lines, fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(r.tree.Read(path.Join(r.dir, name)))), name))
	}
	slices.Sort(lines)
	r.tree.Write(r.ChecksumsName(), strings.Join(lines, ""))
	return r
}

// Signed writes the release's SHA256SUMS, unless it is there, and signs it.
func (r *Release) Signed(by *Publisher) *Release {
	r.tree.t.Helper()
	if ok, _ := afero.Exists(r.tree.Fs, r.ChecksumsName()); !ok {
		r.Checksums()
	}
	r.tree.Write(r.ChecksumsName()+".sig", by.Sign(r.tree.Read(r.ChecksumsName())))
	return r
}

// Docs writes pages of the release's documentation, given as names and contents in
// turn: "resources/thing.md".
func (r *Release) Docs(namesAndContents ...string) *Release {
	r.tree.t.Helper()
	for i := 0; i < len(namesAndContents); i += 2 {
		r.tree.Write(path.Join(r.VersionFolder(), "docs", namesAndContents[i]), namesAndContents[i+1])
	}
	return r
}

// VersionFolder returns the path of the release's own folder, which has its documentation.
// Its packages may be beside the folder.
func (r *Release) VersionFolder() string {
	if path.Base(r.dir) == r.version {
		return r.dir
	}
	return path.Join(r.dir, r.version)
}

// ProviderZip returns a package whose provider only prints its name: a stand-in for
// platforms on which nothing runs it. Each package has bytes of its own.
func ProviderZip(typ, version, platform string) string {
	return Zip("terraform-provider-"+typ+"_v"+version,
		fmt.Sprintf("#!/bin/sh\necho 'a stand-in for the %s provider %s on %s' >&2\nexit 1\n", typ, version, platform))
}

// compressor packs all zips, one after the other. archive/zip has a pool of them, which the race
// detector empties at random, and making one takes longer than a small file.
var (
	compressor, _ = flate.NewWriter(nil, 5) // the level of archive/zip
	packing       sync.Mutex
)

// Zip packs files given as names and contents in turn.
func Zip(namesAndContents ...string) string {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	packing.Lock()
	defer packing.Unlock()
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		compressor.Reset(w)
		return compressor, nil
	})
	for i := 0; i < len(namesAndContents); i += 2 {
		h := &zip.FileHeader{Name: namesAndContents[i], Method: zip.Deflate}
		h.SetMode(0o755)
		w, err := z.CreateHeader(h)
		if err != nil {
			panic(err)
		}
		w.Write([]byte(namesAndContents[i+1]))
	}
	z.Close()
	return b.String()
}

// TarGz packs files given as names and contents in turn.
func TarGz(namesAndContents ...string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for i := 0; i < len(namesAndContents); i += 2 {
		content := namesAndContents[i+1]
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: namesAndContents[i], Size: int64(len(content)), Mode: 0o644})
		w.Write([]byte(content))
	}
	w.Close()
	z.Close()
	return b.String()
}

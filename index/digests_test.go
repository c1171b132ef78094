package index_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// publishing is a tree into which files are published, and its index.
type publishing struct {
	t     *testing.T
	root  string
	tree  tree.Tree
	store *memoryStore
	*index.Index
}

func newPublishing(t *testing.T) *publishing {
	t.Helper()
	root := t.TempDir()
	files, err := source.Directories{Root: root}.Open()
	if err != nil {
		t.Fatal(err)
	}
	p := &publishing{t: t, root: root, tree: files, store: new(memoryStore)}
	p.restart()
	return p
}

// restart begins another index over the same tree and memo.
func (p *publishing) restart() {
	o := options(p.t, source.Directories{Root: p.root}.Open)
	o.Store = p.store
	p.Index = index.New(o)
	p.t.Cleanup(func() { p.Close() })
}

// place writes a file to its folder below StagingName, has it checked, and then
// renames the folder into the part.
func (p *publishing) place(part tree.Part, name, content string, check func(f afero.File, info fs.FileInfo)) {
	p.t.Helper()
	staged := path.Join(tree.StagingName, name)
	temporary, err := part.NewTemporary(p.t.Context(), staged)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := io.WriteString(temporary, content); err != nil {
		p.t.Fatal(err)
	}
	info, err := temporary.Rename(p.t.Context(), staged)
	if err != nil {
		p.t.Fatal(err)
	}
	pathTo := func(name string) string { return filepath.Join(part.Path(), filepath.FromSlash(name)) }
	f, err := os.Open(pathTo(staged))
	if err != nil {
		p.t.Fatal(err)
	}
	defer f.Close()
	check(f, info)
	dir := path.Dir(name)
	if err := errors.Join(os.MkdirAll(pathTo(path.Dir(dir)), 0o755), os.Rename(pathTo(path.Dir(staged)), pathTo(dir))); err != nil {
		p.t.Fatal(err)
	}
}

func (p *publishing) placePackage() {
	p.t.Helper()
	p.place(p.tree.Providers, "acme/demo/1.0.0/"+zipName, indextest.ProviderZip("demo", "1.0.0", "linux_amd64"), func(f afero.File, info fs.FileInfo) {
		d, err := archive.CheckPackage(p.t.Context(), f, info.Size(), "demo", address.Platform{OS: "linux", Arch: "amd64"}, wire.SHA256{})
		if err != nil {
			p.t.Fatal(err)
		}
		p.Digests().Add(info, d)
	})
}

func (p *publishing) placeModule() {
	p.t.Helper()
	p.place(p.tree.Modules, "acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "variable \"cidr\" {}\n"), func(f afero.File, info fs.FileInfo) {
		d, err := (*archive.Arriving)(nil).CheckModule(p.t.Context(), f, info.Size(), info.Name(), wire.SHA256{})
		if err != nil {
			p.t.Fatal(err)
		}
		p.Digests().Add(info, d)
	})
}

// A package that was read while it was published is not read again, neither by the next scan
// nor after a restart. It is offered like a package that was.
func TestPublishedPackagesAreNotReadAgain(t *testing.T) {
	p := newPublishing(t)
	p.placePackage()
	p.placeModule()
	for _, restarted := range []bool{false, true} {
		if restarted {
			p.restart()
		}
		s := rescan(t, p.Index)
		if s.Read != 0 || s.Recalled != 2 {
			t.Errorf("restarted is %v: %d were read, and %d known", restarted, s.Read, s.Recalled)
		}
		nothingWithheld(t, s)
		read := scanWith(t, index.Options{Open: source.Directories{Root: p.root}.Open})
		if read.Read != 2 {
			t.Fatalf("a scan that knows nothing reads %d", read.Read)
		}
		k, want := s.Provider(index.PlaceOf(ownDemo)).Release("1.0.0").Package("linux", "amd64"), read.Provider(index.PlaceOf(ownDemo)).Release("1.0.0").Package("linux", "amd64")
		if k.File.SHA256 != want.File.SHA256 || k.File.Size != want.File.Size {
			t.Errorf("the package is %+v, want %+v", k, want)
		}
		m, wanted := s.Module(index.PlaceOf(ownVPC)).Version("1.0.0"), read.Module(index.PlaceOf(ownVPC)).Version("1.0.0")
		if m.FileHashes != wanted.FileHashes || m.Archive.SHA256 != wanted.Archive.SHA256 || m.Archive.Size != wanted.Archive.Size || len(m.Summary().Inputs) != 1 {
			t.Errorf("the module is %+v, want %+v", m, wanted)
		}
	}
}

// A file is read if it is no longer the checked file.
func TestChangedPackagesAreRead(t *testing.T) {
	for _, test := range []struct {
		rule   string
		change func(file string, content []byte, at time.Time) error
	}{
		{"at another time", func(file string, content []byte, at time.Time) error {
			at = at.Add(time.Second)
			return errors.Join(os.WriteFile(file, content, 0o644), os.Chtimes(file, at, at))
		}},
		{"in a new file of the same time", func(file string, content []byte, at time.Time) error {
			return errors.Join(os.WriteFile(file+".new", content, 0o644), os.Chtimes(file+".new", at, at), os.Rename(file+".new", file))
		}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			p := newPublishing(t)
			p.placePackage()
			file := filepath.Join(p.root, "providers", "acme", "demo", "1.0.0", zipName)
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := test.change(file, make([]byte, info.Size()), info.ModTime()); err != nil {
				t.Fatal(err)
			}
			s := rescan(t, p.Index)
			if s.Read != 1 || s.Provider(index.PlaceOf(ownDemo)) != nil {
				t.Errorf("%d were read, offered is %+v", s.Read, s.Report().Offered)
			}
		})
	}
}

// Without inodes, a file cannot be told from another file of the same size and time.
func TestDigestsNeedInodes(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	const name = "providers/acme/demo/" + zipName
	f, err := files.Fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	d, err := archive.CheckPackage(t.Context(), f, info.Size(), "demo", address.Platform{OS: "linux", Arch: "amd64"}, wire.SHA256{})
	if err != nil {
		t.Fatal(err)
	}
	o := options(t, files.Open)
	o.Digests = new(index.Digests)
	o.Digests.Add(info, d)
	if s := scanWith(t, o); s.Read != 1 {
		t.Errorf("%d were read", s.Read)
	}
}
